# SPDX-License-Identifier: Apache-2.0
"""`fasttrack evidence plan`."""

from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import click

from fasttrack.change.read import read_change, read_revision
from fasttrack.cli.options import (
    config_dir_option,
    evidence_option,
    manifest_option,
    policy_from_option,
    repo_option,
)
from fasttrack.config import needed, read_config
from fasttrack.errors import FactUnavailable
from fasttrack.evidence.choice import Choice
from fasttrack.evidence.coverage import covered_by
from fasttrack.evidence.departure import require_recent
from fasttrack.evidence.gathered import gather, judged_evidence
from fasttrack.evidence.plan import write_plan
from fasttrack.evidence.planning import Planned, Planner
from fasttrack.evidence.shards import MAX_SHARDS
from fasttrack.evidence.surroundings import Surroundings
from fasttrack.evidence.terms import Terms
from fasttrack.report import plan as render
from fasttrack.report.output import write_output
from fasttrack.vocabulary import Kind, Tier

SNIPPETS = {
    "github": render.github_snippet,
    "buildkite": render.buildkite_snippet,
    "slurm": render.slurm_script,
}


@click.command("plan")
@repo_option
@config_dir_option
@manifest_option
@click.option("--head", metavar="REF", default="HEAD", show_default=True, help="What to measure.")
@policy_from_option
@click.option(
    "--policy",
    "policy_file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Plan under this policy file instead.",
)
@evidence_option
@click.option(
    "--tier",
    type=click.Choice([t.value for t in Tier]),
    help="Plan what this tier owes, instead of the tier that each region claims.",
)
@click.option("--unit", "units", metavar="ID", multiple=True, help="Only this unit; repeatable.")
@click.option(
    "--kind",
    "kinds",
    type=click.Choice([k.value for k in Kind]),
    multiple=True,
    help="Only this kind of evidence; repeatable.",
)
@click.option(
    "--region", "regions", metavar="ID", multiple=True, help="Only this region; repeatable."
)
@click.option(
    "--hardware",
    metavar="ID",
    multiple=True,
    help="Nothing that is measured on other hardware; repeatable.",
)
@click.option(
    "--shards",
    type=click.IntRange(1, MAX_SHARDS),
    help="Jobs of the github, buildkite and slurm formats [one per kind of machine].",
)
@click.option(
    "--format",
    "output_format",
    type=click.Choice(["text", "json", *SNIPPETS]),
    default="text",
    show_default=True,
    help="What to print.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Also write the plan to FILE, as JSON.",
)
def command(
    repo: Path,
    config_dir: str | None,
    name: str | None,
    head: str,
    policy_from: str | None,
    policy_file: Path | None,
    evidence: Path | None,
    tier: str | None,
    units: tuple[str, ...],
    kinds: tuple[str, ...],
    regions: tuple[str, ...],
    hardware: tuple[str, ...],
    shards: int | None,
    output_format: str,
    out: Path | None,
) -> None:
    """Write down which cells to measure, of which bytes, and with which seeds.

    These are the cells that the scope at --head owes and that no evidence covers. The scope and
    the files come from that commit, never from the working tree; the policy from the tip of the
    target branch (origin/HEAD, else main). Nothing is executed.
    """
    choice = Choice(
        Tier(tier) if tier else None,
        frozenset(units),
        frozenset(map(Kind, kinds)),
        frozenset(regions),
        frozenset(hardware),
    )
    now = datetime.now(UTC).replace(microsecond=0)
    with read_change(repo, head=head, policy_from=policy_from) as change:
        if out is not None or output_format != "text":
            # Where history is not here, `sign` says so; to look at what is missing needs none.
            with suppress(FactUnavailable):
                require_recent(change, f"commit {change.head[:12]}", now)
        config = read_config(change, folder=config_dir, policy_file=policy_file)
        with read_revision(repo, change.head) as revision:
            planner = Planner(revision, config, name)
            owed = planner.owed(choice)
            with needed(f"the evidence of {config.folder}"):
                stored = gather(change, (change.base, revision.base), config.folder, evidence)
            cells = {cell.id for cell in owed}
            judged = judged_evidence(stored, cells, config.policy.trust, now.date())
            around = Surroundings(change, revision.base)
            terms = Terms(config.policy, planner.manifest, now.date(), around)
            planned = planner.make(owed, covered_by(judged, terms, planner.inputs_of), now)
    text = _rendered(planned, output_format, out, shards)
    # The file first: what fails leaves nothing on the standard output.
    if out is not None:
        write_plan(planned.plan, out)
    write_output(text, None)


def _rendered(planned: Planned, output_format: str, out: Path | None, shards: int | None) -> str:
    if output_format == "text":
        return render.plan_text(planned, None if out is None else str(out))
    if output_format == "json":
        return render.plan_json(planned.plan)
    file = render.PLAN_FILE if out is None else str(out)
    return SNIPPETS[output_format](planned.plan, file, shards)
