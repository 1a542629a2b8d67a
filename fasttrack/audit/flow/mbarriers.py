# SPDX-License-Identifier: Apache-2.0
"""What everybody holds who arrives at an mbarrier."""

from fasttrack.audit.flow.events import Does, Event
from fasttrack.audit.flow.flags import Flags, flags_of
from fasttrack.audit.flow.graph import Graph, Key
from fasttrack.audit.flow.state import Tokens, passed_on
from fasttrack.audit.flow.threads import Number, mask_of, members
from fasttrack.audit.program import Register


def mbarrier_grants(graph: Graph) -> dict[int, frozenset[str]]:
    """Tokens that everybody holds who arrives at an mbarrier, by its address.

    Who arrives and names the bytes that are to come also holds what it holds when it starts the
    last copy that it surely starts: before that one, the bytes can not all be there.
    """
    later = copies_to_come(graph)
    known: dict[int, list[Tokens]] = {}
    arrive: dict[int, int] = {}
    anywhere: list[Tokens] = []
    for key, node in graph.nodes.items():
        for at, event in enumerate(node.events):
            if event.does is not Does.ARRIVE:
                continue
            found = possible(event.address, event.mask)
            if found is None:
                anywhere.append(event.tokens)
            for one in found or ():
                coming = later[key][at] if event.how == "bytes" else frozenset()
                guards = (None, event.instruction.guard)
                held = {token for place, token, guard in coming if place == one and guard in guards}
                known.setdefault(one, []).append(event.tokens | held)
                arrive[one] = arrive.get(one, 0) | event.mask
    flags = flags_of(graph)
    return {
        one: _passed(flags, passed_on(frozenset.intersection(*tokens, *anywhere)), arrive[one])
        for one, tokens in known.items()
    }


def _passed(flags: Flags, tokens: Tokens, arrive: int) -> Tokens:
    """What others gain from threads that all hold some tokens."""
    gained = (flags.passed(one, arrive, in_warp=False) for one in tokens)
    return frozenset(one for one in gained if one is not None)


Coming = frozenset[tuple[int, str, Register | None]]
"""Copies that will surely be started: address of their mbarrier, a token that is held then, and
within one node the guard."""


def copies_to_come(graph: Graph) -> dict[Key, list[Coming]]:
    """Of each event of each node, the copies of the same phase that its thread surely starts."""
    into: dict[Key, Coming | None] = dict.fromkeys(graph.nodes)
    found: dict[Key, list[Coming]] = {}
    changed = True
    while changed:
        changed = False
        for key in reversed(graph.nodes):
            node = graph.nodes[key]
            options = [into[edge.to] for edge in node.edges]
            known = [one for one in options if one is not None]
            if options and not known:
                continue  # only ways that are not known yet: they will be
            ends = any(event.does is Does.EXIT for event in node.events)
            after = frozenset() if ends or not known else frozenset.intersection(*known)
            coming, found[key] = _backwards(node.events, after)
            if into[key] != coming:
                into[key] = coming
                changed = True
    return {
        key: found.get(key, [frozenset()] * len(node.events)) for key, node in graph.nodes.items()
    }


def _backwards(events: list[Event], coming: Coming) -> tuple[Coming, list[Coming]]:
    """What is to come before a node's events, and after each of them."""
    each: list[Coming] = []
    for event in reversed(events):
        each.append(coming)
        if event.does is Does.ARRIVE:
            coming = of_this_phase(coming, event.address)
        elif event.does is Does.COPY and isinstance(event.address, int):
            guard = event.instruction.guard
            coming |= {(event.address, token, guard) for token in event.tokens}
    return frozenset(one for one in coming if one[2] is None), each[::-1]


def of_this_phase(coming: Coming, address: Number) -> Coming:
    """What is to come without what comes after another arrival at that mbarrier."""
    if not isinstance(address, int):
        return frozenset()
    return frozenset(one for one in coming if one[0] != address)


def possible(number: Number, mask: int) -> set[int] | None:
    """The numbers that it may be for threads of the mask; None for any."""
    if isinstance(number, int):
        return {number}
    if number is None or mask & ~mask_of(number.known):
        return None
    return {int(number.values[at]) for at in members(mask)}
