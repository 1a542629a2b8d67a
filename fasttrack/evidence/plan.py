# SPDX-License-Identifier: Apache-2.0
"""A plan: which cells to measure, of which bytes, from which seeds. Written before anything runs.

Whoever measures can not choose what counts: the cells, the seeds and a random id are there first,
and a statement that names other ones covers nothing. A plan lists every file with its digest, so
that it can be compared with a directory where there is no git. It holds no secret and no path of
the machine that made it.
"""

import json
import shlex
from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import Field, model_validator

from fasttrack.change.tree import path_bytes
from fasttrack.errors import InputError, Problem
from fasttrack.evidence.digest import InputFile, files_digest
from fasttrack.evidence.on_disk import conftests, difference
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
from fasttrack.evidence.statement import read_json, validated
from fasttrack.evidence.subject import unit_of
from fasttrack.manifest.fields import Count, FilePath, FirstFormat, Glob, Identifier
from fasttrack.manifest.fields import Path as RepositoryPath
from fasttrack.vocabulary import Kind

MAX_BYTES = 16 << 20
"""Of a plan's text: tens of thousands of cells."""
MAX_SEEDS = 1024
"""Seeds of one cell, as statements hold them."""
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
    """`files/v1` of `tests`."""
    files: Files
    """Its files, in byte order of their paths."""
    tests: Files
    """Its tests and what they need, likewise."""
    boundary: tuple[BoundaryFile, ...] = Field(max_length=4096)
    """Files elsewhere that its files and its tests import directly."""
    patterns: tuple[Glob, ...] = Field(min_length=1, max_length=4096)
    """Patterns of its tests."""


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
        with path.open("rb") as file:
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


def compare(plan: Plan, root: Path) -> list[Problem]:
    """Which listed files are not on disk as the plan has them; empty when all are.

    A `conftest.py` above a test takes part in it unasked, so that one which is not listed must not
    be there. Nothing is told about other files that are not listed: what was loaded or opened
    beside them is for the collector to see.

    Args:
        plan: lists the files.
        root: the directory that its paths are relative to.
    """
    wanted: dict[str, tuple[str | None, str]] = {}
    for unit in plan.units:
        wanted |= {file.path: (None, file.sha256) for file in unit.boundary}
    for file in _all_files(plan):
        wanted[file.path] = (file.mode, file.sha256)
    found = ((path, difference(root, path, *wanted[path])) for path in sorted(wanted))
    at = plan.commit[:12]
    problems = [Problem(p, saw, f"the file of commit {at}", _fix(p, at)) for p, saw in found if saw]
    for path in conftests(root, {path for cell in plan.cells for path in cell.tests}):
        if path not in wanted:
            want = f"none, as in commit {at}: it takes part in the tests below it"
            problems.append(Problem(path, "a file that the plan does not have", want))
    return problems


def _fix(path: str, commit: str) -> str:
    """How a file gets there; a checkout of the commit alone leaves what was edited."""
    command = f"git checkout {commit} -- {shlex.quote(path)}"
    return f"{command}, without filters that change line ends"


def _all_files(plan: Plan) -> list[PlannedFile]:
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
        for digest, files in ((unit.digest, unit.files), (unit.tests_digest, unit.tests)):
            paths = [path_bytes(file.path) for file in files]
            if paths != sorted(set(paths)):
                yield f"files of the unit {unit.unit} out of order or twice"
            if files_digest(InputFile(f.path, f.mode, f.sha256, "") for f in files) != digest:
                yield f"a digest of the unit {unit.unit} that is not its files'"
    known: dict[str, PlannedFile] = {}
    for file in _all_files(plan):
        if known.setdefault(file.path, file) != file:
            yield f"{file.path} with two contents"


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
