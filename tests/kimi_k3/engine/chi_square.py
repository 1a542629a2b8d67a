# SPDX-License-Identifier: Apache-2.0
"""Whether counts fit a law."""

from collections.abc import Mapping


def deviation(counts: Mapping[tuple[int, ...], int], law: Mapping[tuple[int, ...], float]) -> float:
    """The chi-square statistic of `counts`, in standard deviations of a normal law.

    Outcomes that are expected fewer than 5 times count as one. The cube root of the statistic per
    degree of freedom is close to normal (Wilson and Hilferty, 1931).
    """
    n = sum(counts.values())
    assert all(law[outcome] > 0 for outcome in counts)
    cells = [(counts.get(outcome, 0), n * p) for outcome, p in law.items() if n * p >= 5]
    seen, due = n - sum(count for count, _ in cells), n - sum(mean for _, mean in cells)
    cells += [(seen, due)] if due > 1 else []
    statistic = sum((count - mean) ** 2 / mean for count, mean in cells)
    free = len(cells) - 1
    spread = (2 / (9 * free)) ** 0.5
    return float(((statistic / free) ** (1 / 3) - (1 - spread**2)) / spread)
