# SPDX-License-Identifier: Apache-2.0
"""Loads, stores and copies: what they touch, and whether that is in order."""

import re
from collections.abc import Iterator

import numpy as np

from fasttrack.audit.contract import Class
from fasttrack.audit.program import Address, File, Instruction, Register

from .lanes import Mask, NotExecuted
from .memory import COUNT, DESCRIPTORS, MUTABLE, Stretch
from .state import State
from .threads import At

WORDS = {"64": 2, "128": 4}
STORES = ("STG", "ST", "REDG", "RED")
BULK_UNIT = 16


def words_of(one: Instruction) -> int:
    """How many registers an access moves."""
    return next((WORDS[word] for word in one.modifiers if word in WORDS), 1)


def check_read(
    state: State, one: Instruction, thread: int, found: Stretch, *, strong: bool
) -> bool:
    """Marks a read that is out of order; whether its data is there."""
    constant = "CONSTANT" in one.modifiers
    valid = True
    if found.holds in MUTABLE:
        valid = state.done
        if valid and constant and state.contract.pdl:
            state.mark("cached", one, found.name)
    elif found.holds is Class.MAILBOX:
        if constant:
            state.mark("cached", one, found.name)
        valid = strong if found.sentinel else found.after in state.threads.tokens[thread]
    if not valid:
        state.mark("stale", one, found.name)
    mutable = found.holds in (*MUTABLE, Class.MAILBOX)
    if mutable:
        state.accessed(thread, one, found.name)
    return valid


def _far_enough(one: Instruction, flag: Stretch) -> bool:
    return flag.scope == "gpu" or "SYS" in one.modifiers


def check_write(
    state: State, one: Instruction, thread: int, found: Stretch, *, bulk: bool = False
) -> None:
    """Marks a write that is out of order; one by a copy engine is over later."""
    if found.holds is Class.FLAG:
        _check_sent(state, one, thread, found)
    elif found.holds is Class.OUT:
        state.written(thread, "out", known=not bulk)
    if not state.done:
        state.mark("early", one, found.name)
    if bulk:
        state.groups[thread][-1].append((one, found.name))
        state.unread[thread] += 1
    else:
        state.accessed(thread, one, found.name)


def _check_sent(state: State, one: Instruction, thread: int, flag: Stretch) -> None:
    """What the block wrote must be known to be there, as far as the flag is seen."""
    scopes = ("sys",) if flag.scope == "sys" else ("sys", "gpu")
    known = state.threads.tokens[thread]
    for other in state.writers("out", thread):
        if not any(f"out {other} {scope}" in known for scope in scopes):
            state.mark("unsent", one, flag.name)


def fence(state: State, one: Instruction, mask: Mask) -> None:
    """MEMBAR and FENCE.VIEW.ASYNC: what a thread knows to be written is there for others too."""
    for thread in np.flatnonzero(mask):
        known = state.threads.tokens[thread]
        words = [token.split() for token in known]
        if one.opcode == "MEMBAR":
            scope = "sys" if "SYS" in one.modifiers else "gpu"
            known |= {f"out {word[1]} {scope}" for word in words if word[0] == "out"}
        elif "ASYNC" in one.modifiers:
            known |= {f"near {word[1]} async" for word in words if word[0] == "near"}
            known |= {f"{word[0]} async" for word in words if len(word) == 1}


def _check_engine(state: State, one: Instruction, thread: int, found: Stretch) -> None:
    """A copy engine reads a mailbox only behind a fence for it."""
    known = state.threads.tokens[thread]
    if found.after is not None and found.after in known and f"{found.after} async" not in known:
        state.mark("unfenced", one, found.name)


def check_source(state: State, one: Instruction, thread: int, found: Stretch) -> None:
    """A copy engine reads of shared memory what threads have stored only behind a fence for it."""
    known = state.threads.tokens[thread]
    if any(f"near {other} async" not in known for other in state.writers("near", thread)):
        state.mark("unfenced", one, found.name)


def _touched(
    state: State, one: Instruction, operand: Address, mask: Mask
) -> Iterator[tuple[int, int, Stretch]]:
    """Each thread with the address that it touches and what lies there."""
    addresses = state.lanes.address(operand, wide=True)
    for thread in np.flatnonzero(mask):
        address = int(addresses[thread])
        found = state.memory.at(address)
        if found is not None:
            yield int(thread), address, found
        elif not state.events:
            raise NotExecuted(f"{one.text} at {address:#x}, where nothing lies")


def load(state: State, one: Instruction, mask: Mask) -> Mask:
    """LDG and LD; returns who has to try again because a flag is not set."""
    to, source = one.operands[-2:]
    if not isinstance(source, Address):
        raise NotExecuted(one.text)
    again = np.zeros_like(mask)
    strong = "STRONG" in one.modifiers
    values = np.zeros((words_of(one), len(mask)), np.uint32)
    for thread, address, found in _touched(state, one, source, mask):
        if found.holds is Class.FLAG:
            if found.name not in state.set_flags:
                again[thread] = True
                state.waits_for[thread] = found.name
                continue
            if strong and _far_enough(one, found):
                state.threads.pending[thread].add(found.name)
            seen = state.memory.scalar + state.flag_reads[thread, found.name]
            values[0, thread] = seen & 0xFFFFFFFF
            state.flag_reads[thread, found.name] += 1
            continue
        valid = check_read(state, one, thread, found, strong=strong)
        for more in range(len(values)):
            values[more, thread] = state.memory.value(found, address + 4 * more, valid=valid)
    for more, value in enumerate(values):
        state.lanes.set_word(to, value, mask & ~again, more)
    return again


def store(state: State, one: Instruction, mask: Mask) -> None:
    """STG, ST and reductions."""
    target = next(part for part in one.operands if isinstance(part, Address))
    for thread, _, found in _touched(state, one, target, mask):
        check_write(state, one, thread, found)


def atomic(state: State, one: Instruction, mask: Mask) -> None:
    """ATOMG: a write that also gives what was there."""
    store(state, one, mask)
    to = next(part for part in one.operands
              if isinstance(part, Register) and part.file is File.R)  # fmt: skip
    state.lanes.set_word(to, np.uint32(COUNT), mask)


def asynchronous(state: State, one: Instruction, mask: Mask) -> None:
    """LDGSTS: from global memory, the last address, into shared memory."""
    source = [part for part in one.operands if isinstance(part, Address)][-1]
    for thread, _, found in _touched(state, one, source, mask):
        check_read(state, one, thread, found, strong=False)


def uniform(state: State, operand: object, thread: int, more: int = 0, *, wide: bool) -> int:
    """A uniform register, `[UR4]` or the one after it, as a thread sees it."""
    register = operand.uniform if isinstance(operand, Address) else operand
    if not isinstance(register, Register) or register.index is None:
        raise NotExecuted(f"{operand} in a copy")
    words = state.lanes.words[File.UNIFORM]
    low = int(words[register.index + more, thread])
    return low | (int(words[register.index + more + 1, thread]) << 32 if wide else 0)


def bulk(state: State, one: Instruction, mask: Mask) -> None:
    """UBLKCP: once a warp, into shared memory (`S.G`) or out of it (`G.S`)."""
    to, source, size = one.operands[:3]
    for thread in np.flatnonzero(state.lanes.first(mask)):
        inward = one.modifiers[:2] == ("S", "G")
        address = uniform(state, source if inward else to, thread, wide=True)
        found = state.memory.at(address)
        if found is None:
            raise NotExecuted(f"{one.text} at {address:#x}, where nothing lies")
        if inward:
            check_read(state, one, thread, found, strong=False)
            _check_engine(state, one, thread, found)
            barrier = uniform(state, to, thread, 1, wide=False)
            amount = uniform(state, size, thread, wide=False) * BULK_UNIT
            state.barrier(thread, barrier).bytes -= amount
            state.barrier(thread, barrier).settle()
        else:
            check_write(state, one, thread, found, bulk=True)
            check_source(state, one, thread, found)


def tensor(state: State, one: Instruction, mask: Mask) -> None:
    """UTMALDG: a tile through a descriptor among the parameters, once a warp."""
    to, source = one.operands[:2]
    for thread in np.flatnonzero(state.lanes.first(mask)):
        address = uniform(state, source, thread, wide=True)
        found = state.memory.descriptors.get(address)
        if found is None:
            raise NotExecuted(f"a descriptor at {address - DESCRIPTORS:#x}")
        check_read(state, one, thread, found, strong=False)
        _check_engine(state, one, thread, found)
        place = state.barrier(thread, uniform(state, to, thread, 1, wide=False))
        place.bytes -= state.tile
        place.settle()


def shared(state: State, one: Instruction, mask: Mask) -> None:
    """LDS, STS, LDL and STL."""
    reads = one.opcode.startswith("LD")
    own = one.opcode.endswith("L")
    address, value = one.operands[::-1][:2] if reads else one.operands[:2]
    at = state.lanes.address(address, wide=False)
    words = words_of(one)
    for thread in np.flatnonzero(mask):
        if not reads and not own:
            state.written(int(thread), "near")
        space = -1 - int(thread) if own else int(state.threads.block[thread])
        for more in range(words):
            place = (space, (int(at[thread]) & 0xFFFFFF) + 4 * more)
            if reads:
                only = np.zeros_like(mask)
                only[thread] = True
                state.lanes.set_word(value, np.uint32(state.near.get(place, 0)), only, more)
            else:
                state.near[place] = (
                    int(state.lanes.word(value)[thread])
                    if more == 0
                    else int(_next(state, value, more)[thread])
                )


def _next(state: State, operand: object, more: int) -> np.ndarray:
    if not isinstance(operand, Register) or operand.index is None:
        return np.zeros(state.lanes.threads, np.uint32)
    return state.lanes.words[operand.file][operand.index + more]


def mbarrier(state: State, one: Instruction, mask: Mask) -> Mask:
    """SYNCS; returns who has to try again because the phase is not over."""
    again = np.zeros_like(mask)
    address = next(part for part in one.operands if isinstance(part, Address))
    at = state.lanes.address(address, wide=False)
    last = one.operands[-1]
    value = state.lanes.word(last)
    kind = one.modifiers[0]
    for thread in np.flatnonzero(mask):
        if kind == "EXCH":
            state.start(int(thread), int(at[thread]), 0x100000 - (int(value[thread]) >> 1))
        elif kind == "ARRIVE":
            _arrive(state, one, int(thread), int(at[thread]), int(value[thread]))
        elif kind == "PHASECHK":
            place = state.barrier(int(thread), int(at[thread]))
            again[thread] = place.phase & 1 == int(value[thread]) >> 31
            if not again[thread]:
                state.threads.tokens[thread] |= place.handed
                state.threads.learn(np.arange(len(mask)) == thread, place.handed_known)
        else:
            raise NotExecuted(one.text)
    if kind == "PHASECHK":
        state.lanes.set_truth(one.operands[0], True, mask & ~again)
    return again


def _arrive(state: State, one: Instruction, thread: int, address: int, value: int) -> None:
    place = state.barrier(thread, address)
    form = re.search(r"TRANS64(?:\.(\w+))?$", ".".join(one.modifiers))
    if form is None or form[1] not in (None, "A1T0"):
        raise NotExecuted(one.text)
    place.bytes += value if form[1] is None else 0
    place.missing -= 1
    place.tokens |= state.threads.tokens[thread]
    known = state.threads.known[thread]
    place.known = known.copy() if place.known is None else np.maximum(place.known, known)
    place.settle()


def stopped(state: State) -> Mask:
    """Those whose mbarrier or flag lets them try again."""
    at = state.threads.at
    free = at == At.MBARRIER
    for thread in np.flatnonzero(at == At.FLAG):
        free[thread] = state.waits_for[thread] in state.set_flags
    return free
