# SPDX-License-Identifier: Apache-2.0
"""Whether the cells of a change were measured with one state of what lies just outside the roots.

Each run alone may have had what the target branch once had there. Cells that passed with one state
each can still fail with the other's, as somebody could have picked for each the state it passes
with; only runs of all of them with one state show that they pass together.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from fasttrack.evidence.statement import Bytes, Statement, bytes_of

if TYPE_CHECKING:
    from fasttrack.manifest.cells import CellId

_State = frozenset[tuple[str, str | None]]


def mixed(covering: Iterable[Statement]) -> Mapping[Bytes, str]:
    """Units that no single state of their boundary was measured with in all cells, to what differs.

    Args:
        covering: statements that cover their cells.
    """
    states: dict[Bytes, dict[CellId, set[_State]]] = defaultdict(lambda: defaultdict(set))
    for one in covering:
        boundary = frozenset((file.path, file.sha256) for file in one.predicate.inputs.boundary)
        states[bytes_of(one)][one.cell.id].add(boundary)
    return {
        which: _said(cells.values())
        for which, cells in states.items()
        if not frozenset.intersection(*map(frozenset, cells.values()))
    }


def _said(cells: Iterable[Iterable[_State]]) -> str:
    seen: dict[str, set[str | None]] = defaultdict(set)
    states = {state for some in cells for state in some}
    for path, sha256 in (file for state in states for file in state):
        seen[path].add(sha256)
    lacking = {path for path in seen for state in states if path not in dict(state)}
    path = min(path for path, found in seen.items() if len(found) > 1 or path in lacking)
    return f"{len(states)} states of what is just outside the roots, {path} first"
