# SPDX-License-Identifier: Apache-2.0
"""How much is tried: the three profiles of the validation."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Budget:
    """One profile.

    Attributes:
        name: as evidence records it.
        cases: numeric cases of each candidate.
        steps: of a recurrent state, each on what the last one left.
        memory: cases that are tried under both poisons.
        repeats: runs of one case that must agree bit for bit.
        replays: replays of a captured call with new content, and calls in place.
        changes: calls with another number of rows each.
        pairs: timed pairs of candidate and stock path.
        times: replays between two looks at the clock.
        rotated: bytes of operands that a cold measurement goes through.
    """

    name: str
    cases: int
    steps: int
    memory: int
    repeats: int
    replays: int
    changes: int
    pairs: int
    times: int
    rotated: int


BUDGETS: Mapping[str, Budget] = {
    one.name: one
    for one in (
        Budget("smoke", 9, 64, 9, 2, 3, 7, 3, 64, 1 << 20),
        Budget("evidence", 18, 256, 9, 4, 50, 32, 11, 64, 240 << 20),
        Budget("soak", 200, 8192, 40, 1000, 200, 2000, 51, 256, 240 << 20),
    )
}
