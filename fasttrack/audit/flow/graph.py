# SPDX-License-Identifier: Apache-2.0
"""The graph over a kernel's runs and over what threads that enter them have waited for."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from fasttrack.audit.flow.blocks import Blocks
from fasttrack.audit.flow.events import Event
from fasttrack.audit.flow.operands import Context
from fasttrack.audit.flow.state import State, Tokens
from fasttrack.audit.flow.values import Spin, Value

Key = tuple[int, Tokens, tuple[int, ...]]
"""A node: address of the run, tokens on entry, and the calls that led there."""


@dataclass(slots=True)
class Edge:
    """A way from one node to the next.

    Attributes:
        to: the next node.
        at: address of the instruction that leads there.
        around: it goes around the barrier at the end of the node, under a guard.
        mask: threads that may take it.
        agreed: conditions decided there on which all threads of a block agree, by name.
    """

    to: Key
    at: int
    around: bool = False
    mask: int = -1
    agreed: Mapping[int, bool] = field(default_factory=dict)


@dataclass(slots=True)
class Node:
    """What is known of a node.

    Attributes:
        state: on entry.
        edges: where it leads.
        events: what happens in it.
        uniform: all threads of a block that are here go the same way.
        arrives: threads that take part in the barrier at its end, by tokens.
        barrier: number of that barrier for each thread.
        ended: conditions that are decided for all threads which end there, by name.
    """

    state: State
    edges: list[Edge] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    uniform: bool = True
    arrives: dict[Tokens, int] = field(default_factory=dict)
    barrier: Value | None = None
    ended: Mapping[int, bool] | None = None

    def begin(self) -> None:
        """Forgets what happened, to look at the node anew."""
        self.edges, self.events, self.arrives = [], [], {}
        self.uniform, self.barrier, self.ended = True, None, None

    def end(self, facts: Mapping[int, bool]) -> None:
        """Threads end, for which some conditions are decided."""
        others = facts if self.ended is None else self.ended
        self.ended = {name: truth for name, truth in facts.items() if others.get(name) is truth}


@dataclass
class Grants:
    """What is passed on to threads, as far as it has been shown.

    Attributes:
        at: for a node's barrier, the threads that leave it with each token.
        mbarriers: tokens of those who see the first phase of an mbarrier pass, by its address.
        spins: ways out of spins on flags: a look before the first round may take the same way.
    """

    at: Mapping[Key, Mapping[str, int]] = field(default_factory=dict)
    mbarriers: Mapping[int, frozenset[str]] = field(default_factory=dict)
    spins: frozenset[Spin] = frozenset()


@dataclass
class Graph:
    """All nodes that can be reached, and what could not be followed."""

    blocks: Blocks
    context: Context
    nodes: dict[Key, Node] = field(default_factory=dict)
    problems: dict[int, str] = field(default_factory=dict)
    spins: frozenset[Spin] = frozenset()
    came: dict[Key, tuple[Key, int]] = field(default_factory=dict)
