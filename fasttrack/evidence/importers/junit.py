# SPDX-License-Identifier: Apache-2.0
"""JUnit XML: `kernel-test` and `refusal` statements.

The map gives test ids to cells. The sidecar states, per entry of the map, what JUnit XML does not
know: seeds, kernels that were seen, fallbacks, tests that were deselected. A refusal's reasons are
properties that its tests recorded: `record_property("refusal_reason", ...)` under pytest with
`-o junit_family=xunit1`, which also writes the files of tests.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import Field

from fasttrack.errors import InputError, Problem
from fasttrack.evidence.importers.base import (
    MAX_ENTRIES,
    Entry,
    Files,
    Imported,
    SharedFacts,
    convert,
    isolated,
    of_cell,
    same,
    statement,
)
from fasttrack.evidence.importers.junit_xml import OUTCOMES, Test, read_tests
from fasttrack.evidence.importers.reading import Source, read_yaml
from fasttrack.evidence.predicates.common import (
    MAX_NODES,
    Execution,
    Gate,
    NodeId,
    Record,
    Seed,
    Tolerance,
)
from fasttrack.evidence.predicates.refusal_v1 import Reason
from fasttrack.evidence.statement import Statement
from fasttrack.manifest.fields import FirstFormat, Identifier
from fasttrack.vocabulary import Kind

REASON = "refusal_reason"
"""Name of the property that holds one reason of the gate."""


class JUnitEntry(Entry):
    """Tests to a cell; `match` is a pattern of node ids such as `tests/test_x.py::test_y[*]`."""

    kind: Literal["kernel-test", "refusal"]
    """What the tests show."""


class JUnitMap(Record):
    """The map of a JUnit import."""

    map: FirstFormat
    """Version of this format."""
    results: tuple[JUnitEntry, ...] = Field(min_length=1, max_length=MAX_ENTRIES)
    """Its entries; a test fits at most one."""


class JUnitCell(Record):
    """What JUnit XML does not say about one cell."""

    deselected: Literal["none"] | Annotated[tuple[NodeId, ...], Field(max_length=MAX_NODES)]
    """Tests of the cell that were collected and not run, or the word `none`."""
    seeds: tuple[Seed, ...] = Field(default=(), max_length=1024)
    """Seeds of the inputs; needed for `kernel-test`."""
    execution: Execution | None = None
    """Kernels that were seen, and fallbacks; needed for `kernel-test`."""
    tolerances: tuple[Tolerance, ...] = Field(default=(), max_length=256)
    """What results were compared with."""
    gates: tuple[Gate, ...] = Field(default=(), max_length=64)
    """Gates of the validation harness, where it was used."""
    reasons: tuple[Reason, ...] = Field(default=(), max_length=256)
    """Reasons of the gate beyond those that tests recorded; for `refusal`."""


class JUnitFacts(SharedFacts):
    """The sidecar of a JUnit import."""

    cells: dict[Identifier, JUnitCell] = Field(max_length=MAX_ENTRIES)
    """Id of a map's entry to its facts."""


def import_junit(files: Files) -> Imported:
    """Reads JUnit XML; see `Importer`."""
    if files.baseline:
        raise InputError.one("--baseline", files.baseline[0].name, "no baseline: tests have none")
    mapped, facts = read_yaml(files.map, JUnitMap), read_yaml(files.facts, JUnitFacts)
    why = "the tests' own process wrote the file"
    if problems := isolated(facts, files.facts, "process", why):
        raise InputError(problems)
    tests = _merged(test for source in files.results for test in read_tests(source))

    def make(entry: JUnitEntry, nodes: Sequence[str]) -> Statement:
        return _statement(entry, [tests[node] for node in nodes], facts, files.facts)

    return convert(mapped.results, list(tests), files.map.name, make)


def _merged(tests: Iterable[Test]) -> Mapping[str, Test]:
    """Node id to test; of several reports about one test the worst counts."""
    found: dict[str, Test] = {}
    for test in tests:
        first = found.setdefault(test.node, test)
        if first is not test:
            first.worsen(test.outcome)
            first.properties += test.properties
    return found


def _statement(
    entry: JUnitEntry, tests: Sequence[Test], facts: JUnitFacts, source: Source
) -> Statement:
    cell = of_cell(facts.cells, entry, source)
    by_outcome = {o: tuple(t.node for t in tests if t.outcome == o) for o in OUTCOMES}
    # As data: the predicate's own model says what is wrong with a node id.
    deselected = () if cell.deselected == "none" else cell.deselected
    results: dict[str, Any] = {"results": by_outcome | {"deselected": deselected}}
    if entry.kind == "refusal":
        fields = results | _refusal(tests, cell, entry)
        return statement(Kind.REFUSAL, entry, facts, source, fields)
    where = f"{source.name}: cells.{entry.id}"
    missing = [name for name in ("seeds", "execution") if not getattr(cell, name)]
    problems = [Problem(where, f"no key `{name}`", "what the tests ran") for name in missing]
    if "unit" not in entry.values:
        problems.append(
            Problem(f"entry '{entry.id}'", "no axis `unit`", "the unit that was tested")
        )
    problems += same(entry, "hardware", facts.machine.hardware, f"{source.name}: machine")
    if problems:
        raise InputError(problems)
    names = ("seeds", "execution", "tolerances", "gates")
    fields = results | {name: getattr(cell, name) for name in names}
    return statement(Kind.KERNEL_TEST, entry, facts, source, fields)


def _refusal(tests: Sequence[Test], cell: JUnitCell, entry: Entry) -> dict[str, Any]:
    recorded = [value for test in tests for name, value in test.properties if name == REASON]
    reasons = tuple(dict.fromkeys([*recorded, *cell.reasons]))
    if not reasons:
        saw = f"no property `{REASON}` and no key `cells.{entry.id}.reasons`"
        raise InputError.one(f"entry '{entry.id}'", saw, "the reasons that the gate gave")
    return {"refused": all(test.outcome == "passed" for test in tests), "reasons": reasons}
