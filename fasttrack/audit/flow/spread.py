# SPDX-License-Identifier: Apache-2.0
"""What may have happened before a point, in this thread or in one that it has met since.

Unlike tokens, which must hold, these are things that may: stores that no fence has followed, the
trigger. At a barrier a thread takes over what any other may bring to the same instance; behind an
mbarrier, what any thread may bring that arrives at one.
"""

from collections import deque
from collections.abc import Callable, Iterator

from fasttrack.audit.flow.events import Does, Event
from fasttrack.audit.flow.graph import Graph, Key
from fasttrack.audit.flow.meetings import Instances, barriers_of, instances

Things = frozenset[tuple[object, ...]]
"""What may have happened; the first word of each says what it is."""
After = Callable[[Things, Event], Things]
"""What may have happened after an event, or what others take over there."""
Narrow = Callable[[Things, int], Things]
"""What of it may have happened to threads of a mask."""
NOTHING: Things = frozenset()


class Spread:
    """What may have happened before each event of a graph.

    Args:
        graph: the nodes.
        after: what may have happened after an event, given what may have before it.
        handed: of that, what others take over who meet the thread at a barrier or an mbarrier.
        narrow: of that, what is left for those threads that go on to a node.
    """

    def __init__(self, graph: Graph, after: After, handed: After, narrow: Narrow) -> None:
        self._graph = graph
        self._after = after
        self._handed = handed
        self._narrow = narrow
        self._into: dict[Key, Things] = dict.fromkeys(graph.nodes, NOTHING)
        self._met = [instances(graph, barrier) for barrier in barriers_of(graph).values()]
        self._brought: dict[Key, Things] = {}
        self._arrived = NOTHING
        self._run()

    def before(self) -> Iterator[tuple[Key, Event, Things]]:
        """Every event, with what may have happened before it."""
        for key, node in self._graph.nodes.items():
            things = self._into[key]
            for event in node.events:
                yield key, event, things
                things = self._after(things, event)

    def _run(self) -> None:
        waiting = deque(self._graph.nodes)
        queued = set(waiting)
        while waiting:
            key = waiting.popleft()
            queued.discard(key)
            for after in self._through(key):
                if after not in queued:
                    queued.add(after)
                    waiting.append(after)

    def _through(self, key: Key) -> set[Key]:
        """Carries things through a node; the nodes at which that changed something."""
        things = brought = outside = self._into[key]
        for event in self._graph.nodes[key].events:
            things = self._after(things, event)
            if event.does is not Does.MEET or event.how == "SYNCS":
                outside = things
            brought = self._handed(things, event)
            if event.does is Does.ARRIVE:
                self._arrived |= brought
        changed: set[Key] = set()
        self._brought[key] = brought
        for met in self._met:
            if any(key == one and met.tokens[at] is not None for at, one in enumerate(met.points)):
                changed |= self._meet(met, key)
        if any(one.opcode == "SYNCS" for one in self._graph.blocks.runs[key[0]]):
            things |= self._arrived
        return changed | self._enter(key, things) | self._around(key, outside)

    def _meet(self, met: Instances, key: Key) -> set[Key]:
        """Gives what a thread brings to a barrier to those who may be in the same instance."""
        changed: set[Key] = set()
        at = next(
            at for at, one in enumerate(met.points) if one == key and met.tokens[at] is not None
        )
        for other, point in enumerate(met.points):
            if met.beside[at] >> other & 1 and met.tokens[other] is not None:
                changed |= self._enter(point, self._brought[key])
        return changed

    def _enter(self, key: Key, things: Things) -> set[Key]:
        """Gives things to the nodes that follow, where threads do not go around a barrier."""
        return self._give(key, things, around=False)

    def _around(self, key: Key, things: Things) -> set[Key]:
        """Gives what came before a barrier to the nodes to which threads go around it."""
        return self._give(key, things, around=True)

    def _give(self, key: Key, things: Things, around: bool) -> set[Key]:
        edges = self._graph.nodes[key].edges
        return {
            one.to
            for one in edges
            if one.around is around and self._add(one.to, self._narrow(things, one.mask))
        }

    def _add(self, key: Key, things: Things) -> bool:
        """Adds to what may have happened before a node; whether that is new there."""
        if things <= self._into[key]:
            return False
        self._into[key] |= things
        return True
