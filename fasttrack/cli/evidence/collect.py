# SPDX-License-Identifier: Apache-2.0
"""`fasttrack evidence collect`."""

import shlex
from collections.abc import Iterator
from pathlib import Path

import click

from fasttrack.errors import Exit
from fasttrack.evidence.collect import Collected, Collector, Progress, Settings
from fasttrack.evidence.plan import PlannedCell, read_plan
from fasttrack.evidence.shards import Shard
from fasttrack.report.output import write_output
from fasttrack.report.visible import visible, visible_log
from fasttrack.vocabulary import Kind


@click.command("collect")
@click.option(
    "--plan",
    "plan_file",
    type=click.Path(path_type=Path, dir_okay=False),
    required=True,
    help="What `evidence plan --out` wrote.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    required=True,
    help="Folder of the unsigned bundle; a run that was interrupted goes on there.",
)
@click.option(
    "--root",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    default=Path(),
    help="Source tree to measure; no repository is needed [the current directory].",
)
@click.option(
    "--hardware", metavar="ID", required=True, help="What this machine is, by the policy."
)
@click.option("--shard", default="1/1", show_default=True, metavar="I/N", help="Share to measure.")
@click.option(
    "--timeout",
    type=click.FloatRange(min=1),
    default=600.0,
    show_default=True,
    help="Seconds that one cell may take.",
)
@click.option(
    "--shared",
    is_flag=True,
    help="Other collectors use --out too, although nothing keeps tests from it here.",
)
def command(
    plan_file: Path,
    out: Path,
    root: Path,
    hardware: str,
    shard: str,
    timeout: float,
    shared: bool,
) -> int:
    """Measure the cells of a plan and write down, unsigned, what was seen.

    Each cell runs in a child process of its own. The tree must be the plan's, byte by byte. Exits
    with 0 when every cell of this share is shown, else with 1. Tests can write only to folders of
    their own where the system sees to it (Linux 5.13 or newer).
    """
    settings = Settings(root, out, hardware, Shard.parse(shard), timeout, shared)
    collected = Collector(read_plan(plan_file), settings).run(_tell)
    write_output("\n".join(_summary(collected, plan_file, out)) + "\n", None)
    whole = not collected.failed and not collected.unmeasured
    return Exit.FAST_TRACK if whole else Exit.REFUSED


def _tell(progress: Progress) -> None:
    """One line for each cell, and what its tests printed when they show nothing."""
    cell = progress.cell
    verdict = "; ".join(progress.problems) or "ok"
    line = f"[{progress.done}/{progress.total}] {cell.kind.value} {cell.unit} {_axes(cell)}"
    click.echo(visible(f"{line}: {verdict}"), err=True)
    if progress.problems:
        for printed in progress.log.splitlines()[-20:]:
            click.echo(f"    {visible_log(printed.rstrip())}", err=True)


def _axes(cell: PlannedCell) -> str:
    """What tells a cell from its neighbours: of a refusal the bound and the value past it."""
    names = sorted(cell.values.keys() - {"unit"})
    if cell.kind is Kind.REFUSAL:
        bound = str(cell.values["bound"])
        names = ["region", "bound", *(n for n in names if n == bound)]
    return " ".join(f"{name}={cell.values[name]}" for name in names)


def _summary(collected: Collected, plan: Path, out: Path) -> Iterator[str]:
    """What came of it, and the commands that come next."""
    yield f"run {collected.run}: {collected.passed} cells shown, {collected.failed} not"
    if collected.resumed:
        yield f"{collected.resumed} cells were there already"
    if collected.unmeasured:
        yield f"{collected.unmeasured} cells not measured: install what they need, see above"
    if not collected.walled:
        yield "note: nothing keeps tests from this bundle and the tree here (it takes Landlock)"
    for why, count in collected.elsewhere.items():
        yield f"{count} cells left: {why}"
    if collected.failed:
        yield "what failed stays in this bundle; mend it, commit, and plan again:"
        yield "next: fasttrack evidence plan --out PLAN"
    if collected.passed:
        options = f"--bundle {shlex.quote(str(out))} --plan {shlex.quote(str(plan))}"
        yield f"next: fasttrack evidence sign {options} --key FILE --key-id ID"
