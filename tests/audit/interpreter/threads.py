# SPDX-License-Identifier: Apache-2.0
"""Where each thread stands, and the barriers at which threads meet."""

from collections import Counter
from dataclasses import dataclass, field
from enum import IntEnum

import numpy as np

from .lanes import WARP, Mask

Known = np.ndarray


class At(IntEnum):
    """Why a thread does not run."""

    RUN = 0
    WAIT = 1
    """In the wait for the kernels before, which are not done."""
    FLAG = 2
    """Reads a flag that is not set."""
    BARRIER = 3
    CONVERGE = 4
    """In BSYNC, for the others of its warp."""
    WARPSYNC = 5
    MBARRIER = 6
    CLUSTER = 7
    GONE = 8


@dataclass
class Phases:
    """An mbarrier: arrivals that are missing, bytes that are missing, phases that are over."""

    count: int
    missing: int
    bytes: int = 0
    phase: int = 0
    tokens: set[str] = field(default_factory=set)
    """What those who arrived in this phase know."""
    handed: set[str] = field(default_factory=set)
    """What the one who waits for the last finished phase learns."""
    known: Known | None = None
    handed_known: Known | None = None
    """The same of accesses that are over."""

    def settle(self) -> None:
        """Ends the phase if all arrived and all bytes came."""
        if self.missing == 0 and self.bytes == 0:
            self.phase += 1
            self.missing = self.count
            self.handed |= self.tokens
            self.handed_known = self.known


class Threads:
    """All threads of the blocks that run, as columns."""

    def __init__(self, blocks: int, threads: int, cluster: int) -> None:
        padded = -(-threads // WARP) * WARP
        self.columns = blocks * padded
        own = np.arange(self.columns)
        self.block = own // padded
        self.thread = own % padded
        self.warp = own // WARP
        self.group = self.block // cluster
        self.pc = np.zeros(self.columns, np.int64)
        self.at = np.full(self.columns, At.RUN, np.int8)
        self.at[self.thread >= threads] = At.GONE
        self.where = np.zeros(self.columns, np.int64)
        """Number of the barrier that a thread is in."""
        self.expects = np.zeros(self.columns, np.int64)
        self.tokens: list[set[str]] = [set() for _ in range(self.columns)]
        self.pending: list[set[str]] = [set() for _ in range(self.columns)]
        """Flags that a thread has seen set, without the fence that makes it an acquire."""
        self.converge = np.zeros((16, self.columns), np.int64)
        """Of each convergence register, the number of the BSSY at which a thread entered; or 0."""
        self.arrivals = np.zeros(self.columns, np.int64)
        """At the cluster's barrier."""
        self.arrived: Counter[tuple[int, int]] = Counter()
        """Of each barrier of a block, threads that arrived there without stopping."""
        self.waited = np.zeros(self.columns, np.bool_)
        self.known = np.zeros((self.columns, self.columns), np.int64)
        """Of each thread (row), how many accesses of each other it knows to be over."""
        self.arrived_known: dict[tuple[int, int], Known] = {}
        self.cluster_known: dict[tuple[int, int], Known] = {}
        """Of those who arrived at a barrier of a block, or of a cluster for the nth time."""

    def meet(self) -> bool:
        """Lets threads go whose barrier is complete; whether there were any."""
        return any([self._blocks(), self._converging(), self._warps(), self._clusters()])

    def _go(self, members: Mask) -> bool:
        """Lets threads pass a barrier, with what each of them knows."""
        if not members.any():
            return False
        known: set[str] = set().union(*(self.tokens[one] for one in np.flatnonzero(members)))
        for one in np.flatnonzero(members):
            self.tokens[one] |= known
        self.known[members] = self.known[members].max(axis=0)
        self.at[members] = At.RUN
        return True

    def arrive(self, thread: int, barrier: int) -> None:
        """A thread arrives at a barrier of its block without stopping."""
        place = int(self.block[thread]), barrier
        self.arrived[place] += 1
        self.arrived_known[place] = self._more(self.arrived_known.get(place), thread)

    def arrive_cluster(self, thread: int) -> None:
        """A thread arrives at the barrier of its cluster."""
        self.arrivals[thread] += 1
        place = int(self.group[thread]), int(self.arrivals[thread])
        self.cluster_known[place] = self._more(self.cluster_known.get(place), thread)

    def _more(self, known: Known | None, thread: int) -> Known:
        return self.known[thread].copy() if known is None else np.maximum(known, self.known[thread])

    def learn(self, members: Mask, known: Known | None) -> None:
        """Threads learn what is over."""
        if known is not None:
            self.known[members] = np.maximum(self.known[members], known)

    def _outlive(self, members: Mask, others: Mask) -> None:
        """Threads go on when others have ended: what those did is over."""
        gone = others & (self.at == At.GONE)
        if gone.any():
            self.learn(members, self.known[gone].max(axis=0))

    def _blocks(self) -> bool:
        moved = False
        there = self.at == At.BARRIER
        for block, barrier in {(int(self.block[i]), int(self.where[i])) for i in
                               np.flatnonzero(there)}:  # fmt: skip
            members = there & (self.block == block) & (self.where == barrier)
            expected = int(self.expects[members].max())
            alive = (self.block == block) & (self.at != At.GONE)
            needed = expected if expected else int(alive.sum())
            if members.sum() + self.arrived[block, barrier] >= needed:
                if not expected:  # nor do those come back that have ended
                    self._outlive(members, self.block == block)
                del self.arrived[block, barrier]
                self.learn(members, self.arrived_known.pop((block, barrier), None))
                moved |= self._go(members)
        return moved

    def _converging(self) -> bool:
        """BSYNC: a thread goes on when all that meet there are there or gone. Teaches nothing."""
        there = self.at == At.CONVERGE
        free = there.copy()
        entered = self.converge[self.where, np.arange(self.columns)]
        for warp, register, number in {
            (int(self.warp[one]), int(self.where[one]), int(entered[one]))
            for one in np.flatnonzero(there)
        }:
            members = (self.warp == warp) & (self.converge[register] == number)
            here = members & there & (self.where == register)
            free[here] = (here | (self.at == At.GONE) | ~members).all()
        self.at[free] = At.RUN
        return bool(free.any())

    def _warps(self) -> bool:
        moved = False
        there = self.at == At.WARPSYNC
        for warp in {int(self.warp[one]) for one in np.flatnonzero(there)}:
            alive = (self.warp == warp) & (self.at != At.GONE)
            if (there | ~alive).all():
                moved |= self._go(alive)
        return moved

    def _clusters(self) -> bool:
        there = self.at == At.CLUSTER
        free = there.copy()
        for one in np.flatnonzero(there):
            alive = (self.group == self.group[one]) & (self.at != At.GONE)
            free[one] = bool((self.arrivals[alive] >= self.arrivals[one]).all())
            if free[one]:
                place = int(self.group[one]), int(self.arrivals[one])
                self._outlive(np.arange(self.columns) == one, self.group == self.group[one])
                self.learn(np.arange(self.columns) == one, self.cluster_known.get(place))
        self.at[free] = At.RUN
        return bool(free.any())
