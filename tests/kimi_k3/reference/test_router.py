# SPDX-License-Identifier: Apache-2.0
"""The choice of experts: one right answer for every row of FP32 logits."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from kimi_k3.reference.router import exact_sigmoid, pick, route, sigmoid_is_below
from tests.kimi_k3.reference import second
from tests.kimi_k3.reference.builders import odd

NAN, INF = float("nan"), float("inf")
EXPERTS, PICKED = 11, 3
ties = st.sampled_from([0.0, -0.0, 0.25, 0.5, 1.0, NAN, INF, -INF])


def ids(logits: list[float], bias: list[float] | None = None, k: int = PICKED) -> list[int]:
    config = replace(odd(), num_experts=len(logits), num_experts_per_tok=k)
    correction = torch.tensor(bias or [0.0] * len(logits))
    return route(config, torch.tensor([logits]), correction)[0][0].tolist()  # type: ignore[no-any-return]


@given(st.lists(ties, min_size=3, max_size=40))
def test_the_order_is_key_then_id_with_nan_last(keys: list[float]) -> None:
    got = pick(torch.tensor([keys, keys[::-1]]), 3)
    for row, values in zip(got, (keys, keys[::-1]), strict=True):
        key = np.array(values, dtype=np.float64)
        assert row.tolist() == second.picked(key, np.zeros_like(key), 3)


@given(st.lists(st.floats(width=32), min_size=3, max_size=24), st.integers(0, 2**32 - 1))
def test_any_fp32_keys_are_picked_as_python_sorts_them(keys: list[float], seed: int) -> None:
    order = np.random.default_rng(seed).permutation(len(keys))
    key = np.array(keys, dtype=np.float64)[order]
    assert pick(torch.tensor(key)[None].float(), 3)[0].tolist() == second.picked(
        key, np.zeros(len(key)), 3
    )


def test_equal_logits_pick_the_lowest_ids() -> None:
    assert ids([1.5] * EXPERTS) == [0, 1, 2]


def test_a_tie_at_the_last_place_goes_to_the_lower_id() -> None:
    assert ids([0, 5, 1, 1, 9, 1, 0, 0, 0, 0, 1]) == [4, 1, 2]


def test_logits_that_saturate_the_sigmoid_are_ties() -> None:
    """20 and 30 both have the FP32 sigmoid 1: the order is by id, not by logit."""
    assert ids([0, 20, 0, 30, 25, 0, 0, 0, 0, 0, 0]) == [1, 3, 4]


def test_a_bias_sum_that_rounds_to_a_tie_is_a_tie() -> None:
    """The key is one FP32 addition: a difference of one unit in 0.5 is lost beside 1000."""
    low, high = 0.0, 2.0**-22
    scores = exact_sigmoid(torch.tensor([low, high]))
    assert scores[0] < scores[1]
    logits = [low, high, *[-9.0] * 9]
    assert ids(logits, [0.0] * EXPERTS)[:2] == [1, 0]
    assert ids(logits, [1000.0] * EXPERTS)[:2] == [0, 1]


def test_nan_logits_come_last_but_still_in_order_of_id() -> None:
    assert ids([NAN, 1, NAN, -50, NAN]) == [1, 3, 0]
    assert ids([NAN] * 5) == [0, 1, 2]
    assert ids([-INF, NAN, -INF, NAN]) == [0, 2, 1]


def test_infinite_logits_are_ordinary_scores() -> None:
    assert ids([0, -INF, INF, 3]) == [2, 3, 0]


def test_the_bias_changes_the_selection_and_never_the_weights() -> None:
    logits = torch.linspace(-2, 2, EXPERTS)[None]
    bias = torch.zeros(EXPERTS)
    bias[0] = 5.0
    picked, weights = route(odd(), logits, bias)
    assert picked[0].tolist() == [0, 10, 9]
    scores = 1 / (1 + np.exp(-logits[0, picked[0]].double().numpy()))
    np.testing.assert_allclose(weights[0], scores / scores.sum(), rtol=1e-6)


@pytest.mark.parametrize("scaling", [1.0, 2.5])
@pytest.mark.parametrize("renormalise", [True, False])
def test_weights_are_scores_scaled_and_perhaps_renormalised(
    renormalise: bool, scaling: float
) -> None:
    config = replace(odd(), norm_topk_prob=renormalise, routed_scaling_factor=scaling)
    logits = torch.linspace(-3, 1, EXPERTS, dtype=torch.float64)[None]
    picked, weights = route(config, logits, torch.zeros(EXPERTS))
    scores = 1 / (1 + np.exp(-logits[0, picked[0]].numpy()))
    want = scaling * scores / (scores.sum() if renormalise else 1)
    np.testing.assert_allclose(weights[0], want, rtol=1e-14)


def test_a_row_of_vanishing_scores_has_finite_weights() -> None:
    _, weights = route(odd(), torch.full((1, EXPERTS), -INF), torch.zeros(EXPERTS))
    assert weights.tolist() == [[0.0] * PICKED]


HARD = {
    3.5762786865234375e-07: 0.5000000596046448,
    1.7881393432617188e-06: 0.5000004172325134,
    -1.5676021575927734e-05: 0.4999960958957672,
    -0.001117885229177773: 0.4997205436229706,
}


@pytest.mark.parametrize(("logit", "score"), HARD.items())
def test_the_sigmoid_is_correctly_rounded_where_float64_is_not_enough(
    logit: float, score: float
) -> None:
    """Sigmoids within 2^-53 of the middle between two FP32 numbers: rounding to float64 first
    lands on the middle, and then on the wrong side. The series is exact to 2^-60 here."""
    x = Fraction(logit)
    series = Fraction(1, 2) + x / 4 - x**3 / 48 + x**5 / 480
    below, above = np.nextafter(np.float32(score), np.float32([0, 1]))
    assert all(
        abs(series - Fraction(score)) < abs(series - Fraction(float(y))) for y in (below, above)
    )
    assert torch.sigmoid(torch.tensor(logit).double()).float().item() != score
    assert exact_sigmoid(torch.tensor([[0.0, logit]])).tolist() == [[0.5, score]]


@pytest.mark.parametrize("x", [0.0, -0.0, 1.0, -1.0, 16.6, 17.4, -87.5, -100.0, -103.9, -104.5])
def test_the_sigmoid_is_the_nearest_fp32_number(x: float) -> None:
    """Both neighbours are farther off, decided with 60 digits; subnormal results included."""
    x = float(np.float32(x))
    y = np.float32(exact_sigmoid(torch.tensor([x])).item())
    below, above = np.nextafter(y, np.float32(-1)), np.nextafter(y, np.float32(2))
    if y > 0:
        assert not sigmoid_is_below(x, (float(y) + float(below)) / 2)
    if y < 1:
        assert sigmoid_is_below(x, (float(y) + float(above)) / 2)


def test_the_sigmoid_of_specials() -> None:
    got = exact_sigmoid(torch.tensor([INF, -INF, NAN, 200.0, -200.0])).tolist()
    assert got[:2] == [1.0, 0.0]
    assert np.isnan(got[2])
    assert got[3:] == [1.0, 0.0]
