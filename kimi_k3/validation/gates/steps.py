# SPDX-License-Identifier: Apache-2.0
"""Part of G2: a state after many steps, each of which reads what the candidate left behind.

An error that is within its bound once may grow. Three states go through the same steps: the
candidate's, the stock path's and that of the float64 oracle; the candidate's may not be much
further from the oracle's than the stock path's is.
"""

from collections.abc import Iterator

import numpy as np
import torch

from kimi_k3.decode.kernels.shapes import Role
from kimi_k3.validation.bench import Bench
from kimi_k3.validation.case import Case, Content
from kimi_k3.validation.draw import SEEDS
from kimi_k3.validation.operators import OPERATORS
from kimi_k3.validation.operators.base import FP32_UNIT
from kimi_k3.validation.trial import prepared, tried

FAMILY = "held"
"""Content under which a state forgets the least, so that errors stay."""
MOST_ROWS = 4
MOST = 2.0
"""Root mean square of errors against the stock path's, after all steps."""
FLOOR = 4 * FP32_UNIT
"""In units of the state: errors below it are compared with no one's."""


def drifts(bench: Bench, rng: np.random.Generator) -> Iterator[str]:
    """What is wrong with a state after many steps; nothing for candidates without one.

    Args:
        bench: candidate and budget.
        rng: draws content.
    """
    state = next((one.name for one in bench.candidate.memory if one.role is Role.INOUT), None)
    if state is None:
        return
    ours, stock, exact = _after_steps(bench, rng, state)
    size = _rms(exact)
    off, theirs = _rms(ours - exact), _rms(stock - exact)
    if not off <= MOST * theirs + FLOOR * size:
        yield (
            f"after {bench.budget.steps} steps {state} is off by {off / size:.3g} of its size, "
            f"stock by {theirs / size:.3g}"
        )


def _after_steps(
    bench: Bench, rng: np.random.Generator, name: str
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """The candidate's state, the stock path's and the oracle's, float64, where it is written."""
    low, high = bench.candidate.rows
    rows = min(high, max(low, MOST_ROWS))
    scalars = {one.name: one.high for one in bench.candidate.scalars}
    operator = OPERATORS[bench.candidate.operator]
    session = bench.session()
    states: list[Content] = [{}, {}, {}]
    for _ in range(bench.budget.steps):
        case = Case(bench.candidate, rows, scalars, FAMILY, int(rng.integers(SEEDS)))
        with torch.device(session.arena.device):
            drawn = operator.content(case)
            mine, stocks, exact = (drawn | state for state in states)
            expected = operator.expected(case, exact)[name]
            stocked = operator.stock(case, stocks)[name]
        ready = prepared(
            [case],
            bench.size(),
            rng,
            bench.poison(),
            device=session.arena.device,
            contents=[mine],
        )
        answer = tried(session, ready).judged.answers[name]
        left = torch.full_like(mine[name], torch.nan)
        left[expected.written] = answer.to(left.dtype)
        kept = torch.where(expected.written, expected.value, torch.nan)
        same = {place: drawn[place] for place in operator.places} if not states[0] else {}
        states = [
            state | same | {name: new}
            for state, new in zip(states, (left, stocked, kept), strict=True)
        ]
    mask = expected.written
    return answer, stocked[mask].double(), kept[mask]


def _rms(values: torch.Tensor) -> float:
    return float((values**2).mean().sqrt())
