# SPDX-License-Identifier: Apache-2.0
"""`fasttrack evidence gc`."""

from collections.abc import Callable, Iterator
from datetime import date
from pathlib import Path

import click

from fasttrack.case import Config
from fasttrack.change.change import Change
from fasttrack.change.read import read_revision
from fasttrack.cli.options import as_of_option, config_dir_option, repo_option
from fasttrack.config import read_base_manifests, read_config
from fasttrack.evidence.choice import Choice
from fasttrack.evidence.inputs import InputGraph, UnitInputs
from fasttrack.evidence.planning import Planner
from fasttrack.manifest.cells import Cell
from fasttrack.report.output import write_output
from fasttrack.report.visible import visible
from fasttrack.vocabulary import Tier
from fasttrack.workspace import repository_top

Owing = tuple[tuple[Cell, ...], Callable[[str], UnitInputs]]


@click.command("gc")
@repo_option
@config_dir_option
@as_of_option
@click.option("--delete", is_flag=True, help="Remove these files, instead of listing them.")
def command(repo: Path, config_dir: str | None, as_of: date, delete: bool) -> None:
    """List the evidence files of the working tree in which no statement counts any more.

    That is, for no cell that a manifest at HEAD can owe, at any tier. Policy and manifests are
    HEAD's. A file of which each statement is in another one too is listed as well, the plain one
    where the other is compressed, and so is what a writer that was killed left half written. A
    file of which something can not be read is never removed.
    """
    from fasttrack.evidence.garbage import copies, garbage, wanted_by
    from fasttrack.evidence.partial import abandoned, remove_abandoned
    from fasttrack.evidence.store import FOLDER, read_folder

    with read_revision(repo) as revision:
        config = read_config(revision, folder=config_dir, policy_file=None)
        wanted = wanted_by(_owing(revision, config))
    folder = (repository_top(repo) or repo) / config.folder / FOLDER
    contents = read_folder(folder)
    unread = {problem.where.partition(":")[0] for problem in contents.problems}
    useless = garbage(contents.statements, unread, wanted, config.policy.trust, as_of)
    gone = {one.name for one in useless}
    kept = [one for one in contents.statements if one.file not in gone]
    found = (*useless, *copies(kept, unread))
    half = remove_abandoned(folder) if delete else abandoned(folder)
    what = "removed" if delete else "of no use"
    lines = [
        f"{what}: {visible(path.name)}, half written by a writer that is gone" for path in half
    ]
    for one in found:
        if delete:
            (folder / one.name).unlink()
        lines.append(f"{what}: {one.name}, {one.statements} statements")
        lines += [f"    {visible(reason)}" for reason in one.reasons]
    lines += [f"left: {visible(name)} can not be read" for name in sorted(unread)]
    if (found or half) and not delete:
        lines.append("next: fasttrack evidence gc --delete")
    write_output(
        "\n".join(lines or ["every file has a statement that counts, and none is a copy"]) + "\n",
        None,
    )


def _owing(revision: Change, config: Config) -> Iterator[Owing]:
    """Of every manifest the cells of the highest tier, and the inputs of its units."""
    everything = Choice(tier=max(Tier, key=lambda tier: tier.rank))
    for manifest in read_base_manifests(revision, config).valid.values():
        cells = Planner(revision, config, manifest.name).owed(everything)
        yield cells, InputGraph(revision, revision.base, manifest, config).required_inputs
