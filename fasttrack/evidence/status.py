# SPDX-License-Identifier: Apache-2.0
"""What evidence can say of a cell; `fasttrack.evidence.coverage` finds out what it does say."""

from dataclasses import dataclass
from enum import StrEnum

from fasttrack.manifest.cells import Cell


class Status(StrEnum):
    """What there is for a cell, from good to bad; scripts rely on the words."""

    COVERED = "covered"
    BOUNDARY_CHANGED = "boundary-changed"
    UNAUDITED = "unaudited"
    OTHER_CODE = "other-code"
    STALE = "stale"
    TOO_OLD = "too-old"
    FAILED = "failed"
    SKIPPED = "skipped"
    WRONG_DEVICE = "wrong-device"
    WRONG_TOOLCHAIN = "wrong-toolchain"
    UNTRUSTED = "untrusted"
    BELOW_FLOOR = "below-floor"
    WRONG_UNIT = "wrong-unit"
    MISSING = "missing"

    @property
    def rank(self) -> int:
        """Position in the order, 0 for `covered`."""
        return _RANKS[self]


_RANKS = {status: rank for rank, status in enumerate(Status)}


@dataclass(frozen=True)
class Answer:
    """What evidence says of one cell.

    Attributes:
        status: the best that there is.
        detail: why, in a sentence.
        covers: whether the cell needs no other evidence.
        first: of an `unaudited` cell, the audits that it waits for.
    """

    status: Status
    detail: str
    covers: bool = False
    first: tuple[Cell, ...] = ()


MISSING = Answer(Status.MISSING, "no statement speaks of this cell")
