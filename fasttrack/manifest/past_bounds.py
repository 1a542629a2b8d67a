# SPDX-License-Identifier: Apache-2.0
"""The next point past each bound of a region, which the gate must refuse."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from fasttrack.manifest.model import Manifest, Region
from fasttrack.manifest.region import SET_AXES, Box, Budget, Point, box_of, covered_by
from fasttrack.manifest.words import Dtype, GraphMode, Ranks

_WORDS: Mapping[str, Sequence[str]] = {
    "ranks": list(Ranks),
    "weights": list(Dtype),
    "activations": list(Dtype),
    "kv_cache": list(Dtype),
    "conv_state": list(Dtype),
    "recurrent_state": list(Dtype),
    "graph_mode": list(GraphMode),
}
_NO_CUT = 1 << 62
"""Rows that no step reaches, where a bound other than `rows_max` is in question."""


def points_past_bounds(
    manifest: Manifest, region: Region, hardware: Sequence[str], budget: Budget
) -> Iterator[tuple[str, Point]]:
    """Names of bounds with a point just past each, in a fixed order.

    A point is taken from the whole layer past the bound, every other axis free, so there is none
    only when the other regions of the manifest admit all of that layer.

    Args:
        manifest: for its other regions.
        region: whose bounds.
        hardware: the policy's vocabulary.
        budget: what the comparisons of regions may take.

    Raises:
        FactUnavailable: the regions overlap in too many ways to compare.
    """
    others = [box_of(r) for r in manifest.scope if r.id != region.id]
    for bound, layer in _layers(box_of(region), sorted(hardware)):
        point = covered_by(layer, others, budget)
        if point is not None:
            yield bound, point


def _layers(box: Box, hardware: Sequence[str]) -> Iterator[tuple[str, Box]]:
    """Bound and the set of all points just past it."""
    words = {"hardware": hardware, **_WORDS}
    for i, axis in enumerate(SET_AXES):
        inside = box.choices[i]
        outside = (
            _neighbours(inside, words[axis])
            if axis in words
            else _powers_beside([v for v in inside if isinstance(v, int)])
        )
        for value in outside:
            yield axis, replace(box, choices=(*box.choices[:i], (value,), *box.choices[i + 1 :]))
    for draft in _numbers_beside(box.drafts):
        yield "draft_tokens", replace(box, drafts=(draft,), rows_max=_NO_CUT)
    low, high = box.requests
    if low > 1:
        yield "requests.min", replace(box, requests=(low - 1, low - 1))
    yield "requests.max", replace(box, requests=(high + 1, high + 1), rows_max=_NO_CUT)
    for draft in box.drafts:
        over = box.rows_max // (1 + draft) + 1
        if low <= over <= high:
            layer = replace(box, drafts=(draft,), requests=(over, over), rows_max=_NO_CUT)
            yield "rows_max", layer
    past = box.contexts[1] + 1
    yield "context_max", replace(box, contexts=(past, past))


def _neighbours(inside: Sequence[str | int], words: Sequence[str]) -> list[str]:
    """Words outside that stand beside one inside; where none inside is known, all of them."""
    known = [word in inside for word in words]
    return [
        word
        for i, word in enumerate(words)
        if not known[i] and (any(known[max(i - 1, 0) : i + 2]) or not any(known))
    ]


def _powers_beside(inside: Sequence[int]) -> list[int]:
    """The powers of two next below and next above each number, those outside."""
    below = {1 << (n - 1).bit_length() - 1 for n in inside if n > 1}
    above = {1 << n.bit_length() for n in inside}
    return sorted((below | above) - set(inside))


def _numbers_beside(inside: Sequence[int]) -> list[int]:
    """The whole numbers from 0 next to each number, those outside."""
    beside = {n + d for n in inside for d in (-1, 1) if n + d >= 0}
    return sorted(beside - set(inside))
