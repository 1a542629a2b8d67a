# SPDX-License-Identifier: Apache-2.0
"""Sets of parameters at base and head, compared by what they hold."""

import re
from collections import Counter
from collections.abc import Sequence
from itertools import chain

from fasttrack.testmodel.collected import Test


def lost_cells(base: Test, standing: Sequence[Test]) -> tuple[str, str, bool]:
    """Words for cells that are gone, for cells newly skipped, and whether there are fewer."""
    before = base.cells()
    after = [test.cells() for test in standing]
    if before is None or None in after:
        count = sum(test.count() for test in standing)
        shrunk = count < base.count()
        return ("some of them" if shrunk else "", "", shrunk)
    live = Counter(chain.from_iterable(cells for cells in after if cells is not None))
    every = Counter(chain.from_iterable(t.cells(skipped=True) or () for t in standing))
    old_names = {name for cell in before for name, _ in cell}
    new_names = {name for cell in every for name, _ in cell}
    old = before
    if not old_names <= new_names:
        old, live, every = _by_value(before), _values_of(live), _values_of(every)
    elif old_names < new_names:  # another axis came: what of it belongs to the old ones counts
        live, every = _projected(live, old_names), _projected(every, old_names)
    gone = old - every.keys()
    if len(every) >= len(old):
        gone = frozenset(cell for cell in gone if not _is_built(cell))
    lost = sorted(map(_cell_words, gone))
    skipped = sorted(_cell_words(cell) for cell in (old & every.keys()) - live.keys())
    return _some(lost), _some(skipped), len(every) < len(old)


Cell = frozenset[tuple[str, str]]
_BUILT = re.compile(r"(?!torch\.|numpy\.|np\.)[A-Za-z_]\w*(?:\.\w+)+\(")
"""Words of a value that a class or function of the program makes."""


def _is_built(cell: Cell) -> bool:
    """Whether the program makes a value of a set: what it holds then is the program's matter."""
    return any(_BUILT.match(value) for _, value in cell)


def _by_value(cells: frozenset[Cell]) -> frozenset[Cell]:
    return frozenset(frozenset(("", value) for _, value in cell) for cell in cells)


def _values_of(cells: Counter[Cell]) -> Counter[Cell]:
    return Counter(frozenset(("", value) for _, value in cell) for cell in cells)


def _projected(cells: Counter[Cell], names: set[str]) -> Counter[Cell]:
    return Counter(frozenset(pair for pair in cell if pair[0] in names) for cell in cells)


def _cell_words(cell: Cell) -> str:
    return ", ".join(f"{name}={value}" if name else value for name, value in sorted(cell))


def _some(found: Sequence[str]) -> str:
    more = f" and {len(found) - 2} more" if len(found) > 2 else ""
    return "; ".join(text[:60] for text in found[:2]) + more
