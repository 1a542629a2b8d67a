# SPDX-License-Identifier: Apache-2.0
"""Groups of bulk stores: what a wait for them says, and who is surely at a barrier.

`cp.async.bulk.wait_group` and its form with `.read` are one instruction, `DEPBAR.LE`; the former
drops what was cached right after it. That is all that tells them apart in machine code.
"""

from collections.abc import Iterable

from fasttrack.audit.flow.blocks import BYTES
from fasttrack.audit.flow.events import Event
from fasttrack.audit.flow.graph import Graph
from fasttrack.audit.flow.meetings import Barrier, Instances, last_of
from fasttrack.audit.flow.opcodes import FLOATS, INTEGERS
from fasttrack.audit.flow.state import slot_of
from fasttrack.audit.flow.threads import union
from fasttrack.audit.program import Instruction

_BESIDE = FLOATS | INTEGERS | {"LDC", "LDCU", "ULDC", "NOP"}
"""Instructions that may stand between a wait and what belongs to it."""


def visible(graph: Graph, event: Event) -> bool:
    """Whether a wait for groups is one for what they write, not only for what they read."""
    wait = event.instruction
    run = graph.blocks.runs[graph.blocks.of(wait.address)]
    for one in run[(wait.address - run[0].address) // BYTES + 1 :]:
        if one.opcode == "CCTL":
            return "IVALL" in one.modifiers and one.guard in (None, wait.guard)
        if one.opcode not in _BESIDE or _writes_guard(graph, one, wait):
            return False
    return False


def _writes_guard(graph: Graph, one: Instruction, wait: Instruction) -> bool:
    return wait.guard is not None and slot_of(wait.guard) in graph.context.written(one)


def sure_to_come(graph: Graph, met: Iterable[tuple[Barrier, Instances]]) -> dict[int, int]:
    """Of each barrier, by the instruction's address, the threads without which nobody passes it.

    One that may have ended is none of them.
    """
    found: dict[int, int] = {}
    for barrier, points in met:
        there = needed(graph, barrier) & ~_ended(points)
        for key in barrier.arrive:
            address = last_of(graph, key).address
            found[address] = found.get(address, there) & there
    return found


def needed(graph: Graph, barrier: Barrier) -> int:
    """Threads that have come to every instance of a barrier that is passed, or have ended."""
    if barrier.count is None:
        return graph.context.threads.everyone
    come = union(barrier.arrive.values())
    # Of a group that is not complete, nobody knows who is missing.
    return come & union(one for one in barrier.groups if (come & one).bit_count() == barrier.count)


def _ended(found: Instances) -> int:
    """Threads that may have ended when others are at a barrier."""
    there = [tokens is not None for tokens in found.tokens]
    beside = union(one for one, here in zip(found.beside, there, strict=True) if here)
    return union(mask for at, mask in enumerate(found.mask) if not there[at] and beside >> at & 1)
