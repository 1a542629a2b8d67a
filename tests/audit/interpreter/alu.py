# SPDX-License-Identifier: Apache-2.0
"""Arithmetic and comparisons of integers and predicates."""

from collections.abc import Callable
from typing import Any

import numpy as np

from fasttrack.audit.program import File, Instruction, Operand, Register

from .lanes import Lanes, Mask, NotExecuted, Wide

Step = Callable[[Lanes, Instruction, Mask], None]
COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "LT": np.less, "LE": np.less_equal, "GT": np.greater,
    "GE": np.greater_equal, "EQ": np.equal, "NE": np.not_equal,
}  # fmt: skip
PREDICATES = (File.PREDICATE, File.UNIFORM_PREDICATE)


def is_truth(operand: Operand) -> bool:
    """Whether an operand is a predicate."""
    return isinstance(operand, Register) and operand.file in PREDICATES


def _split(operands: tuple[Operand, ...]) -> tuple[Operand, list[Operand], list[Operand]]:
    """A destination, the carries that it also writes, and what is read."""
    to, *rest = operands
    carries = []
    while rest and is_truth(rest[0]):
        carries.append(rest.pop(0))
    return to, carries, rest


def _sum(lanes: Lanes, parts: list[Wide], carries: list[Operand], mask: Mask) -> Wide:
    total = sum(parts, np.zeros(lanes.threads, np.uint64))
    for at, carry in enumerate(carries):
        lanes.set_truth(carry, (total >> np.uint64(32)) > np.uint64(at), mask)
    return total & np.uint64(0xFFFFFFFF)


def add(lanes: Lanes, one: Instruction, mask: Mask) -> None:
    """IADD3 and its like, with carries, of 32 or 64 bits."""
    to, carries, read = _split(one.operands)
    if "64" in one.modifiers:
        total = sum((lanes.wide(part) for part in read), np.zeros(lanes.threads, np.uint64))
        lanes.set_wide(to, total, mask)
        return
    extended = "X" in one.modifiers
    truths = [part for part in read if is_truth(part)]
    parts = [
        lanes.word(part, inverted=extended).astype(np.uint64) for part in read if not is_truth(part)
    ]
    if extended:
        parts += [lanes.truth(part).astype(np.uint64) for part in truths]
    else:
        # -b is ~b + 1, and the carry of that 1 counts: of -0 it is set.
        for part, value in zip(read, parts, strict=False):
            if getattr(part, "negated", False):
                value[value == 0] = np.uint64(1 << 32)
    lanes.set_word(to, _sum(lanes, parts, carries, mask), mask)


def multiply(lanes: Lanes, one: Instruction, mask: Mask) -> None:
    """IMAD: a product and a sum."""
    to, carries, (a, b, c, *more) = _split(one.operands)
    signed = "U32" not in one.modifiers
    if "WIDE" in one.modifiers or "HI" in one.modifiers:
        left, right = lanes.word(a).astype(np.int64), lanes.word(b).astype(np.int64)
        if signed:
            left, right = (value.astype(np.int32).astype(np.int64) for value in (left, right))
        product = (left.astype(np.uint64)) * right.astype(np.uint64)
        if "WIDE" in one.modifiers:
            lanes.set_wide(to, product + lanes.wide(c), mask)
        else:
            high = (product >> np.uint64(32)).astype(np.uint32)
            lanes.set_word(to, high + lanes.word(c), mask)
        return
    value = lanes.word(a) * lanes.word(b) + lanes.word(c, inverted="X" in one.modifiers)
    if "X" in one.modifiers:
        value = value + lanes.truth(more[0])
    if carries:
        raise NotExecuted(one.text)
    lanes.set_word(to, value, mask)


def scale(lanes: Lanes, one: Instruction, mask: Mask) -> None:
    """LEA: an index, moved, and a base."""
    to, carries, read = _split(one.operands)
    truths = [part for part in read if is_truth(part)]
    numbers = [part for part in read if not is_truth(part)]
    by = int(lanes.word(numbers[-1])[0])
    a, b = lanes.word(numbers[0]).astype(np.uint64), lanes.word(numbers[1]).astype(np.uint64)
    if "HI" in one.modifiers:
        if "SX32" in one.modifiers:
            high = (lanes.word(numbers[0]).astype(np.int32) >> 31).astype(np.uint32)
        else:
            high = lanes.word(numbers[2])
        a = ((high.astype(np.uint64) << np.uint64(32)) | a) >> np.uint64(32 - by)
    else:
        a = a << np.uint64(by)
    parts = [a & np.uint64(0xFFFFFFFF), b]
    if "X" in one.modifiers:
        parts.append(lanes.truth(truths[0]).astype(np.uint64))
    lanes.set_word(to, _sum(lanes, parts, carries, mask), mask)


def shift(lanes: Lanes, one: Instruction, mask: Mask) -> None:
    """SHF: two words moved as one."""
    to, low, by, high = one.operands
    bits = (lanes.word(by) & np.uint32(63 if "U64" in one.modifiers else 31)).astype(np.uint64)
    both = lanes.word(low).astype(np.uint64) | (lanes.word(high).astype(np.uint64) << np.uint64(32))
    if one.modifiers[0] == "L":
        moved = both << bits
    elif "S32" in one.modifiers or "S64" in one.modifiers:
        moved = (both.astype(np.int64) >> bits.astype(np.int64)).astype(np.uint64)
    else:
        moved = both >> bits
    wants_high = "HI" in one.modifiers
    lanes.set_word(to, (moved >> np.uint64(32)) if wants_high else moved, mask)


def _table(a: Any, b: Any, c: Any, table: int) -> Any:
    """The function of three bits whose truth table has bit 4a+2b+c."""
    found = a & ~a
    for row in range(8):
        if table >> row & 1:
            found = found | (
                (a if row & 4 else ~a) & (b if row & 2 else ~b) & (c if row & 1 else ~c)
            )
    return found


def lookup(lanes: Lanes, one: Instruction, mask: Mask) -> None:
    """LOP3: three words through a table of bits."""
    operands = list(one.operands)
    test = operands.pop(0) if is_truth(operands[0]) else None
    to, a, b, c, table = operands[:5]
    words = [lanes.word(part, inverted=True) for part in (a, b, c)]
    value = _table(*words, int(lanes.word(table)[0]))
    lanes.set_word(to, value, mask)
    if test is not None:
        lanes.set_truth(test, value != 0, mask)


def combine(lanes: Lanes, one: Instruction, mask: Mask) -> None:
    """PLOP3: three predicates through two tables."""
    to, other, a, b, c, first, second = one.operands
    truths = [lanes.truth(part) for part in (a, b, c)]
    values = [_table(*truths, int(lanes.word(part)[0])) for part in (first, second)]
    for operand, value in zip((to, other), values, strict=True):
        lanes.set_truth(operand, value, mask)


def _joined(lanes: Lanes, value: Mask, one: Instruction, last: Operand) -> Mask:
    other = lanes.truth(last)
    if "OR" in one.modifiers:
        return value | other
    return value ^ other if "XOR" in one.modifiers else value & other


def compare(lanes: Lanes, one: Instruction, mask: Mask) -> None:
    """ISETP: a comparison joined with a predicate."""
    to, inverse, a, b, last, *carry = one.operands
    kind = np.uint32 if "U32" in one.modifiers else np.int32
    left, right = lanes.word(a).astype(kind), lanes.word(b).astype(kind)
    value = COMPARE[one.modifiers[0]](left, right)
    if "EX" in one.modifiers:
        value = np.where(left == right, lanes.truth(carry[0]), value)
    lanes.set_truth(to, _joined(lanes, value, one, last), mask)
    lanes.set_truth(inverse, _joined(lanes, ~value, one, last), mask)


def move(lanes: Lanes, one: Instruction, mask: Mask) -> None:
    """MOV and its like."""
    lanes.set_word(one.operands[0], lanes.word(one.operands[1]), mask)


def select(lanes: Lanes, one: Instruction, mask: Mask) -> None:
    """SEL: one of two words."""
    to, a, b, chosen = one.operands
    lanes.set_word(to, np.where(lanes.truth(chosen), lanes.word(a), lanes.word(b)), mask)


def least(lanes: Lanes, one: Instruction, mask: Mask) -> None:
    """VIMNMX: the lesser of two, or the greater."""
    to, *_, a, b, smaller = one.operands
    kind = np.uint32 if "U32" in one.modifiers else np.int32
    left, right = lanes.word(a).astype(kind), lanes.word(b).astype(kind)
    value = np.where(lanes.truth(smaller), np.minimum(left, right), np.maximum(left, right))
    lanes.set_word(to, value.astype(np.uint32), mask)


def permute(lanes: Lanes, one: Instruction, mask: Mask) -> None:
    """PRMT: four bytes, each picked from two words by a digit."""
    to, low, digits, high = one.operands
    both = lanes.word(low).astype(np.uint64) | lanes.word(high).astype(np.uint64) << np.uint64(32)
    chosen = lanes.word(digits).astype(np.uint64)
    value = np.zeros(lanes.threads, np.uint64)
    for at in range(4):
        digit = chosen >> np.uint64(4 * at) & np.uint64(15)
        byte = both >> np.uint64(8) * (digit & np.uint64(7)) & np.uint64(0xFF)
        sign = np.where(byte >> np.uint64(7) == 1, np.uint64(0xFF), np.uint64(0))
        value |= np.where(digit > 7, sign, byte) << np.uint64(8 * at)
    lanes.set_word(to, value.astype(np.uint32), mask)
