# SPDX-License-Identifier: Apache-2.0
"""`fasttrack evidence list`."""

from datetime import date
from pathlib import Path

import click

from fasttrack.change.read import read_change
from fasttrack.cli.options import as_of_option, format_option, policy_from_option, repo_option
from fasttrack.config import needed, read_config
from fasttrack.report.output import write_output
from fasttrack.report.style import terminal_style


@click.command("list")
@repo_option
@policy_from_option
@as_of_option
@format_option
def command(repo: Path, policy_from: str | None, as_of: date, output_format: str) -> None:
    """List the statements that the repository holds at HEAD, and which of them count.

    The policy is the one at HEAD too, or that of --policy-from. Whether a change may count on a
    statement is for `fasttrack check` to say, which asks the target branch's policy.
    """
    from fasttrack.evidence.accept import accept
    from fasttrack.evidence.store import FOLDER, read_tree
    from fasttrack.report.statements import statements_json, statements_text

    policy_tip = policy_from or "HEAD"
    with read_change(repo, base="HEAD", policy_from=policy_tip) as change:
        config = read_config(change, folder=None, policy_file=None)
        with needed("the files of HEAD"):
            contents = read_tree(change.head_files, f"{config.folder}/{FOLDER}", change.blob)
    judged = accept(contents.statements, config.policy.trust, as_of)
    everything = (contents.statements, judged, contents.problems)
    if output_format == "json":
        write_output(statements_json(*everything, as_of), None)
    else:
        write_output(statements_text(*everything, terminal_style()), None)
