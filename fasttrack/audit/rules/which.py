# SPDX-License-Identifier: Apache-2.0
"""Which flag an access is of.

A flag may be picked at run time, or its pointer read from memory. What is written is then one of
several buffers; those that no kernel writes are none of them.
"""

from collections.abc import Iterator

from fasttrack.audit.contract import Class
from fasttrack.audit.finding import Finding
from fasttrack.audit.flow.events import Does, Event
from fasttrack.audit.flow.facts import Facts, Place
from fasttrack.audit.flow.graph import Key
from fasttrack.audit.flow.layout import Slot

_BY_THREADS = ("load", "store", "atomic")
"""How threads themselves access memory: copy engines set no flags."""
_WIDE = frozenset({"128", "256"})
"""Widths that no flag has."""


def candidates(facts: Facts, event: Event) -> tuple[Place, ...]:
    """The memory that an access may truly touch: what is static is not written."""
    places = facts.places(event)
    if event.does is not Does.WRITE:
        return places
    return tuple(one for one in places if one.holds is not Class.STATIC) or places


def flags_at(facts: Facts, event: Event) -> tuple[Slot, ...]:
    """The flags that an access may be of."""
    places = candidates(facts, event)
    return tuple(one.slot for one in places if one.slot is not None and one.holds is Class.FLAG)


def is_flag(facts: Facts, event: Event) -> bool:
    """Whether an access is of a flag, whichever."""
    return all(one.holds is Class.FLAG for one in candidates(facts, event))


def untold(facts: Facts, rule: str) -> Iterator[Finding]:
    """Accesses that may be of a flag, or of another one, and it can not be told."""
    spots: dict[Slot, set[object]] = {}
    those = [one for one in facts.those(Does.READ, Does.WRITE) if one[1].how in _BY_THREADS]
    for _, event in those:
        for flag in flags_at(facts, event) if event.strong else ():
            spots.setdefault(flag, set()).add(event.where)
    setting = sets_flags(facts)
    for key, event in those:
        if is_untold(facts, event, setting):
            yield facts.finding(rule, (key, event), _UNTOLD, sure=False)
        elif event.strong:
            yield from _several(facts, rule, (key, event), spots)


def is_untold(facts: Facts, event: Event, setting: bool) -> bool:
    """Whether an access may be of a flag of which nothing is known, in a kernel that sets some."""
    wide = _WIDE & set(event.instruction.modifiers)
    if not event.strong and (event.does is not Does.WRITE or wide or not setting):
        return False
    return any(one.holds is None for one in candidates(facts, event))


def sets_flags(facts: Facts) -> bool:
    """Whether the kernel sets flags, so that a store may be the release of one."""
    said = facts.contract.writes
    slots = [one for one in facts.layout.slots if Class.FLAG in (one.holds, one.pointees)]
    return any(one.is_called(name) for one in slots for name in said) or any(
        flags_at(facts, event) for _, event in facts.those(Does.WRITE)
    )


def _several(
    facts: Facts, rule: str, where: tuple[Key, Event], spots: dict[Slot, set[object]]
) -> Iterator[Finding]:
    """A flag of which the machine code does not show that it is the only one."""
    for flag in flags_at(facts, where[1]):
        if flag.array is None and (None in spots[flag] or len(spots[flag]) > 1):
            words = (
                f"flag {flag.name} may be another one for each thread, round or access",
                "one flag, or what the contract says of several (`array`)",
                f"say `array: same`, `own` or `all` of {flag.name}: which flags threads go by",
            )
            yield facts.finding(rule, where, words, flag.name, sure=False)


_UNTOLD = (
    "memory that no parameter is known to lead to is accessed as a flag may be",
    "a pointer that can be followed to a parameter",
    "say in the contract what the parameter's pointers point to (`pointees`)",
)
