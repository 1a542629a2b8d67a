# SPDX-License-Identifier: Apache-2.0
"""TRIG: memory is written, or memory that others write is read, after the next kernel may run.

The trigger (`PREEXIT`) lets the next kernel begin. What it does before its own wait may meet what
is still to come here, unless the contract says why that is safe (`early_trigger`). One thread
triggers for its block: what others of it do is before that only if a barrier says so.
"""

from collections.abc import Iterator, Mapping
from functools import partial

from fasttrack.audit.contract import Class
from fasttrack.audit.finding import Finding
from fasttrack.audit.flow.ahead import late_of
from fasttrack.audit.flow.events import Does, Event
from fasttrack.audit.flow.facts import Facts
from fasttrack.audit.flow.spread import NOTHING, Things
from fasttrack.audit.rules import bulk

RULE = "TRIG"
_LATE = "late"
"""A trigger that may have been: of which threads the thread itself, or whose block, has had it."""


def check(facts: Facts) -> Iterator[Finding]:
    """Each such access by a thread whose block may have been triggered for."""
    if facts.contract.early_trigger is not None or not any(True for _ in facts.those(Does.TRIGGER)):
        return
    late = late_of(facts.graph, facts.met_alike, facts.together)
    spread = facts.spread(partial(after, facts, late.from_barrier), _to_nobody, narrowed)
    for (key, event, things), (_, _, open_) in zip(spread, bulk.open_before(facts), strict=True):
        triggered = any(one[0] == _LATE and _bits(one[1]) & event.mask for one in things)
        if bulk.stays_open(facts, event, open_) and (triggered or event.does is Does.EXIT):
            yield facts.finding(RULE, (key, event), _BULK)
        if not triggered and not late.from_start & event.mask:
            continue
        places = facts.places(event) if event.does in (Does.READ, Does.WRITE) else ()
        if event.does is Does.READ:
            places = tuple(one for one in places if one.holds in _MUTABLE)
        if places:
            name = places[0].name
            yield facts.finding(RULE, (key, event), _words(event, name), name, facts.sure(event))


_MUTABLE = (Class.DYNAMIC, Class.METADATA, None)


def after(facts: Facts, from_barrier: Mapping[int, int], things: Things, event: Event) -> Things:
    """A thread that triggers has; one that comes to a barrier lets others go on to the trigger."""
    if event.does is Does.TRIGGER:
        whole = event.instruction.address in facts.together
        threads = facts.graph.context.threads
        return things | {(_LATE, threads.whole_warps(event.mask) if whole else event.mask)}
    if event.does is Does.MEET:
        late = from_barrier.get(event.instruction.address, 0) & event.mask
        return things | {(_LATE, late)} if late else things
    return things


def narrowed(things: Things, mask: int) -> Things:
    """What is left for threads of a mask."""
    return frozenset((_LATE, late) for one in things if (late := _bits(one[1]) & mask))


def _to_nobody(_: Things, __: Event) -> Things:
    return NOTHING


def _bits(mask: object) -> int:
    return mask if isinstance(mask, int) else 0


def _words(event: Event, name: str) -> tuple[str, str, str]:
    what = "written" if event.does is Does.WRITE else "read"
    return (
        f"{name or 'memory'} is {what} after PREEXIT of a thread of the block, "
        "which lets the next kernel begin",
        "the trigger after the last store and the last read of memory that others write, of all "
        "threads of the block",
        "trigger behind __syncthreads, or say in the contract why it is safe (`early_trigger`)",
    )


_BULK = (
    "a bulk store need not be done before PREEXIT, which lets the next kernel begin",
    "the trigger behind DEPBAR.LE SB0 and CCTL.IVALL of the thread that started the bulk store",
    "use cp.async.bulk.wait_group 0 and __syncthreads before the trigger, or say in the contract "
    "why it is safe (`early_trigger`)",
)
