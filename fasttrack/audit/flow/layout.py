# SPDX-License-Identifier: Apache-2.0
"""What lies where in constant bank 0: the launch's numbers, and parameters by the contract."""

from dataclasses import dataclass

from fasttrack.audit.contract import Announced, Array, Class, Contract
from fasttrack.audit.flow.values import Base, Space
from fasttrack.audit.program import Kernel

POINTER = 8
"""Bytes of a pointer."""


@dataclass(frozen=True, slots=True)
class Slot:
    """A pointer, number or descriptor among the parameters.

    Attributes:
        name: of the parameter, or `parameter.member`.
        offset: from the start of the parameters, in bytes.
        size: in bytes.
        holds: what it points to; None where no contract says.
        pointees: what pointers point to that lie behind it.
        after: the flag that must be acquired first.
        scope: who must see a flag in order.
        sentinel: a mailbox of which the values themselves say whether they are there.
        rounds: after how many waits or acquires it is read anew.
        descriptor: it is a TMA descriptor.
        array: of flags, which of them threads go by; None where there is one.
        announces: names of what a flag announces; None for all that the kernel stores.
    """

    name: str
    offset: int
    size: int
    holds: Class | None
    pointees: Class | None = None
    after: str | None = None
    scope: str = "sys"
    sentinel: bool = False
    rounds: int = 1
    descriptor: bool = False
    array: Array | None = None
    announces: tuple[str, ...] | None = None

    def is_called(self, name: str) -> bool:
        """Whether a contract means this slot by a name: its own, or that of the member."""
        return name in (self.name, self.name.rsplit(".", 1)[-1])


@dataclass(frozen=True, slots=True)
class Driver:
    """Where the driver puts the launch's numbers in bank 0: not documented, seen in machine code.

    Attributes:
        block: size of the block; three words.
        window: address of the parameters.
        stack: top of the stack.
        clustered: a word that is 1 if the launch has clusters.
    """

    block: int
    window: int
    stack: int
    clustered: int


DRIVERS = {
    0x210: Driver(block=0x0, window=0x198, stack=0x28, clustered=0x140),
    0x380: Driver(block=0x360, window=0x348, stack=0x37C, clustered=0x36C),
}
"""By where parameters begin: Hopper, then Blackwell."""


@dataclass(frozen=True)
class Layout:
    """All slots of a kernel's parameters, and where they begin."""

    start: int
    slots: tuple[Slot, ...]
    driver: Driver | None

    def slot(self, offset: int) -> Slot | None:
        """The slot that holds the byte at that offset."""
        for slot in self.slots:
            if slot.offset <= offset < slot.offset + slot.size:
                return slot
        return None

    def named(self, name: str) -> Slot | None:
        """The slot of that name, or of that member's name."""
        for slot in self.slots:
            if slot.is_called(name):
                return slot
        return None

    def of(self, base: Base) -> tuple[Slot | None, Class | None]:
        """The slot that an address comes from, and what is known of the memory there."""
        if base.space in (Space.PARAMETER, Space.TABLE, Space.WINDOW):
            slot = self.slot(base.offset)
            return slot, slot.holds if slot else None
        if base.space is Space.POINTEE:
            slot = self.slot(base.offset)
            return slot, slot.pointees if slot else None
        return None, None


def layout_of(kernel: Kernel, contract: Contract | None) -> Layout:
    """The slots of a kernel: as the contract says, else one for each parameter."""
    slots: list[Slot] = []
    for at, parameter in enumerate(kernel.parameters):
        said = contract.parameters[at] if contract and at < len(contract.parameters) else None
        if said is None:
            slots.append(Slot(f"parameter {at}", parameter.offset, parameter.size, None))
        elif said.holds == "struct":
            slots.extend(
                Slot(
                    f"{said.name}.{member.name}", parameter.offset + member.offset, member.size,
                    member.holds, member.pointees, member.after, member.scope,
                    member.sentinel, member.rounds,
                    array=member.array, announces=_names(member.announces),
                )
                for member in said.fields
            )  # fmt: skip
        else:
            slots.append(
                Slot(
                    said.name, parameter.offset, parameter.size, said.holds, said.pointees,
                    said.after, said.scope, said.sentinel, said.rounds, said.descriptor,
                    said.array, _names(said.announces),
                )
            )  # fmt: skip
    return Layout(kernel.bank_offset, tuple(slots), DRIVERS.get(kernel.bank_offset))


def _names(announced: Announced | None) -> tuple[str, ...] | None:
    return () if announced == "nothing" else announced
