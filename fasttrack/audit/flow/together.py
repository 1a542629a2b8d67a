# SPDX-License-Identifier: Apache-2.0
"""Where the threads of a warp have not parted: what one does next comes after what all did there.

The compiler leaves out a barrier of a warp whose threads are together anyhow, so machine code with
and without one is the same. Threads are together where the kernel begins, and until a branch that
they need not take alike; then again behind a barrier of the whole warp, and where they wait for
each other (`BSYNC`) if they were together where that was made ready (`BSSY`).
"""

from collections import deque
from itertools import combinations

from fasttrack.audit.flow.graph import Graph, Key, Node
from fasttrack.audit.flow.threads import Threads
from fasttrack.audit.program import File, Instruction, Register

_Ready = tuple[bool, frozenset[int]]
"""Whether threads are together, and the convergence barriers that were made ready so."""


def together(graph: Graph) -> frozenset[int]:
    """Addresses of the instructions to which whole warps come that have not parted."""
    into: dict[Key, _Ready] = {next(iter(graph.nodes)): (True, frozenset())}
    waiting = deque(into)
    while waiting:
        key = waiting.popleft()
        held, ready = _through(graph, key, into[key], None)
        node = graph.nodes[key]
        held = held and not may_part(graph.context.threads, node)
        for edge in node.edges:
            old = into.get(edge.to)
            new = (held, ready) if old is None else (old[0] and held, old[1] & ready)
            if new != old:
                into[edge.to] = new
                waiting.append(edge.to)
    apart: set[int] = set()
    for key, start in into.items():
        _through(graph, key, start, apart)
    return frozenset(
        one.address for key in into for one in graph.blocks.runs[key[0]] if one.address not in apart
    )


def may_part(threads: Threads, node: Node) -> bool:
    """Whether threads of a warp may go different ways from a node."""
    ways: dict[object, int] = {}
    for edge in node.edges:
        to = (edge.to[0], edge.to[2])
        ways[to] = ways.get(to, 0) | threads.whole_warps(edge.mask)
    return not node.uniform and any(one & two for one, two in combinations(ways.values(), 2))


def _through(graph: Graph, key: Key, start: _Ready, apart: set[int] | None) -> _Ready:
    """Goes through a run; notes the instructions at which threads need not be together."""
    held, ready = start
    for one in graph.blocks.runs[key[0]]:
        if not held and apart is not None:
            apart.add(one.address)
        number = _number(one)
        if one.opcode == "BSYNC":
            held = number in ready and one.guard is None
        elif one.opcode == "BSSY" and held and number is not None:
            ready |= {number}
        elif one.opcode in ("BSSY", "BMOV"):
            ready = ready - {number} if one.opcode == "BSSY" else frozenset()
        elif one.opcode == "WARPSYNC" and "ALL" in one.modifiers:
            held = held or one.guard is None
    return held, ready


def _number(instruction: Instruction) -> int | None:
    """The convergence barrier that an instruction names."""
    for one in instruction.operands:
        if isinstance(one, Register) and one.file is File.BARRIER:
            return one.index
    return None
