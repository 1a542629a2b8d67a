# SPDX-License-Identifier: Apache-2.0
"""The free list: nothing is lent twice, given back twice, or lost unseen."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kimi_k3.engine.pool import Pool


def test_ids_are_lent_once_and_the_last_given_back_comes_first() -> None:
    pool = Pool("pages", range(4))
    assert pool.take(3) == (0, 1, 2)
    pool.give((0, 1))
    assert pool.take(3) == (0, 1, 3)
    assert pool.free == 0


REFUSED = {
    "twice in a row": ([1], [1], r"pages \[1\] given back, but not lent"),
    "twice at once": ([], [0, 0], r"pages \[0, 0\] given back, but not lent"),
    "never lent": ([], [2], r"pages \[2\] given back, but not lent"),
    "of no such pool": ([], [7], r"pages \[7\] given back, but not lent"),
    "one lent and one not": ([], [0, 2], r"pages \[2\] given back, but not lent"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_not_lent_can_not_be_given_back(case: str) -> None:
    first, second, words = REFUSED[case]
    pool = Pool("pages", range(3))
    pool.take(2)
    pool.give(first)
    free = pool.free
    with pytest.raises(ValueError, match=words):
        pool.give(second)
    assert pool.free == free


def test_more_than_is_free_can_not_be_taken() -> None:
    pool = Pool("state slots", range(1, 3))
    pool.take(1)
    with pytest.raises(ValueError, match="2 state slots wanted; 1 are free"):
        pool.take(2)


def test_a_leak_is_named() -> None:
    pool = Pool("state slots", range(1, 5))
    pool.check_all_free()
    pool.take(2)
    pool.give([1])
    with pytest.raises(ValueError, match=r"state slots \[2\] were never given back"):
        pool.check_all_free()


@given(actions=st.lists(st.integers(-3, 5), max_size=60))
def test_lent_and_free_ids_are_always_all_ids(actions: list[int]) -> None:
    """A positive number takes as many, another gives one loan back."""
    pool, loans = Pool("pages", range(10)), list[tuple[int, ...]]()
    for action in actions:
        if action > 0 and action <= pool.free:
            loans.append(pool.take(action))
        elif action <= 0 and loans:
            pool.give(loans.pop(action % len(loans)))
        lent = [page for loan in loans for page in loan]
        assert len(lent) == len(set(lent)) == 10 - pool.free
        assert set(lent) <= set(range(10))
