# SPDX-License-Identifier: Apache-2.0
"""Which barriers pass on what a thread has waited for.

A thread gains a token at a barrier if some other thread surely takes part in every instance that
it takes part in, and holds the token there. Which points of two threads may be the same instance
is a relation over the graph's nodes: threads are at one point until they part at a branch that is
not the same for the whole block. The first graph is found with nothing passed on; whatever that
graph shows to be passed on is used for the next one, until nothing is gained. Each step rests on
a graph that leaves nothing out, so the last one does, too.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import partial

from fasttrack.audit.flow.blocks import Blocks
from fasttrack.audit.flow.explore import Explorer
from fasttrack.audit.flow.flags import flags_of
from fasttrack.audit.flow.graph import Grants, Graph, Key
from fasttrack.audit.flow.mbarriers import mbarrier_grants
from fasttrack.audit.flow.meetings import Barrier, Instances, barriers_of, instances, last_of
from fasttrack.audit.flow.operands import Context
from fasttrack.audit.flow.state import passed_on
from fasttrack.audit.flow.threads import members, union
from fasttrack.audit.flow.values import NOWHERE

ROUNDS = 12
"""How often a graph is made again at most; what is not shown by then is not used."""


def settled(blocks: Blocks, make: Callable[[], Context]) -> Graph:
    """The graph of a kernel, with everything passed on that can be shown to be."""
    grants = Grants()
    pointers = distances = NOWHERE
    for _ in range(ROUNDS):
        context = make()
        context.pointers, context.distances = pointers, distances
        graph = Explorer(blocks, context, grants).explore()
        more_pointers = context.followed and context.pointers != pointers
        if more_pointers or context.distances != distances:
            # What was shown without these is not shown with them.
            pointers, distances = context.pointers, context.distances
            continue
        spins = graph.spins | grants.spins
        more = Grants(barrier_grants(graph), mbarrier_grants(graph), spins)
        if more == grants:
            return graph
        grants = more
    return graph


def barrier_grants(graph: Graph) -> dict[Key, dict[str, int]]:
    """Of each node that ends in a barrier, the threads that leave it with each token."""
    grants: dict[Key, dict[str, int]] = {}
    flags = flags_of(graph)
    for name, barrier in barriers_of(graph).items():
        given = _given(graph, barrier, partial(flags.passed, in_warp=name == "warp"))
        if name == "cluster":
            given = _after_arrival(graph, given)
        else:
            given = {key: tokens for key, tokens in given.items() if key in barrier.leave}
        for key, tokens in given.items():
            for token, gaining in tokens.items():
                here = grants.setdefault(key, {})
                here[token] = here.get(token, 0) | gaining
    return grants


def _given(
    graph: Graph, barrier: Barrier, passed: Callable[[str, int], str | None]
) -> dict[Key, dict[str, int]]:
    """Of each point of a barrier, the threads that have each token once it is passed."""
    found = instances(graph, barrier)
    taking_part = [
        (mask, tokens)
        for mask, tokens in zip(found.mask, found.tokens, strict=True)
        if tokens is not None
    ]
    present = union(mask for mask, _ in taking_part)
    held = passed_on(frozenset().union(*(tokens for _, tokens in taking_part)))
    given: dict[Key, dict[str, int]] = {}
    for group in barrier.groups:
        if not everybody_comes(barrier, present & group):
            continue
        for at, key in enumerate(found.points):
            for token in held if found.tokens[at] is not None else ():
                sure = sure_of(found, at, token, barrier.count is not None) & present & group
                gained = passed(token, sure) if sure else None
                if gained is not None:
                    tokens = given.setdefault(key, {})
                    tokens[gained] = tokens.get(gained, 0) | (group & barrier.arrive[key])
    return given


def everybody_comes(barrier: Barrier, present: int) -> bool:
    """Whether an instance can not happen without each thread that may come to it."""
    return barrier.count is None or barrier.count == present.bit_count()


def sure_of(found: Instances, at: int, token: str, counted: bool) -> int:
    """Threads that are surely in the instance at a point, with the token.

    Where the barrier counts, a thread that has ended could not have let it happen.
    """
    missing = 0
    for other in members(found.beside[at]):
        tokens = found.tokens[other]
        if tokens is None:
            missing |= 0 if counted else found.mask[other] & ~found.stayed.get((at, other), 0)
        elif token not in tokens:
            missing |= found.mask[other]
    return ~missing


def _after_arrival(
    graph: Graph, given: Mapping[Key, Mapping[str, int]]
) -> dict[Key, dict[str, int]]:
    """Of each wait for the cluster, what every arrival that may come before it was given."""
    arrived: dict[Key, set[Key]] = {key: set() for key in graph.nodes}
    changed = True
    while changed:
        changed = False
        for key, node in graph.nodes.items():
            arrives = node.arrives and last_of(graph, key).opcode == "UCGABAR_ARV"
            here = {key} if arrives else arrived[key]
            for edge in node.edges:
                if not here <= arrived[edge.to]:
                    arrived[edge.to] |= here
                    changed = True
    result: dict[Key, dict[str, int]] = {}
    for key in graph.nodes:
        if last_of(graph, key).opcode == "UCGABAR_WAIT" and arrived[key]:
            options = [given.get(one, {}) for one in arrived[key]]
            shared = set(options[0]).intersection(*options[1:])
            result[key] = {token: _common(option[token] for option in options) for token in shared}
    return result


def _common(masks: Iterable[int]) -> int:
    whole = -1
    for mask in masks:
        whole &= mask
    return whole
