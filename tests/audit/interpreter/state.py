# SPDX-License-Identifier: Apache-2.0
"""Everything that changes while a kernel runs."""

from collections import Counter

import numpy as np

from fasttrack.audit.contract import Contract
from fasttrack.audit.program import Instruction, Kernel

from .lanes import Lanes, NotExecuted
from .memory import DESCRIPTORS, Event, Memory
from .threads import Known, Phases, Threads

STACK = 0x28, 0x37C
"""Where sm_90 and sm_100 keep the first address of the stack in constant bank 0."""
SIZES = (0x0, 0x360), (0xC, 0x370)
"""Where they keep the size of a block, and that of the grid."""
GENERIC = 0x198, 0x348
"""Where they keep the address of the parameters."""


class State:
    """A launch: registers, threads, memory, mbarriers, and what was out of order."""

    def __init__(
        self, kernel: Kernel, contract: Contract, blocks: int, tile: int, scalar: int
    ) -> None:
        self.kernel, self.contract, self.tile = kernel, contract, tile
        self.memory = Memory(kernel, contract, scalar)
        self.threads = Threads(blocks, contract.block[0], contract.cluster)
        constants = self.memory.constants
        old = kernel.arch == "sm_90a"
        constants[STACK[not old]] = 0x1000
        for at, value in zip(SIZES, (contract.block[0], blocks), strict=True):
            for axis in range(3):
                constants[at[not old] + 4 * axis] = value if axis == 0 else 1
        low, high = DESCRIPTORS & 0xFFFFFFFF, DESCRIPTORS >> 32
        constants[GENERIC[not old]], constants[GENERIC[not old] + 4] = low, high
        self.lanes = Lanes(self.threads.columns, constants)
        self.done = not contract.pdl
        """Whether the kernels before are done and seen by all who waited."""
        self.set_flags: set[str] = set()
        self.waits_for: dict[int, str] = {}
        self.flag_reads: Counter[tuple[int, str]] = Counter()
        self.mbarriers: dict[tuple[int, int], Phases] = {}
        self.near: dict[tuple[int, int], int] = {}
        """Shared memory of each block and local memory of each thread."""
        self.wrote: dict[str, set[int]] = {"out": set(), "near": set()}
        self.accesses: list[list[tuple[Instruction, str]]] = [
            [] for _ in range(self.threads.columns)
        ]
        """Of each thread, its accesses of memory that others read or write, in order."""
        self.triggers: list[tuple[int, Known]] = []
        """Blocks of threads that triggered, and what accesses each of those knew to be over."""
        self.groups: list[list[list[tuple[Instruction, str]]]] = [
            [[]] for _ in range(self.threads.columns)
        ]
        """Of each thread, groups of bulk stores that need not be done; the last is not closed."""
        self.unread = np.zeros(self.threads.columns, np.int64)
        """Of each thread, how many bulk stores need not have read their source."""
        self.newest: dict[int, int] = {}
        """Threads that have just waited for groups, and for how many they have not."""
        self.entered = 0
        """How often a BSSY was executed."""
        self.events: set[Event] = set()

    def written(self, thread: int, what: str, *, known: bool = True) -> None:
        """A thread wrote: it knows of that, and others only when it tells them.

        What a copy engine is still to write is known to nobody.
        """
        if thread in self.wrote[what]:
            old = [f"{what} {thread} {how}" for how in ("own", "gpu", "sys", "async")]
            for tokens in self.threads.tokens:
                tokens.difference_update(old)
        if known:
            self.threads.tokens[thread].add(f"{what} {thread} own")
        self.wrote[what].add(thread)

    def accessed(self, thread: int, one: Instruction, name: str) -> None:
        """A thread has read or written what others write or read: that is over now."""
        self.accesses[thread].append((one, name))
        self.threads.known[thread, thread] += 1

    def late(self) -> None:
        """Marks what was not surely over when some thread of the block triggered."""
        if self.contract.early_trigger is not None:
            return
        for block, known in self.triggers:
            for thread in np.flatnonzero(self.threads.block == block):
                for one, name in self.accesses[thread][int(known[thread]) :]:
                    self.mark("late", one, name)
                for group in self.groups[thread]:
                    for one, name in group:
                        self.mark("late", one, name)

    def writers(self, what: str, thread: int) -> list[int]:
        """Threads of this thread's block that wrote."""
        block = self.threads.block[thread]
        return [one for one in self.wrote[what] if self.threads.block[one] == block]

    def mark(self, kind: str, one: Instruction, name: str) -> None:
        """Notes that something is out of order."""
        self.events.add(Event(kind, one.address, name))

    def start(self, thread: int, address: int, count: int) -> None:
        """Initialises an mbarrier."""
        self.mbarriers[self._place(thread, address)] = Phases(count, count)

    def barrier(self, thread: int, address: int) -> Phases:
        """The mbarrier at an address of shared memory."""
        found = self.mbarriers.get(self._place(thread, address))
        if found is None:
            raise NotExecuted(f"an mbarrier at {address:#x} that nothing started")
        return found

    def _place(self, thread: int, address: int) -> tuple[int, int]:
        group = int(self.threads.group[thread])
        return group * self.contract.cluster + (address >> 24), address & 0xFFFFFF
