# SPDX-License-Identifier: Apache-2.0
"""In this repository a byte voids the evidence of exactly the units that depend on its file.

What depends on what is read a second time in `dependencies`, which knows nothing of `fasttrack`.
"""

from collections import Counter
from collections.abc import Mapping
from datetime import timedelta
from random import Random

import yaml

from fasttrack.evidence.coverage import GRACE_DAYS
from fasttrack.evidence.status import Status
from fasttrack.manifest.cells import CellId
from tests.evidence.keys import DAY
from tests.evidence.lanes import RUN_DAY

from .dependencies import Dependencies, Depends
from .one_byte import changed, elsewhere
from .scratch import MANIFEST, ROOT, Scratch, Told

LATE = RUN_DAY.date() + timedelta(days=GRACE_DAYS + 1)
"""The first day on which a changed boundary is no longer borne."""
SOURCES = frozenset({".c", ".cc", ".cpp", ".cu", ".cuh", ".h", ".hpp", ".pyx", ".rs", ".so"})
"""Ends of files that the second reading does not follow."""
ELSEWHERE = 30
"""Files outside all units that are changed."""
WIRED = frozenset(
    one["path"] for one in yaml.safe_load((ROOT / MANIFEST).read_text("utf-8"))["code"]["wiring"]
)
Statuses = Mapping[CellId, Status]


def wanted(scratch: Scratch, units: Mapping[str, Depends], path: str) -> Statuses:
    """What the cells are once a file has changed, by the second reading."""

    def status(unit: Depends) -> Status:
        if path in unit.files | unit.tests:
            return Status.STALE
        return Status.BOUNDARY_CHANGED if path in unit.boundary else Status.COVERED

    by_unit = {name: status(unit) for name, unit in units.items()}
    return {cell: by_unit[unit] for cell, unit in scratch.cells.items()}


def difference(told: Told, want: Statuses, *, grace: bool = True) -> list[str]:
    """How the answer differs from what is wanted: of each cell, and of what the change owes."""
    wrong = []
    for cell, status in want.items():
        covers = status is Status.COVERED or (status is Status.BOUNDARY_CHANGED and grace)
        said = told.said[cell]
        if (said.status, said.covers) != (status, covers):
            wrong.append(f"{cell} is {said.status}, not {status}: {said.detail}")
    stale = {cell for cell, status in want.items() if status is Status.STALE}
    wrong += [f"{cell} is owed, but not stale" for cell in told.owed.keys() - stale]
    wrong += [f"{cell} is stale, but not owed" for cell in stale - told.owed.keys()]
    return wrong + [f"{c} is {a.status}" for c, a in told.owed.items() if a != told.said[c]]


def test_the_repository_has_units_and_cells_enough_and_all_of_them_are_covered(
    scratch: Scratch, own: Dependencies
) -> None:
    told = scratch.told(scratch.tip)
    assert len(set(scratch.cells.values())) >= 6
    assert len(scratch.cells) >= 60
    assert {answer.status for answer in told.said.values()} == {Status.COVERED}
    assert told.owed == {}
    assert own.units.keys() == set(scratch.cells.values())


def test_one_byte_of_any_input_makes_stale_exactly_the_cells_of_the_units_that_depend_on_it(
    scratch: Scratch, own: Dependencies
) -> None:
    found = set().union(*(unit.files | unit.tests for unit in own.units.values()))
    inputs = sorted(found | scratch.listed()[0])
    assert not [path for path in inputs if path.endswith(tuple(SOURCES))]
    wrong, parts, sizes = {}, Counter[str](), set()
    for path in inputs:
        content, what = changed(own.commit, path)
        head = scratch.topic(content)
        want = wanted(scratch, own.units, path)
        stale = sum(status is Status.STALE for status in want.values())
        if problems := difference(scratch.told(head), want):
            wrong[path] = (what, problems)
        parts[what] += 1
        sizes.add(stale)
    print(f"{len(inputs)} inputs changed: {dict(parts)}; stale cells: {sorted(sizes)}")
    assert wrong == {}
    assert len(inputs) >= 40
    assert {"comment", "docstring", "number", "end"} <= parts.keys()
    # Some bytes void one unit, some all of them: neither answer is one for everything.
    assert 0 < min(sizes) < len(scratch.cells) == max(sizes)


def test_one_byte_of_the_boundary_is_told_and_borne_for_a_while_but_never_stale(
    scratch: Scratch, own: Dependencies
) -> None:
    found = set().union(*(unit.boundary for unit in own.units.values()))
    boundary = sorted((found | scratch.listed()[1]) - WIRED)
    # The first of them only the oracle imports, the second only a `conftest.py`.
    assert {"kimi_k3/mxfp4.py", "kimi_k3/random_init.py"} <= set(boundary)
    wrong = {}
    for path in boundary:
        head = scratch.topic(changed(own.commit, path)[0])
        want = wanted(scratch, own.units, path)
        assert set(want.values()) <= {Status.BOUNDARY_CHANGED, Status.COVERED}
        early = difference(scratch.told(head, DAY), want)
        late = difference(scratch.told(head, LATE), want, grace=False)
        if early or late:
            wrong[path] = (early, late)
    print(f"{len(boundary)} files of the boundary changed")
    assert wrong == {}
    assert len(boundary) >= 30


def test_one_byte_of_a_wired_file_makes_every_cell_stale(
    scratch: Scratch, own: Dependencies
) -> None:
    assert WIRED
    want = dict.fromkeys(scratch.cells, Status.STALE)
    for path in sorted(WIRED):
        assert difference(scratch.told(scratch.topic(changed(own.commit, path)[0])), want) == []


def test_one_byte_elsewhere_changes_nothing(scratch: Scratch, own: Dependencies) -> None:
    others = [path for path in elsewhere(own) if path not in WIRED]
    chosen = Random(0).sample(others, ELSEWHERE)
    # Of each sort of file at least one: beside the inputs, and in the checker itself.
    for start in ("tests/kimi_k3/", "kimi_k3/decode/", "fasttrack/", "docs/", "scripts/"):
        chosen.append(next(path for path in others if path.startswith(start)))
    covered = dict.fromkeys(scratch.cells, Status.COVERED)
    wrong, parts = {}, set()
    for path in chosen:
        content, what = changed(own.commit, path)
        parts.add(what)
        if problems := difference(scratch.told(scratch.topic(content)), covered):
            wrong[path] = (what, problems)
    assert wrong == {}
    assert "comment" in parts
