# SPDX-License-Identifier: Apache-2.0
"""Running one node: what happens in it, and how threads leave it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from fasttrack.audit.flow.blocks import BRANCHES, BYTES, ENDS, INDIRECT, Blocks, is_trap, targets
from fasttrack.audit.flow.divide import (
    conditions_of,
    divide,
    go_alike,
    may_run,
    undecided,
    with_others,
)
from fasttrack.audit.flow.events import Does, Event
from fasttrack.audit.flow.graph import Grants, Key, Node
from fasttrack.audit.flow.guarded import forget, guard_of, keep, put_back
from fasttrack.audit.flow.operands import Context
from fasttrack.audit.flow.state import (
    State,
    Tokens,
    again_token,
    flag_token,
    merge,
    seen_token,
    slot_of,
)
from fasttrack.audit.flow.step import TOLD_APART, step
from fasttrack.audit.flow.threads import Number, mask_of
from fasttrack.audit.flow.values import FlagRead, Passed, Spin, Value, join
from fasttrack.audit.program import Instruction, Register

_WITH_OTHERS = frozenset({"ANY", "DIV", "CONV"})
"""Forms of branches that ask the whole warp."""
_VARIANTS = 4
"""How many ways through the guards of one run are kept apart."""


@dataclass(slots=True)
class Way:
    """A state that leaves a run."""

    to: int
    state: State
    calls: tuple[int, ...]
    at: int
    around: bool = False


class Walker:
    """Runs nodes of one kernel under what barriers are known to pass on."""

    def __init__(self, blocks: Blocks, context: Context, grants: Grants) -> None:
        self._blocks = blocks
        self._context = context
        self._grants = grants
        self.problems: dict[int, str] = {}
        self.spins: frozenset[Spin] = frozenset()

    def leave(self, key: Key, node: Node) -> list[Way]:
        """Runs a node from its state on; the states that leave it."""
        run = self._blocks.runs[key[0]]
        last = run[-1]
        ends = _is_end(last)
        states = [node.state.copy()]
        for instruction in run[:-1] if ends else run:
            states = self._run(states, instruction, node)
        conditions = conditions_of(last) if ends else ()
        node.uniform = node.uniform or go_alike(self._context, states, conditions)
        if ends:
            ways = [way for state in states for way in self._end(key, state, last, node)]
        else:
            ways = [Way(last.address + BYTES, state, key[2], last.address) for state in states]
        for way in ways:
            way.state.under = {}
            way.state.tokens = around_loops(self._blocks, way.state.tokens, key[0], way.to)
            if way.to not in self._blocks.runs:
                self.problems[way.at] = "what comes after it is no instruction"
        return [way for way in ways if way.to in self._blocks.runs]

    def _run(self, states: list[State], instruction: Instruction, node: Node) -> list[State]:
        written = self._context.written(instruction)
        if instruction.guard is None:
            for state in states:
                self._step(state, instruction, node)
                if state.under:
                    forget(state, written)
            return states
        after: list[State] = []
        apart, first, passing = keeps_apart(instruction), len(node.events), 0
        guard = guard_of(instruction.guard)
        for state in states:
            if not apart and undecided(self._context, state, instruction.guard):
                passing |= may_run(self._context, state, instruction, runs=False)
                self._perhaps(state, instruction, node)
                after.append(state)
                continue
            yes, no, uniform = divide(self._context, state, (instruction.guard,))
            if yes is not None and no is not None:
                node.uniform = node.uniform and uniform
            if no is not None:
                passing |= no.mask
            if yes is not None:
                put_back(yes, guard)
                self._step(yes, instruction, node)
                forget(yes, written)
                keep((one for one in (yes, no) if one is not None), guard, written, yes)
            after.extend(one for one in (yes, no) if one is not None)
        if passing:  # in any of the states that come here
            node.events[first:] = [one.passed_by(passing) for one in node.events[first:]]
        return self._fewer(after)

    def _fewer(self, states: list[State]) -> list[State]:
        """Joins states of equal tokens once there are too many ways through a run."""
        if len(states) <= _VARIANTS:
            return states
        kept: dict[Tokens, State] = {}
        for state in states:
            old = kept.get(state.tokens)
            if old is None:
                kept[state.tokens] = state
            else:
                merge(old, state, self._context.threads.count)
        return list(kept.values())

    def _step(self, state: State, instruction: Instruction, node: Node) -> None:
        try:
            node.events.extend(step(self._context, state, instruction))
        except (IndexError, ValueError, TypeError):
            self.problems[instruction.address] = "its operands are of no known form"
            self._context.forget(state, instruction)

    def _perhaps(self, state: State, instruction: Instruction, node: Node) -> None:
        """Runs an instruction that some threads may leave out, without telling them apart."""
        written = self._context.written(instruction)
        guard = guard_of(instruction.guard) if instruction.guard is not None else None
        old = [(slot, state.registers[slot]) for slot in written]
        mask, tokens = state.mask, state.tokens
        state.mask = may_run(self._context, state, instruction)
        before = put_back(state, guard)
        self._step(state, instruction, node)
        state.mask, state.tokens = mask, tokens
        forget(state, written)
        keep([state], guard, written, state)
        for slot, value in before:
            if slot not in written:
                state.registers[slot] = value
        for slot, value in old:
            state.registers[slot] = join(
                value, mask, state.registers[slot], mask, self._context.threads.count
            )

    def _end(self, key: Key, state: State, last: Instruction, node: Node) -> list[Way]:
        conditions = conditions_of(last)
        marks = [self._context.register(state, one, 0) for one in conditions]
        if _WITH_OTHERS & set(last.modifiers):
            yes, no, uniform = with_others(self._context, state, conditions)
        else:
            yes, no, uniform = divide(self._context, state, conditions)
        if yes is not None and no is not None:
            node.uniform = node.uniform and uniform
        ways: list[Way] = []
        if yes is not None:
            ways.extend(self._taken(key, yes, last, node))
        if no is not None:
            around = last.opcode in ("BAR", "UCGABAR_ARV", "UCGABAR_WAIT", "WARPSYNC")
            ways.append(Way(last.address + BYTES, no, key[2], last.address, around))
        for way in ways:
            for condition, value in zip(conditions, marks, strict=True):
                others = [one for one in marks if one is not value]
                if way.to == last.address + BYTES and any(
                    not isinstance(one.number, int) for one in others
                ):
                    continue  # another condition may have decided
                self._mark(way, last, condition, value)
        return ways

    def _mark(self, way: Way, last: Instruction, condition: Register, value: Value) -> None:
        """Gives tokens to threads that leave a spin on a flag or an mbarrier."""
        state, mark = way.state, value.mark
        slot = slot_of(condition)
        if isinstance(mark, FlagRead):
            now = state.registers[slot].number if slot is not None else None
            if mark.when in (None, now) and self._leaves(mark, last, way.to, now):
                state.tokens |= {seen(mark)}
        elif isinstance(mark, Passed) and slot is not None and state.registers[slot].number == 1:
            state.tokens |= phase_tokens(mark, self._grants.mbarriers, state.mask)

    def _leaves(self, mark: FlagRead, last: Instruction, to: int, answer: Number) -> bool:
        """Whether a way leaves a spin, or is one that a look before the spin takes past it."""
        spin: Spin = (mark.offset, to, mark.asked, answer)
        if leaves_spin(self._blocks, mark.at, last.address, to):
            self.spins |= {spin}
            return True
        apart = self._blocks.loop_of(mark.at, last.address) is None
        return apart and passes_by(spin, self._grants.spins)

    def _taken(self, key: Key, state: State, last: Instruction, node: Node) -> list[Way]:
        opcode, calls, after = last.opcode, key[2], last.address + BYTES
        if opcode in ENDS:
            node.events.append(Event(Does.EXIT, last, state.tokens, state.mask))
            node.end(state.facts)
            return []
        if is_trap(last):
            return []
        if opcode == "RET":
            return self._return(state, last, calls)
        if opcode in BRANCHES or opcode in INDIRECT or opcode == "CALL":
            wanted = targets(self._blocks.kernel, last)
            found = [one for one in wanted if one in self._blocks.runs]
            if len(found) < max(1, len(wanted)):
                self.problems[last.address] = "where it goes is not known"
            if len(found) > 1:
                node.uniform = False
            inner = (*calls, last.address) if opcode == "CALL" else calls
            return [Way(one, state.copy(), inner, last.address) for one in found]
        return self._barrier(key, state, last, node, after)

    def _return(self, state: State, last: Instruction, calls: tuple[int, ...]) -> list[Way]:
        """A return: the register says where to; it must be behind the call that is open."""
        source = last.operands[0] if last.operands else None
        value = self._context.read(state, source) if source is not None else None
        after = calls[-1] + BYTES if calls else None
        if value is None or after is None or value.number != after:
            self.problems[last.address] = "where it returns to is not known"
            return []
        return [Way(after, state, calls[:-1], last.address)]

    def _barrier(
        self, key: Key, state: State, last: Instruction, node: Node, after: int
    ) -> list[Way]:
        node.events.append(Event(Does.MEET, last, state.tokens, state.mask, how=last.opcode))
        node.arrives[state.tokens] = node.arrives.get(state.tokens, 0) | state.mask
        operand = next(iter(last.operands), None)
        node.barrier = self._context.read(state, operand) if operand is not None else Value(0)
        states = [state]
        for token, gaining in self._grants.at.get(key, {}).items():
            parts = [part for one in states for part in _give(one, token, gaining)]
            if len(parts) > len(states):
                node.uniform = False
            states = parts
        return [Way(after, one, key[2], last.address) for one in states]


def keeps_apart(instruction: Instruction) -> bool:
    """Whether threads that run it are told apart from those that do not.

    That is worth its cost where later addresses, conditions or tokens depend on it.
    """
    return instruction.opcode in TOLD_APART or "STRONG" in instruction.modifiers


def leaves_spin(blocks: Blocks, load: int, branch: int, to: int) -> bool:
    """Whether a branch leaves the smallest loop that holds it and a read of a flag."""
    loop = blocks.loop_of(load, branch)
    return loop is not None and blocks.of(to) not in loop


def passes_by(spin: Spin, spins: frozenset[Spin]) -> bool:
    """Whether a look at a flag that is in no loop leads to where a spin on it leads."""
    return spin in spins


def seen(mark: FlagRead) -> str:
    """The token of who leaves a spin on a flag."""
    return flag_token(mark.offset) if mark.acquired else seen_token(mark.offset)


def around_loops(blocks: Blocks, tokens: Tokens, start: int, to: int) -> Tokens:
    """Tokens after a way from one run to another: a loop's first round is kept apart."""
    for head, body in blocks.met_in.items():
        if start in body and to == head:
            tokens |= {again_token(head)}
        elif start in body and to not in body:
            tokens -= {again_token(head)}
    return tokens


def phase_tokens(mark: Passed, granted: Mapping[int, frozenset[str]], mask: int) -> frozenset[str]:
    """Tokens of those who saw an mbarrier's first phase pass.

    Only the first phase says that somebody arrived: on a fresh mbarrier the other parity passes.
    """
    if mark.parity != 0 or mark.barrier is None:
        return frozenset()
    if isinstance(mark.barrier, int):
        return granted.get(mark.barrier, frozenset())
    count = len(mark.barrier.known)
    known = mask_of(mark.barrier.known)
    if mask & ~known:
        return frozenset()
    found = [
        granted.get(int(mark.barrier.values[at]), frozenset())
        for at in range(count)
        if mask >> at & 1
    ]
    return frozenset.intersection(*found) if found else frozenset()


def _is_end(last: Instruction) -> bool:
    return (
        last.opcode in BRANCHES | INDIRECT | ENDS
        or last.opcode in ("RET", "CALL", "BAR", "UCGABAR_ARV", "UCGABAR_WAIT", "WARPSYNC")
        or is_trap(last)
    )


def _give(state: State, token: str, gaining: int) -> Iterable[State]:
    """Splits a state into threads that leave a barrier with a token and those that do not."""
    if token in state.tokens:
        return [state]
    with_it, without = state.mask & gaining, state.mask & ~gaining
    parts = []
    if with_it:
        one = state.copy(with_it)
        one.tokens |= {token}
        parts.append(one)
    if without:
        parts.append(state.copy(without))
    return parts
