# SPDX-License-Identifier: Apache-2.0
"""Barriers, and which points of two threads may be the same instance of one."""

from collections import deque
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain, combinations

from fasttrack.audit.flow.events import Does
from fasttrack.audit.flow.graph import Graph, Key, Node
from fasttrack.audit.flow.operands import is_predicate
from fasttrack.audit.flow.reach import Ways, contradict, ways
from fasttrack.audit.flow.state import Tokens
from fasttrack.audit.flow.staying import bounds
from fasttrack.audit.flow.threads import Number, mask_of, members, union
from fasttrack.audit.program import Immediate, Instruction, Register


@dataclass
class Barrier:
    """All points of one barrier.

    Attributes:
        arrive: nodes at which threads take part, with those threads.
        leave: those of them at which threads wait for the others.
        groups: threads that wait for each other: those of a block, or fewer, unless `wide`.
        count: how many take part in an instance; None if it is everybody who has not ended.
    """

    arrive: dict[Key, int] = field(default_factory=dict)
    leave: set[Key] = field(default_factory=set)
    groups: tuple[int, ...] = ()
    count: int | None = None
    wide: bool = False


def last_of(graph: Graph, key: Key) -> Instruction:
    """The instruction at the end of a node."""
    return graph.blocks.runs[key[0]][-1]


def barriers_of(graph: Graph) -> dict[str, Barrier]:
    """Barriers by name: numbered ones, that of the cluster, and that of each warp."""
    threads = graph.context.threads
    found: dict[str, Barrier] = {}
    for key, node in graph.nodes.items():
        last = last_of(graph, key)
        if not node.arrives:
            continue
        if last.opcode == "BAR":
            _numbered(found, key, node, last, threads.by_block)
        elif last.opcode == "WARPSYNC" and "ALL" in last.modifiers:
            one = found.setdefault("warp", Barrier(groups=threads.warps))
            one.arrive[key] = threads.everyone
            one.leave.add(key)
        elif last.opcode == "UCGABAR_ARV":
            one = found.setdefault("cluster", Barrier(groups=(threads.everyone,), wide=True))
            one.arrive[key] = threads.everyone
    if "?" in found:  # it may be any of them: who is in which instance is not known
        return {name: one for name, one in found.items() if not name.startswith(("#", "?"))}
    return found


def company_of(graph: Graph) -> dict[int, int]:
    """Of each barrier, by the instruction's address, the threads that may come to it.

    To one without a count everybody comes who has not ended.
    """
    found: dict[int, int] = {}
    for barrier in barriers_of(graph).values():
        counted = barrier.count is not None
        who = union(barrier.arrive.values()) if counted else graph.context.threads.everyone
        for key in barrier.arrive:
            address = last_of(graph, key).address
            found[address] = found.get(address, 0) | who
    return found


def barrier_numbers(number: Number, mask: int) -> dict[int, int] | None:
    """The threads at a barrier by its number; None if that is not known for all of them."""
    if isinstance(number, int):
        return {number: mask}
    if number is None or mask & ~mask_of(number.known):
        return None
    found: dict[int, int] = {}
    for at in members(mask):
        one = int(number.values[at])
        found[one] = found.get(one, 0) | 1 << at
    return found


def _numbered(
    found: dict[str, Barrier], key: Key, node: Node, last: Instruction, groups: tuple[int, ...]
) -> None:
    """`BAR.SYNC 0x1, 0x80`: number and count; without a count, the whole block."""
    number = node.barrier.number if node.barrier is not None else None
    here = union(node.arrives.values())
    numbers = barrier_numbers(number, here)
    for name, mask in {"?": here}.items() if numbers is None else numbers.items():
        one = found.setdefault(f"#{name}" if numbers is not None else "?", Barrier(groups=groups))
        count = _count(last)
        if one.arrive and one.count != count:
            count = -1  # two counts for one barrier: who takes part is not known
        one.count = count
        one.arrive[key] = mask
        if "ARV" not in last.modifiers:
            one.leave.add(key)


def _count(last: Instruction) -> int | None:
    """How many come: the second operand, unless that is what they vote (`BAR.RED.OR 0x0, P0`)."""
    if len(last.operands) < 2 or is_predicate(last.operands[1]):
        return None
    operand = last.operands[1]
    if isinstance(operand, Immediate):
        return operand.value
    return -1 if isinstance(operand, Register) else None


@dataclass
class Instances:
    """Which nodes may be the same instance of a barrier for two threads.

    Attributes:
        points: nodes of the barrier, and nodes at which threads end.
        beside: of each point, a mask over `points`.
        mask: threads that may be at each point.
        tokens: what they hold; None where they end.
        stayed: of a point of the barrier and one at which threads end, those that can not have
            ended there while others are at the first; pairs without any are left out.
    """

    points: list[Key]
    beside: list[int]
    mask: list[int]
    tokens: list[Tokens | None]
    stayed: Mapping[tuple[int, int], int] = field(default_factory=dict)


def instances(graph: Graph, barrier: Barrier) -> Instances:
    """Pairs of points at which two threads may be at the same time, seen from the barrier."""
    points, mask, tokens = _points(graph, barrier)
    place = {
        (key, token is None): at for at, (key, token) in enumerate(zip(points, tokens, strict=True))
    }
    into, after = ways(graph, barrier, place)
    beside = [1 << at for at in range(len(points))]
    waiting: deque[tuple[int, int]] = deque()

    def pair(first: Ways, second: Ways) -> None:
        for one, facts in first.items():
            for two, others in second.items():
                if not beside[one] >> two & 1 and not contradict(facts, others):
                    beside[one] |= 1 << two
                    beside[two] |= 1 << one
                    waiting.append((one, two))

    for (key, ends), following in chain(ending(graph, place), going_around(graph, place)):
        pair({place[key, ends]: 0}, into[following])
    for apart in parting(graph):
        for one, two in combinations([into[key] for key in apart], 2):
            pair(one, two)
    while waiting:
        here, there = waiting.popleft()
        if here != there:
            pair(after[here], after[there])
    return Instances(points, beside, mask, tokens, dict(_stayed(graph, points, tokens)))


def _stayed(
    graph: Graph, points: list[Key], tokens: list[Tokens | None]
) -> Iterator[tuple[tuple[int, int], int]]:
    """The pairs of `Instances.stayed`."""
    for other, left in enumerate(points):
        ended = (graph.nodes[left].ended or {}) if tokens[other] is None else {}
        limits = bounds(graph.context, ended)
        for at, key in enumerate(points) if limits else ():
            here = graph.nodes[key].state.facts
            mask = union(who for name, who in limits.items() if here.get(name) is (not ended[name]))
            if tokens[at] is not None and mask:
                yield (at, other), mask


Point = tuple[Key, bool]
"""A node of a barrier, or one at which threads end: then the second is true."""


def ending(graph: Graph, place: Container[Point]) -> Iterable[tuple[Point, Key]]:
    """Where some threads of a block end, with each node that others go on to."""
    for key, node in graph.nodes.items():
        if not node.uniform and (key, True) in place:
            for edge in node.edges:
                yield (key, True), edge.to


def going_around(graph: Graph, place: Container[Point]) -> Iterable[tuple[Point, Key]]:
    """Where some threads of a block take part under a guard, and where others go on to."""
    for key, node in graph.nodes.items():
        if not node.uniform and (key, False) in place:
            for edge in node.edges:
                if edge.around:
                    yield (key, False), edge.to


def parting(graph: Graph) -> Iterable[list[Key]]:
    """Where threads of a block may part: the nodes that they go on to."""
    for node in graph.nodes.values():
        following = list(dict.fromkeys(edge.to for edge in node.edges))
        if len(following) > 1 and not node.uniform:
            yield following


def _points(graph: Graph, barrier: Barrier) -> tuple[list[Key], list[int], list[Tokens | None]]:
    points: list[Key] = []
    mask: list[int] = []
    tokens: list[Tokens | None] = []
    for key, here in barrier.arrive.items():
        arrives = graph.nodes[key].arrives
        points.append(key)
        mask.append(union(arrives.values()) & here)
        tokens.append(frozenset.intersection(*arrives))
    for key, node in graph.nodes.items():
        ended = union(one.mask for one in node.events if one.does is Does.EXIT)
        if ended:
            points.append(key)
            mask.append(ended)
            tokens.append(None)
    return points, mask, tokens
