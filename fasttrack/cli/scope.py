# SPDX-License-Identifier: Apache-2.0
"""`fasttrack scope`: questions to a manifest on disk."""

from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import click

from fasttrack.cli.options import (
    as_of_option,
    config_dir_option,
    format_option,
    manifest_option,
    repo_option,
)
from fasttrack.errors import Exit
from fasttrack.manifest.admission import Question, ask, require_known
from fasttrack.report.explain import answer_json, answer_text
from fasttrack.report.output import write_output
from fasttrack.report.style import terminal_style
from fasttrack.vocabulary import Kind
from fasttrack.workspace import open_workspace


@click.group("scope")
def command() -> None:
    """Ask what a manifest's scope admits and which evidence it owes."""


@command.command("points")
@repo_option
@config_dir_option
@manifest_option
@click.option("--kind", type=click.Choice([k.value for k in Kind]), help="Only this kind.")
@click.option("--count", is_flag=True, help="Print the table of counts only.")
@format_option
def points(
    repo: Path,
    config_dir: str | None,
    name: str | None,
    kind: str | None,
    count: bool,
    output_format: str,
) -> None:
    """List the witness points of a manifest, per kind and region.

    These are the cells that evidence must cover once a region claims a tier that owes the kind.
    """
    from fasttrack.report.points import count_table, points_json, points_text

    workspace = open_workspace(repo, config_dir)
    manifest = workspace.manifest(name)
    kinds = [Kind(kind)] if kind else list(Kind)
    asked = (manifest, kinds, workspace.config.policy, workspace.tables(manifest))
    if output_format == "json":
        write_output(points_json(*asked), None)
    else:
        write_output(count_table(*asked) if count else points_text(*asked), None)


def _point_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """The options that name one configuration, the same for every command that asks about one."""
    for option in reversed(
        [
            click.option("--gpu", metavar="ID", required=True, help="Hardware id of the policy."),
            click.option("--tp", type=click.IntRange(1), required=True, help="Tensor parallelism."),
            click.option(
                "--dcp",
                type=click.IntRange(1),
                default=1,
                show_default=True,
                help="Decode context parallelism.",
            ),
            click.option(
                "--requests", type=click.IntRange(1), required=True, help="Requests of one step."
            ),
            click.option(
                "--draft",
                type=click.IntRange(0),
                default=0,
                show_default=True,
                help="Draft tokens per request.",
            ),
            click.option(
                "--context",
                type=click.IntRange(1),
                default=1,
                show_default=True,
                help="Longest context in tokens.",
            ),
        ]
    ):
        function = option(function)
    return function


@command.command("explain")
@repo_option
@config_dir_option
@manifest_option
@_point_options
@as_of_option
@format_option
def explain(
    repo: Path,
    config_dir: str | None,
    name: str | None,
    gpu: str,
    tp: int,
    dcp: int,
    requests: int,
    draft: int,
    context: int,
    as_of: date,
    output_format: str,
) -> int:
    """Tell whether a configuration is inside the scope, at which tier, or every reason why not.

    Policy and manifest are the working tree's, as those of an installation would be. What a region
    claims counts as far as the evidence of HEAD, for the files of HEAD, bears it out.
    Exits with 0 when the runtime may admit it, else with 1.
    """
    from fasttrack.evidence.at_head import effective_at_head

    workspace = open_workspace(repo, config_dir)
    manifest, config = workspace.manifest(name), workspace.config
    require_known(gpu, config.policy.hardware, "--gpu")
    found = effective_at_head(workspace.root, config, [manifest], as_of)
    question = Question(gpu, tp, dcp, requests, draft, context)
    tiers = found.tiers.get(manifest.name, {})
    answers = ask(manifest, question, config.policy.admit_tier, tiers)
    if output_format == "json":
        write_output(answer_json(manifest.name, answers), None)
    else:
        write_output(answer_text(manifest.name, answers, terminal_style()), None)
    return Exit.FAST_TRACK if any(a.admits for a in answers) else Exit.REFUSED


@command.command("diff")
@repo_option
@config_dir_option
@click.option("--base", metavar="REF", help="Where the change starts [merge base with target].")
@click.option("--head", metavar="REF", default="HEAD", show_default=True)
@click.option("--policy-from", metavar="REF", help="Tip of the target branch.")
def diff(
    repo: Path, config_dir: str | None, base: str | None, head: str, policy_from: str | None
) -> None:
    """Print what a change lets through that the target branch's manifests do not."""
    from fasttrack.change.read import read_change
    from fasttrack.config import read_base_manifests, read_config, read_head_manifests
    from fasttrack.report.widening import widening_text

    with read_change(repo, base=base, head=head, policy_from=policy_from) as change:
        config = read_config(change, folder=config_dir, policy_file=None)
        before = read_base_manifests(change, config)
        after = read_head_manifests(change, config)
        write_output(widening_text(before, after, terminal_style()), None)


@command.command("docs")
@repo_option
@config_dir_option
@click.option("--output", type=click.Path(path_type=Path, dir_okay=False))
@click.option(
    "--effective",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Also write the effective tiers of HEAD as JSON, for packaging.",
)
@as_of_option
def docs(
    repo: Path, config_dir: str | None, output: Path | None, effective: Path | None, as_of: date
) -> None:
    """Print the scope of every manifest as a Markdown page."""
    from fasttrack.evidence.at_head import effective_at_head
    from fasttrack.report.scope_page import effective_json, scope_page

    workspace = open_workspace(repo, config_dir)
    config, manifests = workspace.config, workspace.manifests
    # Files first: what fails leaves nothing on the standard output.
    if effective is not None:
        found = effective_at_head(workspace.root, config, manifests.valid.values(), as_of)
        write_output(effective_json(manifests, found, as_of), effective)
    write_output(scope_page(manifests, config.policy), output)
