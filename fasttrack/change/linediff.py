# SPDX-License-Identifier: Apache-2.0
"""Which lines of a new file are new: a line diff whose cost is bounded on any input.

The lines that are kept always form a common subsequence of both files, so no added line is ever
missed. In order: (1) equal lines at both ends, (2) lines that the other file lacks, (3) lines that
occur exactly once on both sides, in their longest common order, as anchors between which the same
starts again, (4) the exact greedy diff of Myers while it is cheap. Where the budget runs out,
everything between the anchors counts as replaced: too much, never too little. The result is a
pure function of the two files and the effort.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence

EFFORT = 64
"""Steps per line of both files, a step being about 0.3 us, before the open gaps are given up."""

EDITS_LIMIT = 400
"""Edits in one gap up to which the exact diff is tried: its memory grows with their square."""

_Gap = tuple[Sequence[int], Sequence[int]]


def kept_lines(old: Sequence[bytes], new: Sequence[bytes], effort: int = EFFORT) -> bytearray:
    """One byte for each line of `new`: 1 when it is kept from `old`, 0 when it is added."""
    return _Diff(old, new).run(effort)


class _Diff:
    def __init__(self, old: Sequence[bytes], new: Sequence[bytes]) -> None:
        self.old = old
        self.new = new
        self.kept = bytearray(len(new))

    def run(self, effort: int) -> bytearray:
        budget = effort * (len(self.old) + len(self.new))
        head = _common_prefix(self.old, self.new)
        tail = _common_prefix(self.old[head:][::-1], self.new[head:][::-1])
        old_end, new_end = len(self.old) - tail, len(self.new) - tail
        self.kept[:head] = b"\1" * head
        self.kept[new_end:] = b"\1" * tail
        gaps: list[_Gap] = [(range(head, old_end), range(head, new_end))]
        while gaps and budget > 0:
            gap = gaps.pop()
            budget -= 2 * (len(gap[0]) + len(gap[1]))
            gap = self._trim_ends(*self._drop_unmatched(*self._trim_ends(*gap)))
            if not gap[0] or not gap[1]:
                continue
            anchors = self._anchors(*gap)
            if anchors:
                gaps.extend(self._between(*gap, anchors))
            else:
                budget -= self._myers(*gap, budget)
        return self.kept

    def _trim_ends(self, old_gap: Sequence[int], new_gap: Sequence[int]) -> _Gap:
        shorter = min(len(old_gap), len(new_gap))
        head = 0
        while head < shorter and self.old[old_gap[head]] == self.new[new_gap[head]]:
            self.kept[new_gap[head]] = 1
            head += 1
        tail = 0
        while (
            tail < shorter - head and self.old[old_gap[-1 - tail]] == self.new[new_gap[-1 - tail]]
        ):
            self.kept[new_gap[-1 - tail]] = 1
            tail += 1
        return old_gap[head : len(old_gap) - tail], new_gap[head : len(new_gap) - tail]

    def _drop_unmatched(self, old_gap: Sequence[int], new_gap: Sequence[int]) -> _Gap:
        in_both = {self.old[i] for i in old_gap} & {self.new[j] for j in new_gap}
        return [i for i in old_gap if self.old[i] in in_both], [
            j for j in new_gap if self.new[j] in in_both
        ]

    def _anchors(self, old_gap: Sequence[int], new_gap: Sequence[int]) -> list[tuple[int, int]]:
        """Positions in both gaps of lines that are unique in each, in longest common order."""
        old_counts = Counter(self.old[i] for i in old_gap)
        new_counts = Counter(self.new[j] for j in new_gap)
        place = {self.old[i]: x for x, i in enumerate(old_gap) if old_counts[self.old[i]] == 1}
        pairs = [
            (place[self.new[j]], y)
            for y, j in enumerate(new_gap)
            if new_counts[self.new[j]] == 1 and self.new[j] in place
        ]
        return _longest_increasing(pairs)

    def _between(
        self, old_gap: Sequence[int], new_gap: Sequence[int], anchors: Sequence[tuple[int, int]]
    ) -> list[_Gap]:
        gaps: list[_Gap] = []
        x0 = y0 = 0
        for x, y in anchors:
            self.kept[new_gap[y]] = 1
            if x > x0 and y > y0:
                gaps.append((old_gap[x0:x], new_gap[y0:y]))
            x0, y0 = x + 1, y + 1
        if x0 < len(old_gap) and y0 < len(new_gap):
            gaps.append((old_gap[x0:], new_gap[y0:]))
        return gaps

    def _myers(self, old_gap: Sequence[int], new_gap: Sequence[int], budget: int) -> int:
        """Mark what a shortest edit script keeps; returns the steps, marks nothing over budget."""
        n, m = len(old_gap), len(new_gap)
        furthest = {1: 0}
        trail: list[dict[int, int]] = []
        steps = 0
        for d in range(min(n + m, EDITS_LIMIT) + 1):
            trail.append(dict(furthest))
            steps += 2 * d + 2
            for k in range(-d, d + 1, 2):
                down = k == -d or (k != d and furthest[k - 1] < furthest[k + 1])
                x = furthest[k + 1] if down else furthest[k - 1] + 1
                while x < n and x - k < m and self.old[old_gap[x]] == self.new[new_gap[x - k]]:
                    x += 1
                    steps += 1
                furthest[k] = x
                if x >= n and x - k >= m:
                    self._mark_trail(trail, n, m, new_gap)
                    return steps
                if steps > budget:
                    return steps
        return steps

    def _mark_trail(
        self, trail: Sequence[dict[int, int]], n: int, m: int, new_gap: Sequence[int]
    ) -> None:
        x, y = n, m
        for d in range(len(trail) - 1, -1, -1):
            furthest, k = trail[d], x - y
            down = k == -d or (k != d and furthest[k - 1] < furthest[k + 1])
            before = k + 1 if down else k - 1
            x0 = furthest[before] if d else 0
            y0 = x0 - before if d else 0
            while x > x0 and y > y0:
                x, y = x - 1, y - 1
                self.kept[new_gap[y]] = 1
            x, y = x0, y0


def _common_prefix(one: Sequence[bytes], other: Sequence[bytes]) -> int:
    """Number of equal lines at the start; slices are compared first, because that is fast."""
    shorter = min(len(one), len(other))
    length = 0
    while length < shorter and one[length : length + 64] == other[length : length + 64]:
        length += 64
    length = min(length, shorter)
    while length < shorter and one[length] == other[length]:
        length += 1
    return length


def _longest_increasing(pairs: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    tops: list[int] = []  # per length: the smallest old position that ends such a run
    top_pairs: list[int] = []
    before: list[int] = []
    for index, (x, _) in enumerate(pairs):
        length = bisect_left(tops, x)
        before.append(top_pairs[length - 1] if length else -1)
        tops[length : length + 1] = [x]
        top_pairs[length : length + 1] = [index]
    run: list[tuple[int, int]] = []
    index = top_pairs[-1] if top_pairs else -1
    while index >= 0:
        run.append(pairs[index])
        index = before[index]
    return run[::-1]
