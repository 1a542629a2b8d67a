# SPDX-License-Identifier: Apache-2.0
"""What rules look at: everything that happens in a kernel, and what the contract says of it."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from fasttrack.audit.contract import Class, Contract
from fasttrack.audit.finding import Finding, Verdict
from fasttrack.audit.flow.alike import Search
from fasttrack.audit.flow.blocks import BYTES, Blocks, blocks_of
from fasttrack.audit.flow.events import Does, Event
from fasttrack.audit.flow.explore import Unbounded
from fasttrack.audit.flow.flags import Flags, flags_of
from fasttrack.audit.flow.graph import Graph, Key
from fasttrack.audit.flow.groups import sure_to_come
from fasttrack.audit.flow.handoff import settled
from fasttrack.audit.flow.layout import Layout, Slot, layout_of
from fasttrack.audit.flow.mbarriers import possible
from fasttrack.audit.flow.meetings import (
    Barrier,
    Instances,
    barriers_of,
    company_of,
    instances,
)
from fasttrack.audit.flow.opcodes import KNOWN
from fasttrack.audit.flow.operands import Context
from fasttrack.audit.flow.spread import After, Narrow, Spread, Things
from fasttrack.audit.flow.threads import Threads
from fasttrack.audit.flow.together import together
from fasttrack.audit.flow.values import ONE_OF
from fasttrack.audit.flow.walk import keeps_apart
from fasttrack.audit.program import Kernel

_STEADY = (Class.STATIC, Class.DYNAMIC, Class.METADATA)


@dataclass(frozen=True, slots=True)
class Place:
    """Memory that an access may touch; without a slot or a class, that is not known."""

    slot: Slot | None
    holds: Class | None

    @property
    def name(self) -> str:
        """What findings call it."""
        return self.slot.name if self.slot is not None else ""


@dataclass(frozen=True)
class Facts:
    """A kernel that was followed under its contract."""

    kernel: Kernel
    contract: Contract
    layout: Layout
    graph: Graph

    @cached_property
    def events(self) -> tuple[tuple[Key, Event], ...]:
        """All that happens, node by node."""
        return tuple(
            (key, event) for key, node in self.graph.nodes.items() for event in node.events
        )

    def those(self, *kinds: Does) -> Iterator[tuple[Key, Event]]:
        """What happens of some kinds."""
        return ((key, event) for key, event in self.events if event.does in kinds)

    def spread(
        self,
        after: After,
        handed: After = lambda things, _: things,
        narrow: Narrow = lambda things, _: things,
    ) -> Iterator[tuple[Key, Event, Things]]:
        """Every event with what may have happened before it, in any thread met on the way."""
        return Spread(self.graph, after, handed, narrow).before()

    @cached_property
    def company(self) -> dict[int, int]:
        """Of each barrier, by the instruction's address, the threads that may come to it."""
        return company_of(self.graph)

    @cached_property
    def sure_to_come(self) -> dict[int, int]:
        """Of each barrier, by the instruction's address, the threads that surely come to it."""
        return sure_to_come(self.graph, self.met)

    @cached_property
    def met(self) -> tuple[tuple[Barrier, Instances], ...]:
        """The barriers, and which of their points may be the same instance."""
        found = barriers_of(self.graph).values()
        return tuple((one, instances(self.graph, one)) for one in found)

    @cached_property
    def taken(self) -> dict[int, frozenset[str]]:
        """Of each read of a mailbox, by the instruction's address, the flags that it is behind."""
        found: dict[int, frozenset[str]] = {}
        for _, event in self.those(Does.READ):
            slots = [one.slot for one in self.places(event) if one.holds is Class.MAILBOX]
            names = frozenset(one.after for one in slots if one is not None and one.after)
            if names:
                address = event.instruction.address
                found[address] = found.get(address, frozenset()) | names
        return found

    @cached_property
    def together(self) -> frozenset[int]:
        """Addresses of the instructions to which whole warps come that have not parted."""
        return together(self.graph)

    @cached_property
    def met_alike(self) -> tuple[tuple[Barrier, Instances], ...]:
        """The same, where it is also known which branches all threads of a block take alike."""
        blocks, context = self.graph.blocks, self.graph.context
        if context.threads.blocks > 1:
            return self.met
        found = Search(blocks, context, self.steady, keeps_apart).alike()
        return tuple((one, at if one.wide else found.in_step(at)) for one, at in self.met)

    @cached_property
    def steady(self) -> frozenset[int]:
        """Addresses of loads of memory that does not change once a kernel may read it."""
        reads: dict[int, bool] = {}
        for _, event in self.those(Does.READ):
            address = event.instruction.address
            same = event.how == "load" and not event.strong
            same = same and all(one.holds in _STEADY for one in self.places(event))
            reads[address] = reads.get(address, True) and same
        return frozenset(address for address, same in reads.items() if same)

    @cached_property
    def unwrapped(self) -> "Facts":
        """The same if no index of a thread is too large for its word, where that matters."""
        if not self.graph.context.carried:
            return self
        try:
            return facts_of(self.kernel, self.contract, unwrapped=True)
        except Unbounded:
            return self  # what was found without that stands

    @cached_property
    def flags(self) -> Flags:
        """The flags, and who acquires them."""
        return flags_of(self.graph)

    def arrivers(self, event: Event) -> int:
        """The warps of which some thread arrives at what may be the mbarrier of an event."""
        here = possible(event.address, event.mask)
        found = 0
        for _, other in self.those(Does.ARRIVE):
            there = possible(other.address, other.mask)
            if here is None or there is None or here & there:
                found |= other.mask
        return self.graph.context.threads.whole_warps(found)

    def places(self, event: Event) -> tuple[Place, ...]:
        """The memory that an access may touch, parameters in order."""
        found = {Place(*self.layout.of(base)) for base in event.bases - {ONE_OF}}
        return tuple(sorted(found, key=lambda one: (one.slot.offset if one.slot else -1, one.name)))

    def sure(self, event: Event) -> bool:
        """Whether an access may touch all of its places; else it touches one, not known which."""
        return ONE_OF not in event.bases and all(
            place.holds is not None for place in self.places(event)
        )

    def path(self, key: Key, event: Event) -> tuple[int, ...]:
        """Addresses from the entry over the jumps taken to an event."""
        found = [event.instruction.address]
        while key in self.graph.came:
            before, at = self.graph.came[key]
            if key[0] != at + BYTES:
                found.append(at)
            key = before
        return tuple(reversed([*found, 0] if found[-1] != 0 else found))

    def finding(
        self,
        rule: str,
        where: tuple[Key, Event],
        words: tuple[str, str, str],
        parameter: str = "",
        sure: bool = True,
    ) -> Finding:
        """What a rule says of an event: saw, want and fix."""
        key, event = where
        return Finding(
            rule, Verdict.VIOLATED if sure else Verdict.UNPROVEN, *words,
            event.instruction.address, event.instruction.text, event.instruction.source,
            parameter, self.path(key, event),
        )  # fmt: skip


def facts_of(kernel: Kernel, contract: Contract, *, unwrapped: bool = False) -> Facts:
    """Follows a kernel under its contract.

    Args:
        kernel: what is followed.
        contract: what its parameters are.
        unwrapped: take no index of a thread to be too large for its word.

    Raises:
        Unbounded: a bound was reached.
    """
    layout = layout_of(kernel, contract)
    blocks = blocks_of(kernel)
    together = contract.cluster if _meets_cluster(kernel) else 1
    threads = Threads(contract.block, together)

    def make() -> Context:
        return Context(layout, threads, contract.cluster > 1, unwrapped=unwrapped)

    graph = settled(blocks, make)
    graph.problems.update(_unknown(blocks, graph))
    return Facts(kernel, contract, layout, graph)


def _meets_cluster(kernel: Kernel) -> bool:
    return any(one.opcode.startswith("UCGABAR") for one in kernel.instructions)


def _unknown(blocks: Blocks, graph: Graph) -> dict[int, str]:
    """Instructions that can be reached and are in no table."""
    reached = {key[0] for key in graph.nodes}
    return {
        one.address: f"{one.opcode} is not known: it may read or write memory"
        for start in reached
        for one in blocks.runs[start]
        if one.opcode not in KNOWN
    }
