# SPDX-License-Identifier: Apache-2.0
"""REREAD: memory that is to be read anew after a wait is not.

The source reads it once more behind each wait or acquired flag; the compiler has merged two of
those reads, and a value from before stands for the one from after. What was there in the source
can not be seen any more: the contract says how often (`rounds`).
"""

from collections.abc import Iterator

from fasttrack.audit.contract import Class
from fasttrack.audit.finding import Finding, Verdict
from fasttrack.audit.flow.events import Does, Event
from fasttrack.audit.flow.facts import Facts
from fasttrack.audit.flow.layout import Slot
from fasttrack.audit.flow.spread import Things

RULE = "REREAD"
_ROUND = "round"


def check(facts: Facts) -> Iterator[Finding]:
    """Each parameter that is read anew in fewer rounds than the contract says."""
    read: dict[Slot, set[object]] = {}
    for _, event, things in facts.spread(after):
        if event.does is Does.READ:
            places = facts.places(event)
            if len(places) == 1 and (slot := places[0].slot) is not None:
                read.setdefault(slot, set()).update(rounds(slot, things))
    for slot, found in read.items():
        if counts(facts, slot) and len(found) < slot.rounds:
            yield Finding(
                RULE, Verdict.VIOLATED,
                f"{slot.name} is read anew after {len(found)} waits or acquired flags",
                f"reads after {slot.rounds} of them, as the contract says",
                "load it without const __restrict__, __ldg, ld.global.nc and invariant=True",
                parameter=slot.name,
            )  # fmt: skip


def counts(facts: Facts, slot: Slot) -> bool:
    """Whether reads of that memory are to be anew; one that is too early is for the rule DOM."""
    if slot.rounds == 1:
        return False
    if slot.holds in (Class.DYNAMIC, Class.METADATA):
        return facts.contract.pdl
    return slot.holds is Class.MAILBOX and not slot.sentinel


def rounds(slot: Slot, things: Things) -> set[object]:
    """The waits or acquires since which a read may be the first."""
    wanted = Does.ACQUIRE if slot.holds is Class.MAILBOX else Does.WAIT
    return {thing[2] for thing in things if thing[0] == _ROUND and thing[1] is wanted}


def after(things: Things, event: Event) -> Things:
    """A wait begins a round, and an acquired flag does."""
    if event.does is Does.WAIT or (event.does is Does.ACQUIRE and event.how == "flag"):
        kept = {one for one in things if one[1] is not event.does}
        return frozenset(kept | {(_ROUND, event.does, event.instruction.address)})
    return things
