# SPDX-License-Identifier: Apache-2.0
"""Which places of the code threads of a block may be at when they meet at a barrier.

At the same place, if all branches on the way were taken alike. A register is alike in threads if it
was calculated from what is the same for the whole block, by the same instructions. Where ways of
threads that have parted come together again, what was written on these ways is not alike; and of a
barrier on such a way nothing is said here: threads may be there in different rounds of a loop.
"""

from collections.abc import Callable, Container, Iterator
from dataclasses import dataclass, field, replace
from itertools import combinations

from fasttrack.audit.flow.blocks import BRANCHES, INDIRECT, Blocks
from fasttrack.audit.flow.divide import conditions_of
from fasttrack.audit.flow.indices import STABLE
from fasttrack.audit.flow.meetings import Instances
from fasttrack.audit.flow.opcodes import FLOATS, INTEGERS
from fasttrack.audit.flow.operands import Context
from fasttrack.audit.flow.state import SLOTS, slot_of
from fasttrack.audit.flow.terms import OF_OTHERS
from fasttrack.audit.flow.threads import members, union
from fasttrack.audit.program import Address, Constant, Instruction, Operand, Register, Special

_CONSTANTS = frozenset({"LDC", "LDCU", "ULDC"})
_SPECIAL = frozenset({"S2R", "S2UR", "CS2R"})
_VOTES = frozenset({"VOTE", "VOTEU"})
_OWN = OF_OTHERS | frozenset({"ELECT", "SHFL", "CSMTEST"})
_CALCULATED = (FLOATS | INTEGERS | _CONSTANTS) - _OWN - _SPECIAL
_PAIRS = frozenset({"64", "WIDE", "128", "U64", "S64", "F64"})
_OF_WARPS = frozenset({"ANY", "DIV", "CONV"})
_NEVER = 1 << SLOTS
"""As if it were a register that is never alike."""


@dataclass(frozen=True)
class Alike:
    """Where threads may be at the same time.

    Attributes:
        apart: runs on ways of threads that have parted and come together again.
        roles: runs on each way of threads that have parted for good.
    """

    apart: frozenset[int] = frozenset()
    roles: tuple[tuple[frozenset[int], ...], ...] = ()

    def in_step(self, found: Instances) -> Instances:
        """Points of a barrier, without those that no two threads can be at the same time.

        Threads that meet there are at the same place of the code, but for those of two roles.
        """
        if any(
            key[0] in self.apart
            for key, tokens in zip(found.points, found.tokens, strict=True)
            if tokens is not None
        ):
            return found
        beside = [
            union(1 << two for two in members(mask) if self._may_meet(found, one, two))
            for one, mask in enumerate(found.beside)
        ]
        return replace(found, beside=beside)

    def _may_meet(self, found: Instances, one: int, two: int) -> bool:
        if None in (found.tokens[one], found.tokens[two]):
            return True  # one has ended
        here, there = found.points[one][0], found.points[two][0]
        return here == there or any(
            (here in first and there in second) or (here in second and there in first)
            for ways in self.roles
            for first, second in combinations(ways, 2)
        )


@dataclass
class Search:
    """Finds registers that need not be alike, from the front, until nothing changes.

    Attributes:
        blocks: the runs.
        context: operands of instructions.
        steady: addresses of loads of which the same place gives the same number to all threads.
        apart: whether threads that run an instruction are told from those that do not.
    """

    blocks: Blocks
    context: Context
    steady: Container[int]
    apart: Callable[[Instruction], bool]
    into: dict[int, int] = field(default_factory=dict)
    split: set[int] = field(default_factory=set)
    """Runs that threads leave by different ways."""
    joined: dict[int, int] = field(default_factory=dict)

    def alike(self) -> Alike:
        """Where threads may be at the same time; anywhere, if functions are called."""
        order = self.blocks.order
        if any(one.opcode in ("CALL", "RET") for run in order for one in self.blocks.runs[run]):
            return Alike(frozenset(order))
        self.into = dict.fromkeys(order, 0)
        changed = True
        while changed:
            changed = sum(self._go(start) for start in order) > 0
        apart = set().union(*(self._between(start) for start in self.split))
        around = {start for start in self.split if len(self.blocks.next[start]) < 2}
        roles = (tuple(map(frozenset, self._ways(start))) for start in sorted(self.split))
        return Alike(frozenset(apart | around), tuple(roles))

    def _go(self, start: int) -> bool:
        """Carries registers through a run; whether that changed anything."""
        varying = self.into[start] | self.joined.get(start, 0) | _NEVER
        changed = False
        for one in self.blocks.runs[start]:
            if start not in self.split and self._parts(one, varying):
                self.split.add(start)
                self._join(start)
                changed = True
            varying = self._after(one, varying)
        for to in self.blocks.next[start]:
            if to in self.into and varying & ~self.into[to]:
                self.into[to] |= varying
                changed = True
        return changed

    def _parts(self, one: Instruction, varying: int) -> bool:
        """Whether threads may part at an instruction."""
        if one.opcode in INDIRECT or (one.opcode in BRANCHES and _OF_WARPS & set(one.modifiers)):
            return True
        last = self.blocks.runs[self.blocks.of(one.address)][-1]
        conditions = conditions_of(one) if one is last or self.apart(one) else ()
        return any(varying & _bit(slot_of(condition)) for condition in conditions)

    def _after(self, one: Instruction, varying: int) -> int:
        """Registers that need not be alike after an instruction."""
        written = union(_bit(slot) for slot in self.context.written(one))
        guard = _bit(slot_of(one.guard)) if one.guard is not None else 0
        if varying & (self._read(one) | guard):
            return varying | written
        return varying if one.guard is not None else varying & ~written

    def _read(self, one: Instruction) -> int:
        """Registers that the result depends on; all of them where it depends on more."""
        parts = self.context.split(one)
        if one.opcode in _SPECIAL:
            words = [part.text for part in parts.sources if isinstance(part, Special)]
            return 0 if all(word.startswith(STABLE) for word in words) else _NEVER
        load = one.address in self.steady
        vote = one.opcode in _VOTES and parts.register is None
        known = (one.opcode in _CALCULATED and one.opcode not in _VOTES) or load or vote
        if not known or one.opcode.endswith("MMA"):
            return _NEVER
        wide = bool(_PAIRS & set(one.modifiers)) or one.opcode.startswith("D") or load
        return union(_bits(part, wide) for part in parts.sources)

    def _join(self, start: int) -> None:
        """Where threads that part there come together, what they wrote meanwhile differs."""
        written = self._written(start)
        for first, second in combinations(self._ways(start), 2):
            for run in first & second:
                self.joined[run] = self.joined.get(run, 0) | written

    def _written(self, start: int) -> int:
        """Registers that are written on ways that part there and come together.

        One that gets the same number of the launch each time, just before they part, is none.
        """
        by: dict[int, set[Instruction]] = {}
        for run in self._between(start):
            for one in self.blocks.runs[run]:
                for slot in self.context.written(one):
                    by.setdefault(slot, set()).add(one)
        return union(
            _bit(slot)
            for slot, those in by.items()
            if len(those) > 1 or not all(self._is_fixed(one, start) for one in those)
        )

    def _is_fixed(self, one: Instruction, start: int) -> bool:
        """Whether an instruction of a run gives the same whenever it is run."""
        here = self.blocks.of(one.address) == start
        return here and one.guard is None and not self._read(one)

    def _between(self, start: int) -> set[int]:
        """The runs on ways that part there and come together, up to where all of them do."""
        found = set[int]()
        for first, second in combinations(self._ways(start), 2):
            if first & second:
                found |= first | second
        return found - {self.blocks.rejoins.get(start)}

    def _ways(self, start: int) -> list[set[int]]:
        """Of each way out of a run, the runs on it up to where all ways meet."""
        meeting = self.blocks.rejoins.get(start)
        found = []
        for to in self.blocks.next[start]:
            way, waiting = set[int](), [to]
            while waiting:
                one = waiting.pop()
                if one not in way:
                    way.add(one)
                    waiting.extend(self.blocks.next[one] if one != meeting else ())
            found.append(way)
        return found


def _bit(slot: int | None) -> int:
    return 1 << slot if slot is not None else 0


def _bits(operand: Operand, wide: bool) -> int:
    return union(_bit(slot) for slot in _slots(operand, wide))


def _slots(operand: Operand, wide: bool) -> Iterator[int]:
    """Registers that an operand reads; the one that is never alike for what can not be told."""
    if isinstance(operand, Register):
        slot = slot_of(operand)
        if slot is not None:
            yield from (slot, slot + 1) if wide or operand.wide else (slot,)
    elif isinstance(operand, Address):
        for part in (operand.base, operand.uniform):
            if part is not None:
                yield from _slots(part, wide)
    elif isinstance(operand, Constant):
        if operand.bank is None:
            yield SLOTS
        if operand.index is not None:
            yield from _slots(operand.index, wide)
    elif isinstance(operand, Special):
        yield SLOTS
