# SPDX-License-Identifier: Apache-2.0
"""What threads are told of themselves and of each other: indices, shuffles, votes."""

from dataclasses import replace

import numpy as np

from fasttrack.audit.flow.operands import Context, bare, is_predicate
from fasttrack.audit.flow.state import State
from fasttrack.audit.flow.threads import Lanes, truth_of
from fasttrack.audit.flow.values import ANY, FlagRead, Value, scaled_bases
from fasttrack.audit.program import Instruction, Special

STABLE = ("SR_CTAID", "SR_NCTAID", "SR_NTID", "SR_CgaSize", "SR_GRIDID")
"""Numbers that are the same for all threads of a block, by how they begin."""


def special(context: Context, state: State, instruction: Instruction) -> None:
    """`S2R`: indices of the thread are known, those of its block are the same for all of it."""
    parts = context.split(instruction)
    text = instruction.operands[-1].text if isinstance(instruction.operands[-1], Special) else ""
    context.forget(state, instruction)
    context.write(state, parts.register, _special(context, text))
    if text == "SRZ":
        for at in range(1 if "32" in instruction.modifiers else 2):
            context.write(state, parts.register, Value(0), at)


def _special(context: Context, text: str) -> Value:
    threads, known = context.threads, np.ones(context.threads.count, np.bool_)
    x, y, _ = (np.uint64(size) for size in threads.block)
    index = {
        "SR_TID.X": lambda: threads.index % x,
        "SR_TID.Y": lambda: threads.index // x % y,
        "SR_TID.Z": lambda: threads.index // (x * y),
        "SR_LANEID": lambda: threads.index % np.uint64(32),
    }.get(text)
    if index is not None:
        return Value(Lanes(index(), known), context.names.of((text,), uniform=False))
    if text == "SR_CgaCtaId":
        if threads.blocks > 1:
            return Value(Lanes(threads.rank, known), context.names.of((text,), uniform=False))
        if not context.clustered:
            return Value(0)
        return Value(None, context.names.of((text,), uniform=True))
    if text.startswith(STABLE):
        return Value(None, context.names.of((text,), uniform=threads.blocks == 1))
    return ANY


def shuffle(context: Context, state: State, instruction: Instruction) -> None:
    """`SHFL`: known if all threads of a warp hold one number, or read that of one thread."""
    parts = context.split(instruction)
    value = context.read(state, parts.sources[0])
    source = context.read(state, parts.sources[1]) if len(parts.sources) > 1 else ANY
    limit = context.read(state, parts.sources[2]) if len(parts.sources) > 2 else ANY
    context.forget(state, instruction)
    number = bare(value)
    context.write(state, parts.register, Value(bases=scaled_bases(value.bases)))
    if not whole(context, state):
        return
    if isinstance(number, int):
        context.write(state, parts.register, Value(number, value.name))
    elif isinstance(number, Lanes):
        one = source.number if "IDX" in instruction.modifiers and limit.number == 0x1F else None
        found = _broadcast(context, number, one if isinstance(one, int) else None)
        context.write(state, parts.register, Value(found))


def whole(context: Context, state: State) -> bool:
    """Whether all threads of each warp of a state are in it: others may hold other numbers."""
    return all(not warp & state.mask or not warp & ~state.mask for warp in context.threads.warps)


def _broadcast(context: Context, number: Lanes, source: int | None) -> Lanes:
    """In each warp, the number of one of its threads, or that which all of them hold."""
    values, known = number.values.copy(), np.zeros_like(number.known)
    for warp in context.threads.warps:
        members = np.flatnonzero(truth_of(warp, context.threads.count))
        if source is not None and source < len(members):
            at = members[source]
            values[members], known[members] = number.values[at], number.known[at]
        elif number.known[members].all():
            known[members] = (number.values[members] == number.values[members[0]]).all()
    return Lanes(values, known)


def vote(context: Context, state: State, instruction: Instruction) -> None:
    """`VOTEU.ALL`: threads of a warp that are in one state are taken to vote together.

    The compiler writes it only where it knows that they do.
    """
    parts = context.split(instruction)
    inputs = [one for one in parts.sources if is_predicate(one)]
    value = context.read(state, inputs[0]) if len(inputs) == 1 else ANY
    context.forget(state, instruction)
    kind = instruction.modifiers[0] if instruction.modifiers else ""
    if kind not in ("ALL", "ANY") or len(parts.predicates) != 1 or parts.register is not None:
        return
    number = value.number
    if instruction.opcode == "VOTE" and not whole(context, state):
        return
    if isinstance(number, Lanes):
        number = voted(context, number, state.mask, kind)
    name = value.name if isinstance(number, int) else None
    context.write(state, parts.predicates[0], Value(number, name, mark=voted_mark(value, kind)))


def voted_mark(value: Value, kind: str) -> FlagRead | None:
    """What a vote says of a flag: if all saw it, or if there is none that did not."""
    mark = value.mark
    if not isinstance(mark, FlagRead) or mark.when is not None:
        return None
    return replace(mark, when=int(kind == "ALL"))


def voted(context: Context, number: Lanes, mask: int, kind: str) -> Lanes:
    """Of each warp, whether all or any of its threads in the mask say true."""
    here = truth_of(mask, context.threads.count)
    values, known = number.values.copy(), np.zeros_like(number.known)
    for warp in context.threads.warps:
        members = np.flatnonzero(truth_of(warp & mask, context.threads.count))
        if len(members) and number.known[members].all():
            truths = number.values[members] != 0
            values[members] = truths.all() if kind == "ALL" else truths.any()
            known[members] = True
    return Lanes(values, known & here)


def elect(context: Context, state: State, instruction: Instruction) -> None:
    """`ELECT`: one thread of each warp; taken to be the first that may be here."""
    parts = context.split(instruction)
    context.forget(state, instruction)
    if not parts.predicates:
        return
    count = context.threads.count
    values = np.zeros(count, np.uint64)
    for warp in context.threads.warps:
        if warp & mask_here(state):
            members = warp & mask_here(state)
            values[(members & -members).bit_length() - 1] = 1
    context.write(state, parts.predicates[0], Value(Lanes(values, np.ones(count, np.bool_))))


def mask_here(state: State) -> int:
    """Threads that may be here."""
    return state.mask
