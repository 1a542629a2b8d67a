# SPDX-License-Identifier: Apache-2.0
"""Runs a kernel until all its threads are gone, and says what was out of order."""

import random
from collections.abc import Callable

import numpy as np

from fasttrack.audit.contract import Contract
from fasttrack.audit.program import File, Instruction, Kernel, Register, Special, Target

from . import access, groups
from .lanes import WARP, Mask, NotExecuted, Stuck, guard
from .memory import COUNT, Event
from .state import State
from .steps import STEPS, calculate
from .threads import At

MOST = 60_000
"""Instructions of a run; more is a loop that does not end."""
IDLE = frozenset({
    "NOP", "YIELD", "ERRBAR", "CGAERRBAR", "LDGDEPBAR", "NANOSLEEP",
    "UTMACCTL", "BPT", "WARPGROUP",
})  # fmt: skip
"""They order or delay, and say nothing of who may run."""


def run(
    kernel: Kernel, contract: Contract, seed: int, *, scalar: int = COUNT, blocks: int = 2,
    tile: int = 2048,
) -> frozenset[Event]:  # fmt: skip
    """What is out of order in one run.

    Args:
        kernel: as read from a cubin.
        contract: what its parameters are.
        seed: 0 runs all threads together as far as they go; others choose among warps at random.
        scalar: value of every number among the parameters, and of every flag that is set.
        blocks: how many blocks run.
        tile: bytes that a TMA tile has; the machine code does not say.

    Raises:
        NotExecuted: there is something that the interpreter does not know, or no end.
    """
    state = State(kernel, contract, blocks, tile, scalar)
    code = {one.address: one for one in kernel.instructions}
    choose = random.Random(seed)
    for _ in range(MOST):
        running = state.threads.at == At.RUN
        if running.any():
            mask = _chosen(state, running, choose, seed)
            _step(state, code[int(state.threads.pc[mask.argmax()])], mask)
        elif (state.threads.at == At.GONE).all():
            state.late()
            return frozenset(state.events)
        elif not _progress(state, seed):
            raise Stuck("threads wait for each other without an end")
    raise Stuck(f"more than {MOST} instructions")


def _chosen(state: State, running: Mask, choose: random.Random, seed: int) -> Mask:
    """Threads at one instruction: the least of all, or of any warp and any of its ways."""
    threads = state.threads
    if seed == 0:
        return running & (threads.pc == threads.pc[running].min())
    one = choose.choice(np.flatnonzero(running).tolist())
    return running & (threads.pc == threads.pc[one]) & (threads.warp == threads.warp[one])


def _progress(state: State, seed: int) -> bool:
    """When nobody runs: meets barriers, else polls again, else lets the world go on."""
    threads = state.threads
    if threads.meet():
        return True
    for thread in np.flatnonzero(access.stopped(state)):
        one = state.kernel.instructions[threads.pc[thread] // 16]
        only = np.zeros(threads.columns, np.bool_)
        only[thread] = True
        if one.opcode != "SYNCS" or not access.mbarrier(state, one, only).any():
            threads.at[thread] = At.RUN
    if (threads.at == At.RUN).any():
        return True
    steps = [_finish, _set_flag]
    return any(step(state) for step in (steps if seed % 2 else reversed(steps)))


def _finish(state: State) -> bool:
    """The kernels before are done, if anybody waits for them."""
    waiting = state.threads.at == At.WAIT
    state.done |= bool(waiting.any())
    state.threads.at[waiting] = At.RUN
    return bool(waiting.any())


def _set_flag(state: State) -> bool:
    """One of the flags that somebody waits for is set."""
    wanted = {
        state.waits_for[one] for one in np.flatnonzero(state.threads.at == At.FLAG).tolist()
    } - state.set_flags
    state.set_flags |= set(sorted(wanted)[:1])
    return bool(wanted)


def _step(state: State, one: Instruction, mask: Mask) -> None:
    """One instruction of the masked threads, which all stand at it."""
    active = guard(state.lanes, one, mask)
    threads = state.threads
    threads.pc[mask] = one.address + 16
    if one.opcode in CONTROL:
        CONTROL[one.opcode](state, one, active if one.opcode != "BRA" else mask)
        return
    if not active.any() or one.opcode in IDLE:
        return
    if one.opcode not in STEPS and one.opcode != "CCTL":
        for thread in np.flatnonzero(active):
            state.newest.pop(int(thread), None)
    again = np.zeros_like(active)
    if one.opcode in ("LDG", "LD"):
        again, why = access.load(state, one, active), At.FLAG
    elif one.opcode == "SYNCS":
        again, why = access.mbarrier(state, one, active), At.MBARRIER
    elif one.opcode in MEMORY:
        MEMORY[one.opcode](state, one, active)
    elif one.opcode in STEPS:
        calculate(state.lanes, one, active)
    else:
        raise NotExecuted(one.text)
    if again.any():
        threads.pc[again] = one.address
        threads.at[again] = why


def _branch(state: State, one: Instruction, mask: Mask) -> None:
    """BRA: by its guard, by a predicate among its operands, or by what any of the warp says."""
    active = guard(state.lanes, one, mask)
    target = one.operands[-1]
    if not isinstance(target, Target):
        raise NotExecuted(one.text)
    for operand in one.operands[:-1]:
        if isinstance(operand, Register) and operand.file in state.lanes.truths:
            active = active & state.lanes.truth(operand)
        elif "DIV" not in one.modifiers:
            raise NotExecuted(one.text)
    if "DIV" in one.modifiers:
        alive = state.lanes.by_warp(mask | (state.threads.at == At.GONE)).all(axis=1)
        active = mask & ~np.repeat(alive, WARP)
    elif "ANY" in one.modifiers:
        active = mask & np.repeat(state.lanes.by_warp(active).any(axis=1), WARP)
    state.threads.pc[active] = target.address


def _bssy(state: State, one: Instruction, active: Mask) -> None:
    state.entered += 1
    state.threads.converge[_number(one.operands[0])][active] = state.entered


def _bsync(state: State, one: Instruction, active: Mask) -> None:
    state.threads.at[active] = At.CONVERGE
    state.threads.where[active] = _number(one.operands[0])


def _break(state: State, one: Instruction, active: Mask) -> None:
    register = next(part for part in one.operands
                    if isinstance(part, Register) and part.file is File.BARRIER)  # fmt: skip
    truths = [part for part in one.operands if part is not register]
    for part in truths:
        active = active & state.lanes.truth(part)
    state.threads.converge[_number(register)][active] = 0


def _number(operand: object) -> int:
    if not isinstance(operand, Register) or operand.index is None:
        raise NotExecuted(f"{operand} as a convergence barrier")
    return operand.index


def _warpsync(state: State, one: Instruction, active: Mask) -> None:
    if "ALL" not in one.modifiers:
        raise NotExecuted(one.text)
    state.threads.at[active] = At.WARPSYNC


def _bar(state: State, one: Instruction, active: Mask) -> None:
    """BAR.SYNC and BAR.ARV, of the whole block or of as many threads as it says."""
    barrier, *count = (state.lanes.word(part) for part in one.operands)
    threads = state.threads
    if one.modifiers[0] == "SYNC":
        threads.at[active] = At.BARRIER
        threads.where[active] = barrier[active]
        threads.expects[active] = count[0][active] if count else 0
    elif one.modifiers[0] == "ARV":
        for thread in np.flatnonzero(active):
            threads.arrive(int(thread), int(barrier[thread]))
    else:
        raise NotExecuted(one.text)


def _exit(state: State, one: Instruction, active: Mask) -> None:
    """EXIT; the last of a cluster looks whether any of it has waited."""
    threads = state.threads
    threads.at[active] = At.GONE
    if state.unread[active].any():
        state.mark("unread", one, "")
    for group in set(threads.group[active].tolist()):
        members = threads.group == group
        gone = (threads.at[members] == At.GONE).all()
        if state.contract.pdl and gone and not threads.waited[members].any():
            state.mark("left", one, "")


def _wait(state: State, one: Instruction, active: Mask) -> None:
    state.threads.waited |= active
    if not state.done:
        state.threads.at[active] = At.WAIT


def _trigger(state: State, one: Instruction, active: Mask) -> None:
    """PREEXIT: the first thread of a block that triggers does so for all of it."""
    for thread in np.flatnonzero(active):
        block, known = int(state.threads.block[thread]), state.threads.known[thread].copy()
        state.triggers.append((block, known))


def _cluster(state: State, one: Instruction, active: Mask) -> None:
    if one.opcode == "UCGABAR_ARV":
        for thread in np.flatnonzero(active):
            state.threads.arrive_cluster(int(thread))
    else:
        state.threads.at[active] = At.CLUSTER


def _call(state: State, one: Instruction, active: Mask) -> None:
    target = one.operands[-1]
    if not isinstance(target, Target):
        raise NotExecuted(one.text)
    state.threads.pc[active] = target.address


def _return(state: State, one: Instruction, active: Mask) -> None:
    register = re_register(one)
    state.threads.pc[active] = state.lanes.word(register)[active]


def re_register(one: Instruction) -> Register:
    """The register of `RET.REL.NODEC R4 0x0`."""
    first = one.operands[0]
    if isinstance(first, Register):
        return first
    if isinstance(first, Special) and first.text.startswith("R"):
        return Register(File.R, int(first.text.split()[0][1:]))
    raise NotExecuted(one.text)


def _special(state: State, one: Instruction, active: Mask) -> None:
    """S2R and S2UR."""
    name = one.operands[1]
    threads = state.threads
    rank = threads.block % state.contract.cluster
    known = {
        "SR_TID.X": threads.thread, "SR_CTAID.X": threads.block, "SR_LANEID": threads.thread % WARP,
        "SR_CgaCtaId": rank, "SR_TID.Y": rank * 0, "SR_TID.Z": rank * 0, "SR_CTAID.Y": rank * 0,
        "SR_CTAID.Z": rank * 0, "SR_LTMASK": (1 << threads.thread % WARP) - 1,
    }  # fmt: skip
    if not isinstance(name, Special) or name.text not in known:
        raise NotExecuted(one.text)
    state.lanes.set_word(one.operands[0], known[name.text], active)


def _invalidate(state: State, one: Instruction, active: Mask) -> None:
    """CCTL.IVALL: what a thread saw set before becomes an acquire; CCTL.E.RML2: data is lost."""
    if "RML2" in one.modifiers:
        access.store(state, one, active)
    if "IVALL" not in one.modifiers:
        return
    for thread in np.flatnonzero(active):
        state.threads.tokens[thread] |= state.threads.pending[thread]
        groups.see(state, int(thread))


Control = Callable[[State, Instruction, Mask], None]
CONTROL: dict[str, Control] = {
    "BRA": _branch, "BSSY": _bssy, "BSYNC": _bsync, "BREAK": _break, "WARPSYNC": _warpsync,
    "BAR": _bar, "EXIT": _exit, "ACQBULK": _wait, "PREEXIT": _trigger, "UCGABAR_ARV": _cluster,
    "UCGABAR_WAIT": _cluster, "CALL": _call, "RET": _return,
}  # fmt: skip
MEMORY: dict[str, Control] = {
    **dict.fromkeys(access.STORES, access.store), "ATOMG": access.atomic,
    "LDGSTS": access.asynchronous, "UTMALDG": access.tensor,
    **dict.fromkeys(("UBLKCP", "UBLKRED"), access.bulk),
    **dict.fromkeys(("UTMASTG", "UTMAREDG"), groups.tensor_store),
    "UTMACMDFLUSH": groups.close, "DEPBAR": groups.wait,
    **dict.fromkeys(("LDS", "STS", "LDL", "STL"), access.shared),
    "S2R": _special, "S2UR": _special, "CCTL": _invalidate,
    "MEMBAR": access.fence, "FENCE": access.fence,
}  # fmt: skip
