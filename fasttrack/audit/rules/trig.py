# SPDX-License-Identifier: Apache-2.0
"""TRIG: memory is written, or memory that others write is read, after the next kernel may run.

The trigger (`PREEXIT`) lets the next kernel begin. What it does before its own wait may meet what
is still to come here, unless the contract says why that is safe (`early_trigger`).
"""

from collections.abc import Iterator

from fasttrack.audit.contract import Class
from fasttrack.audit.finding import Finding
from fasttrack.audit.flow.events import Does, Event
from fasttrack.audit.flow.facts import Facts
from fasttrack.audit.flow.spread import Things

RULE = "TRIG"
_TRIGGERED = ("triggered",)


def check(facts: Facts) -> Iterator[Finding]:
    """Each such access by a thread that has triggered, or that has met one which has."""
    if facts.contract.early_trigger is not None or not any(True for _ in facts.those(Does.TRIGGER)):
        return
    for key, event, things in facts.spread(after):
        if _TRIGGERED not in things or event.does not in (Does.READ, Does.WRITE):
            continue
        places = facts.places(event)
        if event.does is Does.READ:
            places = tuple(one for one in places if one.holds in _MUTABLE)
        if places:
            name = places[0].name
            yield facts.finding(RULE, (key, event), _words(event, name), name, facts.sure(event))


_MUTABLE = (Class.DYNAMIC, Class.METADATA, None)


def after(things: Things, event: Event) -> Things:
    """Once a thread has triggered, it has."""
    return things | {_TRIGGERED} if event.does is Does.TRIGGER else things


def _words(event: Event, name: str) -> tuple[str, str, str]:
    what = "written" if event.does is Does.WRITE else "read"
    return (
        f"{name or 'memory'} is {what} after PREEXIT, which lets the next kernel begin",
        "the trigger after the last store and the last read of memory that others write",
        "trigger later, or say in the contract why it is safe (`early_trigger`)",
    )
