# SPDX-License-Identifier: Apache-2.0
"""Comparisons and logic: predicates that are decided for all threads, for some, or by name."""

from dataclasses import replace
from typing import Any

from fasttrack.audit.flow import numbers
from fasttrack.audit.flow.numbers import lift
from fasttrack.audit.flow.operands import Context, bare, is_predicate
from fasttrack.audit.flow.state import State
from fasttrack.audit.flow.terms import mark_of, settle, spelling
from fasttrack.audit.flow.threads import Number
from fasttrack.audit.flow.values import ANY, NOWHERE, FlagRead, LowByte, Passed, Value, sum_bases
from fasttrack.audit.program import Immediate, Instruction

_BOTH = 0xC0
"""The table of `LOP3` that keeps bits which are set in its first two words."""


def logic(context: Context, state: State, instruction: Instruction) -> None:
    """`LOP3`: the truth table is the first number after three words."""
    parts = context.split(instruction)
    words = parts.sources[:3]
    table = next((one.value for one in parts.sources[3:] if isinstance(one, Immediate)), None)
    values = tuple(context.read(state, one) for one in words)
    incoming = next(
        (context.read(state, one) for one in parts.sources[3:] if is_predicate(one)), ANY
    )
    name = context.names.combine(f"{spelling(instruction)} {table}", values)
    number, bases = None, sum_bases(values)
    if table is not None and "~" not in instruction.text:
        number = lift(numbers.logic(table, predicates=False), tuple(bare(one) for one in values))
        byte = lowest_byte(values[:2]) if number is None and table == _BOTH else None
        if byte is not None:
            number, bases = byte, NOWHERE
    mark = mark_of(values)
    context.forget(state, instruction)
    real = [one for one in parts.predicates if one.index is not None]
    if real:
        truth = lift(_nonzero, (number,))
        both = "PAND" in instruction.modifiers
        if both:
            truth = lift(lambda one, two: one & two, (truth, incoming.number))
        else:
            truth = lift(lambda one, two: one | two, (truth, incoming.number))
        named = None
        if name is not None and incoming.number == int(both):
            named = context.names.of(("nonzero", name), context.names.uniform[name])
        truth = settle(context, state, named, truth)
        context.write(state, real[0], Value(truth, named, mark=mark))
    context.write(state, parts.register, Value(number, name, bases, mark))


def lowest_byte(values: tuple[Value, ...]) -> Number:
    """A word's lowest byte, where no more of the word is known."""
    for one, other in (values, values[::-1]):
        if other.number == 0xFF and not other.bases and isinstance(one.mark, LowByte):
            return one.mark.byte
    return None


def _nonzero(one: Any) -> Any:
    return int(one != 0) if isinstance(one, int) else one != 0


def lone_mark(values: tuple[Value, ...]) -> FlagRead | None:
    """The read of a flag that decides alone: all other conditions are known."""
    unknown = [one for one in values if not isinstance(one.number, int)]
    mark = unknown[0].mark if len(unknown) == 1 else None
    return mark if isinstance(mark, FlagRead) and mark.when is None else None


def compared_mark(kind: str, values: tuple[Value, ...]) -> FlagRead | Passed | None:
    """What a comparison depends on: a flag, or whether an mbarrier's phase passed."""
    left, right = values[:2]
    if isinstance(left.mark, Passed) and kind == "NE" and right.number == 0:
        return left.mark
    mark = mark_of(values)
    if mark is None:
        return None
    other = right if isinstance(left.mark, FlagRead) else left
    number = other.number if isinstance(other.number, int) else None
    return replace(mark, asked=(kind, other.name, number))


def predicate_logic(context: Context, state: State, instruction: Instruction) -> None:
    """`PLOP3`: two truth tables over three predicates."""
    parts = context.split(instruction)
    inputs = tuple(one for one in parts.sources if is_predicate(one))[:3]
    tables = [one.value for one in parts.sources if isinstance(one, Immediate)]
    values = tuple(context.read(state, one) for one in inputs)
    context.forget(state, instruction)
    if len(inputs) != 3 or not tables:
        return
    for predicate, table in zip(parts.predicates, tables, strict=False):
        number = lift(
            numbers.logic(table & 0xFF, predicates=True), tuple(one.number for one in values)
        )
        name = context.names.combine(f"PLOP3 {table}", values)
        number = settle(context, state, name, number)
        mark = lone_mark(values)
        context.write(state, predicate, Value(number, name, mark=mark))


def compare(context: Context, state: State, instruction: Instruction) -> None:
    """`ISETP`: a comparison, joined with a predicate; `EX` continues that of the lower words."""
    parts = context.split(instruction)
    words, extended = instruction.modifiers, "EX" in instruction.modifiers
    kind = words[0] if words else ""
    joined = next((word for word in words if word in ("AND", "OR", "XOR")), "AND")
    left, right, *rest = (context.read(state, one) for one in parts.sources)
    truth = _compared(kind, "U32" in words, (left, right), rest[1] if extended else None)
    accumulated = rest[0] if rest else Value(1)
    lower = rest[1:] if extended else []
    mark = compared_mark(kind, (left, right, *lower))
    if not isinstance(accumulated.number, int):
        mark = None  # the other condition may decide
    names = [
        context.names.combine(f"{spelling(instruction)} {way}", (left, right, *rest))
        for way in range(2)
    ]
    if joined == "AND" and accumulated.number == 1:
        names = _paired(context, names, kind, words, (left, right, *rest[1:]))
    context.forget(state, instruction)
    join = numbers.combine(joined)
    for at, predicate in enumerate(parts.predicates):
        if at and isinstance(mark, Passed):
            mark = None  # the opposite
        way = truth if at == 0 else lift(lambda one: one ^ 1, (truth,))
        number = _join_truth(joined, join, way, accumulated.number)
        number = settle(context, state, names[at], number)
        context.write(state, predicate, Value(number, names[at], mark=mark))


def _join_truth(kind: str, join: numbers.Function | None, one: Number, other: Number) -> Number:
    if kind == "AND" and 0 in (one, other):
        return 0
    if kind == "OR" and 1 in (one, other):
        return 1
    return lift(join, (one, other)) if join is not None else None


_MIRRORED = {"GT": "LT", "GE": "LE", "LT": "LT", "LE": "LE", "EQ": "EQ", "NE": "EQ"}


def _paired(
    context: Context,
    names: list[int | None],
    kind: str,
    words: tuple[str, ...],
    parts: tuple[Value, ...],
) -> list[int | None]:
    """Names that a comparison shares with its opposite and its mirror image."""
    if kind not in _MIRRORED or "EX" in words:
        return [names[0], context.names.opposite(names[0])]
    unsigned = "U32" in words and kind not in ("EQ", "NE")
    left, right = parts[:2]
    if kind in ("GT", "GE"):
        left, right = right, left
    if kind in ("GE", "LE"):  # a <= b is not b < a
        name = context.names.combine(f"LT {unsigned}", (right, left))
        return [context.names.opposite(name), name]
    name = context.names.combine(f"{_MIRRORED[kind]} {unsigned}", (left, right))
    other = context.names.opposite(name)
    return [other, name] if kind == "NE" else [name, other]


def _compared(kind: str, unsigned: bool, parts: tuple[Value, Value], lower: Value | None) -> Number:
    left, right = parts
    equal: Number = None
    if left.name is not None and left.name == right.name:
        equal = 1
    one, two = bare(left), bare(right)
    if lower is None:
        if equal == 1:
            return int(kind in ("EQ", "LE", "GE", "T"))
        function = numbers.comparison(kind, unsigned)
        return lift(function, (one, two)) if function is not None else None
    strict = numbers.comparison({"GE": "GT", "LE": "LT"}.get(kind, kind), unsigned)
    same = lift(_equal, (one, two)) if equal is None else equal
    beyond = (
        (lift(strict, (one, two)) if strict is not None else None)
        if equal is None
        else int(kind == "EQ")
    )
    if kind == "EQ":
        return lift(lambda some, low: some & low, (same, lower.number))
    return lift(lambda over, some, low: over | (some & low), (beyond, same, lower.number))


_equal = numbers.comparison("EQ", unsigned=True) or numbers.add
