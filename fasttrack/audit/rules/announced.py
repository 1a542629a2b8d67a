# SPDX-License-Identifier: Apache-2.0
"""What a flag announces: it must be stored before, and no store of it may be left unannounced.

A thread that stores some of it once the flag may have been set, or that the one which sets the
flag need not have met, is in order only if the flag is surely set anew after it: by that thread, or
by one that it meets. Where the contract does not say what a flag announces, it is everything.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, partial

from fasttrack.audit.contract import Class
from fasttrack.audit.finding import Finding
from fasttrack.audit.flow.events import Does, Event
from fasttrack.audit.flow.facts import Facts, Place
from fasttrack.audit.flow.followed import Followed, all_pass
from fasttrack.audit.flow.graph import Key
from fasttrack.audit.flow.layout import Slot
from fasttrack.audit.flow.opcodes import READS
from fasttrack.audit.flow.spread import Things
from fasttrack.audit.rules.met import OWN, TAKEN
from fasttrack.audit.rules.which import candidates, flags_at, is_flag

_SET = "set"
"""Thing that may have happened: a flag was set."""


def check(facts: Facts, rule: str) -> Iterator[Finding]:
    """Each store of what a flag announces that the flag may be seen without."""
    flags = [_Set(facts, one) for one in facts.layout.slots]
    flags = [one for one in flags if one.releases]
    if not flags:
        return
    for key, event, things in facts.spread(partial(_after, facts)):
        for flag in flags:
            if event.does is Does.WRITE and not is_flag(facts, event):
                yield from _unannounced(flag, rule, (key, event), things)
            elif event.does is Does.READ:
                yield from _apart(flag, rule, (key, event), things)


def payload(facts: Facts, flag: Slot, things: Things) -> Things:
    """Of stores that threads have done, those of what a flag announces."""
    if flag.announces is None:
        return things
    return frozenset(one for one in things if one[0] != OWN or one[1] in _addresses(facts, flag))


def _addresses(facts: Facts, flag: Slot) -> set[int]:
    return {
        event.instruction.address
        for _, event in facts.those(Does.WRITE)
        if any(announces(flag, one) for one in candidates(facts, event))
    }


def taken(facts: Facts, flag: Slot, event: Event, things: Things) -> Things:
    """Of reads of mailboxes, those that a flag which is set there says are over."""
    if not sets(facts, flag, event):
        return frozenset()
    return frozenset(one for one in things if one[0] == TAKEN and ends(facts, flag, _at(one)))


def ends(facts: Facts, flag: Slot, address: int) -> bool:
    """Whether a flag that is set says that a read is over: one of its own mailbox.

    A flag that announces nothing and is no mailbox's own is a credit: it speaks of all of them.
    """
    names = facts.taken.get(address, frozenset())
    credit = back(flag) and not any(flag.is_called(one.after or "") for one in facts.layout.slots)
    return bool(names) and (credit or any(map(flag.is_called, names)))


def _at(thing: tuple[object, ...]) -> int:
    return thing[1] if isinstance(thing[1], int) else -1


def back(flag: Slot) -> bool:
    """Whether a flag is known to be set back: it may also say that a mailbox is full."""
    return flag.announces == ()


def still_read(name: str) -> tuple[str, str, str]:
    """What is wrong where a mailbox may be filled anew while it is read."""
    return (
        f"flag {name} is set while others, who have not been met, may still read what is behind it",
        "a barrier between the reads and the flag, or a flag set by each thread that reads",
        "use __syncthreads after the reads and before the thread that sets the flag back",
    )


def announces(flag: Slot, place: Place) -> bool:
    """Whether a flag announces what is stored there; if that is not known, it may."""
    if place.holds is Class.FLAG:
        return False
    if flag.announces is None or place.slot is None or place.holds is None:
        return True
    return any(place.slot.is_called(name) for name in flag.announces)


def _after(facts: Facts, things: Things, event: Event) -> Things:
    """A flag may have been set once it has."""
    if event.does is not Does.WRITE:
        return things
    return things | {(_SET, one) for one in flags_at(facts, event)}


@dataclass(frozen=True)
class _Set:
    """A flag, and where it is set."""

    facts: Facts
    flag: Slot

    @cached_property
    def releases(self) -> dict[Key, dict[int, int]]:
        """Of each node, the threads that surely set it at an event; none where that is not sure."""
        found: dict[Key, dict[int, int]] = {}
        for key, node in self.facts.graph.nodes.items():
            for at, event in enumerate(node.events):
                if sets(self.facts, self.flag, event):
                    sure = len(candidates(self.facts, event)) == 1
                    found.setdefault(key, {})[at] = event.mask & event.surely if sure else 0
        return found

    def place(self, key: Key, event: Event) -> int:
        """Which of a node's events it is."""
        events = self.facts.graph.nodes[key].events
        return next(at for at, one in enumerate(events) if one is event)

    @cached_property
    def surely(self) -> Followed:
        """Who may end without setting it, or meeting one who does."""
        return Followed(self.facts.graph, self.facts.met_alike, self.releases)

    @cached_property
    def at_most(self) -> Followed:
        """Who may end without coming past a point that is before all that sets it."""
        return Followed(self.facts.graph, self.facts.met_alike, self.releases, self._past)

    @cached_property
    def perhaps(self) -> Followed:
        """Who can not but end without coming past such a point, or meeting one who may."""
        met, past = self.facts.met_alike, self._past
        return Followed(self.facts.graph, met, self.releases, past, perhaps=True)

    @cached_property
    def _past(self) -> frozenset[int]:
        return all_pass(self.facts.graph, self.releases)


def sets(facts: Facts, flag: Slot, event: Event) -> bool:
    """Whether an access may set a flag; an atomic that only looks at one does not."""
    if event.does is not Does.WRITE or flag not in flags_at(facts, event):
        return False
    said = any(flag.is_called(name) for name in facts.contract.writes)
    return said or event.instruction.opcode not in READS


def _apart(flag: _Set, rule: str, where: tuple[Key, Event], things: Things) -> Iterator[Finding]:
    """A read of a mailbox by threads that whoever sets its flag back need not meet.

    Where the flag may have been set before, it may also be the one that says it is full.
    """
    key, event = where
    facts, name = flag.facts, flag.flag.name
    if (_SET, flag.flag) in things or not ends(facts, flag.flag, event.instruction.address):
        return
    if flag.at_most.open(key, flag.place(key, event)) & event.mask:
        yield facts.finding(rule, where, still_read(name), name, back(flag.flag))


def _unannounced(
    flag: _Set, rule: str, where: tuple[Key, Event], things: Things
) -> Iterator[Finding]:
    key, event = where
    facts, name = flag.facts, flag.flag.name
    places = [one for one in candidates(facts, event) if announces(flag.flag, one)]
    at = flag.place(key, event)
    if flag.flag.announces == () or not places or not flag.surely.open(key, at) & event.mask:
        return
    late = (_SET, flag.flag) in things
    if not late and not flag.at_most.open(key, at) & event.mask:
        return
    never = flag.perhaps.open(key, at) & event.mask
    what = places[0].name or "memory"
    saw = (
        f"{what} is stored once flag {name} may have been set, which need not be set anew"
        if late
        else f"{what} is stored by threads that the one which sets flag {name} need not have met"
    )
    want = f"all that {name} announces stored before it is set, and met by the thread that sets it"
    fix = f"set {name} last, behind a barrier; or say what it announces (`announces`)"
    sure = bool(never) and all(one.holds is not None for one in places) and facts.sure(event)
    yield facts.finding(rule, where, (saw, want, fix), name, sure)
