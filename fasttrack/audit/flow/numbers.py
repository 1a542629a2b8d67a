# SPDX-License-Identifier: Apache-2.0
"""Integer arithmetic of the machine on numbers that are known for some or all threads.

Each function takes Python integers or vectors of unsigned 64-bit numbers, so that one definition
serves a number that all threads share and one that differs between them.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from fasttrack.audit.flow.threads import WORD, Lanes, Number

Function = Callable[..., Any]
_SIGN = 0x8000_0000
_LONG = 0xFFFF_FFFF_FFFF_FFFF
_WORD = np.uint64(WORD)


def lift(function: Function, numbers: tuple[Number, ...], bits: int = 32) -> Number:
    """The function's result in each thread; None where an operand is not known anywhere."""
    known = None
    for number in numbers:
        if number is None:
            return None
        if isinstance(number, Lanes):
            known = number.known if known is None or known is number.known else known & number.known
    if known is None:
        return int(function(*numbers)) & (WORD if bits == 32 else _LONG)
    # Vectors of one element wrap around without a word, as longer ones do; scalars would not.
    result = function(
        *(
            one.values if isinstance(one, Lanes) else np.array([one & _LONG], np.uint64)
            for one in numbers
            if one is not None
        )
    )
    if result.dtype != np.uint64:
        result = result.astype(np.uint64)
    if bits == 32:
        result = result & _WORD
    if result.shape != known.shape:
        result = np.broadcast_to(result, known.shape)
    return Lanes(result, known) if known.any() else None


def signed(word: Any) -> Any:
    """A 32-bit number as 64 bits with its sign."""
    return (((word & WORD) ^ _SIGN) - _SIGN) & _LONG


def add(*words: Any) -> Any:
    """Their sum."""
    total = words[0]
    for word in words[1:]:
        total = total + word
    return total


def multiply_add(left: Any, right: Any, addend: Any) -> Any:
    """`left * right + addend`."""
    return left * right + addend


def logic(table: int, predicates: bool) -> Function:
    """The function of three operands with that truth table, bit by bit."""
    ones = 1 if predicates else WORD

    def evaluate(a: Any, b: Any, c: Any) -> Any:
        result = 0 * (a | b | c)
        for row in range(8):
            if table >> row & 1:
                x = a if row & 4 else a ^ ones
                y = b if row & 2 else b ^ ones
                z = c if row & 1 else c ^ ones
                result = result | (x & y & z)
        return result

    return evaluate


def _truth(word: Any) -> Any:
    return word.astype(np.uint64) if isinstance(word, np.ndarray | np.bool_) else int(word)


def comparison(kind: str, unsigned: bool, bits: int = 32) -> Function | None:
    """`left KIND right`, or None if there is no such comparison."""
    compare = _COMPARISONS.get(kind)
    if compare is None:
        return None
    flip = 0 if unsigned else 1 << (bits - 1)

    def evaluate(left: Any, right: Any) -> Any:
        return _truth(compare(left ^ flip, right ^ flip))

    return evaluate


_COMPARISONS: Mapping[str, Function] = {
    "EQ": lambda left, right: left == right,
    "NE": lambda left, right: left != right,
    "LT": lambda left, right: left < right,
    "LE": lambda left, right: left <= right,
    "GT": lambda left, right: left > right,
    "GE": lambda left, right: left >= right,
    "F": lambda left, right: left != left,  # noqa: PLR0124 - false in every thread
    "T": lambda left, right: left == left,  # noqa: PLR0124 - true in every thread
}


def combine(kind: str) -> Function | None:
    """How a comparison's result is joined with a predicate."""
    return {
        "AND": lambda left, right: left & right,
        "OR": lambda left, right: left | right,
        "XOR": lambda left, right: left ^ right,
    }.get(kind)


def extreme(unsigned: bool) -> Function:
    """The smaller of two numbers if the third is true, else the larger."""
    flip = 0 if unsigned else _SIGN

    def evaluate(left: Any, right: Any, smaller: Any) -> Any:
        if isinstance(left, int) and isinstance(right, int) and isinstance(smaller, int):
            ordered = sorted((left, right), key=lambda one: one ^ flip)
            return ordered[0] if smaller else ordered[1]
        least = np.where((left ^ flip) < (right ^ flip), left, right)
        most = np.where((left ^ flip) < (right ^ flip), right, left)
        return np.where(smaller != 0, least, most)

    return evaluate


def choose(left: Any, right: Any, which: Any) -> Any:
    """`left` where `which` is true, else `right`."""
    if isinstance(which, int):
        return left if which else right
    return np.where(which != 0, left, right)


def shift(left: bool, arithmetic: bool, high: bool) -> Function:
    """`SHF`: of a 64-bit number, or of one word, one word moved by `amount` bits."""

    def evaluate(low: Any, amount: Any, top: Any) -> Any:
        amount = _clamp(amount)
        if left:
            whole = (top << 32) | low
            moved = _move(whole, amount, left=True)
            return (moved >> 32) & WORD if high else moved & WORD
        upper = signed(top) if arithmetic else top
        if high:
            # Bits below the word come from it alone; the sign fills up from above.
            return _arithmetic(upper, amount) if arithmetic else _move(top, amount, left=False)
        return _move((top << 32) | low, amount, left=False) & WORD

    return evaluate


def _clamp(amount: Any) -> Any:
    amount = amount & 0xFF
    if isinstance(amount, int):
        return min(amount, 63)
    return np.minimum(amount, np.uint64(63))


def _move(word: Any, amount: Any, left: bool) -> Any:
    if isinstance(word, int) and isinstance(amount, int):
        return (word << amount) & _LONG if left else word >> amount
    one, two = np.asarray(word, np.uint64), np.asarray(amount, np.uint64)
    return np.left_shift(one, two) if left else np.right_shift(one, two)


def _arithmetic(word: Any, amount: Any) -> Any:
    if isinstance(word, int) and isinstance(amount, int):
        value = word - (1 << 64) if word >> 63 else word
        return (value >> amount) & WORD
    moved = np.asarray(word, np.uint64).astype(np.int64) >> np.asarray(amount).astype(np.int64)
    return moved.astype(np.uint64) & np.uint64(WORD)


def permute(chosen: int) -> Function:
    """The word of those bytes of two words, by the four digits of a number from the lowest on."""

    def evaluate(low: Any, high: Any) -> Any:
        both = low | high << 32
        total = both & 0
        for at in range(4):
            total = total | (both >> 8 * (chosen >> 4 * at & 7) & 0xFF) << 8 * at
        return total

    return evaluate
