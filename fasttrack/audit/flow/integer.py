# SPDX-License-Identifier: Apache-2.0
"""Integer instructions: numbers where they are known, and where addresses come from.

An address keeps its base through sums, moves and selections; a factor and a shifted word are
indices and have none.
"""

from fasttrack.audit.flow import numbers
from fasttrack.audit.flow.numbers import lift
from fasttrack.audit.flow.operands import Context, bare, is_predicate
from fasttrack.audit.flow.state import State
from fasttrack.audit.flow.terms import mark_of, plain, spelling
from fasttrack.audit.flow.threads import WORD, Number
from fasttrack.audit.flow.values import (
    ANY,
    Base,
    Bases,
    Space,
    Value,
    scaled_bases,
    sum_bases,
)
from fasttrack.audit.program import Immediate, Instruction, Operand, Register

_RELATIVE = frozenset({Base(Space.WINDOW), Base(Space.LOCAL)})
"""Memory whose addresses are kept as offsets, so that sums of them are known."""


def move(context: Context, state: State, instruction: Instruction) -> None:
    """`MOV`, `R2UR` and what else copies its one source."""
    parts = context.split(instruction)
    sources = [one for one in parts.sources if not _is_lane_mask(instruction, one)]
    if not sources:
        plain(context, state, instruction)
        return
    wide = "64" in instruction.modifiers
    values = [context.read(state, sources[0], at) for at in range(2 if wide else 1)]
    context.forget(state, instruction)
    for at, value in enumerate(values):
        context.write(state, parts.register, value, at)


def _is_lane_mask(instruction: Instruction, operand: Operand) -> bool:
    """`MOV R0, R1, 0xf`: the last number says which lanes move."""
    return (
        instruction.opcode in ("MOV", "UMOV")
        and isinstance(operand, Immediate)
        and operand is instruction.operands[-1]
        and len(instruction.operands) > 2
    )


def _summed(parts: tuple[Value, ...], number: Number) -> Number:
    """The number of a sum: known beside one address of which offsets are kept, or beside none."""
    based = [one for one in parts if one.bases]
    if not based:
        return number
    return number if len(based) == 1 and based[0].bases <= _RELATIVE else None


def _terms(context: Context, state: State, sources: tuple[Operand, ...], high: int) -> list[Value]:
    """Operands of a sum, each as `with carries` wants it: `-x` is `~x + 1`, unmasked."""
    return [context.read(state, one, high, raw=True) for one in sources]


def _complement(one: object) -> object:
    return (one ^ WORD) + 1  # type: ignore[operator]


def add(context: Context, state: State, instruction: Instruction) -> None:
    """`IADD3`, `VIADD` and their kin, with carries in and out."""
    parts = context.split(instruction)
    with_carry = "X" in instruction.modifiers
    words = tuple(one for one in parts.sources if not is_predicate(one))
    carries = tuple(one for one in parts.sources if is_predicate(one)) if with_carry else ()
    if "~" in instruction.text or "64" in instruction.modifiers:
        _add_blindly(context, state, instruction, words)
        return
    values = tuple(_terms(context, state, words, 0))
    incoming = tuple(context.read(state, one) for one in carries)
    counted = tuple(
        lift(_complement, (value.number,), 64) if _negative(word) else value.number
        for word, value in zip(words, values, strict=True)
    )
    whole = lift(numbers.add, (*counted, *(one.number for one in incoming)), 64)
    name = context.names.combine(
        spelling(instruction),
        tuple(context.read(state, one) for one in (*words, *carries)),
    )
    low = lift(lambda one: one & WORD, (_summed(values, whole),))
    context.forget(state, instruction)
    _carry_out(context, state, parts.predicates, whole if not sum_bases(values) else None, name)
    context.write(
        state, parts.register, Value(low, name, sum_bases(values), mark_of((*values, *incoming)))
    )


def _add_blindly(
    context: Context, state: State, instruction: Instruction, words: tuple[Operand, ...]
) -> None:
    """A sum whose number is not worked out; where it points to is."""
    wide = "64" in instruction.modifiers
    values = [
        tuple(context.read(state, one, at) for one in words) for at in range(2 if wide else 1)
    ]
    context.forget(state, instruction)
    for at, parts in enumerate(values):
        bases = sum_bases(parts)
        context.write(
            state, context.split(instruction).register, Value(None, None, bases, mark_of(parts)), at
        )


def _carry_out(
    context: Context,
    state: State,
    predicates: tuple[Register, ...],
    whole: Number,
    name: int | None,
) -> None:
    """Carries of a sum; with two of them, only that there was none is known."""
    real = [one for one in predicates if one.index is not None]
    carry = lift(lambda one: one >> 32, (whole,), 64)
    if len(real) > 1 and carry != 0:
        carry = None
    for at, one in enumerate(real):
        number = lift(lambda some: some & 1, (carry,))
        named = context.names.of(("carry", name, at), context.names.uniform[name]) if name else None
        context.write(state, one, Value(number, named))


def _negative(operand: Operand) -> bool:
    return bool(getattr(operand, "negated", False))


def multiply(context: Context, state: State, instruction: Instruction) -> None:
    """`IMAD` in all its forms: a product has no base, unless a factor is one."""
    parts = context.split(instruction)
    words = instruction.modifiers
    if "MOV" in words:
        value = context.read(state, parts.sources[-1])
        context.forget(state, instruction)
        context.write(state, parts.register, value)
        return
    factors = tuple(context.read(state, one) for one in parts.sources[:2])
    wide, high = "WIDE" in words, "HI" in words
    addend = context.read(state, parts.sources[2])
    top = context.read(state, parts.sources[2], 1) if wide else ANY
    carries = tuple(context.read(state, one) for one in parts.sources[3:] if is_predicate(one))
    bases = sum_bases((addend, Value(bases=factor_bases(factors))))
    name = context.names.combine(spelling(instruction), (*factors, addend, *carries))
    mark = mark_of((*factors, addend))
    product = _product(factors, signed="U32" not in words and (wide or high))
    context.forget(state, instruction)
    if wide:
        _write_wide(context, state, parts.register, (product, addend, top, bases, name))
        return
    number = lift(lambda one: one >> 32, (product,), 64) if high else product
    total = lift(numbers.add, (number, addend.number, *(one.number for one in carries)))
    if (addend.bases and not addend.bases <= _RELATIVE) or "~" in instruction.text:
        total = None
    context.write(state, parts.register, Value(total, name, bases, mark))


def factor_bases(factors: tuple[Value, ...]) -> Bases:
    """The memory of a product: that of a factor which is multiplied by one."""
    left, right = factors
    bases = left.bases if right.number == 1 else scaled_bases(left.bases)
    return bases | (right.bases if left.number == 1 else scaled_bases(right.bases))


def _product(factors: tuple[Value, ...], signed: bool) -> Number:
    left, right = (bare(one) for one in factors)
    if 0 in (left, right):
        return 0
    if factors[1].number == 1 and factors[0].bases <= _RELATIVE:
        return factors[0].number
    if signed:
        left, right = (lift(numbers.signed, (one,), 64) for one in (left, right))
    return lift(lambda one, two: one * two, (left, right), 64)


def _write_wide(
    context: Context,
    state: State,
    register: Register | None,
    parts: tuple[Number, Value, Value, Bases, int | None],
) -> None:
    product, addend, top, bases, name = parts
    kept = None if addend.bases and not addend.bases <= _RELATIVE else addend.number
    total = lift(lambda one, low, high: one + low + (high << 32), (product, kept, top.number), 64)
    names = context.names
    for at in range(2):
        word = lift(lambda one, by: one >> by, (total, 32 * at), 64)
        named = names.of(("word", name, at), names.uniform[name]) if name is not None else None
        low = lift(lambda one: one & WORD, (word,))
        if at == 0 and total is None and product is not None:
            low = lift(lambda one, addend: one + addend, (product, kept))
        context.write(state, register, Value(low, named, bases), at)


def scaled_add(context: Context, state: State, instruction: Instruction) -> None:
    """`LEA`: `(index << shift) + base`, or its upper word."""
    parts = context.split(instruction)
    words = tuple(one for one in parts.sources if not is_predicate(one))
    values = tuple(context.read(state, one) for one in words)
    index, base = values[0], values[1]
    shift = values[-1].number if len(values) > 2 else 0
    bases = base.bases | (index.bases if shift == 0 else scaled_bases(index.bases))
    everything = tuple(context.read(state, one) for one in parts.sources)
    name = context.names.combine(spelling(instruction), everything)
    total = _summed((base,), _scaled(instruction, values, shift))
    context.forget(state, instruction)
    carried = total if not base.bases else None
    _carry_out(context, state, parts.predicates, carried, name)
    low = lift(lambda one: one & WORD, (total,))
    context.write(state, parts.register, Value(low, name, bases, mark_of(values)))


def _scaled(instruction: Instruction, values: tuple[Value, ...], amount: Number) -> Number:
    """The sum that `LEA` makes, with its carry; of the upper word, without one that comes in."""
    words = instruction.modifiers
    index, addend = bare(values[0]), values[1].number
    if not isinstance(amount, int) or "X" in words or "~" in instruction.text:
        return None
    if "HI" not in words:
        moved = lift(lambda one: (one << amount) & WORD, (index,))
    elif "SX32" in words:
        moved = lift(lambda one: (numbers.signed(one) << amount) >> 32 & WORD, (index,))
    elif len(values) == 4:
        moved = lift(
            lambda low, high: (high << 32 | low) << amount >> 32 & WORD, (index, bare(values[2]))
        )
    else:
        return None
    return lift(numbers.add, (moved, addend), 64)
