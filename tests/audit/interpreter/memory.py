# SPDX-License-Identifier: Apache-2.0
"""Global memory as a contract describes it, and who has seen what of it.

Every pointer gets a stretch of addresses of its own. Dynamic memory holds poison until the kernel
before is done; a mailbox holds poison for a thread that is not behind an acquire of its flag.
"""

from dataclasses import dataclass, replace

from fasttrack.audit.contract import Class, Contract, Member, Parameter
from fasttrack.audit.program import Kernel

STRETCH = 1 << 40
"""Bytes between two pointers; none of the kernels here goes so far."""
DESCRIPTORS = 1 << 52
"""Where parameters lie for those who read them as memory."""
POISON = 0x7FC0DEAD
ONE = 0x3F800000
COUNT = 3
"""A length, an index, a number of iterations."""
MUTABLE = (Class.DYNAMIC, Class.METADATA)


@dataclass(frozen=True)
class Stretch:
    """What lies at some addresses.

    Attributes:
        name: of the parameter or member.
        holds: its class.
        base: its first address.
        entry: of a table of pointers, what each entry points to.
        after: of a mailbox, its flag.
        sentinel: whether a mailbox says itself what is there.
        scope: of a flag, how far it must be seen.
    """

    name: str
    holds: Class
    base: int
    entry: "Stretch | None" = None
    after: str | None = None
    sentinel: bool = False
    scope: str = "sys"


@dataclass(frozen=True)
class Event:
    """Something out of order: what, at which instruction, and of which parameter.

    `kind` is `stale` for a read before its data, `cached` for a read that may be served from a
    cache that is not coherent, `early` for a write before the wait, `late` for an access that need
    not be over when a thread of the block triggers, `unread` for a thread that ends before its bulk
    store has read its source, `left` for a block that ended without a wait, `unsent` for a flag
    that is set before what it stands for is there for others, `unfenced` for a copy engine that
    reads what threads wrote, or were told of, without a fence for it.
    """

    kind: str
    address: int
    name: str


class Memory:
    """Addresses and constants of one launch."""

    def __init__(self, kernel: Kernel, contract: Contract, scalar: int) -> None:
        self.scalar = scalar & 0xFFFFFFFF
        self.stretches: dict[int, Stretch] = {}
        self.descriptors: dict[int, Stretch] = {}
        self.constants: dict[int, int] = {}
        self._next = 1
        for place, parameter in zip(kernel.parameters, contract.parameters, strict=True):
            self._parameter(kernel.bank_offset + place.offset, place.offset, parameter, place.size)

    def _parameter(self, bank: int, offset: int, parameter: Parameter, size: int) -> None:
        if parameter.descriptor:
            self.descriptors[DESCRIPTORS + offset] = self._stretch(parameter)
        elif parameter.holds == "struct":
            for member in parameter.fields:
                self._value(bank + member.offset, member, member.size)
        else:
            self._value(bank, parameter, size)

    def _value(self, bank: int, named: Parameter | Member, size: int) -> None:
        if named.holds is Class.SCALAR:
            self.constants[bank] = self.scalar
            return
        for at in range(bank, bank + size, 8):
            base = self._stretch(named).base
            self.constants[at], self.constants[at + 4] = base & 0xFFFFFFFF, base >> 32

    def _stretch(self, named: Parameter | Member) -> Stretch:
        entry = None
        if named.pointees is not None:
            entry = self._add(Stretch(f"*{named.name}", named.pointees, 0))
        holds = Class(named.holds)
        return self._add(
            Stretch(named.name, holds, 0, entry, named.after, named.sentinel, named.scope)
        )

    def _add(self, one: Stretch) -> Stretch:
        base = self._next * STRETCH
        self._next += 1
        placed = replace(one, base=base)
        self.stretches[self._next - 1] = placed
        return placed

    def at(self, address: int) -> Stretch | None:
        """What lies there; a little before the start still belongs to it."""
        found = self.stretches.get((address + STRETCH // 2) // STRETCH)
        return found if found is not None and abs(address - found.base) < STRETCH // 4 else None

    def value(self, stretch: Stretch, address: int, *, valid: bool) -> int:
        """32 bits that lie there now; poison where they are not valid."""
        if stretch.entry is not None:
            if not valid:
                return 0
            base = stretch.entry.base
            return base >> 32 if address & 4 else base & 0xFFFFFFFF
        if stretch.holds is Class.FLAG:
            return self.scalar
        if stretch.holds is Class.METADATA:
            return COUNT if valid else 1
        return ONE if valid else POISON
