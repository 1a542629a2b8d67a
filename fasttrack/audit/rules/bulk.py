# SPDX-License-Identifier: Apache-2.0
"""FENCE for bulk stores: copy engines write global memory after their thread went on.

Such a store (`UBLKCP.G.S`, `UBLKRED`, `UTMASTG`, `UTMAREDG`) is in a group once its thread has run
`UTMACMDFLUSH`. The thread that started it knows that it is done behind `DEPBAR.LE SB0, n` with
`CCTL.IVALL` right after it, if at most n groups came later; from then on it is as if the thread
itself had stored, and no fence for copy engines is needed. Without `CCTL.IVALL` (`.read`), only
shared memory was read. A thread that has met one with a store that is not done can not wait for
it; once they meet again, it knows what that one knows.
"""

from collections.abc import Iterator
from functools import partial

from fasttrack.audit.contract import Class
from fasttrack.audit.finding import Finding
from fasttrack.audit.flow.events import Does, Event
from fasttrack.audit.flow.facts import Facts
from fasttrack.audit.flow.graph import Key
from fasttrack.audit.flow.groups import visible
from fasttrack.audit.flow.spread import NOTHING, Things
from fasttrack.audit.rules.fence import reaches
from fasttrack.audit.rules.met import company, only_arrives

RULE = "FENCE"
_OPEN, _UNREAD = "open", "unread"
"""A bulk store that need not be done, or need not even have read its source: address in the code,
the threads that may have started it, and how many groups came after its own; -1 if it is in none.
Each of those threads knows it of its own store alone."""
_LEFT = "left"
"""The same of a thread that was met: address in the code, the threads that may have started it,
and those that go on from them."""
_STORED = "stored"
"""A store that is done for its thread: the scope up to which it is seen, and the threads that go
on from it."""
_MOST = 8
"""How many later groups are told apart."""


def check(facts: Facts) -> Iterator[Finding]:
    """Each flag that is set before a bulk store is done, each end before one was read."""
    for key, event, things in open_before(facts):
        if event.does is Does.WRITE:
            yield from _flag(facts, key, event, things)
        elif event.does is Does.EXIT and _own(things, _UNREAD, event):
            yield facts.finding(RULE, (key, event), _END)


def open_before(facts: Facts) -> Iterator[tuple[Key, Event, Things]]:
    """Every event, with the bulk stores before it that need not be done."""
    if not any(starts(event) for _, event in facts.those(Does.WRITE)):
        return ((key, event, NOTHING) for key, event in facts.events)
    return facts.spread(partial(after, facts), partial(handed, facts), narrowed)


def stays_open(facts: Facts, event: Event, things: Things) -> bool:
    """Whether a thread's bulk store need not be done before an event: its wait, or its end."""
    if event.does is Does.EXIT:
        return _own(things, _OPEN, event)
    return event.does is Does.GROUPS and _waited(facts, things, event) != things


def starts(event: Event) -> bool:
    """Whether a copy engine is started that writes global memory."""
    return event.does is Does.WRITE and event.how == "bulk"


def after(facts: Facts, things: Things, event: Event) -> Things:
    """What may be open once an event has happened."""
    if starts(event):
        at = event.instruction.address
        return things | {(_OPEN, at, event.mask, -1), (_UNREAD, at, event.mask, -1)}
    if event.does is Does.COMMIT:
        return frozenset(one for thing in things for one in _committed(thing, event))
    if event.does is Does.GROUPS:
        return _waited(facts, things, event)
    if event.does is Does.FENCE:
        return frozenset(one for thing in things for one in _fenced(thing, event))
    if event.does is Does.MEET and event.how != "SYNCS" and not only_arrives(event):
        there = facts.sure_to_come.get(event.instruction.address, 0)
        return frozenset(one for one in things if one[0] != _LEFT or _bits(one[2]) & ~there)
    return things


def handed(facts: Facts, things: Things, event: Event) -> Things:
    """What others know who meet the threads of an event, or see that they arrived."""
    if event.does not in (Does.ARRIVE, Does.MEET):
        return things
    there = left_behind(facts, event)
    found: set[tuple[object, ...]] = set()
    for thing in things:
        if thing[0] == _OPEN and (owners := _bits(thing[2]) & event.mask):
            # A thread knows of its own store, and waits for it.
            others = there if owners & (owners - 1) else there & ~owners
            found.add((_LEFT, thing[1], owners, others))
        elif thing[0] in (_LEFT, _STORED) and _bits(thing[-1]) & event.mask:
            found.add((*thing[:-1], there))
    return frozenset(found)


def narrowed(things: Things, mask: int) -> Things:
    """What is left for threads of a mask."""
    kept = set()
    for thing in things:
        at = 2 if thing[0] in (_OPEN, _UNREAD) else len(thing) - 1
        if of_them := _bits(thing[at]) & mask:
            kept.add((*thing[:at], of_them, *thing[at + 1 :]))
    return frozenset(kept)


def left_behind(facts: Facts, event: Event) -> int:
    """Threads that may go on from those of an event."""
    if event.how == "WARPSYNC":
        return facts.graph.context.threads.whole_warps(event.mask)
    if event.does is Does.ARRIVE:
        return facts.graph.context.threads.everyone
    return company(facts, event)


def _committed(thing: tuple[object, ...], event: Event) -> Iterator[tuple[object, ...]]:
    """A store that is in no group joins one; a group has one more after it."""
    owners, later = _bits(thing[2]) if len(thing) > 2 else 0, thing[-1]
    if thing[0] not in (_OPEN, _UNREAD) or not isinstance(later, int):
        yield thing
        return
    moved = owners & event.mask
    if moved:
        yield (*thing[:2], moved, min(later + 1, _MOST))
    if owners & ~(moved & event.surely):
        yield (*thing[:2], owners & ~(moved & event.surely), later)


def _waited(facts: Facts, things: Things, event: Event) -> Things:
    """What is open once all groups but the newest are done, or have been read."""
    kinds = (_OPEN, _UNREAD) if visible(facts.graph, event) else (_UNREAD,)
    kept: set[tuple[object, ...]] = set()
    for thing in things:
        done = 0
        if thing[0] in kinds and finishes(thing[3], event):
            done = _bits(thing[2]) & event.mask & event.surely
        if not done:
            kept.add(thing)
            continue
        if thing[0] == _OPEN:
            kept.add((_STORED, "", done))
        if _bits(thing[2]) & ~done:
            kept.add((*thing[:2], _bits(thing[2]) & ~done, thing[3]))
    return frozenset(kept)


def _fenced(thing: tuple[object, ...], event: Event) -> Iterator[tuple[object, ...]]:
    """A store that is done is seen as far as a fence of those who go on from it reaches."""
    carriers = _bits(thing[-1])
    fenced = carriers & event.mask & event.surely
    if thing[0] != _STORED or not fenced:
        yield thing
        return
    if not reaches(event.strong, "SYS"):
        yield (_STORED, event.strong if reaches(event.strong, str(thing[1])) else thing[1], fenced)
    if carriers & ~fenced:
        yield (*thing[:-1], carriers & ~fenced)


def finishes(later: object, event: Event) -> bool:
    """Whether a wait is over only once a group is done that so many came after."""
    newest = event.address
    return isinstance(later, int) and isinstance(newest, int) and later >= max(newest, 0)


def not_done(things: Things, event: Event) -> bool:
    """Whether threads of an event go on from a bulk store that need not be done."""
    met = any(one[0] == _LEFT and _bits(one[3]) & event.mask for one in things)
    return met or _own(things, _OPEN, event)


def _own(things: Things, kind: str, event: Event) -> bool:
    return any(one[0] == kind and _bits(one[2]) & event.mask for one in things)


def _bits(mask: object) -> int:
    return mask if isinstance(mask, int) else 0


def _flag(facts: Facts, key: Key, event: Event, things: Things) -> Iterator[Finding]:
    """A flag that says that all is there."""
    for place in facts.places(event):
        if place.holds is not Class.FLAG or place.slot is None:
            continue
        scope = place.slot.scope
        seen = [str(one[1]) for one in things if one[0] == _STORED and _bits(one[2]) & event.mask]
        if not_done(things, event):
            yield facts.finding(RULE, (key, event), _open(place.name), place.name)
        elif any(not reaches(one, scope) for one in seen):
            yield facts.finding(RULE, (key, event), _unseen(place.name, scope), place.name)


def _open(name: str) -> tuple[str, str, str]:
    return (
        f"flag {name} is set while a bulk store before it need not be done",
        "DEPBAR.LE SB0 and CCTL.IVALL, by the thread that started it and behind its UTMACMDFLUSH",
        "use cp.async.bulk.commit_group and cp.async.bulk.wait_group 0, which is not .read",
    )


def _unseen(name: str, scope: str) -> tuple[str, str, str]:
    return (
        f"flag {name} is set while a bulk store before it may not be seen at scope {scope.upper()}",
        f"MEMBAR of scope {scope.upper()} between the wait for the bulk store and the flag",
        f"use st.release.{scope} after cp.async.bulk.wait_group 0",
    )


_END = (
    "a thread ends before its bulk store need have read shared memory",
    "DEPBAR.LE SB0 behind UTMACMDFLUSH before the thread that started it ends",
    "use cp.async.bulk.commit_group and cp.async.bulk.wait_group.read 0",
)
