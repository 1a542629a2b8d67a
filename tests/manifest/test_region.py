# SPDX-License-Identifier: Apache-2.0
"""The scope algebra against lists of points, and its behaviour on ranges nobody can list."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fasttrack.errors import FactUnavailable
from fasttrack.manifest.model import Region
from fasttrack.manifest.region import (
    MAX_STEPS,
    SET_AXES,
    Box,
    Budget,
    Point,
    box_of,
    contains,
    covered_by,
    overlaps,
)

from .builders import UNIVERSE, members, region, regions

HUGE = 1 << 40


@given(regions())
@settings(max_examples=30, deadline=None)
def test_membership_agrees_with_the_fields(r: Region) -> None:
    assert {p for p in UNIVERSE if contains(r, p)} == members(r)


@given(regions(), regions())
@settings(max_examples=50, deadline=None)
def test_regions_overlap_exactly_when_they_share_a_point(a: Region, b: Region) -> None:
    witness = overlaps(a, b)
    shared = members(a) & members(b)
    assert (witness is None) == (not shared)
    assert witness is None or witness in shared


@given(regions(), st.lists(regions(), max_size=4))
@settings(max_examples=60, deadline=None)
def test_a_region_is_covered_exactly_when_all_of_its_points_are(
    r: Region, others: list[Region]
) -> None:
    left = members(r).difference(*map(members, others))
    witness = covered_by(r, others)
    assert (witness is None) == (not left)
    assert witness is None or witness in left


ONE = {"ranks": "real", "hardware": ["h200"], "context_max": 1, "graph_modes": ["full"]}
steps = regions(**ONE, kv_cache=["bf16"], tensor_parallel=[1])
sets = regions(**ONE, requests=(1, 1), draft_tokens=[0], rows_max=1)


@given(steps, st.lists(steps, min_size=2, max_size=8))
@settings(max_examples=150, deadline=None)
def test_steps_that_only_several_regions_cover_together_are_recognised(
    r: Region, others: list[Region]
) -> None:
    left = members(r).difference(*map(members, others))
    assert (covered_by(r, others) is None) == (not left)


@given(sets, st.lists(sets, min_size=2, max_size=8))
@settings(max_examples=150, deadline=None)
def test_sets_that_only_several_regions_cover_together_are_recognised(
    r: Region, others: list[Region]
) -> None:
    left = members(r).difference(*map(members, others))
    assert (covered_by(r, others) is None) == (not left)


def test_a_gap_behind_a_covered_branch_is_found() -> None:
    whole = region(tensor_parallel=[1, 2], kv_cache=["bf16", "fp32"], graph_modes=["full", "eager"])
    parts = [
        region(tensor_parallel=[1], kv_cache=[cache], graph_modes=[graph])
        for cache in ("bf16", "fp32")
        for graph in ("full", "eager")
    ]
    parts.append(region(tensor_parallel=[2], kv_cache=["bf16"], graph_modes=["full", "eager"]))
    gap = covered_by(whole, parts)
    assert gap is not None
    assert (gap.tensor_parallel, gap.kv_cache) == (2, "fp32")


@given(regions(), st.lists(regions(), max_size=4))
@settings(max_examples=50, deadline=None)
def test_the_witness_does_not_depend_on_the_order_of_lists(r: Region, others: list[Region]) -> None:
    turned = region(
        hardware=r.hardware[::-1],
        ranks=r.ranks,
        tensor_parallel=r.tensor_parallel[::-1],
        kv_cache=r.dtypes.kv_cache[::-1],
        graph_modes=r.graph_modes[::-1],
        requests=(r.requests.min, r.requests.max),
        draft_tokens=r.draft_tokens[::-1],
        rows_max=r.rows_max,
        context_max=r.context_max,
    )
    assert covered_by(r, others) == covered_by(turned, others)
    assert overlaps(r, region()) == overlaps(turned, region())


def test_a_gap_of_one_request_among_a_trillion_is_found() -> None:
    whole = region(requests=(1, HUGE), rows_max=HUGE)
    low = region(requests=(1, HUGE // 2), rows_max=HUGE)
    high = region(requests=(HUGE // 2 + 1, HUGE), rows_max=HUGE)
    assert covered_by(whole, [low, high]) is None
    gap = covered_by(whole, [region(requests=(1, HUGE // 2 - 1), rows_max=HUGE), high])
    assert gap is not None
    assert gap.requests == HUGE // 2


def test_the_cut_by_rows_is_part_of_the_comparison() -> None:
    wide = region(requests=(1, 64), draft_tokens=[0, 7], rows_max=64)
    # The product of both ranges has 64 requests with 8 rows each, but the cut removes them.
    assert covered_by(wide, [region(requests=(1, 8), draft_tokens=[7], rows_max=64)]) is not None
    parts = [
        region(requests=(1, 64), draft_tokens=[0], rows_max=64),
        region(requests=(1, 8), draft_tokens=[7], rows_max=512),
    ]
    assert covered_by(wide, parts) is None


def test_one_token_of_context_more_is_a_new_point() -> None:
    point = covered_by(region(context_max=HUGE), [region(context_max=HUGE - 1)])
    assert point is not None
    assert point.context == HUGE


def test_a_box_without_points_is_covered_by_nothing_at_all() -> None:
    empty = Box(box_of(region()).choices, (3,), (2, 4), (1, 1), rows_max=7)
    assert covered_by(empty, []) is None
    assert overlaps(empty, empty) is None


def _scattered(count: int) -> list[Region]:
    """Regions that agree on nothing: the worst case for a search over sets of rivals."""
    words = ["fp32", "bf16", "fp16", "fp8_e4m3", "fp8_e5m2", "mxfp8", "int8", "mxfp4"]

    def part(i: int, axis: int) -> list[str]:
        return [w for n, w in enumerate(words) if (i * 2654435761 >> (axis * 3 + n)) & 1] or words

    return [
        region(
            weights=part(i, 0),
            activations=part(i, 1),
            kv_cache=part(i, 2),
            conv_state=part(i, 3),
            recurrent_state=part(i, 4),
            requests=(1 + i % 7, 100 + i),
            draft_tokens=list(range(i % 5, 40)),
            rows_max=10_000 - i,
            context_max=1000 + i,
        )
        for i in range(1, count)
    ]


def test_hostile_regions_are_answered_or_given_up_within_the_budget() -> None:
    words = ["fp32", "bf16", "fp16", "fp8_e4m3", "fp8_e5m2", "mxfp8", "int8", "mxfp4"]
    names = ("weights", "activations", "kv_cache", "conv_state", "recurrent_state")
    whole = region(**dict.fromkeys(names, words), draft_tokens=list(range(40)), rows_max=9000)
    budget = Budget()
    try:
        witness = covered_by(whole, _scattered(64), budget)
    except FactUnavailable:
        assert budget.steps < 0
    else:
        assert witness is None or isinstance(witness, Point)
        assert 0 <= budget.steps < MAX_STEPS


def test_a_spent_budget_is_could_not_tell_and_never_covered() -> None:
    with pytest.raises(FactUnavailable, match="too many ways"):
        covered_by(region(), [region()], Budget(3))


def test_a_point_prints_all_of_its_axes() -> None:
    point = overlaps(region(), region())
    assert point is not None
    assert all(f"{axis}=" in str(point) for axis in (*SET_AXES, "requests", "rows", "context"))
