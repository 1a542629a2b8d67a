# SPDX-License-Identifier: Apache-2.0
"""What all importers share: the map, the sidecar, and the way to a checked statement.

An importer reads another tool's result file. The *map* says which result shows which cell; the
*sidecar* states the facts that the file's format lacks. Both are written by people, so both are
read strictly. Nothing is guessed: a result whose facts are missing is refused, one that the map
does not name covers nothing.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Protocol, TypeVar

from pydantic import Field, ValidationError

from fasttrack.errors import InputError, Problem
from fasttrack.evidence.importers.reading import Source
from fasttrack.evidence.predicates import KINDS, PREDICATES, Predicate
from fasttrack.evidence.predicates.common import (
    Axis,
    CellFacts,
    Inputs,
    Isolation,
    Machine,
    Record,
    RunFacts,
    Toolchain,
    Word,
)
from fasttrack.evidence.statement import Statement, problems_of, read_statement
from fasttrack.evidence.subject import unit_of
from fasttrack.manifest.cells import Value
from fasttrack.manifest.fields import CountOrZero, FirstFormat, Identifier
from fasttrack.vocabulary import Kind

MAX_ENTRIES = 512
"""Entries of a map; with `MAX_PATTERN` and the results of a file it bounds the matching."""
MAX_PATTERN = 1024

Pattern = Annotated[str, Field(min_length=1, max_length=MAX_PATTERN)]


@dataclass(frozen=True)
class Files:
    """Everything that one import reads.

    Attributes:
        results: result files, in the order of the command line.
        baseline: result files of the other side, for formats that keep the sides apart.
        map: the map.
        facts: the sidecar.
    """

    results: Sequence[Source]
    baseline: Sequence[Source]
    map: Source
    facts: Source


@dataclass(frozen=True)
class Imported:
    """What an import made.

    Attributes:
        statements: unsigned statements, at least one.
        unmapped: results that no entry of the map names; they cover nothing.
        unused: ids of the map's entries that no result was found for.
    """

    statements: tuple[Statement, ...]
    unmapped: tuple[str, ...]
    unused: tuple[str, ...]


class Importer(Protocol):
    """Turns the files of one format into statements."""

    def __call__(self, files: Files) -> Imported:
        """Reads the files.

        Raises:
            InputError: a file is not of the format, or a mapped result lacks a fact.
        """


class Entry(Record):
    """One row of a map: which results show which cell."""

    id: Identifier
    """Unique in the map; the sidecar names it."""
    match: Pattern
    """Name of the result; `*` stands for any characters, everything else for itself."""
    region: Annotated[str, Field(max_length=64)] = ""
    """Region that asks for the cell; empty when the manifest as a whole does."""
    values: dict[Axis, Word | CountOrZero] = Field(min_length=1, max_length=64)
    """The cell's axes, as `fasttrack scope points` prints them."""


class SharedFacts(Record):
    """The part of a sidecar that every format needs."""

    facts: FirstFormat
    """Version of this format."""
    run: RunFacts
    """Plan, run, commit, times, isolation."""
    machine: Machine
    """Where it ran."""
    toolchain: Toolchain
    """With which versions."""
    inputs: tuple[Inputs, ...] = Field(max_length=64)
    """Digests of the units that the cells speak of."""


AnyEntry = TypeVar("AnyEntry", bound=Entry)
Fact = TypeVar("Fact")


def matches(pattern: str, name: str) -> bool:
    """Whether a name fits a pattern whose only special character is `*`.

    Node ids hold brackets, slashes and question marks, so none of them may mean anything.
    """
    first, *rest = pattern.split("*")
    if not rest:
        return name == first
    *middle, last = rest
    if not name.startswith(first) or len(name) < len(first) + len(last):
        return False
    at, end = len(first), len(name) - len(last)
    for piece in middle:
        at = name.find(piece, at, end)
        if at < 0:
            return False
        at += len(piece)
    return name.endswith(last)


def convert(
    entries: Sequence[AnyEntry],
    names: Sequence[str],
    where: str,
    make: Callable[[AnyEntry, Sequence[str]], Statement],
) -> Imported:
    """Gives every result to the one entry that names it, and makes each entry's statement.

    Args:
        entries: of the map.
        names: of the results, each once.
        where: the map, for messages.
        make: the statement of an entry and its results.

    Raises:
        InputError: an id is used twice, two entries name one result, no result is named, or a
            statement can not be made; with the problems of all of them.
    """
    found, unmapped, problems = _assigned(entries, names, where)
    statements = []
    for entry in entries:
        if entry.id in found:
            try:
                statements.append(make(entry, found[entry.id]))
            except InputError as error:
                problems += error.problems
    if problems:
        raise InputError(problems[:100])
    unused = tuple(entry.id for entry in entries if entry.id not in found)
    return Imported(tuple(statements), unmapped, unused)


def of_cell(cells: Mapping[str, Fact], entry: Entry, facts: Source) -> Fact:
    """The sidecar's facts about one cell.

    Raises:
        InputError: there are none.
    """
    if entry.id not in cells:
        saw = f"no key `cells.{entry.id}`"
        raise InputError.one(facts.name, saw, f"the facts of the map's entry '{entry.id}'")
    return cells[entry.id]


def isolated(shared: SharedFacts, facts: Source, want: Isolation, why: str) -> list[Problem]:
    """What is wrong when a sidecar says of the run's isolation what the format rules out.

    Args:
        shared: the sidecar.
        facts: where it was read, for messages.
        want: what runs of the format are.
        why: how that is known.
    """
    said = shared.run.isolation
    saw = f"`isolation: {said}` in `run`"
    return [] if said == want else [Problem(facts.name, saw, f"`{want}`: {why}")]


def statement(
    kind: Kind, entry: Entry, shared: SharedFacts, facts: Source, fields: Mapping[str, Any]
) -> Statement:
    """A checked statement.

    Args:
        kind: which kind of evidence the format gives.
        entry: the map's entry, with the cell.
        shared: the sidecar.
        facts: where the sidecar was read, for messages.
        fields: what the predicate holds beside the facts that all predicates share.

    Raises:
        InputError: the unit's digests are missing, or the predicate does not hold together.
    """
    cell = CellFacts(kind=kind, region=entry.region, values=entry.values)
    unit = unit_of(cell.cell())
    inputs = next((known for known in shared.inputs if known.unit == unit), None)
    if inputs is None:
        saw = f"no item of `inputs` with `unit: {unit}`"
        raise InputError.one(facts.name, saw, f"the digests of the unit of '{entry.id}'")
    head = {
        "cell": cell,
        "run": shared.run,
        "machine": shared.machine,
        "toolchain": shared.toolchain,
        "inputs": inputs,
    }
    type_ = next(name for name, known in KINDS.items() if known is kind)
    made = Statement(type_, _predicate(PREDICATES[type_], head | dict(fields), entry.id))
    # The reader has the last word: what it would not take back is not written.
    return read_statement(made.to_bytes(), entry.id)


def same(entry: Entry, axis: str, measured: Value | None, where: str) -> list[Problem]:
    """What is wrong when a condition of the cell is not the one that was measured.

    Args:
        entry: the map's entry.
        axis: the condition's name in the cell.
        measured: what the result or the sidecar says; None when nothing says it.
        where: what said it.
    """
    wanted = entry.values.get(axis)
    if wanted is None:
        return [Problem(f"entry '{entry.id}'", f"no axis `{axis}`", "the full conditions")]
    if measured is None:
        return [Problem(where, f"nothing that tells `{axis}`", f"{wanted!r}, as '{entry.id}' says")]
    if wanted != measured:
        saw = f"`{axis}` {measured!r}"
        return [Problem(where, saw, f"{wanted!r}, as the map's entry '{entry.id}' says")]
    return []


def _assigned(
    entries: Sequence[Entry], names: Sequence[str], where: str
) -> tuple[dict[str, list[str]], tuple[str, ...], list[Problem]]:
    """Entry id to its results, the results of no entry, and what is wrong with the map."""
    ids = Counter(entry.id for entry in entries)
    problems = [Problem(where, f"the id '{i}' twice", "once") for i, n in ids.items() if n > 1]
    found: dict[str, list[str]] = {}
    unmapped = []
    for name in names:
        fitting = [entry.id for entry in entries if matches(entry.match, name)]
        if len(fitting) > 1:
            saw = f"'{name}' in the entries {', '.join(fitting)}"
            problems.append(Problem(where, saw, "one cell per result"))
        elif fitting:
            found.setdefault(fitting[0], []).append(name)
        else:
            unmapped.append(name)
    if not problems and not found:
        problems.append(Problem(where, f"no entry that names one of {len(names)} results", "some"))
    return ({} if problems else found), tuple(unmapped), problems


def _predicate(model: type[Predicate], fields: Mapping[str, Any], where: str) -> Predicate:
    try:
        return model.model_validate(dict(fields))
    except ValidationError as error:
        raise InputError(problems_of(error, where)) from error
