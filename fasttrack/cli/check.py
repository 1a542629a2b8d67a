# SPDX-License-Identifier: Apache-2.0
"""`fasttrack check`."""

from datetime import date
from pathlib import Path

import click

from fasttrack.cli.options import (
    as_of_option,
    config_dir_option,
    evidence_option,
    policy_from_option,
    repo_option,
)
from fasttrack.report.output import write_output
from fasttrack.report.record import json_text, verdict_record
from fasttrack.report.style import Style, terminal_style
from fasttrack.report.text import text_report
from fasttrack.verdict import Request, evaluate


@click.command("check")
@repo_option
@click.option("--base", metavar="REF", help="Where the change starts [merge base with target].")
@click.option("--head", metavar="REF", default="HEAD", show_default=True, help="The change.")
@policy_from_option
@click.option(
    "--policy",
    "policy_file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Judge under this policy file instead; the result is provisional.",
)
@click.option(
    "--patch",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Judge this patch file, applied to --onto.",
)
@click.option("--onto", metavar="REF", help="Commit that --patch applies to.")
@evidence_option
@config_dir_option
@click.option("--labelled", is_flag=True, help="The change carries the fast-track label.")
@as_of_option
@click.option(
    "--format",
    "output_format",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="How to print the verdict.",
)
@click.option(
    "--output", type=click.Path(path_type=Path, dir_okay=False), help="Write to FILE, not stdout."
)
def command(
    repo: Path,
    base: str | None,
    head: str,
    policy_from: str | None,
    policy_file: Path | None,
    patch: Path | None,
    onto: str | None,
    evidence: Path | None,
    config_dir: str | None,
    labelled: bool,
    as_of: date,
    output_format: str,
    output: Path | None,
) -> int:
    """Judge a change against the target branch's policy.

    The change is merge base -> HEAD; policy and base manifests are read from the tip of the
    target branch (origin/HEAD, else main). Only commits are judged, never the working tree, and
    nothing of the change is executed.
    """
    request = Request(
        repo=repo,
        base=base,
        head=head,
        policy_from=policy_from,
        policy_file=policy_file,
        patch=patch,
        onto=onto,
        config_dir=config_dir,
        labelled=labelled,
        evidence=evidence,
    )
    record = verdict_record(evaluate(request, as_of))
    if output_format == "json":
        write_output(json_text(record), output)
    else:
        style = Style() if output is not None else terminal_style()
        write_output(text_report(record, style), output)
    return record.exit_code
