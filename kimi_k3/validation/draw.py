# SPDX-License-Identifier: Apache-2.0
"""Which cases a candidate is asked: the ends of every range first, then at random."""

from collections.abc import Iterator, Sequence
from itertools import count, cycle, islice

import numpy as np

from kimi_k3.validation.candidate import Candidate
from kimi_k3.validation.case import Case
from kimi_k3.validation.operators import OPERATORS

SEEDS = 2**62


def boundaries(low: int, high: int) -> tuple[int, ...]:
    """Both ends of a range, their neighbours and its middle, those that there are."""
    near = (low, high, low + 1, high - 1, (low + high) // 2)
    return tuple(dict.fromkeys(n for n in near if low <= n <= high))


def cases(
    candidate: Candidate, rng: np.random.Generator, families: Sequence[str] = ()
) -> Iterator[Case]:
    """Endless cases: every family in turn; rows and numbers at their ends, then anywhere.

    Args:
        candidate: who is asked.
        rng: draws.
        families: of the content; all of the operator's by default.
    """
    names = families or OPERATORS[candidate.operator].schema.families
    ends = iter(boundaries(*candidate.rows))
    for i, family in zip(count(), cycle(names)):
        rows = next(ends, None)
        if rows is None:
            rows = int(rng.integers(candidate.rows[0], candidate.rows[1] + 1))
        scalars = {one.name: _number(one.low, one.high, i, rng) for one in candidate.scalars}
        yield Case(candidate, rows, scalars, family, int(rng.integers(SEEDS)))


def some(
    candidate: Candidate, rng: np.random.Generator, number: int, families: Sequence[str] = ()
) -> list[Case]:
    """The first of `cases`."""
    return list(islice(cases(candidate, rng, families), number))


def _number(low: int, high: int, turn: int, rng: np.random.Generator) -> int:
    ends = boundaries(low, high)
    return ends[turn] if turn < len(ends) else int(rng.integers(low, high + 1))
