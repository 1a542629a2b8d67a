# SPDX-License-Identifier: Apache-2.0
"""Stores that several threads do: whether one that goes on from them has met the others.

A flag that one thread sets, or a copy that it starts, is of what all have stored. Such a store is
remembered with the threads that do it until they meet: at a barrier to which all of them come, or
behind an mbarrier at which each of their warps arrives.
"""

from collections.abc import Iterator

from fasttrack.audit.flow.events import Does, Event
from fasttrack.audit.flow.facts import Facts
from fasttrack.audit.flow.spread import Things
from fasttrack.audit.flow.threads import Lanes, Number, Threads, mask_of

OWN, PART, TAKEN = "own", "part", "taken"
"""A store to global memory since the threads last met: its address in the code, the threads that
do it, those that have not met them since, and how far they have; a store to shared memory, with
its address there; and as the first, a read of a mailbox whose flag this kernel sets."""
_KINDS = (OWN, PART, TAKEN)
_WARP = "WARPSYNC"
_ORDERED = ("load", "store", "atomic")
"""What threads do in order: copy engines do not."""


def own(facts: Facts, event: Event, kind: str = OWN) -> tuple[object, ...]:
    """That threads access global memory; those of a warp that is together have met behind it."""
    address = event.instruction.address
    far = _WARP if address in facts.together and event.how in _ORDERED else ""
    return (kind, address, event.mask, event.mask, far)


def part(event: Event) -> tuple[object, ...]:
    """That threads store to shared memory."""
    return (PART, event.address, event.mask, event.mask, "")


def met(facts: Facts, things: Things, event: Event) -> Iterator[tuple[object, ...]]:
    """What is left once threads have met: stores of some who need not have been there."""
    there = 0 if only_arrives(event) else company(facts, event)
    for thing in things:
        if event.how == _WARP and thing[0] in _KINDS:
            yield from narrowed(frozenset({thing}), ~event.mask)
            yield from ((*one[:4], _WARP) for one in narrowed(frozenset({thing}), event.mask))
        elif _are_there(thing, there):
            yield from narrowed(frozenset({thing}), ~event.mask)
        else:
            yield thing


def narrowed(things: Things, mask: int) -> Things:
    """What is left for threads of a mask."""
    kept = set()
    for thing in things:
        if thing[0] not in _KINDS:
            kept.add(thing)
        elif isinstance(thing[3], int) and thing[3] & mask:
            kept.add((*thing[:3], thing[3] & mask, thing[4]))
    return frozenset(kept)


def handed(facts: Facts, things: Things, event: Event) -> Things:
    """What others take over from threads that meet them or arrive."""
    if event.does not in (Does.ARRIVE, Does.MEET):
        return things
    there = company(facts, event)
    everyone = facts.graph.context.threads.everyone
    return frozenset(
        (*thing[:3], everyone, thing[4]) if thing[0] in _KINDS else thing
        for thing in things
        if not _are_there(thing, there)
    )


def only_arrives(event: Event) -> bool:
    """Whether threads go on from a barrier without waiting for the others."""
    return event.how == "UCGABAR_ARV" or (
        event.how == "BAR" and "ARV" in event.instruction.modifiers
    )


def company(facts: Facts, event: Event) -> int:
    """The threads that have come once a barrier or an mbarrier is passed."""
    if event.does is Does.ARRIVE or event.how == "SYNCS":
        return facts.arrivers(event)
    everyone = facts.graph.context.threads.everyone
    return facts.company.get(event.instruction.address, everyone)


def _are_there(thing: tuple[object, ...], there: int) -> bool:
    """Whether it is a store, and all threads that do it are among those."""
    return thing[0] in _KINDS and isinstance(thing[2], int) and not thing[2] & ~there


def unmet(facts: Facts, things: Things, event: Event, kind: str, each: bool = False) -> int:
    """Threads whose stores of a kind the threads of an event go on from without having met them.

    Stores to shared memory below the event's own address are none of it. A flag that each of
    several threads sets for all must follow the stores of all; one that counts them is set by the
    last.
    """
    threads = facts.graph.context.threads
    each = each and not counts(event)
    others = 0
    for thing in things:
        if thing[0] != kind or not isinstance(thing[2], int) or not isinstance(thing[3], int):
            continue
        if not event.mask & thing[3]:
            continue
        here = threads.whole_warps(event.mask) if thing[4] else event.mask
        if each and not _is_one(threads, event.mask & thing[3], in_warp=bool(thing[4])):
            here = 0
        stored = thing[1] if isinstance(thing[1], int | Lanes) else None
        below = 0 if kind != PART else _below(stored, event.address, thing[2])
        others |= thing[2] & ~here & ~below
    return others


def counts(event: Event) -> bool:
    """Whether each thread adds to a flag, so that a reader can wait for all of them."""
    words = event.instruction.modifiers
    return event.how == "atomic" and not {"EXCH", "CAS"} & set(words)


def _is_one(threads: Threads, mask: int, in_warp: bool) -> bool:
    """Whether a mask is of one thread, or of threads of one warp that have met."""
    warps = threads.warps
    return mask.bit_count() < 2 or (in_warp and any(not mask & ~one for one in warps))


def _below(stored: Number, source: Number, mask: int) -> int:
    """Threads of the mask that store below an address."""
    if not isinstance(source, int) or stored is None:
        return 0
    if isinstance(stored, int):
        return mask if stored < source else 0
    return mask_of(stored.known & (stored.values < source)) & mask
