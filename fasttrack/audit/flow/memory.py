# SPDX-License-Identifier: Apache-2.0
"""Instructions that move data between registers and memory, or let a copy engine do it."""

from collections.abc import Iterator
from dataclasses import replace

from fasttrack.audit.contract import Class
from fasttrack.audit.flow.events import Does, Event
from fasttrack.audit.flow.opcodes import READS, WRITES, width
from fasttrack.audit.flow.operands import Context, spot
from fasttrack.audit.flow.state import State
from fasttrack.audit.flow.threads import Number
from fasttrack.audit.flow.values import (
    ANY,
    DISTANCE,
    FROM_SHARED,
    LOADED_BASE,
    NOWHERE,
    ONE_OF,
    UNKNOWN_BASE,
    Base,
    Bases,
    FlagRead,
    Space,
    Value,
    any_of,
    is_distance,
    join,
)
from fasttrack.audit.program import Address, Constant, Instruction, Operand, Register

SCOPES = ("CTA", "SM", "GPU", "SYS")
"""How far a strong access or a fence reaches, from near to far."""
_UNKNOWN = frozenset({UNKNOWN_BASE})
_WINDOW = frozenset({Base(Space.WINDOW)})
ON_CHIP = frozenset({Base(Space.SHARED), Base(Space.LOCAL)})
"""Memory that no other kernel sees."""


def scope_of(instruction: Instruction) -> str:
    """The scope of a strong access or a fence; empty if it has none."""
    words = instruction.modifiers
    if "STRONG" not in words and "MMIO" not in words and instruction.opcode != "MEMBAR":
        return ""
    return next((word for word in words if word in SCOPES), "SYS" if "VC" in words else "")


def addresses(instruction: Instruction) -> tuple[Address, ...]:
    """The memory operands of an instruction."""
    return tuple(one for one in instruction.operands if isinstance(one, Address))


def global_access(context: Context, state: State, instruction: Instruction) -> Iterator[Event]:
    """A load, store, copy or atomic; what is loaded may be a pointer, or a flag."""
    how = READS.get(instruction.opcode) or WRITES[instruction.opcode]
    found = list(_targets(context, state, instruction, how))
    strong, constant = scope_of(instruction), "CONSTANT" in instruction.modifiers
    where = spot(context, state, instruction) if strong else None
    for does, access, number in found:
        bases = access - {FROM_SHARED}
        context.followed |= FROM_SHARED in access
        if bases and bases <= ON_CHIP:
            continue
        if how == "load" and bases == _WINDOW:
            _read_parameter(context, state, instruction, number)
            return
        yield Event(
            does, instruction, state.tokens, state.mask, bases or frozenset({UNKNOWN_BASE}),
            number, strong, constant, how, where=where,
        )  # fmt: skip
    if how in ("copy", "bulk") and found and found[0][0] is Does.READ:
        context.pointers |= {LOADED_BASE}
    if instruction.opcode == "ST":
        _put_shared(context, state, instruction)
    context.forget(state, instruction)
    register = context.split(instruction).register
    if register is not None and found:
        _loaded(context, state, instruction, found[0][1])


def _read_parameter(
    context: Context, state: State, instruction: Instruction, offset: Number
) -> None:
    """A load of the parameters themselves, by their address."""
    context.forget(state, instruction)
    register = context.split(instruction).register
    for at in range(width(instruction)):
        known = isinstance(offset, int) and register is not None
        start = context.layout.start
        value = context.constant(0, start + offset + 4 * at) if known else Value(bases=_UNKNOWN)  # type: ignore[operator]
        context.write(state, register, value, at)


def _targets(
    context: Context, state: State, instruction: Instruction, how: str
) -> Iterator[tuple[Does, Bases, Number]]:
    places = addresses(instruction)
    if instruction.opcode in ("UTMALDG", "UTMASTG", "UTMAREDG"):
        # Behind the place in shared memory, which registers with coordinates follow.
        does = Does.READ if instruction.opcode == "UTMALDG" else Does.WRITE
        yield does, _described(context, state, places[-1]), None
    elif instruction.opcode in ("UBLKCP", "UBLKRED"):
        yield from _bulk(context, state, instruction, places)
    elif how == "copy":
        value = context.address(state, places[-1])
        yield Does.READ, value.bases, value.number
    else:
        value = context.address(state, places[0]) if places else ANY
        if instruction.opcode in READS:
            yield Does.READ, value.bases, value.number
        if instruction.opcode in WRITES or how == "atomic":
            yield Does.WRITE, value.bases, value.number


def _bulk(
    context: Context, state: State, instruction: Instruction, places: tuple[Address, ...]
) -> Iterator[tuple[Does, Bases, Number]]:
    """`UBLKCP.S.G` reads global memory, `UBLKCP.G.S` writes it: destination before source."""
    order = [word for word in instruction.modifiers if word in ("S", "G")]
    does = (Does.WRITE, Does.READ)
    if len(order) != 2 or len(places) < 2:
        yield Does.READ, frozenset({UNKNOWN_BASE}), None
        yield Does.WRITE, frozenset({UNKNOWN_BASE}), None
        return
    for at in range(2):
        if order[at] == "G":
            value = context.address(state, places[at])
            yield does[at], value.bases, value.number


def _described(context: Context, state: State, place: Address) -> Bases:
    """The memory that a TMA descriptor describes, as far as the descriptor's place is known."""
    value = context.address(state, place)
    bases: set[Base] = set()
    for base in value.bases or {UNKNOWN_BASE}:
        if base.space is Space.WINDOW and isinstance(value.number, int):
            bases.add(Base(Space.WINDOW, value.number))
        elif base.space is Space.PARAMETER:
            bases.add(Base(Space.POINTEE, base.offset))
        else:
            bases.add(UNKNOWN_BASE)
    return frozenset(bases)


def pointees(bases: Bases) -> Bases:
    """The memory behind pointers that were read from there."""
    return frozenset(
        Base(Space.POINTEE, one.offset)
        if one.space in (Space.PARAMETER, Space.TABLE)
        else LOADED_BASE
        for one in bases
    )


def _loaded(context: Context, state: State, instruction: Instruction, bases: Bases) -> None:
    words = width(instruction)
    register = context.split(instruction).register
    value = Value(None, None, pointees(bases)) if words > 1 else ANY
    mark = flag_read(context, instruction, bases)
    if mark is not None:
        value = replace_mark(value, mark)
    for at in range(words):
        context.write(state, register, value, at)


def replace_mark(value: Value, mark: FlagRead) -> Value:
    """The same value, read from a flag."""
    return Value(value.number, value.name, NOWHERE, mark)


def flag_read(context: Context, instruction: Instruction, bases: Bases) -> FlagRead | None:
    """What a load says of a flag: it must be strong, and of that flag alone."""
    strong = scope_of(instruction)
    slots = [context.layout.of(base) for base in bases]
    if len(slots) != 1 or slots[0][1] is not Class.FLAG or slots[0][0] is None or not strong:
        return None
    return FlagRead(slots[0][0].offset, instruction.address, acquired=False, strong=strong)


def has_read_flag(state: State) -> bool:
    """Whether threads have read a flag that they have not acquired yet."""
    return any("seen:" in one for one in state.tokens) or any(
        isinstance(one.mark, FlagRead) and not one.mark.acquired for one in state.registers
    )


def acquire(state: State) -> None:
    """`CCTL.IVALL`: flags that were read before are acquired."""
    for at, value in enumerate(state.registers):
        if isinstance(value.mark, FlagRead) and not value.mark.acquired:
            mark = replace(value.mark, acquired=True)
            state.registers[at] = Value(value.number, value.name, value.bases, mark)
    state.tokens = acquired_tokens(state.tokens)


def acquired_tokens(tokens: frozenset[str]) -> frozenset[str]:
    """Tokens after reads can no longer be served from what was cached before."""
    return frozenset(one.replace("seen:", "flag:") for one in tokens)


def shared_access(context: Context, state: State, instruction: Instruction) -> Iterator[Event]:
    """Shared memory: which pointers may lie there is kept for the whole of it."""
    opcode = instruction.opcode
    if opcode in ("STS", "STSM", "ATOMS", "STAS", "REDAS"):
        places = addresses(instruction)
        number = context.address(state, places[0]).number if places else None
        yield Event(
            Does.SHARED_WRITE, instruction, state.tokens, state.mask, address=number,
            how="counted" if opcode in ("STAS", "REDAS") else "store",
        )  # fmt: skip
        _put_shared(context, state, instruction)
    context.forget(state, instruction)
    register = context.split(instruction).register
    if opcode == "LDS" and register is not None and width(instruction) > 1:
        for at in range(width(instruction)):
            context.write(state, register, Value(None, None, context.pointers | {FROM_SHARED}), at)
    elif register is not None and context.distances:
        context.write(state, register, Value(None, None, context.distances))


def _put_shared(context: Context, state: State, instruction: Instruction) -> None:
    """What may be read from shared memory: pointers, and single words calculated from them."""
    for bases in _stored(context, state, instruction):
        context.pointers |= bases
        if is_distance(bases) and (DISTANCE in bases or _stored_words(instruction) == 1):
            context.distances = frozenset({DISTANCE})


def _stored(context: Context, state: State, instruction: Instruction) -> Iterator[Bases]:
    words = _stored_words(instruction)
    for operand in instruction.operands:
        if isinstance(operand, Register):
            for at in range(words if operand.index is not None else 1):
                yield context.register(state, operand, at).bases


def _stored_words(instruction: Instruction) -> int:
    sizes = {"64": 2, "128": 4}
    return max((sizes.get(word, 1) for word in instruction.modifiers), default=1)


def stack_access(context: Context, state: State, instruction: Instruction) -> None:
    """The stack: by offset where that is known, else anything that was put there."""
    place = addresses(instruction)[0] if addresses(instruction) else None
    value = context.address(state, place, wide=False) if place is not None else ANY
    start = value.number if value.bases <= {Base(Space.LOCAL)} else None
    if instruction.opcode == "STL":
        _push(context, state, instruction, start)
        return
    words = width(instruction)
    register = context.split(instruction).register
    for at in range(words):
        context.write(state, register, _popped(context, state, start, at), at)


def _push(context: Context, state: State, instruction: Instruction, start: Number) -> None:
    source = instruction.operands[-1]
    small = any(word in ("U8", "S8", "U16", "S16") for word in instruction.modifiers)
    for at in range(_stored_words(instruction)):
        value = ANY if small else _word(context, state, source, at)
        if isinstance(start, int):
            state.stack[(start + 4 * at) & ~3] = value
        else:
            everyone, count = state.mask, context.threads.count
            old = state.spilled
            state.spilled = value if old is None else join(old, everyone, value, everyone, count)


def _word(context: Context, state: State, operand: Operand, at: int) -> Value:
    if isinstance(operand, Register) and operand.index is not None:
        return context.register(state, operand, at)
    return context.read(state, operand, at) if isinstance(operand, Constant | Register) else ANY


def _popped(context: Context, state: State, start: Number, at: int) -> Value:
    count, everyone = context.threads.count, state.mask
    found = state.stack.get((start + 4 * at) & ~3) if isinstance(start, int) else None
    if found is not None:
        elsewhere = [] if state.spilled is None else [state.spilled]
        return any_of([found, *elsewhere], everyone, count)
    some = [one for one in (state.spilled, state.dropped) if one is not None]
    # An index that is not known stays within what was put on the stack.
    everything = some if isinstance(start, int) else [*some, *state.stack.values()]
    value = any_of(everything, everyone, count) if everything else ANY
    return Value(None, None, value.bases | {ONE_OF} if len(value.bases) > 1 else value.bases)
