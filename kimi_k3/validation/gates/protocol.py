# SPDX-License-Identifier: Apache-2.0
"""G4: a captured call computes what lies there when it is replayed, and no call leaves traces.

* In place: the same addresses hold other content in every call.
* Replays: captured once, replayed with new content in place; right, and as a plain call has it.
* Shrink and grow: one process serves few rows after many and many after few.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import torch

from kimi_k3.validation.bench import Bench
from kimi_k3.validation.case import Case
from kimi_k3.validation.draw import SEEDS, some
from kimi_k3.validation.gates.base import Outcome, outcome
from kimi_k3.validation.trial import Prepared, Seen, replayed

STEPS = (1, 64, 3, 128, 16, 17, 64, 1, 33, 32, 2)
"""Numbers of rows that cross the usual thresholds; those out of range are its ends."""


class ProtocolGate:
    """See the module."""

    number, name = "G4", "protocol"
    closes = (4, 33)

    def judge(self, bench: Bench) -> Outcome:
        """See `base.Gate`."""
        rng = bench.rng(self.name)
        found = [*_in_place(bench, rng), *_replays(bench, rng), *_changes(bench, rng)]
        facts = {"replays": bench.budget.replays, "changes of rows": bench.budget.changes}
        return outcome(found, facts, ["no ranks: mailboxes and epochs were not tried"])


def _in_place(bench: Bench, rng: np.random.Generator) -> Iterator[str]:
    (case,) = some(bench.candidate, rng, 1)
    ready = bench.prepared(case, rng)
    for one in _fresh(case, rng, bench.budget.replays):
        again = bench.prepared(one, rng, at=ready.layouts[0])
        yield from (f"in place: {fault}" for fault in bench.tried(again).faults)


def _replays(bench: Bench, rng: np.random.Generator) -> Iterator[str]:
    case = max(some(bench.candidate, rng, 3), key=lambda one: one.rows)
    ready = bench.prepared(case, rng)
    session = bench.session()
    session.write(ready.image)
    told = session.capture([ready.call(0)])
    if told.error:
        yield f"capture: {told.error}"
        return
    for one in _fresh(case, rng, bench.budget.replays):
        again = bench.prepared(one, rng, at=ready.layouts[0])
        seen = replayed(session, again)
        yield from (f"replayed: {fault}" for fault in seen.faults)
        yield from _unlike(bench, again, seen)


def _unlike(bench: Bench, ready: Prepared, seen: Seen) -> Iterator[str]:
    """Operands of a replay that a plain call of the same memory does not have."""
    plain = bench.tried(ready).judged.bits
    for name, bits in seen.judged.bits.items():
        if not torch.equal(bits, plain[name]):
            yield f"replayed: {name} has other bits than a plain call ({seen.case})"


def _changes(bench: Bench, rng: np.random.Generator) -> Iterator[str]:
    low, high = bench.candidate.rows
    steps = [min(max(n, low), high) for n in STEPS]
    cases = some(bench.candidate, rng, bench.budget.changes)
    for i, case in enumerate(cases):
        one = replace(case, rows=steps[i % len(steps)])
        ready = bench.prepared(one, rng)
        yield from (f"after other rows: {fault}" for fault in bench.tried(ready).faults)


def _fresh(case: Case, rng: np.random.Generator, number: int) -> Sequence[Case]:
    """The same call with other content."""
    return [replace(case, seed=int(rng.integers(SEEDS))) for _ in range(number)]
