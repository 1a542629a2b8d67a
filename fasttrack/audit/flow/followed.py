# SPDX-License-Identifier: Apache-2.0
"""Which threads may end without what should follow: something done by them, or by one they meet.

It is asked of each point of a graph: may a thread go on from there to its end, past nothing that
is wanted, and meet nobody who surely comes to it? A thread that is met at a barrier must surely be
in the same instance, as where a barrier passes on what threads have waited for. Behind an mbarrier,
some thread that waits at it must.
"""

from collections import deque
from collections.abc import Collection, Mapping
from functools import cached_property

from fasttrack.audit.flow.events import Does, Event
from fasttrack.audit.flow.graph import Graph, Key
from fasttrack.audit.flow.handoff import everybody_comes
from fasttrack.audit.flow.mbarriers import possible
from fasttrack.audit.flow.meetings import Barrier, Instances
from fasttrack.audit.flow.threads import members, union

Done = Mapping[Key, Mapping[int, int]]
"""Of each node, the threads that surely do what is wanted at an event, by its place in the node."""
Met = Collection[tuple[Barrier, Instances]]


class Followed:
    """The threads that may end without what is wanted, from each point of a graph on.

    Args:
        graph: the nodes.
        met: the barriers, and which of their points may be the same instance.
        done: where it is done.
        past: addresses of runs that will do instead.
        perhaps: whether it will do that one is met who may come to it.
    """

    def __init__(
        self,
        graph: Graph,
        met: Met,
        done: Done,
        past: frozenset[int] = frozenset(),
        perhaps: bool = False,
    ) -> None:
        self._graph, self._met, self._done = graph, met, done
        self._past, self._perhaps = past, perhaps
        self._into: dict[Key, int] = {}
        self._linked: dict[Key, int] = {}
        self._arrived: dict[Key, dict[int, int]] = {}
        while True:  # more is shown in each round, so that it ends
            self._settle()
            linked, arrived = self._links(), self._arrivals()
            if (linked, arrived) == (self._linked, self._arrived):
                break
            self._linked, self._arrived = linked, arrived

    def open(self, key: Key, at: int) -> int:
        """The threads that may end without it once they have done an event of a node."""
        done = self._done.get(key, {})
        if key[0] in self._past and not any(place < at for place in done):
            return 0
        found = (done, self._arrived.get(key, {}))
        later = union(mask for one in found for place, mask in one.items() if place > at)
        return self._behind(key) & ~later

    def _behind(self, key: Key) -> int:
        """The threads that may end without it, from behind a node on."""
        node, linked = self._graph.nodes[key], self._linked.get(key, 0)
        ended = union(one.mask for one in node.events if one.does is Does.EXIT)
        ways = (
            edge.mask & self._into.get(edge.to, 0) & (-1 if edge.around else ~linked)
            for edge in node.edges
        )
        return ended | union(ways)

    def _settle(self) -> None:
        """Finds such threads at the start of each node, from the ends on backwards."""
        self._into = dict.fromkeys(self._graph.nodes, 0)
        waiting = deque(reversed(self._graph.nodes))
        while waiting:
            key = waiting.popleft()
            found = self.open(key, -1)
            if found != self._into[key]:
                self._into[key] = found
                waiting.extend(self._before.get(key, ()))

    @cached_property
    def _before(self) -> dict[Key, list[Key]]:
        before: dict[Key, list[Key]] = {}
        for key, node in self._graph.nodes.items():
            for edge in node.edges:
                before.setdefault(edge.to, []).append(key)
        return before

    def _links(self) -> dict[Key, int]:
        """Of each node that ends in a barrier, the threads that meet one there who comes to it."""
        linked: dict[Key, int] = {}
        for barrier, found in self._met:
            there = (
                mask
                for mask, held in zip(found.mask, found.tokens, strict=True)
                if held is not None
            )
            present = union(there)
            for group in barrier.groups:
                if not everybody_comes(barrier, present & group):
                    continue
                for at, key in enumerate(found.points):
                    if found.tokens[at] is not None and self._sure(barrier, found, at) & (
                        present & group
                    ):
                        linked[key] = linked.get(key, 0) | (group & barrier.arrive[key])
        return linked

    def _sure(self, barrier: Barrier, found: Instances, at: int) -> int:
        """Threads that are surely in the instance at a point, and come to what is wanted."""
        missing = coming = 0
        for other in members(found.beside[at]):
            mask = found.mask[other]
            if found.tokens[other] is None:
                missing |= 0 if barrier.count is not None else mask
                continue
            past = found.points[other][0] in self._past
            left = 0 if past else mask & self._behind(found.points[other])
            missing |= left
            coming |= mask & ~left
        return coming if self._perhaps else ~missing

    def _arrivals(self) -> dict[Key, dict[int, int]]:
        """Of each arrival at an mbarrier for which one waits who comes to it, its threads."""
        waits = [
            (possible(event.address, event.mask), event.mask & ~self.open(key, at))
            for key, node in self._graph.nodes.items()
            for at, event in enumerate(node.events)
            if event.does is Does.MEET and event.how == "SYNCS"
        ]
        found: dict[Key, dict[int, int]] = {}
        for key, node in self._graph.nodes.items() if waits else ():
            for at, event in enumerate(node.events):
                if event.does is Does.ARRIVE and _is_awaited(event, waits):
                    found.setdefault(key, {})[at] = event.mask & event.surely
        return found


def _is_awaited(event: Event, waits: Collection[tuple[set[int] | None, int]]) -> bool:
    here = possible(event.address, event.mask)
    return here is not None and any(there and mask and here & there for there, mask in waits)


def all_pass(graph: Graph, ends: Collection[Key]) -> frozenset[int]:
    """Addresses of the runs that are passed on every way from the entry to any of some nodes."""
    if not ends:
        return frozenset()
    first, path = next(iter(graph.nodes)), [next(iter(ends))]
    while path[-1] in graph.came:
        path.append(graph.came[path[-1]][0])
    return frozenset(one[0] for one in path if not _reaches(graph, first, ends, one[0]))


def _reaches(graph: Graph, first: Key, ends: Collection[Key], without: int) -> bool:
    """Whether a way leads to one of the nodes past no run of that address."""
    waiting, seen = [first], {first}
    while waiting:
        key = waiting.pop()
        if key[0] == without:
            continue
        if key in ends:
            return True
        more = {edge.to for edge in graph.nodes[key].edges} - seen
        seen |= more
        waiting.extend(more)
    return False
