# SPDX-License-Identifier: Apache-2.0
"""G2: every value is within its bound of the float64 answer, and no further off than stock.

Rows and numbers are drawn at their ends first, content from every family of the schema. A bound
holds for one value, so that no row, column or expert hides behind the others; the comparison with
the stock path's own error finds what a bound still allows, such as sums in a narrower format. A
recurrent state is compared once more after many steps.
"""

from dataclasses import dataclass, field

import torch

from kimi_k3.validation.bench import Bench
from kimi_k3.validation.draw import some
from kimi_k3.validation.gates.base import Outcome, outcome
from kimi_k3.validation.gates.steps import drifts
from kimi_k3.validation.judge import Kind
from kimi_k3.validation.operators.base import LEAST_NORMAL
from kimi_k3.validation.trial import Prepared, Seen, expected_of, stock_of

ABOUT = (Kind.VALUE, Kind.NOT_A_NUMBER, Kind.UNWRITTEN)
MOST = 1.25
"""Root mean square of errors against the stock path's; both round the result to BF16, so that two
right ones differ by what their sums differ."""
FLOOR = 0.02
"""In units of the bound: errors below it are compared with no one's."""


@dataclass
class Squares:
    """Sums of squared errors in units of the bound."""

    ours: float = 0.0
    stock: float = 0.0
    count: int = 0
    worst: dict[str, float] = field(default_factory=dict)

    def add(self, ready: Prepared, seen: Seen) -> None:
        """Adds those of one call, of operands that the stock path answers."""
        stock = stock_of(ready, 0)
        expected = expected_of(ready, 0)
        for name, theirs in stock.items():
            right = expected[name]
            value = right.value[right.written]
            bound = right.bound[right.written].clamp(min=LEAST_NORMAL)
            self.ours += _square((seen.judged.answers[name] - value) / bound)
            self.stock += _square((theirs[right.written].double() - value) / bound)
            self.count += value.numel()
        for name, off in seen.judged.worst.items():
            self.worst[name] = max(off, self.worst.get(name, 0.0))

    def rms(self) -> tuple[float, float]:
        """Ours and the stock path's."""
        n = max(1, self.count)
        return (self.ours / n) ** 0.5, (self.stock / n) ** 0.5


class Numerics:
    """See the module."""

    number, name = "G2", "numerics"
    closes = (7, 8, 9, 10, 11, 12, 13, 17)

    def judge(self, bench: Bench) -> Outcome:
        """See `base.Gate`."""
        rng = bench.rng(self.name)
        found: list[str] = []
        squares = Squares()
        for case in some(bench.candidate, rng, bench.budget.cases):
            ready = bench.prepared(case, rng)
            seen = bench.tried(ready)
            found += [f"{f} ({case})" for f in seen.judged.faults if f.kind in ABOUT]
            if seen.told.error:
                found.append(f"{seen.told.error} ({case})")
            squares.add(ready, seen)
        found += drifts(bench, rng)
        ours, stock = squares.rms()
        if ours > MOST * stock + FLOOR:
            found.append(f"errors of {ours:.3g} bounds on average, stock has {stock:.3g}")
        facts: dict[str, float | str] = {"cases": bench.budget.cases}
        facts |= {f"worst of {name}": round(off, 4) for name, off in squares.worst.items()}
        facts |= {"error": round(ours, 4), "stock's error": round(stock, 4)}
        return outcome(found, facts)


def _square(off: torch.Tensor) -> float:
    return float((off.nan_to_num(nan=1e6).clamp(-1e6, 1e6) ** 2).sum())
