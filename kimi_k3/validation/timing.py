# SPDX-License-Identifier: Apache-2.0
"""Times a candidate beside the stock path, by the judge's clock.

Both have processes of their own and the same content at the same places; what is timed are replays
of captured calls, in turn, so that a clock that rises or falls has both alike. Cold: the calls go
through more memory than a cache holds. Warm: one call again and again. What a candidate's process
says about time is not asked.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median, quantiles

import numpy as np
import torch

from kimi_k3.decode.kernels.shapes import Role
from kimi_k3.validation.bench import Bench
from kimi_k3.validation.case import Case
from kimi_k3.validation.draw import SEEDS
from kimi_k3.validation.memory import extent
from kimi_k3.validation.operators import OPERATORS
from kimi_k3.validation.session import Call, Session
from kimi_k3.validation.trial import POISONS, Prepared, prepared, red_zones, verdict

MOST_CALLS = 256
CHECKED = 4
"""Calls whose answers are looked at after a measurement; the bytes between all of them are, too."""


@dataclass(frozen=True)
class Spread:
    """Microseconds of a call: the middle, and the 10th and 90th percentile."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, samples: Sequence[float]) -> "Spread":
        """Of some samples."""
        tenths = quantiles(samples, n=10) if len(samples) > 1 else [samples[0]] * 9
        return cls(median(samples), tenths[0], tenths[-1])


@dataclass(frozen=True)
class Timing:
    """What was measured.

    Attributes:
        rows: of each call.
        calls: how many share the memory of a cold measurement.
        bytes_moved: of one call, at least.
        cold: of the candidate.
        warm: of the candidate.
        stock_cold: of the stock path, or None where it was not there to compare with.
        stock_warm: as well.
        faults: what was wrong with the answers of the measured calls.
    """

    rows: int
    calls: int
    bytes_moved: int
    cold: Spread
    warm: Spread
    stock_cold: Spread | None
    stock_warm: Spread | None
    faults: tuple[str, ...]


def timed(bench: Bench, rows: int, rng: np.random.Generator) -> Timing:
    """Measures calls of some rows, cold and warm.

    Args:
        bench: candidate, stock path and budget.
        rows: of each call.
        rng: draws content and addresses.

    Raises:
        CandidateError: a process could not be started, or ended.
    """
    cases = _cases(bench, rows, rng)
    sessions = [bench.fresh(len(cases))]
    try:
        size, device = sessions[0].arena.size, sessions[0].arena.device
        ready = prepared(cases, size, rng, POISONS[0], device=device)
        if bench.baseline is not None:
            sessions.append(bench.fresh(len(cases), bench.baseline))
        faults: list[str] = []
        # A state moves on with each call, and the right answer is known after one.
        stateful = any(one.role is Role.INOUT for one in bench.candidate.memory)
        again = 1 if stateful else len(cases)
        cold = _measured(sessions, ready, ready.calls(), bench, faults)
        warm = _measured(sessions, ready, ready.calls()[:1] * again, bench, faults)
    finally:
        for session in sessions:
            session.close()
    moved = OPERATORS[bench.candidate.operator].bytes_moved(cases[0])
    stock = len(sessions) > 1
    return Timing(
        rows,
        len(cases),
        moved,
        cold[0],
        warm[0],
        cold[1] if stock else None,
        warm[1] if stock else None,
        tuple(faults),
    )


def _cases(bench: Bench, rows: int, rng: np.random.Generator) -> list[Case]:
    candidate = bench.candidate
    each = sum(extent(one) for one in candidate.memory)
    count = min(max(2, bench.budget.rotated // each), MOST_CALLS)
    family = OPERATORS[candidate.operator].schema.families[0]
    scalars = {one.name: one.high for one in candidate.scalars}
    return [Case(candidate, rows, scalars, family, int(rng.integers(SEEDS))) for _ in range(count)]


def _measured(
    sessions: Sequence[Session],
    ready: Prepared,
    calls: Sequence[Call],
    bench: Bench,
    faults: list[str],
) -> list[Spread]:
    """Times of one call in each process, from pairs of neighbouring measurements."""
    for session in sessions:
        session.write(ready.image)
        if error := session.capture(calls).error:
            faults.append(f"{session.candidate.name} can not be captured: {error}")
        session.write(ready.image)
    samples: list[list[float]] = [[] for _ in sessions]
    for pair in range(bench.budget.pairs):
        order = list(enumerate(sessions))
        for i, session in order if pair % 2 == 0 else reversed(order):
            idle = session.replay(0).seconds
            busy = session.replay(bench.budget.times).seconds
            each = (busy - idle) / (bench.budget.times * len(calls))
            samples[i].append(max(each, 0.0) * 1e6)
    different = len({id(call.layout) for call in calls})
    faults += _wrong(sessions[0], ready, different)
    return [Spread.of(one) for one in samples]


def _wrong(session: Session, ready: Prepared, calls: int) -> list[str]:
    """What is wrong with what the last replay left, and with what one more does to fresh memory."""
    candidate = session.candidate
    if all(one.role is not Role.INOUT for one in candidate.memory):  # else each replay moved it on
        left = _faults(ready, calls, session.read())
        if left:
            return left
    session.write(ready.image)
    session.replay()
    return _faults(ready, calls, session.read())


def _faults(ready: Prepared, calls: int, after: torch.Tensor) -> list[str]:
    found = [f"timed: {fault}" for fault in red_zones(ready, after)]
    for which in range(0, calls, max(1, calls // CHECKED)):
        case = ready.cases[which]
        found += [f"timed: {fault} ({case})" for fault in verdict(ready, which, after).faults]
    return found
