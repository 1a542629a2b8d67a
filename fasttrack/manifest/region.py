# SPDX-License-Identifier: Apache-2.0
"""The scope as a set of points: membership, overlap, and what a union of regions leaves out.

A region is a product of finite sets and two intervals (requests, context), cut by
rows = requests x (1 + draft_tokens) <= rows_max. Answers are exact and never enumerate an
interval: points are compared through the ends of the intervals alone.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from fasttrack.errors import FactUnavailable
from fasttrack.manifest.model import Region
from fasttrack.manifest.words import Dtype, GraphMode, Ranks

SET_AXES = (
    "hardware",
    "ranks",
    "tensor_parallel",
    "decode_context_parallel",
    "weights",
    "activations",
    "kv_cache",
    "conv_state",
    "recurrent_state",
    "graph_mode",
)
"""Axes that are finite sets and take no part in the cut by rows."""

MAX_STEPS = 1_000_000
"""Elementary comparisons that the questions about one manifest may take; about a second."""

Choice = str | int
Interval = tuple[int, int]


@dataclass(frozen=True, order=True)
class Point:
    """One configuration of one decode step."""

    hardware: str
    ranks: Ranks
    tensor_parallel: int
    decode_context_parallel: int
    requests: int
    draft_tokens: int
    context: int
    weights: Dtype
    activations: Dtype
    kv_cache: Dtype
    conv_state: Dtype
    recurrent_state: Dtype
    graph_mode: GraphMode

    @property
    def rows(self) -> int:
        """Rows of the step."""
        return self.requests * (1 + self.draft_tokens)

    def values(self) -> dict[str, Choice]:
        """Axis to plain value, with the rows."""
        plain = {k: str(v) if isinstance(v, str) else v for k, v in vars(self).items()}
        return plain | {"rows": self.rows}

    def __str__(self) -> str:
        """All axes, as `axis=value`."""
        return ", ".join(f"{axis}={value}" for axis, value in self.values().items())


@dataclass(frozen=True)
class Box:
    """A region as the algebra sees it; also sets that no manifest can write, such as one bound.

    Attributes:
        choices: for each of `SET_AXES`, its values in rising order.
        drafts: draft tokens, in rising order.
        requests: fewest and most requests.
        contexts: shortest and longest context.
        rows_max: most rows.
    """

    choices: tuple[tuple[Choice, ...], ...]
    drafts: tuple[int, ...]
    requests: Interval
    contexts: Interval
    rows_max: int

    @cached_property
    def sets(self) -> tuple[frozenset[Choice], ...]:
        """`choices` and `drafts` as sets."""
        return tuple(frozenset(values) for values in (*self.choices, self.drafts))

    def requests_at(self, draft: int) -> Interval:
        """Fewest and most requests at one draft length, after the cut; empty when reversed."""
        low, high = self.requests
        return low, min(high, self.rows_max // (1 + draft))

    def drafts_in_use(self) -> Iterator[int]:
        """Draft lengths at which at least one number of requests fits."""
        for draft in self.drafts:
            low, high = self.requests_at(draft)
            if low <= high:
                yield draft

    def point(self, chosen: Sequence[Choice], draft: int, requests: int, context: int) -> Point:
        """The point with these values of `SET_AXES` and of the intervals."""
        named: dict[str, Any] = dict(zip(SET_AXES, chosen, strict=True))
        return Point(**named, draft_tokens=draft, requests=requests, context=context)


def box_of(region: Region) -> Box:
    """The set of points of a region."""
    dtypes = region.dtypes
    sets: tuple[Sequence[Choice], ...] = (
        region.hardware,
        (region.ranks,),
        region.tensor_parallel,
        region.decode_context_parallel,
        dtypes.weights,
        dtypes.activations,
        dtypes.kv_cache,
        dtypes.conv_state,
        dtypes.recurrent_state,
        region.graph_modes,
    )
    return Box(
        choices=tuple(tuple(sorted(set(values))) for values in sets),
        drafts=tuple(sorted(set(region.draft_tokens))),
        requests=(region.requests.min, region.requests.max),
        contexts=(1, region.context_max),
        rows_max=region.rows_max,
    )


class Budget:
    """Comparisons that are left; shared by questions that hostile regions could multiply."""

    def __init__(self, steps: int = MAX_STEPS) -> None:
        self.steps = steps

    def spend(self, steps: int) -> None:
        """Takes away `steps`.

        Raises:
            FactUnavailable: nothing is left.
        """
        self.steps -= steps
        if self.steps < 0:
            raise FactUnavailable("the regions overlap in too many ways to be compared")


def contains(region: Region | Box, point: Point) -> bool:
    """Whether a region admits a point."""
    box = _as_box(region)
    return (
        all(getattr(point, axis) in box.choices[i] for i, axis in enumerate(SET_AXES))
        and point.draft_tokens in box.drafts
        and box.requests[0] <= point.requests <= box.requests[1]
        and box.contexts[0] <= point.context <= box.contexts[1]
        and point.rows <= box.rows_max
    )


def overlaps(a: Region | Box, b: Region | Box) -> Point | None:
    """The smallest point that both regions admit, or None when they are disjoint."""
    both = _intersection(_as_box(a), _as_box(b))
    return None if both is None else _smallest(both)


def covered_by(
    region: Region | Box, others: Sequence[Region | Box], budget: Budget | None = None
) -> Point | None:
    """Whether the union of `others` admits every point of `region`.

    Args:
        region: the set in question.
        others: the sets that may cover it, alone or together.
        budget: what the answer may take; by default `MAX_STEPS` comparisons.

    Returns:
        None when it is covered (or empty), else a point of `region` that none of `others`
        admits; the same one whenever the arguments are the same.

    Raises:
        FactUnavailable: the regions are cut against each other in too many ways for the budget.
    """
    box = _as_box(region)
    if _smallest(box) is None:
        return None
    budget = budget or Budget()
    budget.spend(len(others))
    rivals = [o for o in map(_as_box, others) if not _disjoint_sets(box, o)]
    return _Coverage(box, rivals, budget).uncovered()


def _as_box(region: Region | Box) -> Box:
    return box_of(region) if isinstance(region, Region) else region


def _smallest(box: Box) -> Point | None:
    draft = next(box.drafts_in_use(), None)
    if draft is None or not all(box.choices) or box.contexts[0] > box.contexts[1]:
        return None
    first = [values[0] for values in box.choices]
    return box.point(first, draft, box.requests[0], box.contexts[0])


def _intersection(a: Box, b: Box) -> Box | None:
    """The points of both boxes, or None when there are none."""
    both = Box(
        choices=tuple(
            tuple(v for v in x if v in y) for x, y in zip(a.choices, b.choices, strict=True)
        ),
        drafts=tuple(d for d in a.drafts if d in b.drafts),
        requests=_common(a.requests, b.requests),
        contexts=_common(a.contexts, b.contexts),
        rows_max=min(a.rows_max, b.rows_max),
    )
    return both if _smallest(both) is not None else None


def _disjoint_sets(a: Box, b: Box) -> bool:
    return any(x.isdisjoint(y) for x, y in zip(a.sets, b.sets, strict=True))


def _common(a: Interval, b: Interval) -> Interval:
    return max(a[0], b[0]), min(a[1], b[1])


class _Coverage:
    """One coverage question: a depth-first search over the set axes with a set of rivals.

    A set of rivals is a bit mask: those whose sets hold every value chosen so far. An empty
    mask is an uncovered point; a rival that holds all of the rest of the box closes the branch.
    """

    def __init__(self, box: Box, rivals: Sequence[Box], budget: Budget) -> None:
        self.box = box
        self.rivals = rivals
        self.budget = budget
        budget.spend(len(rivals) * (len(SET_AXES) + len(box.drafts)))
        self.closed: set[tuple[int, int]] = set()
        """Pairs (axis, mask) that are known to be covered."""
        self.holders = [
            {value: self._mask(value in r.sets[axis] for r in rivals) for value in values}
            for axis, values in enumerate(box.choices)
        ]
        self.whole = [self._mask(map(self._holds_steps, rivals))]
        """Per axis, the rivals that hold all steps and all values from this axis on."""
        for axis in reversed(range(len(SET_AXES))):
            holds = self._mask(box.sets[axis] <= r.sets[axis] for r in rivals)
            self.whole.insert(0, self.whole[0] & holds)

    def uncovered(self) -> Point | None:
        """A point of the box that no rival holds."""
        return self._search((), (1 << len(self.rivals)) - 1)

    def _search(self, chosen: tuple[Choice, ...], mask: int) -> Point | None:
        axis = len(chosen)
        self.budget.spend(1)
        if mask & self.whole[axis] or (axis, mask) in self.closed:
            return None
        if axis == len(self.box.choices):
            found = self._uncovered_step(chosen, mask)
        else:
            found = None
            for value, rest in self._hardest(axis, mask):
                found = self._search((*chosen, value), rest)
                if found is not None:
                    break
        if found is None:
            self.closed.add((axis, mask))
        return found

    def _hardest(self, axis: int, mask: int) -> list[tuple[Choice, int]]:
        """One value per smallest set of rivals; a value with more rivals is covered if they are."""
        first: dict[int, Choice] = {}
        for value, holders in self.holders[axis].items():
            first.setdefault(mask & holders, value)
        self.budget.spend(len(first) ** 2)
        return [
            (value, rest)
            for rest, value in first.items()
            if not any(other != rest and other & rest == other for other in first)
        ]

    def _uncovered_step(self, chosen: Sequence[Choice], mask: int) -> Point | None:
        """A step (draft, requests, context) that none of the rivals in `mask` holds.

        The smallest uncovered number of requests is the smallest of all, or one more than the
        most that some rival takes; likewise the context.
        """
        rivals = [r for i, r in enumerate(self.rivals) if mask >> i & 1]
        for draft in self.box.drafts_in_use():
            low, high = self.box.requests_at(draft)
            ranges = [(r.requests_at(draft), r.contexts) for r in rivals if draft in r.sets[-1]]
            starts = {low, *(most + 1 for (_, most), _ in ranges)}
            for requests in sorted(n for n in starts if low <= n <= high):
                self.budget.spend(1 + len(ranges))
                active = [c for (least, most), c in ranges if least <= requests <= most]
                context = _first_gap(self.box.contexts, active)
                if context is not None:
                    return self.box.point(chosen, draft, requests, context)
        return None

    def _holds_steps(self, rival: Box) -> bool:
        drafts = tuple(self.box.drafts_in_use())
        return (
            _within(self.box.contexts, rival.contexts)
            and rival.sets[-1].issuperset(drafts)
            and all(_within(self.box.requests_at(d), rival.requests_at(d)) for d in drafts)
        )

    @staticmethod
    def _mask(holds: Iterable[bool]) -> int:
        return sum(1 << i for i, held in enumerate(holds) if held)


def _within(inner: Interval, outer: Interval) -> bool:
    return outer[0] <= inner[0] and inner[1] <= outer[1]


def _first_gap(span: Interval, intervals: Sequence[Interval]) -> int | None:
    """The smallest number of `span` that is in none of `intervals`."""
    at = span[0]
    for low, high in sorted(intervals):
        if low > at:
            break
        at = max(at, high + 1)
    return at if at <= span[1] else None
