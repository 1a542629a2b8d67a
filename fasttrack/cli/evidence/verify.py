# SPDX-License-Identifier: Apache-2.0
"""`fasttrack evidence verify`."""

from datetime import date
from pathlib import Path

import click

from fasttrack.change.read import read_revision
from fasttrack.cli.options import as_of_option, format_option, policy_from_option, repo_option
from fasttrack.config import file_or_none, read_config
from fasttrack.config import read_file as read_policy_file
from fasttrack.errors import Exit, InputError
from fasttrack.policy.load import load_policy, with_sigstore_root
from fasttrack.policy.trust import ROOT_FILE, Trust
from fasttrack.report.output import write_output
from fasttrack.report.style import terminal_style
from fasttrack.workspace import open_workspace


@click.command("verify")
@click.argument(
    "files", nargs=-1, required=True, metavar="FILE...", type=click.Path(path_type=Path)
)
@repo_option
@click.option(
    "--policy",
    "policy_file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Whose keys count [the policy of the repository's working tree].",
)
@policy_from_option
@as_of_option
@format_option
def command(
    files: tuple[Path, ...],
    repo: Path,
    policy_file: Path | None,
    policy_from: str | None,
    as_of: date,
    output_format: str,
) -> int:
    """Tell for every statement in evidence files whether it counts, and why not.

    The policy is the working tree's, so that a key can be tried before it is committed; --policy
    and --policy-from name the one of a file or of a commit.

    Exits with 0 when all count, with 1 when one does not, and with 2 when something in the files
    is no signed statement.
    """
    from fasttrack.evidence.accept import accept
    from fasttrack.evidence.store import read_file
    from fasttrack.report.statements import statements_json, statements_text

    trust = _trust(repo, policy_file, policy_from)
    contents = [read_file(path) for path in files]
    stored = [one for content in contents for one in content.statements]
    problems = [problem for content in contents for problem in content.problems]
    if not stored and not problems:
        raise InputError.one(str(files[0]), "no statement", "lines of signed statements")
    judged = accept(stored, trust, as_of)
    if output_format == "json":
        write_output(statements_json(stored, judged, problems, as_of), None)
    else:
        write_output(statements_text(stored, judged, problems, terminal_style()), None)
    if problems:
        return Exit.BAD_INPUT
    return Exit.FAST_TRACK if all(one.accepted for one in judged) else Exit.REFUSED


def _trust(repo: Path, policy_file: Path | None, policy_from: str | None) -> Trust:
    if policy_from is not None:
        if policy_file is not None:
            raise InputError.one("verify", "--policy and --policy-from", "one of them")
        with read_revision(repo, policy_from) as revision:
            return read_config(revision, folder=None, policy_file=None).policy.trust
    if policy_file is None:
        return open_workspace(repo).config.policy.trust
    policy = load_policy(read_policy_file(policy_file), policy_file.name)
    return with_sigstore_root(policy, lambda: file_or_none(policy_file.parent / ROOT_FILE)).trust
