# SPDX-License-Identifier: Apache-2.0
"""Draws: by seed, position and purpose, and by nothing else."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kimi_k3.engine.draws import MAX_SEED, Stream, uniforms
from kimi_k3.random_init import philox

SEEDS = st.integers(0, MAX_SEED)


@given(
    seed=SEEDS, position=st.integers(0, 2**63), before=st.integers(0, 9), count=st.integers(1, 9)
)
def test_a_draw_does_not_depend_on_which_others_are_made_with_it(
    seed: int, position: int, before: int, count: int
) -> None:
    together = uniforms(seed, Stream.TOKEN, position, before + count)
    assert (together[before:] == uniforms(seed, Stream.TOKEN, position + before, count)).all()


@given(seed=SEEDS, position=st.integers(0, 2**20))
def test_draws_are_bits_of_philox_and_never_an_end_of_the_unit_interval(
    seed: int, position: int
) -> None:
    """Stream 0 and lane 0 leave the upper half of the counter empty, as `philox` does."""
    words = [int(word[0]) for word in philox(seed, np.array([position], dtype=np.uint64))]
    (draw,) = uniforms(seed, Stream.TOKEN, position, 1)
    assert draw * 2**48 - 0.5 == words[0] * 2**16 + words[1] // 2**16
    assert 0 < draw < 1


def test_the_largest_draw_stays_below_the_total_it_is_scaled_by() -> None:
    largest = (2**48 - 0.5) / 2**48
    totals = np.exp(np.linspace(-50, 50, 10_001))
    assert (largest * totals < totals).all()


def test_seed_position_stream_and_lane_each_matter() -> None:
    """2,000 pairs of 48-bit draws coincide with probability 7e-12."""
    base = uniforms(1, Stream.TOKEN, 0, 1000)
    others = [
        uniforms(2, Stream.TOKEN, 0, 1000),
        uniforms(1, Stream.TOKEN, 1000, 1000),
        uniforms(1, Stream.TOKEN, 2**32, 1000),
        *(uniforms(1, stream, 0, 1000) for stream in Stream if stream is not Stream.TOKEN),
        uniforms(1, Stream.TOKEN, 0, 1000, lane=1),
    ]
    for other in others:
        assert (base != other).all()
    assert (base == uniforms(1, Stream.TOKEN, 0, 1000, lane=2**32)).all()


def test_draws_are_uniform_and_streams_are_uncorrelated() -> None:
    """Bounds are five standard deviations of 20,000 uniform draws."""
    n = 20_000
    rows = np.stack([uniforms(3, stream, 0, n) for stream in Stream])
    assert (abs(rows.mean(axis=1) - 0.5) < 5 * (1 / 12 / n) ** 0.5).all()
    correlation = np.corrcoef(rows)
    assert (abs(correlation - np.eye(len(rows))) < 5 / n**0.5).all()
