# SPDX-License-Identifier: Apache-2.0
"""Choosing few combinations in which every pair of values of two axes occurs.

Greedy and deterministic: no random restarts, no dependence on hashing. A few combinations more
than the optimum cost less than a choice that differs between two machines.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import combinations
from math import prod

Value = str | int
Axes = Mapping[str, Sequence[Value]]
Assignment = tuple[str, Value]
Combination = dict[str, Value]


def size_estimate(sizes: Sequence[int]) -> int:
    """About how many combinations a choice takes.

    The two largest axes alone need their product. The others mostly find room in it, and the
    factor of two is for what the greedy choice adds.
    """
    largest = sorted(sizes, reverse=True)[:2]
    return 2 * prod(largest)


def covering(axes: Axes, seeds: Sequence[Combination]) -> tuple[Combination, ...]:
    """Combinations that hold every seed, every value and every pair of values.

    Args:
        axes: name to values, each with at least one.
        seeds: combinations of some of the axes that must occur; each is completed once.

    Returns:
        The completed seeds in order, then what was still missing. Without axes and seeds, the
        one empty combination.
    """
    choice = _Choice(axes)
    for seed in seeds:
        choice.complete(seed)
    while choice.missing:
        choice.complete(dict(next(iter(choice.missing))))
    if not choice.chosen:
        choice.complete({})
    return tuple(choice.chosen)


class _Choice:
    """The combinations chosen so far and the pairs that they lack."""

    def __init__(self, axes: Axes) -> None:
        self.axes = axes
        self.chosen: list[Combination] = []
        self.uses: Counter[Assignment] = Counter()
        # A dict keeps the order, so that "the first missing pair" is the same everywhere.
        self.missing: dict[tuple[Assignment, ...], None] = {
            ((axis, value),): None for axis, values in axes.items() for value in values
        }
        for one, two in combinations(axes, 2):
            for a in axes[one]:
                self.missing |= dict.fromkeys(((one, a), (two, b)) for b in axes[two])

    def complete(self, start: Combination) -> None:
        """Adds a combination: `start`, with the most useful value on every other axis."""
        combination = dict(start)
        for axis, values in self.axes.items():
            if axis not in combination:
                worth = {v: (-self._gain(combination, axis, v), self.uses[axis, v]) for v in values}
                combination[axis] = min(values, key=worth.__getitem__)
        self.chosen.append({axis: combination[axis] for axis in (*start, *self.axes)})
        named = [(axis, combination[axis]) for axis in self.axes]
        self.uses.update(named)
        for assignment in named:
            self.missing.pop((assignment,), None)
        for pair in combinations(named, 2):
            self.missing.pop(pair, None)

    def _gain(self, combination: Combination, axis: str, value: Value) -> int:
        """How many missing pairs the value would add to what is chosen."""
        new = (axis, value)
        gain = int((new,) in self.missing)
        for other in combination.items():
            # Pairs are stored in the order of the axes; the other order is never found.
            gain += ((new, other) in self.missing) + ((other, new) in self.missing)
        return gain
