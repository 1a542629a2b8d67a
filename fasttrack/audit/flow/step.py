# SPDX-License-Identifier: Apache-2.0
"""What one instruction does to a state: the table from opcodes to what is known of them."""

from collections.abc import Callable, Iterator, Mapping

from fasttrack.audit.flow import memory
from fasttrack.audit.flow.arithmetic import HANDLERS, handler
from fasttrack.audit.flow.events import Does, Event
from fasttrack.audit.flow.opcodes import FLOATS, INTEGERS, KNOWN, ON_CHIP, READS, WRITES
from fasttrack.audit.flow.operands import Context
from fasttrack.audit.flow.state import PDL, PREDICATE, TRIGGER, State, slot_of
from fasttrack.audit.flow.values import DISTANCE, UNKNOWN_BASE, Passed, Value, is_distance
from fasttrack.audit.program import Immediate, Instruction, Register, Special

_CONSTANT_LOADS = ("LDC", "LDCU", "ULDC")
_BULK_STORES = frozenset({"UTMASTG", "UTMAREDG", "UBLKRED"})
_PUTS = frozenset({"LDL", "STL"})
_HINTS = frozenset("E C LDCU DEEP PF1 PF2 PML2 DML2 IV IVALL".split())  # noqa: SIM905
"""Forms of `CCTL` that change no data."""
TOLD_APART = frozenset(HANDLERS) | {f"U{one}" for one in HANDLERS}
TOLD_APART |= {*_CONSTANT_LOADS, *_PUTS, "ACQBULK", "PREEXIT", "CCTL", "SYNCS"}
"""Instructions on which addresses, conditions or tokens depend."""


def step(context: Context, state: State, instruction: Instruction) -> Iterator[Event]:
    """Runs an instruction for all threads of the state; its guard is true for them."""
    opcode = instruction.opcode
    if opcode in INTEGERS:
        handler(opcode)(context, state, instruction)
    elif opcode in _CONSTANT_LOADS:
        _load_constant(context, state, instruction)
    elif opcode in _PUTS:
        memory.stack_access(context, state, instruction)
    elif opcode in _EVENTFUL:
        yield from _EVENTFUL[opcode](context, state, instruction)
    elif opcode in FLOATS:
        _float(context, state, instruction)
    elif opcode not in KNOWN:
        context.forget(state, instruction)


def _float(context: Context, state: State, instruction: Instruction) -> None:
    """Arithmetic of floats: nothing is known of it but whether pointers were calculated with."""
    far = any(is_distance(value.bases) for value in _words_read(context, state, instruction))
    context.forget(state, instruction)
    if far:
        for slot in context.written(instruction):
            state.registers[slot] = Value(bases=frozenset({DISTANCE}))


def _words_read(context: Context, state: State, instruction: Instruction) -> Iterator[Value]:
    """The registers that are read, and of pairs the second."""
    for operand in context.split(instruction).sources:
        slot = slot_of(operand) if isinstance(operand, Register) else None
        if slot is not None and slot < PREDICATE:
            yield state.registers[slot]
            yield state.registers[slot + 1]


def _event(does: Does, state: State, instruction: Instruction, strong: str = "") -> Event:
    return Event(does, instruction, state.tokens, state.mask, strong=strong)


def _global(context: Context, state: State, instruction: Instruction) -> Iterator[Event]:
    yield from memory.global_access(context, state, instruction)
    yield from _bulk_source(context, state, instruction)
    yield from _counted(context, state, instruction)


def _on_chip(context: Context, state: State, instruction: Instruction) -> Iterator[Event]:
    yield from memory.shared_access(context, state, instruction)
    if instruction.opcode == "UTCBAR":  # arrives once the tensor cores are done: anywhere
        yield _event(Does.ARRIVE, state, instruction)


def _bulk_source(context: Context, state: State, instruction: Instruction) -> Iterator[Event]:
    words = [word for word in instruction.modifiers if word in ("S", "G")]
    places = memory.addresses(instruction)
    number = None
    if words == ["G", "S"] and len(places) > 1:  # destination before source
        number = context.address(state, places[1], wide=False).number
    elif places and places[0].uniform is not None:  # source before its descriptor
        number = context.register(state, places[0].uniform, 0).number
    if instruction.opcode in _BULK_STORES or words == ["G", "S"]:
        yield Event(Does.BULK_SOURCE, instruction, state.tokens, state.mask, address=number)


def _counted(context: Context, state: State, instruction: Instruction) -> Iterator[Event]:
    """A copy into shared memory: its mbarrier is in the register behind that of its destination."""
    places = memory.addresses(instruction)
    if instruction.opcode not in ("UTMALDG", "UBLKCP") or not places or places[0].uniform is None:
        return
    number = context.register(state, places[0].uniform, 1).number
    yield Event(Does.COPY, instruction, state.tokens, state.mask, address=number)


def _load_constant(context: Context, state: State, instruction: Instruction) -> None:
    parts = context.split(instruction)
    words = {"64": 2, "128": 4}.get(instruction.modifiers[-1] if instruction.modifiers else "", 1)
    values = [context.read(state, parts.sources[0], at) for at in range(words)]
    context.forget(state, instruction)
    if any(word in ("U8", "S8", "U16", "S16") for word in instruction.modifiers):
        values = [Value(None, context.names.combine(instruction.text.split(",")[-1], values[:1]))]  # type: ignore[arg-type]
    for at, value in enumerate(values):
        context.write(state, parts.register, value, at)


def _mbarrier(context: Context, state: State, instruction: Instruction) -> Iterator[Event]:
    parts = context.split(instruction)
    places = memory.addresses(instruction)
    number = context.address(state, places[0], wide=False).number if places else None
    words = instruction.modifiers
    if "ARRIVE" in words or instruction.opcode == "ARRIVES":
        how = "" if "A1T0" in words or instruction.opcode == "ARRIVES" else "bytes"
        yield Event(Does.ARRIVE, instruction, state.tokens, state.mask, address=number, how=how)
    if "PHASECHK" not in words:
        context.forget(state, instruction)
        return
    yield Event(
        Does.MEET, instruction, state.tokens, state.mask, address=number, how=instruction.opcode
    )
    source = instruction.operands[-1]
    parity = context.read(state, source).number if isinstance(source, Register) else None
    context.forget(state, instruction)
    mark = Passed(number, parity if isinstance(parity, int) else None, instruction.address)
    for predicate in parts.predicates[:1]:
        context.write(state, predicate, Value(mark=mark))


def _wait(_: Context, state: State, instruction: Instruction) -> Iterator[Event]:
    yield _event(Does.WAIT, state, instruction)
    state.tokens = waited(state.tokens)


def waited(tokens: frozenset[str]) -> frozenset[str]:
    """Tokens after `ACQBULK`."""
    return tokens | {PDL}


def _trigger(_: Context, state: State, instruction: Instruction) -> Iterator[Event]:
    yield _event(Does.TRIGGER, state, instruction)
    state.tokens = triggered(state.tokens)


def triggered(tokens: frozenset[str]) -> frozenset[str]:
    """Tokens after `PREEXIT`."""
    return tokens | {TRIGGER}


def _fence(_: Context, state: State, instruction: Instruction) -> Iterator[Event]:
    yield _event(Does.FENCE, state, instruction, memory.scope_of(instruction))


def _cache(context: Context, state: State, instruction: Instruction) -> Iterator[Event]:
    if not set(instruction.modifiers) <= _HINTS:
        yield from discarded(context, state, instruction)
    if "IVALL" in instruction.modifiers:
        how = "flag" if memory.has_read_flag(state) else ""
        yield Event(Does.ACQUIRE, instruction, state.tokens, state.mask, how=how)
        memory.acquire(state)


def _commit(_: Context, state: State, instruction: Instruction) -> Iterator[Event]:
    yield _event(Does.COMMIT, state, instruction)


def _groups(_: Context, state: State, instruction: Instruction) -> Iterator[Event]:
    """`DEPBAR.LE SB0, 0x1`: bulk stores are counted by the first of the scoreboards."""
    operands = instruction.operands
    if operands[:1] == (Special("SB0"),) and isinstance(operands[-1], Immediate):
        newest = operands[-1].value
        yield Event(Does.GROUPS, instruction, state.tokens, state.mask, address=newest)


def discarded(context: Context, state: State, instruction: Instruction) -> Iterator[Event]:
    """`CCTL.E.RML2`: data is thrown away, so that anything may be read there."""
    for place in memory.addresses(instruction):
        value = context.address(state, place)
        bases = value.bases or frozenset({UNKNOWN_BASE})
        if not bases <= memory.ON_CHIP:
            yield Event(
                Does.WRITE, instruction, state.tokens, state.mask, bases, value.number, how="store"
            )


def _view(_: Context, state: State, instruction: Instruction) -> Iterator[Event]:
    if "ASYNC" in instruction.modifiers:
        reach = next((word for word in instruction.modifiers if word in ("S", "G")), "")
        yield _event(Does.ASYNC_FENCE, state, instruction, reach)


_EVENTFUL: Mapping[str, Callable[[Context, State, Instruction], Iterator[Event]]] = {
    **dict.fromkeys((*READS, *WRITES), _global),
    **dict.fromkeys(ON_CHIP - {*_CONSTANT_LOADS, *_PUTS}, _on_chip),
    "SYNCS": _mbarrier,
    "ARRIVES": _mbarrier,
    "ACQBULK": _wait,
    "PREEXIT": _trigger,
    "MEMBAR": _fence,
    "CCTL": _cache,
    "FENCE": _view,
    "UTMACMDFLUSH": _commit,
    "DEPBAR": _groups,
}
