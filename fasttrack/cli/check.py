# SPDX-License-Identifier: Apache-2.0
"""`fasttrack check`."""

import sys
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
from fasttrack.ran import RUN_TIMEOUT_S
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
@click.option(
    "--run-probe",
    is_flag=True,
    help="Import the governed code and collect its tests, in a sandbox. Runs code of the change.",
)
@click.option(
    "--run-base-tests",
    is_flag=True,
    help="Run the target branch's tests over the change, in a sandbox. Runs code of the change.",
)
@click.option(
    "--run-timeout",
    type=click.FloatRange(min=1),
    default=RUN_TIMEOUT_S,
    show_default=True,
    help="Seconds that one run of such code may take.",
)
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
    run_probe: bool,
    run_base_tests: bool,
    run_timeout: float,
    as_of: date,
    output_format: str,
    output: Path | None,
) -> int:
    """Judge a change against the target branch's policy.

    The change is merge base -> HEAD; policy and base manifests are read from the tip of the
    target branch (origin/HEAD, else main). Only commits are judged, never the working tree, and
    nothing of the change is executed unless --run-probe or --run-base-tests asks for it.
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
        run_probe=run_probe,
        run_base_tests=run_base_tests,
        run_timeout_s=run_timeout,
    )
    record = verdict_record(evaluate(request, as_of, _tell))
    if output_format == "json":
        write_output(json_text(record), output)
    else:
        style = Style() if output is not None else terminal_style()
        write_output(text_report(record, style, asked=run_probe or run_base_tests), output)
    return record.exit_code


def _tell(text: str) -> None:
    """Progress, for who watches a terminal; logs hold the result alone."""
    if sys.stderr.isatty():
        click.echo(text, err=True)
