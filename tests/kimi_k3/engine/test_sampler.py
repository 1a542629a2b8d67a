# SPDX-License-Identifier: Apache-2.0
"""From logits to tokens: ties, temperature, top-k, top-p, and numbers that are none."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from kimi_k3.engine.draws import Floats
from kimi_k3.engine.request import Sampling
from kimi_k3.engine.sampler import StepLogits, choose, probabilities
from tests.kimi_k3.engine.alone import distribution

LOGITS = st.lists(st.sampled_from([-30.0, -1.5, 0.0, 0.25, 1.0, 3.0]), min_size=1, max_size=9)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_the_lowest_id_wins_among_equals(dtype: torch.dtype) -> None:
    rows = torch.tensor([[-1.0, 2.0, 2.0, -3.0, 2.0], [-0.0, 0.0, -1.0, 0.0, -0.0]], dtype=dtype)
    assert StepLogits(rows).best == [1, 0]


def test_equals_far_apart_in_a_large_vocabulary_are_told_by_id() -> None:
    rows = torch.zeros(2, 163_840)
    rows[0, [70_001, 163_839]] = 5.0
    assert StepLogits(rows).best == [70_001, 0]


@pytest.mark.parametrize("bad", [torch.nan, torch.inf, -torch.inf])
def test_a_row_with_one_bad_number_is_not_finite_and_the_others_are(bad: float) -> None:
    rows = torch.zeros(3, 5)
    rows[1, 4] = bad
    logits = StepLogits(rows)
    assert logits.finite == [True, False, True]
    assert logits.rows == 3


@given(
    logits=LOGITS,
    temperature=st.sampled_from([0.1, 1.0, 7.0]),
    top_k=st.integers(0, 10),
    top_p=st.sampled_from([1.0, 0.95, 0.5, 0.001]),
)
def test_a_distribution_is_what_the_words_say(
    logits: list[float], temperature: float, top_k: int, top_p: float
) -> None:
    """Against a loop over ranked tokens. Both add at most 9 weights in float64: 1e-14 is ten
    times what that can cost."""
    sampling = Sampling(temperature, top_k, top_p)
    got = probabilities(np.array(logits), sampling)
    assert np.allclose(got, distribution(np.array(logits), sampling), rtol=0, atol=1e-14)


def test_top_k_and_top_p_take_lower_ids_first_among_equals() -> None:
    logits = np.array([1.0, 2.0, 1.0, 1.0])
    two = probabilities(logits, Sampling(1.0, top_k=2))
    assert [*np.flatnonzero(two)] == [0, 1]
    # Shares 0.19, 0.51, 0.19, 0.19 of 0.51 + 3 x 0.19: 0.6 needs one of the equals.
    nucleus = probabilities(logits, Sampling(1.0, top_p=0.6))
    assert [*np.flatnonzero(nucleus)] == [0, 1]


def test_top_p_counts_what_top_k_left() -> None:
    """Of 0.4, 0.3, 0.3 top-2 leaves 4/7 and 3/7; 0.55 is then reached by the first alone."""
    logits = np.log(np.array([0.4, 0.3, 0.3]))
    assert [*probabilities(logits, Sampling(1.0, top_k=2, top_p=0.55))] == [1.0, 0.0, 0.0]


LARGE = {
    "a mass that few tokens hold": (0.3, Sampling(0.2, top_p=0.9)),
    "a mass that most of the vocabulary holds": (0.3, Sampling(50.0, top_p=0.9)),
    "many equals at the edge": (3.0, Sampling(50.0, top_p=0.7)),
    "many equals at the edge of top-k": (3.0, Sampling(2.0, top_k=2000)),
    "top-k and top-p": (0.3, Sampling(5.0, top_k=1500, top_p=0.8)),
}


@pytest.mark.parametrize("case", LARGE)
def test_a_large_vocabulary_is_cut_as_a_small_one(case: str) -> None:
    """4,000 tokens in steps of `grain`; sums of them in float64 are within 1e-12 of each other."""
    grain, sampling = LARGE[case]
    noise = np.random.default_rng(2).normal(size=4000) * 3
    logits = np.round(noise / grain) * grain
    got, wanted = probabilities(logits, sampling), np.array(distribution(logits, sampling))
    assert ((got > 0) == (wanted > 0)).all()
    assert np.allclose(got, wanted, rtol=1e-12, atol=0)


@pytest.mark.parametrize("temperature", [5e-324, 1e-320, 1e-300])
def test_a_temperature_near_zero_leaves_the_most_likely_token(temperature: float) -> None:
    law = probabilities(np.array([1.0, 5.0, -3.0, 4.999]), Sampling(temperature))
    assert [*law] == [0.0, 1.0, 0.0, 0.0]


def eighths(*numerators: int) -> Floats:
    return np.array(numerators) / 8


@pytest.mark.parametrize("weights", [eighths(1, 0, 5, 2), eighths(0, 0, 8), eighths(8, 0)])
def test_every_token_is_chosen_for_just_its_share_of_draws(weights: Floats) -> None:
    """The middles of 80 equal parts of the unit interval."""
    counts = np.bincount(
        [choose(weights, (place + 0.5) / 80) for place in range(80)], minlength=len(weights)
    )
    assert (counts == weights * 80).all()
    for place in range(80):
        assert choose(weights * 3, (place + 0.5) / 80) == choose(weights, (place + 0.5) / 80)


@given(weights=st.lists(st.sampled_from([0.0, 1e-300, 0.3, 1.0]), min_size=1, max_size=6))
def test_a_token_of_no_weight_is_never_chosen_not_even_by_the_outermost_draws(
    weights: list[float],
) -> None:
    if not any(weights):
        weights = [*weights, 0.5]
    for draw in (0.5 / 2**48, 0.5, 1 - 0.5 / 2**48):
        assert weights[choose(np.array(weights), draw)] > 0
