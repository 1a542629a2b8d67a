# SPDX-License-Identifier: Apache-2.0
"""`fasttrack evidence import`."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from fasttrack.errors import InputError, Problem
from fasttrack.evidence.bundle import append, statements
from fasttrack.evidence.importers import IMPORTERS
from fasttrack.evidence.importers.base import Files, Imported
from fasttrack.evidence.importers.reading import MAX_FILE, Source
from fasttrack.evidence.on_disk import open_regular
from fasttrack.evidence.statement import Statement
from fasttrack.report.output import write_output
from fasttrack.report.visible import visible

_FILE = click.Path(path_type=Path, dir_okay=False)
MAX_LISTED = 50
"""Unmapped results that are listed by name."""


@click.command("import")
@click.argument("format_", metavar="FORMAT", type=click.Choice(sorted(IMPORTERS)))
@click.argument("files", metavar="FILE...", type=_FILE, nargs=-1, required=True)
@click.option("--map", "map_file", type=_FILE, required=True, help="Which result shows which cell.")
@click.option("--facts", type=_FILE, required=True, help="The facts that the format lacks.")
@click.option("--baseline", type=_FILE, multiple=True, help="Result of the other side.")
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    required=True,
    help="Folder of the unsigned bundle.",
)
def command(
    format_: str,
    files: tuple[Path, ...],
    map_file: Path,
    facts: Path,
    baseline: tuple[Path, ...],
    out: Path,
) -> None:
    """Turn another tool's results into unsigned statements.

    FORMAT is aiperf, inspect, junit, lm-eval or vllm-bench. A result that the map does not name
    covers nothing; one that lacks a fact is refused, and then nothing is written.
    """
    given = Files(
        [_source(path) for path in files],
        [_source(path) for path in baseline],
        _source(map_file),
        _source(facts),
    )
    imported = IMPORTERS[format_](given)
    _refuse_known(out, imported.statements)
    append(out, imported.statements)
    write_output("\n".join(_summary(imported, out)) + "\n", None)


def _source(path: Path) -> Source:
    try:
        with open_regular(path) as file:
            raw = file.read(MAX_FILE + 1)  # one more than any reader takes
    except OSError as error:
        saw = error.strerror or "not readable"
        raise InputError.one(str(path), saw, "a file that can be read") from error
    return Source(path.name, raw)


def _refuse_known(out: Path, new: Sequence[Statement]) -> None:
    """A run's id stands for one content: no cell of a run is imported twice."""
    if not out.exists():
        return
    known = {(s.statement.predicate.run.run, s.statement.cell) for s in statements(out).entries}
    problems = [
        Problem(str(out), f"run {s.predicate.run.run} with {_cell(s)}", "a run id of its own")
        for s in new
        if (s.predicate.run.run, s.cell) in known
    ]
    if problems:
        raise InputError(problems)


def _summary(imported: Imported, out: Path) -> Iterator[str]:
    for statement in imported.statements:
        found = "; ".join(statement.problems())
        yield visible(f"{_cell(statement)}: {f'shows nothing: {found}' if found else 'ok'}")
    yield f"{len(imported.statements)} unsigned statements in {visible(out.name)}"
    yield from _listed("covers nothing, as no entry of the map names it", imported.unmapped)
    yield from _listed("an entry of the map without a result", imported.unused)


def _listed(what: str, names: Sequence[str]) -> Iterator[str]:
    yield from (f"{visible(name)}: {what}" for name in names[:MAX_LISTED])
    if len(names) > MAX_LISTED:
        yield f"and {len(names) - MAX_LISTED} more: {what}"


def _cell(statement: Statement) -> str:
    cell = statement.cell
    axes = " ".join(f"{axis}={value}" for axis, value in sorted(cell.values.items()))
    return f"{cell.kind.value} {axes}"
