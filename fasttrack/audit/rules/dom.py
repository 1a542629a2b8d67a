# SPDX-License-Identifier: Apache-2.0
"""DOM: memory is read by threads that have not waited for who writes it."""

from collections.abc import Iterator

from fasttrack.audit.contract import Array, Class
from fasttrack.audit.finding import Finding
from fasttrack.audit.flow.events import Does, Event
from fasttrack.audit.flow.facts import Facts, Place
from fasttrack.audit.flow.layout import Slot
from fasttrack.audit.flow.state import PDL, all_token, flag_token, seen_token

RULE = "DOM"
ORDERED = (Class.DYNAMIC, Class.METADATA, Class.OUT)
"""Memory of the kernels before this one: in order behind the wait."""


def check(facts: Facts) -> Iterator[Finding]:
    """Each read that some thread may do too early."""
    for key, event in facts.those(Does.READ):
        places = facts.places(event)
        early = [one for one in places if not in_time(facts, event, one)]
        wrong = [one for one in early if one.holds is not None]
        if wrong:
            words = _words(facts, wrong[0])
            sure = facts.sure(event) or len(wrong) == len(places)
            if sure and not _is_early(facts.unwrapped, event.instruction.address):
                words, sure = _if_it_wraps(words), False
            yield facts.finding(RULE, (key, event), words, wrong[0].name, sure)
        elif early:
            yield facts.finding(RULE, (key, event), _UNKNOWN, early[0].name, sure=False)


def in_time(facts: Facts, event: Event, place: Place) -> bool:
    """Whether the threads have waited for whoever writes the memory."""
    if place.holds in ORDERED:
        return not facts.contract.pdl or PDL in event.tokens
    if place.holds is Class.MAILBOX:
        return _mailbox_in_time(facts, event, place)
    if place.holds is None:
        return all(token in event.tokens for token in everything(facts))
    return True


def _is_early(facts: Facts, address: int) -> bool:
    """Whether some thread may do the read at an address too early."""
    return any(
        not in_time(facts, event, place)
        for _, event in facts.those(Does.READ)
        if event.instruction.address == address
        for place in facts.places(event)
    )


def _mailbox_in_time(facts: Facts, event: Event, place: Place) -> bool:
    slot = place.slot
    if slot is None or slot.sentinel:
        return True
    flag = facts.layout.named(slot.after) if slot.after else None
    if flag is None:
        return False
    # Threads that saw the flag without acquiring it are for the rule FENCE.
    tokens = (flag_token(flag.offset), seen_token(flag.offset))
    return any(facts.flags.wanted(flag.offset, one) in event.tokens for one in tokens)


def everything(facts: Facts) -> frozenset[str]:
    """Tokens after which any memory of the contract may be read."""
    flags = {
        flag
        for slot in facts.layout.slots
        if slot.holds is Class.MAILBOX or slot.pointees is Class.MAILBOX
        for flag in [facts.layout.named(slot.after) if slot.after else None]
        if flag is not None
    }
    tokens = {_whole(facts, flag) for flag in flags}
    return frozenset(tokens | {PDL} if facts.contract.pdl else tokens)


def _whole(facts: Facts, flag: Slot) -> str:
    """The token after which all may be read that a flag, or an array of them, announces."""
    token = flag_token(flag.offset)
    return all_token(token) if flag.array is Array.OWN else facts.flags.wanted(flag.offset, token)


def _words(facts: Facts, place: Place) -> tuple[str, str, str]:
    if place.holds is Class.MAILBOX:
        after = place.slot.after if place.slot is not None else None
        what = f"its flag {after} was acquired" if after else "anything says that it is full"
        fix = "let every reader acquire the flag, or a barrier that the acquiring thread is in"
    else:
        what = "ACQBULK, the wait for the kernels before"
        fix = "let all threads wait, once and without a condition, before the first such read"
    also = "; const __restrict__, __ldg and .nc let the compiler move the load"
    if not facts.contract.pdl:
        also = ""
    return (
        f"{place.name} ({place.holds}) is read before {what}",
        f"the read after {what}",
        fix + also,
    )


def _if_it_wraps(words: tuple[str, str, str]) -> tuple[str, str, str]:
    saw, want, _ = words
    return (
        f"{saw}, if the index by which threads leave is too large for its word in some of a block",
        want,
        "let threads wait before any leave, or leave by blockIdx.x * blockDim.x + threadIdx.x",
    )


_UNKNOWN = (
    "memory that no parameter is known to lead to is read before the kernel has waited",
    "a pointer that can be followed to a parameter, or the read after all waits",
    "say in the contract what the parameter's pointers point to (`pointees`), or read it later",
)
