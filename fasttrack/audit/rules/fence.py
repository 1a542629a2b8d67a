# SPDX-License-Identifier: Apache-2.0
"""FENCE: a flag is set before what it announces is seen, or read without holding back reads.

Release: `MEMBAR` of the flag's scope after the last store, then a strong store. Acquire: a strong
load of that scope, then `CCTL.IVALL`. A copy engine sees what threads have written only behind
`FENCE.VIEW.ASYNC`.
"""

from collections.abc import Iterator
from functools import partial

from fasttrack.audit.contract import Array, Class
from fasttrack.audit.finding import Finding
from fasttrack.audit.flow.events import Does, Event
from fasttrack.audit.flow.facts import Facts, Place
from fasttrack.audit.flow.graph import Key
from fasttrack.audit.flow.mbarriers import possible
from fasttrack.audit.flow.memory import SCOPES
from fasttrack.audit.flow.spread import Things
from fasttrack.audit.flow.state import flag_token, seen_token, slot_of
from fasttrack.audit.flow.threads import Number
from fasttrack.audit.flow.values import UNKNOWN_BASE
from fasttrack.audit.rules import announced
from fasttrack.audit.rules.met import OWN, PART, TAKEN, handed, met, narrowed, own, part, unmet
from fasttrack.audit.rules.which import flags_at, is_flag, untold

RULE = "FENCE"
_STORED, _GENERIC, _SHARED = "stored", "generic", "shared"
"""Things that may have happened: a store that is seen up to a scope; stores by threads, to global
and to shared memory, that a copy engine may not see yet."""
_UNDER = "under"
"""A fence that only threads run for which a guard is true, since the last store."""
_ACQUIRED, _PUT = "acquired", "put"
"""A flag that was acquired and that a copy engine need not have seen; that anything was stored to
shared memory."""


def check(facts: Facts) -> Iterator[Finding]:
    """Each release, acquire or hand-over to a copy engine in which something is missing."""
    before = facts.spread(partial(after, facts), partial(handed, facts), narrowed)
    for key, event, things in before:
        if event.does is Does.WRITE:
            yield from _release(facts, key, event, things)
        elif event.does is Does.READ:
            yield from _acquire(facts, key, event)
            if event.how == "bulk" and _unseen(facts, event, things):
                yield facts.finding(RULE, (key, event), _ASYNC)
        elif event.does is Does.BULK_SOURCE:
            yield from _source(facts, key, event, things)
    yield from untold(facts, RULE)
    yield from announced.check(facts, RULE)


def after(facts: Facts, things: Things, event: Event) -> Things:
    """What may have happened once an event has, too."""
    if event.does is Does.WRITE and not is_flag(facts, event):
        return _stored(facts, things, event)
    if event.does is Does.SHARED_WRITE:
        put = things | {(_SHARED, highest(event)), (_PUT,)}
        return put | {part(event)} if event.how == "store" else put
    if event.does is Does.READ and event.instruction.address in facts.taken:
        return things | {own(facts, event, TAKEN)}
    if event.does is Does.MEET:
        return frozenset(met(facts, things, event))
    if event.does is Does.ACQUIRE and event.how == "flag":
        return things | {(_ACQUIRED,)}
    return _fenced(things, event)


def _stored(facts: Facts, things: Things, event: Event) -> Things:
    """What may have happened once memory is written that is no flag."""
    stored: Things = frozenset({(_STORED, ""), own(facts, event)})
    if event.how in ("store", "atomic"):
        stored |= {(_GENERIC, base) for base in event.bases}
    return frozenset(one for one in things if one[0] != _UNDER) | stored


def _fenced(things: Things, event: Event) -> Things:
    """What may have happened once a fence has, if the event is one."""
    if event.does is Does.FENCE and event.sure:
        return frozenset(fenced(things, event.strong))
    if event.does is Does.FENCE:
        return things | {(_UNDER, event.instruction.guard, event.strong, event.instruction.address)}
    if event.does is Does.ASYNC_FENCE and event.sure:
        hidden = {"S": (_SHARED,), "G": (_GENERIC, _ACQUIRED)}.get(
            event.strong, (_SHARED, _GENERIC, _ACQUIRED)
        )
        return frozenset(one for one in things if one[0] not in hidden)
    return things


def fenced(things: Things, scope: str) -> Iterator[tuple[object, ...]]:
    """What is left after a fence: stores are seen as far as it reaches."""
    for thing in things:
        if thing[0] != _STORED:
            yield thing
        elif not reaches(scope, "SYS"):
            yield (_STORED, max(str(thing[1]), scope, key=_rank))


def _rank(scope: str) -> int:
    return SCOPES.index(scope) if scope in SCOPES else -1


def reaches(scope: str, wanted: str) -> bool:
    """Whether a scope is at least as wide as another."""
    return _rank(scope) >= _rank(wanted.upper())


def _source(facts: Facts, key: Key, event: Event, things: Things) -> Iterator[Finding]:
    """A copy engine reads shared memory: all of it must be stored, fenced and met."""
    if _in_shared(things, event.address):
        yield facts.finding(RULE, (key, event), _ASYNC)
    others = unmet(facts, things, event, PART)
    if others:
        # ptxas leaves out the barrier of a warp whose threads are together anyhow.
        beyond = others & ~facts.graph.context.threads.whole_warps(event.mask)
        yield facts.finding(RULE, (key, event), _UNMET, sure=bool(beyond))
    elif (_PUT,) not in things and only_threads_store(facts):
        yield facts.finding(RULE, (key, event), _UNMET)


def only_threads_store(facts: Facts) -> bool:
    """Whether shared memory is filled by stores of threads, and by no copy engine."""
    filled = any(True for _ in facts.those(Does.SHARED_WRITE))
    copied = any(one.how in ("bulk", "copy") for _, one in facts.those(Does.READ))
    return filled and not copied


def highest(event: Event) -> int | None:
    """The last address of an access, if it is known for all of its threads."""
    found = possible(event.address, event.mask)
    return max(found) if found else None


def _in_shared(things: Things, source: Number) -> bool:
    """Whether a copy engine reads what threads may have stored without a fence."""
    stored = [thing[1] for thing in things if thing[0] == _SHARED]
    return any(overlaps(one if isinstance(one, int) else None, source) for one in stored)


def overlaps(stored: int | None, source: Number) -> bool:
    """Whether a store may lie in what a copy engine reads from that address on."""
    return not (isinstance(stored, int) and isinstance(source, int) and stored < source)


def _unseen(facts: Facts, event: Event, things: Things) -> bool:
    """Whether a copy engine reads what only threads are known to see."""
    stored = {thing[1] for thing in things if thing[0] == _GENERIC}
    if stored & (event.bases - {UNKNOWN_BASE}):
        return True
    box = any(one.holds is Class.MAILBOX for one in facts.places(event))
    return box and (_ACQUIRED,) in things


def _release(facts: Facts, key: Key, event: Event, things: Things) -> Iterator[Finding]:
    sure = is_flag(facts, event)
    left = _as_run(facts, event, things)
    open_ = [str(thing[1]) for thing in left if thing[0] == _STORED]
    for flag in flags_at(facts, event):
        wanted = flag.scope.upper()
        if not reaches(event.strong, wanted):
            words = (
                f"flag {flag.name} is set by a store that is {event.strong or 'weak'}",
                f"a strong store of scope {wanted}", f"use st.release.{flag.scope}",
            )  # fmt: skip
            yield facts.finding(RULE, (key, event), words, flag.name, sure)
        of_flag = announced.payload(facts, flag, things)
        if unmet(facts, of_flag, event, OWN, each=flag.array is not Array.OWN):
            yield facts.finding(RULE, (key, event), _of_others(flag.name), flag.name, sure)
        taken = announced.taken(facts, flag, event, things)
        if unmet(facts, taken, event, TAKEN, each=flag.array is not Array.OWN):
            words = announced.still_read(flag.name)
            yield facts.finding(RULE, (key, event), words, flag.name, sure and announced.back(flag))
        if any(not reaches(scope, wanted) for scope in open_):
            words = (
                f"flag {flag.name} is set while stores before it may not be seen at scope {wanted}",
                f"MEMBAR of scope {wanted} between the last store and the flag, on every way",
                f"use st.release.{flag.scope}, after a barrier over the threads that store",
            )
            yield facts.finding(RULE, (key, event), words, flag.name, sure)


def _as_run(facts: Facts, event: Event, things: Things) -> Things:
    """What is left for those threads that run an event, if a fence had the same guard."""
    context, blocks = facts.graph.context, facts.graph.blocks
    for thing in things:
        if thing[0] != _UNDER or event.instruction.guard is None:
            continue
        guard, at = event.instruction.guard, thing[3]
        run = blocks.runs[blocks.of(event.instruction.address)]
        between = [one for one in run if isinstance(at, int) and one.address >= at]
        held = slot_of(guard) not in {
            slot
            for one in between
            if one.address < event.instruction.address
            for slot in context.written(one)
        }
        if thing[1] == guard and held and between and between[0].address == at:
            things = frozenset(fenced(things, str(thing[2])))
    return things


def _of_others(name: str) -> tuple[str, str, str]:
    return (
        f"flag {name} is set by threads that have not met others which store what it announces",
        "a barrier between the stores and the flag, or a flag set by each thread that stores",
        "use __syncthreads before the thread that releases the flag",
    )


def _acquire(facts: Facts, key: Key, event: Event) -> Iterator[Finding]:
    for flag in flags_at(facts, event) if is_flag(facts, event) else ():
        if not reaches(event.strong, flag.scope):
            words = (
                f"flag {flag.name} is read by a load that is {event.strong or 'weak'}",
                f"a strong load of scope {flag.scope.upper()}", f"use ld.acquire.{flag.scope}",
            )  # fmt: skip
            yield facts.finding(RULE, (key, event), words, flag.name)
    for place in facts.places(event):
        if place.holds is Class.MAILBOX and place.slot is not None:
            yield from _mailbox(facts, key, event, place)


def _mailbox(facts: Facts, key: Key, event: Event, place: Place) -> Iterator[Finding]:
    assert place.slot is not None
    if place.slot.sentinel:
        if not event.strong and not event.constant:
            yield facts.finding(RULE, (key, event), _sentinel(place.name), place.name)
        return
    flag = facts.layout.named(place.slot.after) if place.slot.after else None
    if flag is None:
        return
    acquired, seen = (
        facts.flags.wanted(flag.offset, token(flag.offset)) in event.tokens
        for token in (flag_token, seen_token)
    )
    if seen and not acquired:
        words = (
            f"{place.name} is read after flag {flag.name} was seen, but not acquired",
            "CCTL.IVALL between the load of the flag and the read",
            f"use ld.acquire.{flag.scope}, or a fence after the loop",
        )
        yield facts.finding(RULE, (key, event), words, place.name)


def _sentinel(name: str) -> tuple[str, str, str]:
    return (
        f"{name} says by its own values that it is full, and is read by a weak load",
        "strong loads, whose values are used as they were polled",
        "use ld.relaxed or ld.volatile",
    )


_ASYNC = (
    "a copy engine reads memory that threads may have written without a fence for it",
    "FENCE.VIEW.ASYNC by the threads that wrote, before they meet the one that starts the copy",
    "use fence.proxy.async after the stores and before the barrier",
)
_UNMET = (
    "a copy engine reads shared memory that other threads store, and its thread has not met them",
    "a barrier between the stores with their FENCE.VIEW.ASYNC and the thread that starts the copy",
    "use fence.proxy.async after the stores, then __syncthreads",
)
