# SPDX-License-Identifier: Apache-2.0
"""Which cells need not be measured again."""

from collections.abc import Callable, Iterable

from fasttrack.evidence.inputs import UnitInputs
from fasttrack.evidence.trust import Judged, question
from fasttrack.manifest.cells import Cell

Covered = Callable[[Cell, UnitInputs], bool]
"""Whether there is evidence for a cell, of exactly these inputs."""


def covered_by(judged: Iterable[Judged]) -> Covered:
    """What accepted statements cover: the same kind, key, files and tests, and nothing undeclared.

    Stricter than a verdict about the boundary, where any change asks for a new measurement. Says
    nothing about floors: a verdict may still find a statement here too weak.

    Args:
        judged: statements after their signatures were judged; none covers nothing.
    """
    known = {
        (*question(one.statement), frozenset((f.path, f.sha256) for f in inputs.boundary))
        for one in judged
        for inputs in [one.statement.predicate.inputs]
        if one.accepted and not inputs.undeclared
    }

    def covered(cell: Cell, inputs: UnitInputs) -> bool:
        if not known:
            return False
        boundary = frozenset((f.path, f.sha256) for f in inputs.boundary)
        return (cell.kind, cell.key, inputs.digest, inputs.tests_digest, boundary) in known

    return covered
