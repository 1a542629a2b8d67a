# SPDX-License-Identifier: Apache-2.0
"""Operands of an instruction: which are written, and what those that are read hold."""

from dataclasses import dataclass, field, replace

from fasttrack.audit.contract import Class
from fasttrack.audit.flow.layout import POINTER, Layout
from fasttrack.audit.flow.names import Names
from fasttrack.audit.flow.numbers import lift
from fasttrack.audit.flow.opcodes import width
from fasttrack.audit.flow.state import PREDICATE, SLOTS, State, fixed, slot_of
from fasttrack.audit.flow.threads import WORD, Lanes, Number, Threads
from fasttrack.audit.flow.values import (
    ANY,
    LOADED_BASE,
    NOWHERE,
    ONE_OF,
    Base,
    FlagRead,
    Space,
    Value,
    any_of,
    options,
    sum_bases,
)
from fasttrack.audit.program import (
    Address,
    Constant,
    File,
    Immediate,
    Instruction,
    Operand,
    Register,
)

_PREDICATES = (File.PREDICATE, File.UNIFORM_PREDICATE)
_NO_DESTINATION = frozenset(
    """
    ARRIVES BAR BRA BREAK BRX BRXU BSSY BSYNC CALL CCTL DEPBAR EXIT FENCE JMP JMX KILL LDGSTS MEMBAR
    NANOSLEEP RED REDAS REDG RET ST STAS STG STL STS STSM STT STTM UBLKCP UBLKPF UBLKRED UTCBAR
    UTCCP UTCHMMA UTCIMMA UTCOMMA UTCQMMA UTCSHIFT UTMACCTL UTMALDG UTMAPF UTMAREDG UTMASTG WARPSYNC
    """.split()  # noqa: SIM905 - one word to a name
)
_ONE_PREDICATE = frozenset({"VOTE", "VOTEU", "ELECT", "SHFL", "SYNCS", "MATCH", "ATOMG", "ATOM"})
_NO_PREDICATE = frozenset({"SEL", "USEL", "FSEL", "UFSEL", "P2R", "UP2UR", "FMNMX", "SHFL"})
_ONLY_PREDICATES = frozenset(
    {"DSETP", "FCHK", "FSETP", "HSETP2", "ISETP", "PLOP3", "PSETP", "R2P"}
    | {"UFSETP", "UISETP", "UPLOP3", "UPSETP", "UR2UP"}
)


@dataclass(frozen=True, slots=True)
class Split:
    """Operands of an instruction.

    Attributes:
        register: the first register that it writes, if there is one.
        predicates: predicates that it writes.
        sources: everything else, in order.
    """

    register: Register | None
    predicates: tuple[Register, ...]
    sources: tuple[Operand, ...]


def is_predicate(operand: Operand) -> bool:
    """Whether it is a predicate register."""
    return isinstance(operand, Register) and operand.file in _PREDICATES


def split(instruction: Instruction) -> Split:
    """Tells destinations from sources: predicates first or right after the register."""
    operands = instruction.operands
    if instruction.opcode in _NO_DESTINATION:
        return Split(None, (), operands)
    at, predicates = 0, []
    most = 1 if instruction.opcode in _ONE_PREDICATE else 2
    while at < len(operands) and is_predicate(operands[at]) and at < most:
        predicates.append(operands[at])
        at += 1
    register = None
    if at < len(operands) and _may_be_written(operands[at], instruction):
        register = operands[at]
        at += 1
        while at < len(operands) and is_predicate(operands[at]) and not operands[at].negated:  # type: ignore[union-attr]
            if len(predicates) == most or instruction.opcode in _NO_PREDICATE:
                break
            predicates.append(operands[at])
            at += 1
    return Split(register, tuple(predicates), operands[at:])  # type: ignore[arg-type]


def _may_be_written(operand: Operand, instruction: Instruction) -> bool:
    if not isinstance(operand, Register) or operand.file not in (File.R, File.UNIFORM):
        return False
    return instruction.opcode not in _ONLY_PREDICATES


@dataclass
class Context:
    """What is the same for all states of one kernel.

    Attributes:
        layout: the parameters.
        threads: those that are looked at together.
        names: names of expressions.
        clustered: whether blocks come in clusters.
        pointers: memory that pointers in shared memory may point to; found while looking.
        followed: whether such a pointer may have been read.
        distances: `DISTANCE`, if a word calculated from pointers may lie in shared memory.
        unwrapped: no index is taken to be too large for its word.
        carried: whether it matters if one is; found while looking.
    """

    layout: Layout
    threads: Threads
    clustered: bool
    names: Names = field(default_factory=Names)
    pointers: frozenset[Base] = frozenset()
    followed: bool = False
    distances: frozenset[Base] = frozenset()
    unwrapped: bool = False
    carried: bool = False
    constants: dict[int, Value] = field(default_factory=dict)
    splits: dict[int, Split] = field(default_factory=dict)
    slots: dict[int, tuple[int, ...]] = field(default_factory=dict)

    def split(self, instruction: Instruction) -> Split:
        """The operands of an instruction, worked out once."""
        found = self.splits.get(instruction.address)
        if found is None:
            found = self.splits[instruction.address] = split(instruction)
        return found

    def constant(self, bank: int | None, offset: int) -> Value:
        """A word of a constant bank."""
        if bank != 0:
            named = self.names.of(("bank", bank, offset), uniform=True) if bank else None
            return Value(None, named, frozenset() if bank == 2 else frozenset({LOADED_BASE}))
        found = self.constants.get(offset)
        if found is None:
            found = self.constants[offset] = self._word(offset)
        return found

    def _word(self, offset: int) -> Value:
        driver, size = self.layout.driver, self.threads.block
        if driver is not None:
            for at in range(3):
                if offset == driver.block + 4 * at:
                    return Value(size[at])
            if offset in (driver.window, driver.window + 4):
                low = offset == driver.window
                return Value(0, None, frozenset({Base(Space.WINDOW)}) if low else frozenset())
            if offset == driver.stack:
                return Value(0, None, frozenset({Base(Space.LOCAL)}))
            if offset == driver.clustered:
                return Value(int(self.clustered))
        name = self.names.of(("bank", 0, offset), uniform=True)
        at = offset - self.layout.start
        slot = self.layout.slot(at)
        if at < 0 or (slot is not None and is_number(slot.holds, slot.size)):
            return Value(None, name)
        return Value(None, name, frozenset({Base(Space.PARAMETER, at & -POINTER)}))

    def read(self, state: State, operand: Operand, high: int = 0, raw: bool = False) -> Value:
        """What an operand holds; `high` counts words above the first, `raw` leaves out the sign."""
        if isinstance(operand, Register):
            value = self.register(state, operand, high)
            return value if raw else self.with_sign(value, operand)
        if isinstance(operand, Immediate):
            return Value(operand.value & WORD if not high else 0)
        if isinstance(operand, Constant):
            if operand.index is None:
                value = self.constant(operand.bank, operand.offset + 4 * high)
            else:
                value = self._indexed(state, operand, operand.index, high)
            return value if not operand.negated or raw else self.negative(value)
        return ANY

    def _indexed(self, state: State, operand: Constant, register: Register, high: int) -> Value:
        """A word of a bank at an index."""
        index = self.register(state, register, 0)
        offset = operand.offset + 4 * high
        some = options(index, state.mask)
        if some:
            words = [self.constant(operand.bank, (one + offset) & WORD) for one in some]
            return any_of(words, state.mask, self.threads.count)
        if operand.bank != 0:
            return self.constant(operand.bank, offset) if operand.bank != 2 else ANY
        name = self.names.combine(f"bank 0 {offset}", (index,))
        return Value(None, name, self._somewhere(offset - self.layout.start))

    def _somewhere(self, at: int) -> frozenset[Base]:
        """The memory behind a word from that offset on, at an index that is not known.

        The index of an array stays in the array. Where there is none, the index picks one of
        several parameters.
        """
        slot = self.layout.slot(at)
        if slot is None or slot.size > POINTER:
            number = slot is not None and is_number(slot.holds, slot.size)
            return NOWHERE if number else frozenset({Base(Space.TABLE, at & -POINTER)})
        bases = {
            Base(Space.PARAMETER if one.size <= POINTER else Space.TABLE, one.offset & -POINTER)
            for one in self.layout.slots
            if not is_number(one.holds, one.size)
        }
        return frozenset(bases | {ONE_OF})

    def register(self, state: State, register: Register, high: int) -> Value:
        """What a register holds, as it is."""
        slot = slot_of(register)
        if slot is None:
            return fixed(register)
        value = state.registers[slot + high]
        return value.of(state.mask) if value.parts else value

    def with_sign(self, value: Value, register: Register) -> Value:
        """The value as the instruction sees it."""
        if register.absolute:
            return Value(None, self.names.combine("absolute", (value,)), value.bases)
        if not register.negated:
            return value
        if register.file in _PREDICATES:
            mark = opposite_mark(value.mark) if isinstance(value.mark, FlagRead) else None
            number = lift(lambda one: one ^ 1, (value.number,))
            return Value(number, self.names.opposite(value.name), mark=mark)
        return self.negative(value)

    def negative(self, value: Value) -> Value:
        """`-value`."""
        number = None if value.bases else lift(lambda one: -one, (value.number,))
        return Value(number, self.names.combine("-", (value,)), value.bases)

    def write(self, state: State, register: Register | None, value: Value, high: int = 0) -> None:
        """Puts a value into a register."""
        slot = slot_of(register) if register is not None else None
        if slot is not None:
            state.registers[slot + high] = value

    def forget(self, state: State, instruction: Instruction) -> None:
        """Says of everything that an instruction may write that it may be anything."""
        registers = state.registers
        for slot in self.written(instruction):
            registers[slot] = ANY

    def written(self, instruction: Instruction) -> tuple[int, ...]:
        """Slots of all registers that an instruction may write, worked out once."""
        found = self.slots.get(instruction.address)
        if found is None:
            parts = self.split(instruction)
            some = [slot_of(one) for one in parts.predicates]
            first = slot_of(parts.register) if parts.register is not None else None
            if first is not None:
                some.extend(first + at for at in range(width(instruction)))
            if instruction.opcode in ("R2P", "UR2UP"):
                some.extend(range(PREDICATE, SLOTS))
            found = tuple(slot for slot in some if slot is not None and slot < SLOTS)
            self.slots[instruction.address] = found
        return found

    def address(self, state: State, operand: Address, wide: bool = True) -> Value:
        """An address: its memory, and its number where there is one."""
        parts = [one for one in (operand.base, operand.uniform) if one is not None]
        low = [self.register(state, one, 0) for one in parts]
        high = [self.register(state, one, 1) for one in parts if wide and _is_wide(one, operand)]
        bases = sum_bases((*low, *high))
        number = lift(lambda *words: sum(words), (operand.offset & WORD, *(v.number for v in low)))
        return Value(number, None, bases)


def spot(context: Context, state: State, instruction: Instruction) -> tuple[int, int] | None:
    """What an address is called, with its distance, if that is one place for all of a block."""
    places = [one for one in instruction.operands if isinstance(one, Address)]
    if not places:
        return None
    parts = (places[0].base, places[0].uniform)
    words = tuple(context.register(state, one, 0) for one in parts if one is not None)
    name = context.names.combine("at", words)
    if name is None or not (context.names.uniform[name] or state.mask.bit_count() == 1):
        return None
    return name, places[0].offset


def opposite_mark(mark: FlagRead) -> FlagRead:
    """What the opposite of a predicate says of a flag."""
    return mark if mark.when is None else replace(mark, when=1 - mark.when)


def is_number(holds: Class | None, size: int) -> bool:
    """Whether a parameter is no pointer."""
    return holds is Class.SCALAR or (holds is None and size < POINTER)


def _is_wide(register: Register, operand: Address) -> bool:
    return register.wide or (register.file is File.UNIFORM and operand.base is None)


def bare(value: Value) -> Number:
    """The number of a value that is no address."""
    return None if value.bases else value.number


def as_lanes(number: Number) -> Lanes | None:
    """The number, if it differs between threads."""
    return number if isinstance(number, Lanes) else None
