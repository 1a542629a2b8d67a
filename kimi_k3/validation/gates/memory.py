# SPDX-License-Identifier: Apache-2.0
"""G3: a call writes what it owes and nothing else, and nothing that is undefined has an effect.

Each case is run under both poisons and at several addresses. The answers must be right, and the
same bit for bit; every byte outside of them must be what it was.
"""

import torch

from kimi_k3.validation.bench import Bench
from kimi_k3.validation.draw import some
from kimi_k3.validation.gates.base import Outcome, outcome
from kimi_k3.validation.trial import POISONS, Seen


class MemoryContract:
    """See the module."""

    number, name = "G3", "memory"
    closes = (1, 3, 14, 15, 16)

    def judge(self, bench: Bench) -> Outcome:
        """See `base.Gate`."""
        rng = bench.rng(self.name)
        found: list[str] = []
        for case in some(bench.candidate, rng, bench.budget.memory):
            runs = []
            for i in range(max(2, bench.budget.repeats)):
                ready = bench.prepared(case, rng, poison=POISONS[i % 2])
                seen = bench.tried(ready)
                found += seen.faults
                runs.append(seen)
            found += _differences(runs)
        facts = {"cases": bench.budget.memory, "runs of each": max(2, bench.budget.repeats)}
        return outcome(found, facts)


def _differences(runs: list[Seen]) -> list[str]:
    """Operands whose bits are not the same in all runs."""
    first = runs[0].judged.bits
    return [
        f"{name} has other bits in another run ({runs[0].case})"
        for run in runs[1:]
        for name, bits in run.judged.bits.items()
        if not torch.equal(bits, first[name])
    ]
