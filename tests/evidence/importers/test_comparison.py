# SPDX-License-Identifier: Apache-2.0
"""Two sides compared: percentiles, intervals and pairs against second formulations."""

import re
import statistics

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from fasttrack.errors import InputError
from fasttrack.evidence.importers.base import matches
from fasttrack.evidence.importers.comparison import (
    MIN_PAIRS,
    Sample,
    Scored,
    drop_interval,
    paired,
    spread,
)

times = st.floats(1e-3, 1e6)
scored = st.builds(Scored, st.floats(0, 1), st.floats(0, 0.5), st.integers(1, 10**6))


def sample(side: str, value: float) -> Sample:
    return Sample("ours" if side == "ours" else "baseline", value, side)


@given(st.lists(times, min_size=1, max_size=40))
def test_a_spread_is_in_order_inside_its_samples_and_has_their_median(values: list[float]) -> None:
    found = spread(values)
    assert found.problems() == []
    assert min(values) <= found.low <= found.high <= max(values)
    assert found.median == pytest.approx(statistics.median(values))
    if len(values) > 1:
        deciles = statistics.quantiles(values, n=10, method="inclusive")
        assert found.low == pytest.approx(deciles[0])
        assert found.high == pytest.approx(deciles[-1])


@given(st.lists(st.tuples(times, times, st.booleans()), min_size=MIN_PAIRS, max_size=20))
def test_a_ratio_is_of_neighbours_whichever_side_ran_first(
    runs: list[tuple[float, float, bool]],
) -> None:
    samples = []
    for ours, baseline, first in runs:
        pair = [sample("ours", ours), sample("baseline", baseline)]
        samples += pair if first else pair[::-1]
    rates, durations = paired(samples, True, "x"), paired(samples, False, "x")
    ratios = [ours / baseline for ours, baseline, _ in runs]
    assert rates.ratio.median == pytest.approx(statistics.median(ratios))
    assert durations.ratio.median == pytest.approx(statistics.median(1 / r for r in ratios))
    assert rates.count == durations.count == len(runs)
    assert rates.ours == spread([ours for ours, _, _ in runs])


@given(st.lists(st.sampled_from(["ours", "baseline"]), max_size=12))
def test_what_is_not_in_turns_is_refused(sides: list[str]) -> None:
    couples = [set(sides[i : i + 2]) for i in range(0, len(sides), 2)]
    fine = len(couples) >= MIN_PAIRS and all(len(couple) == 2 for couple in couples)
    samples = [sample(side, 1.0) for side in sides]
    if fine:
        assert paired(samples, True, "x").count == len(couples)
    else:
        with pytest.raises(InputError, match=r"in turns|at least 3"):
            paired(samples, True, "x")


@given(scored, scored)
def test_an_interval_holds_the_drop_in_its_middle_and_is_never_a_point(
    ours: Scored, baseline: Scored
) -> None:
    found = drop_interval(ours, baseline)
    drop = baseline.score - ours.score
    assert (found.low + found.high) / 2 == pytest.approx(drop, abs=1e-9)
    assert found.high - found.low > 2 / max(ours.samples, baseline.samples)


@given(scored, scored, st.floats(0.001, 0.5))
def test_an_interval_grows_with_either_error(ours: Scored, baseline: Scored, more: float) -> None:
    assume(more > max(ours.stderr, 1.5 / ours.samples) + 1e-3)
    wider = Scored(ours.score, more, ours.samples)
    narrow, wide = drop_interval(ours, baseline), drop_interval(wider, baseline)
    assert wide.high - wide.low > narrow.high - narrow.low
    swapped = drop_interval(baseline, wider)
    assert swapped.high - swapped.low == pytest.approx(wide.high - wide.low)


_letters = st.text("ab[*?.:/", max_size=10)


@given(_letters, _letters)
def test_a_star_stands_for_any_characters_and_everything_else_for_itself(
    pattern: str, name: str
) -> None:
    expression = ".*".join(re.escape(piece) for piece in pattern.split("*"))
    assert matches(pattern, name) == bool(re.fullmatch(expression, name, re.DOTALL))


def test_a_hostile_pattern_takes_no_time() -> None:
    assert not matches("a*" * 500 + "b", "a" * 100_000)
