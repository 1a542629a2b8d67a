# SPDX-License-Identifier: Apache-2.0
"""Flags of which several lie one behind the other: what one thread's acquire is worth to others.

A thread that saw one flag of an array knows of what that one announces alone. Where the contract
says that readers need all of them, a barrier tells them so only if every thread that acquires one
comes to it with its own; where each thread goes by its own, its warp alone may gain from it.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from fasttrack.audit.contract import Array, Class
from fasttrack.audit.flow.events import Does
from fasttrack.audit.flow.graph import Graph
from fasttrack.audit.flow.layout import Layout
from fasttrack.audit.flow.state import all_token


@dataclass(frozen=True)
class Flags:
    """The flags of a kernel.

    Attributes:
        arrays: which of several threads go by, by the offset of the flags' pointer.
        acquirers: the threads that may acquire one, by the same.
    """

    arrays: Mapping[int, Array | None]
    acquirers: Mapping[int, int]

    def passed(self, token: str, sure: int, in_warp: bool) -> str | None:
        """The token that others gain from one which some threads surely hold; None for none.

        Args:
            token: what those threads hold.
            sure: the threads.
            in_warp: whether only threads of their warps meet them.
        """
        kind, _, offset = token.partition(":")
        array = self.arrays.get(int(offset)) if kind in ("flag", "seen") else None
        if array is Array.OWN:
            return token if in_warp else None
        if array is Array.ALL and self.acquirers.get(int(offset), 0) & ~sure:
            return None
        return self.wanted(int(offset), token) if array is Array.ALL else token

    def wanted(self, offset: int, token: str) -> str:
        """The token after which everything may be read that a thread reads behind a flag."""
        several = self.acquirers.get(offset, 0).bit_count() > 1
        return all_token(token) if self.arrays.get(offset) is Array.ALL and several else token


def flags_of(graph: Graph) -> Flags:
    """The flags of a kernel, as far as a graph shows who acquires them."""
    layout = graph.context.layout
    acquirers: dict[int, int] = {}
    for node in graph.nodes.values():
        for event in node.events:
            if event.does is Does.READ and event.strong:
                for base in event.bases:
                    slot, holds = layout.of(base)
                    if slot is not None and holds is Class.FLAG:
                        acquirers[slot.offset] = acquirers.get(slot.offset, 0) | event.mask
    return Flags(_arrays(layout), acquirers)


def _arrays(layout: Layout) -> dict[int, Array | None]:
    flags = (one for one in layout.slots if Class.FLAG in (one.holds, one.pointees))
    return {one.offset: one.array for one in flags}
