# SPDX-License-Identifier: Apache-2.0
"""A plan: which cells to measure, of which bytes, from which seeds. Written before anything runs.

Whoever measures can not choose what counts: the cells, the seeds and a random id are there first,
and a statement that names other ones covers nothing. A plan lists every file with its digest, so
that it can be compared with a directory where there is no git. It holds no secret and no path of
the machine that made it.
"""

import json
from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import Field, model_validator

from fasttrack.change.tree import path_bytes
from fasttrack.errors import InputError
from fasttrack.evidence.digest import InputFile, files_digest
from fasttrack.evidence.on_disk import open_regular
from fasttrack.evidence.partial import write_whole
from fasttrack.evidence.predicates.common import (
    BoundaryFile,
    CellFacts,
    CommitId,
    RandomId,
    Record,
    Seed,
    Sha256,
)
from fasttrack.evidence.shape import judging_digest, runs_of
from fasttrack.evidence.statement import read_json, validated
from fasttrack.evidence.subject import unit_of
from fasttrack.manifest.fields import Count, FilePath, FirstFormat, Glob, Identifier
from fasttrack.manifest.fields import Path as RepositoryPath
from fasttrack.vocabulary import Kind

MAX_BYTES = 16 << 20
"""Of a plan's text: tens of thousands of cells."""
MAX_SEEDS = 1024
"""Seeds of one cell, as statements hold them."""
LOADED = (".py", ".pyc", ".pyd", ".pyw", ".so")
"""Ends of the names of files that Python imports, on any system."""
SEEDED = frozenset({Kind.KERNEL_TEST, Kind.STRESS})
"""Kinds whose statements name the seeds that they ran with."""

H = TypeVar("H", bound=Hashable)
Seeds = Annotated[int, Field(ge=1, le=MAX_SEEDS)]


class PlannedManifest(Record):
    """Which manifest asked. For people: no evidence binds to it."""

    name: Identifier
    """Its name."""
    path: FilePath
    """Its repository path."""
    sha256: Sha256
    """Of its raw bytes."""


class PlannedFloors(Record):
    """Least amounts of evidence: the policy's floors, or the manifest's bars where higher."""

    kernel_seeds: Seeds
    """Independent seeds of a cell."""
    stress_iterations: Count
    """Iterations per stress cell and delay setting."""
    stress_profile: Literal["smoke", "evidence", "soak"]
    """Least stress profile."""
    eval_samples: Count
    """Samples per evaluation task."""
    eval_drop_max: Annotated[float, Field(ge=0, le=1)]
    """Largest score drop that the confidence interval may still contain."""


class PlannedFile(Record):
    """One file as it must be while a cell is measured."""

    path: FilePath
    """Repository path."""
    mode: Annotated[str, Field(pattern=r"^100[0-7]{3}$")]
    """As git records it; of all its bits, only the owner's executable bit says something."""
    sha256: Sha256
    """Of its raw bytes."""


Files = Annotated[tuple[PlannedFile, ...], Field(min_length=1, max_length=65536)]


class PlannedUnit(Record):
    """What the evidence of one unit depends on."""

    unit: Identifier
    """Unit, as statements name it."""
    digest: Sha256
    """`files/v1` of `files`."""
    tests_digest: Sha256
    """`judging/v1` of `tests`, of the plan's roots and of the test files that run."""
    files: Files
    """Its files, in byte order of their paths."""
    tests: Files
    """Its tests and what they need, likewise."""
    boundary: tuple[BoundaryFile, ...] = Field(max_length=4096)
    """Files elsewhere that its files and its tests import directly."""
    patterns: tuple[Glob, ...] = Field(min_length=1, max_length=4096)
    """Patterns of its tests."""
    variants: FilePath | None
    """Its variant table, which names the machine code that is audited."""


class PlannedCell(CellFacts):
    """One cell to measure."""

    unit: Identifier
    """The unit whose files and tests it speaks about."""
    tests: tuple[FilePath, ...] = Field(min_length=1, max_length=4096)
    """Test files to run, among the unit's tests."""
    seeds: tuple[Seed, ...] = Field(max_length=MAX_SEEDS)
    """Seeds to run with, all different; none where the kind has no use for them."""


class Plan(Record):
    """A whole plan."""

    plan: FirstFormat
    """Version of the format."""
    id: RandomId
    """128 random bits; statements name it."""
    created: datetime
    """UTC, whole seconds."""
    commit: CommitId
    """The commit that it was made at."""
    tree: CommitId
    """That commit's tree."""
    manifest: PlannedManifest
    """Which manifest asked."""
    floors: PlannedFloors
    """Least amounts of evidence in force."""
    archs: dict[Identifier, Identifier] = Field(min_length=1, max_length=1024)
    """Hardware of the policy to its architecture."""
    packages: tuple[Identifier, ...] = Field(max_length=64)
    """Packages whose versions statements must tell, in lower case."""
    roots: tuple[RepositoryPath, ...] = Field(min_length=1, max_length=64)
    """The manifest's roots: every file of them that is used must be listed."""
    unbound: tuple[RepositoryPath, ...] = Field(max_length=64)
    """Files, and directories (ending in `/`), that may be read although no digest has them."""
    beside: tuple[FilePath, ...] = Field(max_length=300_000)
    """Files of the commit outside the roots that Python could import, and those of `unbound`: a
    statement says of which bytes those were that its run used."""
    units: tuple[PlannedUnit, ...] = Field(max_length=256)
    """The units that occur in cells."""
    cells: tuple[PlannedCell, ...] = Field(max_length=65536)
    """What to measure, each once."""

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        problems = [*_time_problems(self.created), *_unit_problems(self), *_cell_problems(self)]
        if problems:
            raise ValueError("; ".join(problems[:8]))
        return self

    def unit(self, name: str) -> PlannedUnit:
        """The unit with this name; one that a cell names is always there."""
        return next(unit for unit in self.units if unit.unit == name)

    def to_bytes(self) -> bytes:
        """The text of the file: equal plans, equal bytes."""
        return text_of(self.model_dump(mode="json"))


def text_of(data: Mapping[str, Any]) -> bytes:
    """The text of a plan's content."""
    return json.dumps(data, indent=1, ensure_ascii=True).encode("ascii") + b"\n"


def read_plan(path: Path) -> Plan:
    """A plan from its file.

    Raises:
        InputError: it can not be read, is too large, no plan, or contradicts itself.
    """
    try:
        with open_regular(path) as file:
            raw = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise InputError.one(str(path), error.strerror or "unreadable", "a plan") from error
    return parse_plan(raw, path.name)


def parse_plan(raw: bytes, source: str) -> Plan:
    """A plan from its text.

    Raises:
        InputError: too large, no plan, a key twice, or a plan that contradicts itself; `source` is
            how messages name it.
    """
    read_json(raw, source, MAX_BYTES)
    plan: Plan = validated(Plan, raw, source)
    return plan


def write_plan(plan: Plan, path: Path) -> None:
    """Writes a plan's file, whole or not at all.

    Raises:
        InputError: it can not be written, or is too large to be read again.
    """
    raw = plan.to_bytes()
    if len(raw) > MAX_BYTES:
        raise InputError.one(str(path), f"a plan of {len(raw):,} bytes", f"at most {MAX_BYTES:,}")
    try:
        write_whole(path, raw)
    except OSError as error:
        saw = error.strerror or "not writable"
        raise InputError.one(str(path), saw, "a file that can be written") from error


def all_files(plan: Plan) -> list[PlannedFile]:
    """The files to which digests bind, of all units."""
    return [file for unit in plan.units for file in (*unit.files, *unit.tests)]


def _time_problems(moment: datetime) -> Iterator[str]:
    if moment.utcoffset() is None or moment.utcoffset() or moment.microsecond:
        yield f"{moment.isoformat()} is no whole second in UTC"


def _unit_problems(plan: Plan) -> Iterator[str]:
    names = [unit.unit for unit in plan.units]
    if repeated := _repeated(names):
        yield f"the unit {repeated} twice"
    if unused := sorted(set(names) - {cell.unit for cell in plan.cells}):
        yield f"no cell of the unit {unused[0]}"
    for unit in plan.units:
        for files in (unit.files, unit.tests):
            paths = [path_bytes(file.path) for file in files]
            if paths != sorted(set(paths)):
                yield f"files of the unit {unit.unit} out of order or twice"
        if _digests(plan, unit) != (unit.digest, unit.tests_digest):
            yield f"a digest of the unit {unit.unit} that is not its files'"
    known: dict[str, PlannedFile] = {}
    for file in all_files(plan):
        if known.setdefault(file.path, file) != file:
            yield f"{file.path} with two contents"


def _digests(plan: Plan, unit: PlannedUnit) -> tuple[str, str]:
    """Those of the files and of the tests that the plan lists."""
    files, tests = (
        [InputFile(file.path, file.mode, file.sha256, "") for file in listed]
        for listed in (unit.files, unit.tests)
    )
    runs = runs_of([file.path for file in tests], unit.patterns)
    return files_digest(files), judging_digest(tests, plan.roots, runs)


def _cell_problems(plan: Plan) -> Iterator[str]:
    if repeated := _repeated([cell.cell().id for cell in plan.cells]):
        yield f"the {repeated[0].value} cell {repeated[1]} twice"
    tests = {unit.unit: {file.path for file in unit.tests} for unit in plan.units}
    for number, cell in enumerate(plan.cells):
        yield from (f"cell {number}: {fault}" for fault in _faults(cell, plan.floors, tests))


def _faults(
    cell: PlannedCell, floors: PlannedFloors, tests: Mapping[str, set[str]]
) -> Iterator[str]:
    if cell.unit != unit_of(cell.cell()):
        yield f"the unit {cell.unit}, of which it does not speak"
    elif cell.unit not in tests:
        yield f"the unit {cell.unit}, which is not listed"
    elif unlisted := sorted(set(cell.tests) - tests[cell.unit]):
        yield f"the test {unlisted[0]}, which is none of the unit's"
    if _repeated(cell.tests) or _repeated(cell.seeds):
        yield "a test or a seed twice"
    least, most = (floors.kernel_seeds, MAX_SEEDS) if cell.kind in SEEDED else (0, 0)
    if not least <= len(cell.seeds) <= most:
        yield f"{len(cell.seeds)} seeds"


def _repeated(values: Sequence[H]) -> H | None:
    return next((value for value, count in Counter(values).items() if count > 1), None)
