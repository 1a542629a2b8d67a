# SPDX-License-Identifier: Apache-2.0
"""Which steps are taken, against cases and against the rule written down a second time."""

import pickle
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from fasttrack.manifest.model import Region, Requests
from kimi_k3.decode.packaged import packaged_manifest
from kimi_k3.decode.plan import Fallback, Plan, Planner, Reason, RowCounts
from kimi_k3.step import Group, Kind, StepShape

CASES: list[dict[str, Any]] = yaml.safe_load(
    (Path(__file__).parents[2] / "cases/decode/plan.yaml").read_text("utf-8")
)
REGION = next(region for region in packaged_manifest().scope if region.id == "gb300-tp8")
GRAPHS = st.lists(st.sampled_from([1, 2, 4, 8, 12, 16, 24, 32, 40, 48, 56, 64, 96]), max_size=6)


@st.composite
def regions(draw: st.DrawFn) -> Region:
    """The region with other bounds."""
    low = draw(st.integers(1, 3))
    update = {
        "requests": Requests(min=low, max=draw(st.integers(low, 66))),
        "draft_tokens": tuple(draw(st.sets(st.integers(0, 8), min_size=1))),
        "rows_max": draw(st.integers(1, 70)),
        "context_max": draw(st.integers(1, 10)),
    }
    return REGION.model_copy(update=update)


@st.composite
def shapes(draw: st.DrawFn) -> StepShape:
    """Mostly one group of windows, so that later checks are reached."""
    kinds = st.sampled_from([Kind.WINDOW] * 7 + [Kind.PREFILL])
    count = draw(st.sampled_from([1, 1, 1, 2]))
    groups = [
        Group(draw(kinds), draw(st.integers(1, 66)), draw(st.integers(1, 9))) for _ in range(count)
    ]
    return StepShape(tuple(groups), draw(st.integers(1, 11)))


PLANNERS = st.builds(Planner, regions(), st.builds(RowCounts, GRAPHS.map(tuple)), st.integers(0, 8))


def is_prepared(graphs: tuple[int, ...], rows: int, width: int) -> bool:
    """Spec 4.1, as a predicate on one row count; the last whole window of 64 rows counts."""
    if rows % width or rows > 64:
        return False
    sizes = (1, 2, 3, 4, 5, 6, 7, 8, 16, 32, 64, *graphs)
    return rows + width > 64 or any(rows - width < size <= rows for size in sizes)


def expected(planner: Planner, shape: StepShape) -> str | None:
    """The reason by the rules of the design, or None; written without the planner's code."""
    region = planner.region
    if Kind.PREFILL in {group.kind for group in shape.groups}:
        return "prefill"
    if len(shape.groups) != 1:
        return "mixed"
    requests, width = shape.groups[0].requests, shape.groups[0].rows
    if width != 1 and width != 1 + planner.draft:
        return "partial-drafts"
    if (width - 1) not in region.draft_tokens:
        return "draft"
    if requests < region.requests.min or requests > region.requests.max:
        return "requests"
    if requests * width > region.rows_max:
        return "rows"
    if not is_prepared(planner.rows.graph_sizes, requests * width, width):
        return "unprepared"
    return "context" if shape.context > region.context_max else None


@pytest.mark.parametrize("case", CASES, ids=[case["why"] for case in CASES])
def test_a_step_is_taken_or_falls_back_for_its_reason(case: dict[str, Any]) -> None:
    groups = tuple(Group(Kind(kind), requests, rows) for kind, requests, rows in case["groups"])
    planner = Planner(REGION, RowCounts(tuple(case["graphs"])), case["draft"])
    shape = StepShape(groups, case.get("context", 100))
    plan = planner.plan(shape)
    got: int | str = plan.reason.value if isinstance(plan, Fallback) else plan.total
    assert got == case["takes"]


def test_the_cases_reach_every_reason_that_this_region_can_give() -> None:
    """The region admits every draft up to 7, so that `draft` needs a server with 8."""
    assert {case["takes"] for case in CASES if isinstance(case["takes"], str)} | {"draft"} == {
        reason.value for reason in Reason
    }
    eight = StepShape((Group(Kind.WINDOW, 1, 9),), 100)
    assert Planner(REGION, RowCounts(), 8).plan(eight) == Fallback(Reason.DRAFT)


@given(PLANNERS, shapes())
def test_every_decision_is_the_one_of_the_rules(planner: Planner, shape: StepShape) -> None:
    plan = planner.plan(shape)
    reason = expected(planner, shape)
    if reason is None:
        assert plan == Plan(shape.groups[0].requests, shape.groups[0].rows)
    else:
        assert plan == Fallback(Reason(reason))


@given(PLANNERS, shapes())
def test_ranks_that_know_the_same_decide_alike_and_at_any_time(
    planner: Planner, shape: StepShape
) -> None:
    """Another rank has its own copies of everything, and has planned other steps before."""
    first = planner.plan(shape)
    other: Planner = pickle.loads(pickle.dumps(planner))
    other.plan(StepShape((Group(Kind.WINDOW, 1, 1),), 1))
    assert other.plan(pickle.loads(pickle.dumps(shape))) == first == planner.plan(shape)


@given(PLANNERS, shapes(), GRAPHS, st.integers(1, 11), st.integers(1, 20))
def test_what_is_taken_stays_taken_when_more_is_prepared_or_admitted(
    planner: Planner, shape: StepShape, graphs: list[int], context: int, more: int
) -> None:
    if isinstance(planner.plan(shape), Fallback):
        return
    shorter = StepShape(shape.groups, min(context, shape.context))
    bounds = planner.region
    wider = bounds.model_copy(
        update={
            "requests": Requests(min=1, max=bounds.requests.max + more),
            "draft_tokens": (*bounds.draft_tokens, 9 + more),
            "rows_max": bounds.rows_max + more,
            "context_max": bounds.context_max + more,
        }
    )
    rows = RowCounts((*planner.rows.graph_sizes, *graphs))
    assert planner.plan(shorter) == planner.plan(shape)
    assert Planner(wider, rows, planner.draft).plan(shape) == planner.plan(shape)


@given(GRAPHS, st.integers(1, 9))
def test_prepared_row_counts_are_whole_windows_in_rising_order(
    graphs: list[int], width: int
) -> None:
    got = RowCounts(tuple(graphs)).prepared(width)
    assert list(got) == [rows for rows in range(1, 200) if is_prepared(tuple(graphs), rows, width)]


@given(GRAPHS, st.integers(1, 70), st.integers(1, 9))
def test_a_step_is_padded_to_the_fewest_prepared_requests(
    graphs: list[int], live: int, width: int
) -> None:
    rows = RowCounts(tuple(graphs))
    fits = [n for n in range(live, 65) if is_prepared(tuple(graphs), n * width, width)]
    padded = rows.padded_requests(live, width)
    assert padded == (fits[0] if fits else live)
    assert padded <= rows.padded_requests(live + 1, width)
    assert rows.padded_requests(padded, width) == padded


@given(GRAPHS, st.integers(1, 64), st.integers(0, 7))
def test_a_padded_step_that_fits_is_taken(graphs: list[int], live: int, draft: int) -> None:
    planner = Planner(REGION, RowCounts(tuple(graphs)), draft)
    for width in (1, 1 + draft):
        padded = planner.rows.padded_requests(live, width)
        plan = planner.plan(StepShape((Group(Kind.WINDOW, padded, width),), 1))
        if max(planner.rows.prepared(width)) >= live * width:
            assert plan == Plan(padded, width)
        else:
            assert isinstance(plan, Fallback)
            assert padded == live


def test_a_step_without_groups_is_no_step() -> None:
    with pytest.raises(ValueError, match="a step of 0 groups; want at least 1"):
        Planner(REGION, RowCounts(), 0).plan(StepShape((), 1))


@pytest.mark.parametrize("draft", range(8))
def test_padded_steps_of_every_live_count_are_taken_up_to_the_region_s_rows(draft: int) -> None:
    rows, width = RowCounts(), 1 + draft
    planner = Planner(REGION, rows, draft)
    for live in range(1, REGION.rows_max // width + 1):
        padded = rows.padded_requests(live, width)
        step = StepShape((Group(Kind.WINDOW, padded, width),), 100)
        assert planner.plan(step) == Plan(padded, width), live


def test_graphs_of_no_rows_are_refused() -> None:
    with pytest.raises(ValueError, match="at least 1 each"):
        RowCounts((8, 0))
