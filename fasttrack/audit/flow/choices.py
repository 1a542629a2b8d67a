# SPDX-License-Identifier: Apache-2.0
"""Instructions that pick one of several words, or bits of them."""

import struct

from fasttrack.audit.flow import numbers
from fasttrack.audit.flow.numbers import lift
from fasttrack.audit.flow.operands import Context, bare, is_predicate
from fasttrack.audit.flow.state import State, slot_of
from fasttrack.audit.flow.terms import mark_of, plain, spelling
from fasttrack.audit.flow.threads import Number, decided
from fasttrack.audit.flow.values import (
    NOWHERE,
    UNKNOWN_BASE,
    Bases,
    Few,
    FlagRead,
    LowByte,
    Passed,
    Value,
    few,
    scaled_bases,
)
from fasttrack.audit.program import Instruction


def select(context: Context, state: State, instruction: Instruction) -> None:
    """`SEL`: one of two words by a predicate."""
    parts = context.split(instruction)
    if len(parts.sources) < 3:
        plain(context, state, instruction)
        return
    left, right, which = (context.read(state, one) for one in parts.sources[:3])
    context.forget(state, instruction)
    true, false, unknown = decided(which.number, state.mask, context.threads.count)
    if not false and not unknown:
        context.write(state, parts.register, left)
    elif not true and not unknown:
        context.write(state, parts.register, right)
    else:
        number = lift(numbers.choose, (bare(left), bare(right), which.number))
        name = context.names.combine("SEL", (left, right, which))
        bases = selected_bases(left, right)
        mark = selected_mark(left, right, which)
        context.write(state, parts.register, Value(number, name, bases, mark))


def selected_mark(left: Value, right: Value, which: Value) -> FlagRead | Passed | Few | None:
    """What it says of a flag or an mbarrier that one of two numbers was picked."""
    if not isinstance(left.number, int) or not isinstance(right.number, int):
        return few(left, right)
    if isinstance(which.mark, FlagRead):
        return which.mark
    if isinstance(which.mark, Passed) and left.number != 0 and right.number == 0:
        return which.mark
    return few(left, right)


def selected_bases(left: Value, right: Value) -> Bases:
    """The memory of an address that is one of two."""
    bases = left.bases | right.bases
    lost = bases and any(not one.bases and one.number is None for one in (left, right))
    return bases | {UNKNOWN_BASE} if lost else bases


def half_constant(context: Context, state: State, instruction: Instruction) -> None:
    """`HFMA2 R0, -RZ, RZ, 0, 5.96e-08`: how the compiler also writes a constant, as two halves."""
    parts = context.split(instruction)
    context.forget(state, instruction)
    words = [word.strip() for word in instruction.text.split(",")]
    if len(words) == 5 and words[1:3] == ["-RZ", "RZ"]:
        try:
            high, low = (struct.unpack("<H", struct.pack("<e", float(one)))[0] for one in words[3:])
        except (ValueError, OverflowError):
            return
        context.write(state, parts.register, Value(high << 16 | low))


def shift(context: Context, state: State, instruction: Instruction) -> None:
    """`SHF`: words moved by bits; what was an address is none afterwards that is known."""
    parts = context.split(instruction)
    words = instruction.modifiers
    values = tuple(context.read(state, one) for one in parts.sources[:3])
    name = context.names.combine(spelling(instruction), values)
    context.forget(state, instruction)
    number = None
    if len(values) == 3 and words and words[0] in ("L", "R"):
        amount = values[1].number
        if "W" in words:
            limit = 63 if {"U64", "S64"} & set(words) else 31
            amount = lift(lambda one: one & limit, (amount,))
        function = numbers.shift(
            left=words[0] == "L", arithmetic="S32" in words or "S64" in words, high="HI" in words
        )
        number = lift(function, (bare(values[0]), amount, bare(values[2])))
    bases = NOWHERE.union(*(scaled_bases(one.bases) for one in values))
    context.write(state, parts.register, Value(number, name, bases, mark_of(values)))


def smaller(context: Context, state: State, instruction: Instruction) -> None:
    """`VIMNMX` and `VIADDMNMX`: the smaller or larger of two, the first perhaps a sum."""
    parts = context.split(instruction)
    values = tuple(context.read(state, one) for one in parts.sources)
    name = context.names.combine(spelling(instruction), values)
    context.forget(state, instruction)
    words = values[:-1]
    number: Number = None
    if len(words) >= 2 and is_predicate(parts.sources[-1]):
        first = bare(words[0])
        if len(words) == 3:
            first = lift(numbers.add, (first, bare(words[1])))
        if len(words) <= 3:
            function = numbers.extreme("U32" in instruction.modifiers)
            number = lift(function, (first, bare(words[-1]), values[-1].number))
    bases = NOWHERE.union(*(scaled_bases(one.bases) for one in words))
    context.write(state, parts.register, Value(number, name, bases, mark_of(values)))


def permute(context: Context, state: State, instruction: Instruction) -> None:
    """`PRMT`: four bytes out of two words; small flags are kept in the lowest one."""
    parts = context.split(instruction)
    slot = slot_of(parts.register) if parts.register is not None else None
    known = tuple(bare(context.read(state, one)) for one in parts.sources)
    plain(context, state, instruction)
    chosen = known[1] if len(known) == 3 else None
    if slot is None or not isinstance(chosen, int) or chosen & 0x8888 or instruction.modifiers:
        return
    old = state.registers[slot]
    number = lift(numbers.permute(chosen), (known[0], known[2]))
    lowest = known[0] if chosen & 4 == 0 else known[2]
    if number is not None:
        state.registers[slot] = Value(number, old.name)
    elif isinstance(lowest, int):  # the other bytes may be what is left of a pointer
        mark = LowByte(lowest >> 8 * (chosen & 3) & 0xFF)
        state.registers[slot] = Value(None, old.name, old.bases, mark)
