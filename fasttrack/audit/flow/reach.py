# SPDX-License-Identifier: Apache-2.0
"""Which points of a barrier a thread comes to next, and what is decided on all ways there.

Threads of a block agree on conditions over the launch's numbers. So two threads, once they have
parted, do not come to points of which the one lies behind `n >= 1` and the other behind `n < 1`.
"""

from collections import deque
from collections.abc import Mapping
from typing import TYPE_CHECKING

from fasttrack.audit.flow.graph import Edge, Graph, Key
from fasttrack.audit.flow.threads import union

if TYPE_CHECKING:
    from fasttrack.audit.flow.meetings import Barrier

Ways = dict[int, int]
"""Points by number, with the facts that hold on all ways there: bit 2n that fact n is true, bit
2n + 1 that it is false."""
Places = Mapping[tuple[Key, bool], int]
"""The numbers of points, by node and whether threads end there."""


def contradict(one: int, other: int) -> bool:
    """Whether facts and others can not both hold in one block."""
    both = one & other
    one, other = one ^ both, other ^ both
    if not one or not other:
        return False
    even = int.from_bytes(b"\x55" * (max(one.bit_length(), other.bit_length()) // 8 + 1), "little")
    return bool((one & even) << 1 & other or (other & even) << 1 & one)


def ways(graph: Graph, barrier: "Barrier", place: Places) -> tuple[dict[Key, Ways], list[Ways]]:
    """The next points from the start of each node, and from behind each point."""
    search = _Search(graph, barrier, place)
    search.settle()
    after = [{at: 0} if ends else search.behind(key) for (key, ends), at in place.items()]
    return search.into, after


class _Search:
    """Finds the points that come next, from the back.

    Threads of a block agree; so for a barrier of several blocks, no facts are kept.
    """

    def __init__(self, graph: Graph, barrier: "Barrier", place: Places) -> None:
        self.into: dict[Key, Ways] = {key: {} for key in graph.nodes}
        self._graph, self._barrier, self._place = graph, barrier, place
        self._numbers: dict[int, int] = {}
        self._facts: dict[int, int] = {}
        self._before: dict[Key, list[Key]] = {}
        for key, node in graph.nodes.items():
            for edge in node.edges:
                self._before.setdefault(edge.to, []).append(key)
                self._facts[id(edge)] = 0 if barrier.wide else self._bits(edge.agreed)

    def _bits(self, agreed: Mapping[int, bool]) -> int:
        bits = 0
        for name, truth in agreed.items():
            number = self._numbers.setdefault(name, len(self._numbers))
            bits |= 1 << 2 * number + (not truth)
        return bits

    def settle(self) -> None:
        """Goes on until nothing changes: more points are found, and fewer facts hold."""
        waiting = deque(reversed(self._graph.nodes))
        queued = set(waiting)
        while waiting:
            key = waiting.popleft()
            queued.discard(key)
            found = self._from(key)
            if found != self.into[key]:
                self.into[key] = found
                for one in self._before.get(key, ()):
                    if one not in queued:
                        queued.add(one)
                        waiting.append(one)

    def _from(self, key: Key) -> Ways:
        node, found = self._graph.nodes[key], dict[int, int]()
        here = self._barrier.arrive.get(key, 0)
        if (key, True) in self._place:
            found[self._place[key, True]] = 0
        if here:
            found[self._place[key, False]] = 0
        others = union(node.arrives.values()) & ~here != 0
        for edge in node.edges:
            if edge.around or others or not here:
                self._join(found, edge)
        return found

    def behind(self, key: Key) -> Ways:
        """The next points for threads that have taken part at the end of a node."""
        found: Ways = {}
        for edge in self._graph.nodes[key].edges:
            if not edge.around:
                self._join(found, edge)
        return found

    def _join(self, found: Ways, edge: Edge) -> None:
        """Adds the points that an edge leads to; of a point, what holds on all its ways."""
        facts = self._facts[id(edge)]
        for point, more in self.into[edge.to].items():
            here = facts | more
            found[point] = found[point] & here if point in found else here
