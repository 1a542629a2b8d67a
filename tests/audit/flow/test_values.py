# SPDX-License-Identifier: Apache-2.0
"""Joins of values: whatever either side may hold in a thread, the join allows."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from fasttrack.audit.flow.threads import Lanes, Number, Threads, decided, mask_of, truth_of
from fasttrack.audit.flow.values import (
    ANY,
    LOADED_BASE,
    NOWHERE,
    UNDEFINED,
    UNKNOWN_BASE,
    Base,
    Space,
    Value,
    join,
    join_bases,
    sum_bases,
)

COUNT = 6
W, X = Base(Space.PARAMETER, 0), Base(Space.PARAMETER, 8)
MASKS = st.integers(1, (1 << COUNT) - 1)


def _lanes(pairs: list[tuple[int, bool]]) -> Lanes:
    return Lanes(
        np.array([one for one, _ in pairs], np.uint64), np.array([two for _, two in pairs])
    )


NUMBERS: st.SearchStrategy[Number] = st.one_of(
    st.none(),
    st.integers(0, 3),
    st.lists(st.tuples(st.integers(0, 3), st.booleans()), min_size=COUNT, max_size=COUNT).map(
        _lanes
    ),
)


def _at(number: Number, thread: int) -> int | None:
    if isinstance(number, Lanes):
        return int(number.values[thread]) if number.known[thread] else None
    return number


@given(NUMBERS, MASKS, NUMBERS, MASKS)
def test_a_join_knows_a_thread_s_number_only_if_each_side_says_it(
    left: Number, first: int, right: Number, second: int
) -> None:
    joined = join(Value(left), first, Value(right), second, COUNT).number
    for thread in range(COUNT):
        sides = [
            _at(number, thread)
            for number, mask in ((left, first), (right, second))
            if mask >> thread & 1
        ]
        if sides and _at(joined, thread) is not None:
            assert set(sides) == {_at(joined, thread)}


@given(NUMBERS, MASKS, NUMBERS, MASKS)
def test_threads_of_one_side_keep_what_it_says(
    left: Number, first: int, right: Number, second: int
) -> None:
    joined = join(Value(left), first, Value(right), second, COUNT).number
    for thread in range(COUNT):
        if first >> thread & 1 and not second >> thread & 1:
            assert _at(joined, thread) == _at(left, thread)


def test_a_register_that_was_never_written_adds_nothing() -> None:
    value = Value(None, None, frozenset({W}))
    assert join(UNDEFINED, 1, value, 2, COUNT).of(2) is value
    assert join(value, 1, UNDEFINED, 2, COUNT).of(1) is value
    assert join(UNDEFINED, 1, value, 2, COUNT).bases == value.bases
    assert join(UNDEFINED, 1, ANY, 2, COUNT) is ANY


def test_threads_that_hold_other_addresses_are_told_apart_until_one_may_hold_both() -> None:
    w, x = Value(bases=frozenset({W})), Value(bases=frozenset({X}))
    both = join(w, 1, x, 2, COUNT)
    assert (both.of(1), both.of(2)) == (w, x)
    assert both.of(3).bases == {W, X}
    assert join(both, 3, x, 1, COUNT).of(1).bases == {W, X}
    assert join(both, 3, w, 1, COUNT) is both


def test_an_address_or_anything_may_be_any_address() -> None:
    assert join_bases(Value(bases=frozenset({W})), Value()) == {W, UNKNOWN_BASE}
    assert join_bases(Value(bases=frozenset({W})), Value(bases=frozenset({X}))) == {W, X}
    assert join_bases(Value(bases=frozenset({W})), Value(0)) == {W}


def test_what_was_read_is_an_index_beside_an_address_and_an_address_alone() -> None:
    loaded, address = Value(bases=frozenset({LOADED_BASE})), Value(bases=frozenset({W}))
    assert sum_bases((loaded, address)) == {W}
    assert sum_bases((loaded, Value(4))) == {LOADED_BASE}
    assert sum_bases((Value(4), Value())) == NOWHERE
    either = Value(bases=frozenset({W, LOADED_BASE}))
    assert sum_bases((either, Value(4))) == {W, LOADED_BASE}


@given(MASKS)
def test_masks_and_truths_are_each_other_s_inverse(mask: int) -> None:
    assert mask_of(truth_of(mask, COUNT)) == mask


@given(NUMBERS, MASKS)
def test_threads_are_true_false_or_unknown_and_nothing_else(number: Number, mask: int) -> None:
    true, false, unknown = decided(number, mask, COUNT)
    assert true | false | unknown == mask
    assert not true & false
    assert not (true | false) & unknown


def test_warps_and_blocks_cover_all_threads_once() -> None:
    threads = Threads((48, 1, 1), blocks=2)
    assert sum(threads.warps) == threads.everyone
    assert [warp.bit_count() for warp in threads.warps] == [32, 16, 32, 16]
    assert sum(threads.by_block) == threads.everyone
