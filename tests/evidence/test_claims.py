# SPDX-License-Identifier: Apache-2.0
"""Claims against measurements: the first thing that is wrong is the answer, and none is a pass."""

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fasttrack.evidence.claims import Comparison, Difference, Outcome, compare
from fasttrack.evidence.predicates import PerformanceV1
from fasttrack.evidence.predicates.common import Execution, Spread
from fasttrack.manifest.cells import Value
from fasttrack.manifest.model import Claim
from fasttrack.manifest.points import witness_points
from fasttrack.manifest.words import Acceptance, Metric
from fasttrack.policy.model import Bandwidth, Hardware
from fasttrack.vocabulary import Kind
from tests.evidence.strategies import EXECUTION, facts, spread
from tests.manifest.builders import valid

CLAIM = valid().claims[0]
"""The mixer at one row: 1.4 times better than `auto` on one H200."""
PEAK = 4.8
BYTES = 4.8e6
"""One microsecond at that peak."""


def hardware(peak: float | None = PEAK) -> Mapping[str, Hardware]:
    bandwidth = None if peak is None else Bandwidth(peak=peak, sustained=peak * 0.9)
    fields: dict[str, Any] = {
        "gpu": "NVIDIA H200",
        "arch": "sm_90a",
        "memory_gb": 141,
        "interconnect": "none",
        "domain_gpus": 1,
    }
    return {"h200": Hardware(**fields, bandwidth_tb_s=bandwidth)}


def cell(claim: Claim) -> dict[str, Value]:
    alone = valid().model_copy(update={"claims": (claim,)})
    (found,) = witness_points(alone, Kind.PERFORMANCE, {}, {})
    return dict(found.values)


def measured(values: Mapping[str, Value] | None = None, **changes: Any) -> PerformanceV1:
    """A run in which the mixer took 10 us instead of 15."""
    content: dict[str, Any] = {
        "metric": Metric.UNIT_TIME_US,
        "ours": spread(10.0),
        "baseline": spread(15.0),
        "ratio": Spread(median=1.5, low=1.45, high=1.55, samples=30),
        "pairs": 30,
        "bytes_moved": BYTES,
        "execution": EXECUTION,
    }
    head = facts(Kind.PERFORMANCE, values=dict(values or cell(CLAIM)))
    return PerformanceV1(**(head | content | changes))


def against(claim: Claim = CLAIM, peak: float | None = PEAK, **changes: Any) -> Comparison:
    return compare(valid(), claim, measured(**changes), hardware(peak))


def test_a_measurement_under_the_same_conditions_bears_the_claim_out() -> None:
    found = against()
    assert found.outcome is Outcome.BORNE_OUT
    assert found.reasons == ("claimed 1.4, measured 1.5 (1.45 to 1.55)",)
    assert (found.claimed, found.measured.median, found.differences) == (1.4, 1.5, {})


@pytest.mark.parametrize("axis", sorted(cell(CLAIM)))
def test_every_condition_that_differs_is_named_with_both_values(axis: str) -> None:
    values = cell(CLAIM)
    old = values[axis]
    new: Value = old + 1 if isinstance(old, int) else "unit_time_us" + old
    if axis == "metric":
        found = against(values=values | {axis: "layer_time_us"}, metric=Metric.LAYER_TIME_US)
        new = "layer_time_us"
    else:
        found = against(values=values | {axis: new})
    assert found.outcome is Outcome.OTHER_CONDITIONS
    assert found.differences == {axis: Difference(old, new)}
    assert found.reasons == (f"{axis}: claimed {old!r}, measured {new!r}",)
    less = {name: value for name, value in values.items() if name != axis}
    if axis != "metric":
        assert against(values=less).differences == {axis: Difference(old, None)}


def test_a_condition_that_only_the_measurement_has_differs_too() -> None:
    found = against(values=cell(CLAIM) | {"draft_tokens": 7})
    assert found.differences == {"draft_tokens": Difference(None, 7)}


@given(st.integers(1000, 8000), st.none() | st.floats(1, 8))
def test_a_run_of_another_acceptance_is_under_other_conditions(
    stated: int, seen: float | None
) -> None:
    load: dict[str, Any] = {
        "draft_tokens": 7,
        "acceptance": Acceptance.SYNTHETIC,
        "acceptance_length": stated / 1000,
    }
    claim = CLAIM.model_copy(update={"workload": CLAIM.workload.model_copy(update=load)})
    found = against(claim, values=cell(claim), acceptance_length=seen)
    same = seen is not None and abs(seen - stated / 1000) <= 0.02 * stated / 1000
    assert (found.outcome is Outcome.OTHER_CONDITIONS) == (not same)
    assert same or found.differences.keys() == {"acceptance_length"}


RATES = st.lists(st.integers(0, 1000), min_size=1, max_size=32)


@given(RATES)
def test_rates_are_a_length_and_have_one_spelling_in_a_cell(thousandths: list[int]) -> None:
    rates = tuple(sorted((n / 1000 for n in thousandths), reverse=True))
    load: dict[str, Any] = {
        "draft_tokens": len(rates),
        "acceptance": Acceptance.SYNTHETIC,
        "acceptance_rates": rates,
    }
    claim = CLAIM.model_copy(update={"workload": CLAIM.workload.model_copy(update=load)})
    text = str(cell(claim)["acceptance_rates"])
    assert tuple(float(rate) for rate in text.split(",")) == rates
    assert len(text) <= 200  # what a statement's cell holds
    assert against(claim, values=cell(claim), acceptance_length=1 + sum(rates)).differences == {}


def test_an_uncontrolled_claim_is_never_borne_out() -> None:
    claim = CLAIM.model_copy(update={"uncontrolled": True, "reason": "shown for context"})
    assert against(claim).outcome is Outcome.UNCONTROLLED


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"execution": Execution(launches=EXECUTION.launches, fallbacks=1)}, "fell back"),
        ({"execution": Execution(fallbacks=0)}, "nothing of the path"),
        ({"ratio": spread(40.0)}, "does not follow from the medians"),
        ({"ours": spread(15.0), "ratio": spread(1.95)}, "does not follow from the medians"),
        (
            {
                "ours": spread(15.0),
                "ratio": Spread(median=1.05, low=1.04, high=1.06, samples=30),
            },
            "medians that are no better than the baseline's",
        ),
        ({"ours": Spread(median=10.0, low=11.0, high=12.0, samples=9)}, "not in order"),
        ({"metric": Metric.LAYER_TIME_US}, "the metric is layer_time_us"),
    ],
)
def test_a_statement_that_shows_nothing_bears_nothing_out(
    changes: dict[str, Any], said: str
) -> None:
    found = against(**changes)
    assert found.outcome is Outcome.VOID
    assert said in found.reasons[0]


@pytest.mark.parametrize("side", ["ours", "baseline"])
def test_a_time_below_that_of_its_bytes_is_impossible_on_either_side(side: str) -> None:
    fast = Spread(median=1.0, low=0.99, high=1.1, samples=30)
    slow = Spread(median=1.5, low=1.4, high=1.6, samples=30)
    both = {"ours": slow, "baseline": slow, side: fast}
    ratio = both["baseline"].median / both["ours"].median
    assert against(ratio=spread(ratio), **both).outcome is Outcome.IMPOSSIBLE
    assert against(peak=PEAK * 2, ratio=spread(ratio), **both).outcome is not Outcome.IMPOSSIBLE


@pytest.mark.parametrize(
    ("changes", "peak", "said"),
    [
        ({}, None, "no bandwidth of 'h200'"),
        ({"bytes_moved": None}, PEAK, "which bytes must move"),
        ({"pairs": 2}, PEAK, "2 pairs"),
    ],
)
def test_a_missing_fact_is_could_not_tell(
    changes: dict[str, Any], peak: float | None, said: str
) -> None:
    found = against(peak=peak, **changes)
    assert found.outcome is Outcome.UNKNOWN
    assert said in found.reasons[0]


def test_hardware_that_the_policy_does_not_know_is_could_not_tell() -> None:
    assert compare(valid(), CLAIM, measured(), {}).outcome is Outcome.UNKNOWN


def test_a_whole_model_metric_needs_no_bytes() -> None:
    workload = CLAIM.workload.model_copy(
        update={
            "rows": None,
            "context": None,
            "isl": 1,
            "osl": 1000,
            "batch": 1,
            "draft_tokens": 0,
        }
    )
    update = {"metric": Metric.DECODE_TOKENS_PER_S, "of": None, "workload": workload}
    claim = CLAIM.model_copy(update=update)
    rates = {"ours": spread(15.0), "baseline": spread(10.0), "bytes_moved": None}
    found = against(claim, values=cell(claim), metric=Metric.DECODE_TOKENS_PER_S, **rates)
    assert found.outcome is Outcome.BORNE_OUT


ratios = st.floats(0.76, 2.9)


@given(st.tuples(ratios, ratios, ratios).map(sorted), st.floats(0.5, 4))
def test_a_ratio_is_noise_when_its_spread_holds_1_and_else_compared(
    span: list[float], claimed: float
) -> None:
    low, median, high = span
    claim = CLAIM.model_copy(update={"ratio": claimed})
    ratio = Spread(median=median, low=low, high=high, samples=30)
    found = against(claim, ratio=ratio, baseline=spread(10.0 * median))
    if low <= 1 <= high:
        assert found.outcome is Outcome.NOISE
    else:
        assert found.outcome is (Outcome.BORNE_OUT if claimed <= high else Outcome.LESS)
