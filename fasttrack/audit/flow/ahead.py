# SPDX-License-Identifier: Apache-2.0
"""Which threads may still be at work when another thread of their block triggers.

The first thread of a block that triggers does so for the whole block (seen on an H200). Whoever
triggers may be ahead of all others, but not beyond a barrier to which they have not come yet. So a
thread may be late from the start, if some way to a trigger passes no barrier that needs it; or from
a barrier on, if such a way begins behind that one.
"""

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass

from fasttrack.audit.flow.events import Does
from fasttrack.audit.flow.graph import Graph, Key, Node
from fasttrack.audit.flow.groups import needed
from fasttrack.audit.flow.meetings import Barrier, Instances, last_of
from fasttrack.audit.flow.threads import Threads, members, union

_CLUSTER_WAIT = "UCGABAR_WAIT"


@dataclass(frozen=True)
class Late:
    """Threads that may be late, as masks.

    Attributes:
        from_start: those that no barrier brings together with whoever triggers.
        from_barrier: by the address of a barrier, those that may be late once they came to it.
    """

    from_start: int
    from_barrier: Mapping[int, int]


def late_of(
    graph: Graph, met: Iterable[tuple[Barrier, Instances]], together: Container[int]
) -> Late:
    """The threads of a kernel that may be late.

    Args:
        graph: the nodes.
        met: barriers, and which points of two threads may be the same instance.
        together: addresses of instructions to which warps come that have not parted.
    """
    met = tuple(met)
    held = holding(graph, [barrier for barrier, _ in met])
    here = {
        key: union(
            others(graph.context.threads, one.mask, one.instruction.address in together)
            for one in node.events
            if one.does is Does.TRIGGER
        )
        for key, node in graph.nodes.items()
    }
    into = _passing(graph, here, held)
    waits = [key for key in graph.nodes if last_of(graph, key).opcode == _CLUSTER_WAIT]
    found: dict[int, int] = {}
    for barrier, points in met:
        for at, key in enumerate(points.points):
            if points.tokens[at] is None:
                continue
            there = [
                points.points[one]
                for one in members(points.beside[at])
                if points.tokens[one] is not None  # who has ended does not trigger
            ]
            behind = union(_behind(graph, into, one) for one in (waits if barrier.wide else there))
            address = last_of(graph, key).address
            found[address] = found.get(address, 0) | behind
    return Late(into[next(iter(graph.nodes))], found)


def others(threads: Threads, mask: int, together: bool) -> int:
    """For which threads those of a mask trigger, but for one that does so itself alone.

    A warp does so as one, if its threads have not parted there.
    """
    found = 0
    for block in threads.by_block:
        here = mask & block
        alone = threads.whole_warps(here) if together else here
        is_one = alone in threads.warps if together else not here & (here - 1)
        if here:
            found |= block & ~alone if is_one else block
    return found


def holding(graph: Graph, barriers: Iterable[Barrier]) -> dict[int, int]:
    """Of each barrier that holds threads, by the instruction's address, who must come to it."""
    found: dict[int, int] = {}
    for barrier in barriers:
        need = needed(graph, barrier)
        for key in barrier.leave:
            last = last_of(graph, key)
            if last.opcode == "BAR":
                found[last.address] = found.get(last.address, need) & need
    for key in graph.nodes:
        if last_of(graph, key).opcode == _CLUSTER_WAIT:
            found[last_of(graph, key).address] = graph.context.threads.everyone
    return found


def _passing(graph: Graph, here: Mapping[Key, int], held: Mapping[int, int]) -> dict[Key, int]:
    """Of each node, threads that are not needed on some way from its start to a trigger."""
    into = dict.fromkeys(graph.nodes, 0)
    changed = True
    while changed:
        changed = False
        for key, node in reversed(graph.nodes.items()):
            need = held.get(last_of(graph, key).address, 0)
            around = union(into[one.to] for one in node.edges if one.around)
            found = here[key] | around | _onwards(node, into) & ~need
            if found != into[key]:
                into[key] = found
                changed = True
    return into


def _behind(graph: Graph, into: Mapping[Key, int], key: Key) -> int:
    """The same from behind the barrier at a node's end."""
    return _onwards(graph.nodes[key], into)


def _onwards(node: Node, into: Mapping[Key, int]) -> int:
    return union(into[one.to] for one in node.edges if not one.around)
