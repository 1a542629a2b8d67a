# SPDX-License-Identifier: Apache-2.0
"""What holds at each point of a kernel, for threads that have waited for different things.

A *node* is a run of instructions together with what the threads that enter it have waited for and
the calls that they are in. States that enter the same node are joined until nothing changes;
what happened in a node when it was last looked at is what happens in it.
"""

import heapq
from collections import deque

from fasttrack.audit.flow.blocks import Blocks
from fasttrack.audit.flow.graph import Edge, Grants, Graph, Key, Node
from fasttrack.audit.flow.operands import Context
from fasttrack.audit.flow.state import merge, start
from fasttrack.audit.flow.walk import Walker, Way

LIMITS = {"kinds at one point": 24, "calls": 8, "steps": 400_000}
"""Bounds; beyond them a kernel is `unproven`."""


class Unbounded(Exception):  # noqa: N818 - not an error of the caller
    """A bound was reached."""


class Explorer:
    """Finds the nodes of a kernel under what barriers are known to pass on."""

    def __init__(self, blocks: Blocks, context: Context, grants: Grants) -> None:
        self._blocks = blocks
        self._context = context
        self._walker = Walker(blocks, context, grants)
        self._graph = Graph(blocks, context)
        self._place = {start: at for at, start in enumerate(blocks.order)}
        self._kinds: dict[tuple[int, tuple[int, ...]], int] = {}
        self._steps = 0

    def explore(self) -> Graph:
        """The graph; what could not be followed is in its `problems`."""
        first: Key = (0, frozenset(), ())
        self._graph.nodes[first] = Node(start(self._context.threads.everyone))
        waiting: list[tuple[int, int, Key]] = [(0, 0, first)]
        queued, order = {first}, 0
        while waiting:
            _, _, key = heapq.heappop(waiting)
            queued.discard(key)
            node = self._graph.nodes[key]
            node.begin()
            self._count(key)
            for way in self._walker.leave(key, node):
                to = (way.to, way.state.tokens, way.calls)
                agreed = self._context.names.agreed(way.state.facts)
                node.edges.append(Edge(to, way.at, way.around, way.state.mask, agreed))
                after = self._enter(way)
                if after is not None and after not in queued:
                    queued.add(after)
                    order += 1
                    place = self._place.get(after[0], len(self._place))
                    heapq.heappush(waiting, (place, order, after))
        self._graph.problems = self._walker.problems
        self._graph.spins = self._walker.spins
        self._keep_reached(first)
        return self._graph

    def _count(self, key: Key) -> None:
        self._steps += len(self._blocks.runs[key[0]])
        if self._steps > LIMITS["steps"]:
            raise Unbounded("it takes too many steps to follow")

    def _enter(self, way: Way) -> Key | None:
        """Joins a state into the node that it leads to; that node, if it changed."""
        after: Key = (way.to, way.state.tokens, way.calls)
        node = self._graph.nodes.get(after)
        if node is not None:
            return after if merge(node.state, way.state, self._context.threads.count) else None
        here = (way.to, way.calls)
        self._kinds[here] = self._kinds.get(here, 0) + 1
        if self._kinds[here] > LIMITS["kinds at one point"] or len(way.calls) > LIMITS["calls"]:
            raise Unbounded(f"too many different states at {way.to:#x}")
        self._graph.nodes[after] = Node(way.state.copy())
        return after

    def _keep_reached(self, first: Key) -> None:
        """Drops nodes that an earlier state led to and the last one does not; notes the ways."""
        found: dict[Key, Node] = {first: self._graph.nodes[first]}
        waiting = deque([first])
        while waiting:
            key = waiting.popleft()
            for edge in found[key].edges:
                if edge.to not in found:
                    found[edge.to] = self._graph.nodes[edge.to]
                    self._graph.came[edge.to] = (key, edge.at)
                    waiting.append(edge.to)
        self._graph.nodes = found
