# SPDX-License-Identifier: Apache-2.0
"""`fasttrack policy`."""

from datetime import date
from pathlib import Path

import click

from fasttrack.cli.options import as_of_option, repo_option
from fasttrack.errors import Exit
from fasttrack.report.output import write_output
from fasttrack.workspace import open_workspace

config_dir_option = click.option(
    "--config-dir", metavar="DIR", help="Folder of policy and manifests inside the repository."
)


@click.group("policy")
def command() -> None:
    """Test, show and backtest a policy."""


@command.command("test")
@repo_option
@config_dir_option
@click.option(
    "--fixtures",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder of fixtures [policy-tests in the configuration folder].",
)
@as_of_option
def test(repo: Path, config_dir: str | None, fixtures: Path | None, as_of: date) -> int:
    """Run the policy's fixtures: small changes with the verdict that they must get.

    Exits with 1 when one comes out otherwise.
    """
    from fasttrack.policy_fixtures import load_fixtures, run_fixtures
    from fasttrack.report.policy import fixture_line, fixtures_summary

    workspace = open_workspace(repo, config_dir)
    folder = fixtures or repo / workspace.config.folder / "policy-tests"
    results = []
    for result in run_fixtures(workspace, load_fixtures(folder), as_of):
        results.append(result)
        write_output(fixture_line(result), None)
    write_output(fixtures_summary(results), None)
    return Exit.REFUSED if any(r.wrong for r in results) else Exit.FAST_TRACK


@command.command("show")
@repo_option
@config_dir_option
@click.argument("paths", nargs=-1)
def show(repo: Path, config_dir: str | None, paths: tuple[str, ...]) -> None:
    """Tell what the policy lets through, or how it classes PATHS."""
    from fasttrack.report.policy import classes_text, policy_text

    workspace = open_workspace(repo, config_dir)
    write_output(classes_text(workspace, paths) if paths else policy_text(workspace), None)


@command.command("backtest")
@repo_option
@click.argument("revisions", metavar="OLD..NEW")
@click.option(
    "--config",
    "config_path",
    type=click.Path(path_type=Path, file_okay=False),
    help="Judge under the policy and manifests of this folder [the repository's own].",
)
@click.option("--limit", type=click.IntRange(1), help="Only the newest N changes.")
@click.option("--all", "labelled", is_flag=True, help="Judge changes outside the lane too.")
@as_of_option
@click.option("--format", "output_format", type=click.Choice(["text", "json"]), default="text")
@click.option("--output", type=click.Path(path_type=Path, dir_okay=False))
def backtest(
    repo: Path,
    revisions: str,
    config_path: Path | None,
    limit: int | None,
    labelled: bool,
    as_of: date,
    output_format: str,
    output: Path | None,
) -> None:
    """Judge every change that was merged in a range, under today's policy."""
    from fasttrack.backtest import judge_all, merged_changes, tally
    from fasttrack.report.backtest import backtest_json, backtest_text

    workspace = (
        open_workspace(config_path.parent, config_path.name)
        if config_path
        else open_workspace(repo)
    )
    changes = merged_changes(repo, revisions, limit)
    judged = []
    for one in judge_all(repo, workspace, changes, as_of, labelled=labelled):
        judged.append(one)
        if len(judged) % 50 == 0:
            click.echo(f"{len(judged)} of {len(changes)} judged", err=True)
    counts = tally(judged)
    if output_format == "json":
        write_output(backtest_json(judged, counts), output)
    else:
        write_output(backtest_text(counts, workspace.config.policy.version), output)
