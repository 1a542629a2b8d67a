# SPDX-License-Identifier: Apache-2.0
"""Drafters: what is proposed follows from the text alone."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kimi_k3.engine.drafters import Draft, NgramDrafter, NoDrafter, SyntheticDrafter
from kimi_k3.engine.request import GREEDY

CASES: dict[str, tuple[list[int], int, tuple[int, ...]]] = {
    "what followed the last three tokens": ([1, 2, 3, 4, 5, 1, 2, 3], 2, (4, 5)),
    "the longest match, though a shorter one is later": (
        [1, 2, 3, 7, 0, 2, 3, 8, 1, 2, 3],
        1,
        (7,),
    ),
    "the latest of equal matches": ([2, 3, 7, 2, 3, 8, 2, 3], 1, (8,)),
    "a match of one token": ([5, 6, 9, 5], 2, (6, 9)),
    "a copy that runs into itself": ([1, 2, 1, 2], 5, (1, 2, 1, 2, 1)),
    "the same token again": ([4, 4], 3, (4, 4, 4)),
    "a copy up to the end and on": ([7, 8, 9, 7], 5, (8, 9, 7, 8, 9)),
    "nothing that was seen before": ([1, 2, 3], 4, ()),
    "nothing before it": ([1], 4, ()),
}


@pytest.mark.parametrize("case", CASES)
def test_ngrams_propose(case: str) -> None:
    tokens, n, wanted = CASES[case]
    assert NgramDrafter().propose(tokens, n, GREEDY) == Draft(wanted)


def slow(tokens: list[int], n: int, longest: int, shortest: int) -> tuple[int, ...]:
    """By the words of the docstring: every start, longest n-gram first, the latest first."""
    for size in range(longest, shortest - 1, -1):
        for start in range(len(tokens) - size - 1, -1, -1):
            if tokens[start : start + size] == tokens[len(tokens) - size :]:
                text = list(tokens)
                for place in range(n):
                    text.append(text[start + size + place])
                return tuple(text[len(tokens) :])
    return ()


@given(
    tokens=st.lists(st.integers(0, 2), min_size=1, max_size=30),
    n=st.integers(1, 8),
    shortest=st.integers(1, 3),
    more=st.integers(0, 3),
)
def test_ngrams_are_found_as_a_slow_search_finds_them(
    tokens: list[int], n: int, shortest: int, more: int
) -> None:
    got = NgramDrafter(shortest + more, shortest).propose(tokens, n, GREEDY)
    assert got == Draft(slow(tokens, n, shortest + more, shortest))


def test_ngrams_have_at_least_one_token() -> None:
    with pytest.raises(ValueError, match="n-grams of 0 to 3 tokens"):
        NgramDrafter(3, 0)
    with pytest.raises(ValueError, match="n-grams of 3 to 2 tokens"):
        NgramDrafter(2, 3)


def test_no_drafter_proposes_nothing() -> None:
    assert NoDrafter().propose([1, 2, 1, 2], 3, GREEDY) == Draft()


def test_synthetic_drafts_are_full_reproducible_and_spread_over_the_vocabulary() -> None:
    """4,000 draws of 50 ids: 80 each, within six standard deviations of 9."""
    drafter = SyntheticDrafter(50, seed=4)
    tokens = [
        token
        for length in range(1, 4001, 8)
        for token in drafter.propose([1] * length, 8, GREEDY).tokens
    ]
    assert len(tokens) == 4000
    assert drafter.propose([1] * 9, 8, GREEDY).tokens == tuple(tokens[8:16])
    counts = np.bincount(tokens, minlength=50)
    assert len(counts) == 50
    assert (abs(counts - 80) < 6 * 9).all()
    assert SyntheticDrafter(50, seed=5).propose([1], 8, GREEDY).tokens != tuple(tokens[:8])


def test_requests_of_one_length_get_different_synthetic_drafts() -> None:
    drafter = SyntheticDrafter(1000)
    first = drafter.propose([1, 2], 4, GREEDY)
    assert first != drafter.propose([1, 3], 4, GREEDY)
