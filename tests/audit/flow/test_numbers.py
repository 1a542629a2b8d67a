# SPDX-License-Identifier: Apache-2.0
"""Arithmetic on known numbers: as the machine's words, and one way for one number and for many."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fasttrack.audit.flow import numbers
from fasttrack.audit.flow.numbers import lift
from fasttrack.audit.flow.threads import WORD, Lanes

WORDS = st.one_of(
    st.integers(0, WORD), st.sampled_from([0, 1, 31, 32, 0x7FFF_FFFF, 0x8000_0000, WORD])
)


def _signed(word: int) -> int:
    return word - (1 << 32) if word >> 31 else word


def _lanes(*values: int) -> Lanes:
    return Lanes(np.array(values, np.uint64), np.ones(len(values), np.bool_))


def _check(function: numbers.Function, words: tuple[int, ...], want: int) -> None:
    """One number and a vector of two, of which the first is that number."""
    assert lift(function, words) == want
    many = lift(function, tuple(_lanes(word, word) for word in words))
    assert isinstance(many, Lanes)
    assert [int(one) for one in many.values] == [want, want]


@given(WORDS, WORDS, st.booleans(), st.sampled_from(["EQ", "NE", "LT", "LE", "GT", "GE"]))
def test_comparisons_are_those_of_signed_or_unsigned_words(
    left: int, right: int, unsigned: bool, kind: str
) -> None:
    one, two = (left, right) if unsigned else (_signed(left), _signed(right))
    want = {
        "EQ": one == two, "NE": one != two, "LT": one < two,
        "LE": one <= two, "GT": one > two, "GE": one >= two,
    }[kind]  # fmt: skip
    function = numbers.comparison(kind, unsigned)
    assert function is not None
    _check(function, (left, right), int(want))


@given(WORDS, WORDS, WORDS, st.integers(0, 255))
def test_logic_follows_its_table_bit_by_bit(a: int, b: int, c: int, table: int) -> None:
    want = 0
    for bit in range(32):
        row = (a >> bit & 1) << 2 | (b >> bit & 1) << 1 | c >> bit & 1
        want |= (table >> row & 1) << bit
    _check(numbers.logic(table, predicates=False), (a, b, c), want)


@given(WORDS, st.integers(0, 40))
def test_shifts_of_one_word_lose_what_leaves_it(word: int, amount: int) -> None:
    _check(numbers.shift(True, False, False), (word, amount, 0), word << amount & WORD)
    _check(numbers.shift(False, False, True), (0, amount, word), word >> amount)
    _check(numbers.shift(False, True, True), (0, amount, word), _signed(word) >> amount & WORD)


@given(WORDS, st.integers(0, 31), WORDS)
def test_shifts_of_two_words_move_bits_between_them(low: int, amount: int, high: int) -> None:
    whole = high << 32 | low
    _check(numbers.shift(True, False, True), (low, amount, high), whole << amount >> 32 & WORD)
    _check(numbers.shift(False, False, False), (low, amount, high), whole >> amount & WORD)


@given(WORDS, WORDS, st.booleans(), st.booleans())
def test_the_smaller_of_two_is_by_sign_unless_unsigned(
    left: int, right: int, unsigned: bool, smaller: bool
) -> None:
    key = (lambda one: one) if unsigned else _signed
    want = (min if smaller else max)((left, right), key=key)
    _check(numbers.extreme(unsigned), (left, right, int(smaller)), want)


@given(WORDS, WORDS, WORDS)
def test_products_and_sums_wrap_around(a: int, b: int, c: int) -> None:
    _check(numbers.multiply_add, (a, b, c), (a * b + c) & WORD)


def test_a_result_is_known_only_where_all_operands_are() -> None:
    left = Lanes(np.array([1, 2], np.uint64), np.array([True, False]))
    right = Lanes(np.array([3, 4], np.uint64), np.array([True, True]))
    total = lift(numbers.add, (left, right))
    assert isinstance(total, Lanes)
    assert total.known.tolist() == [True, False]
    assert lift(numbers.add, (left, None)) is None


@pytest.mark.parametrize("kind", ["LTU", "NUM", ""])
def test_a_comparison_that_is_not_known_has_no_function(kind: str) -> None:
    assert numbers.comparison(kind, unsigned=False) is None


@given(WORDS, WORDS, st.lists(st.integers(0, 7), min_size=4, max_size=4))
def test_bytes_are_picked_out_of_two_words_from_the_lowest_on(
    low: int, high: int, picked: list[int]
) -> None:
    both = low.to_bytes(4, "little") + high.to_bytes(4, "little")
    chosen = sum(one << 4 * at for at, one in enumerate(picked))
    want = int.from_bytes(bytes(both[one] for one in picked), "little")
    _check(numbers.permute(chosen), (low, high), want)
