# SPDX-License-Identifier: Apache-2.0
"""Splitting the threads of a state by a condition, and what each part knows afterwards."""

from fasttrack.audit.flow.blocks import BRANCHES, ENDS
from fasttrack.audit.flow.deduce import deduced
from fasttrack.audit.flow.operands import Context, is_predicate
from fasttrack.audit.flow.state import State, merge, slot_of
from fasttrack.audit.flow.terms import settle
from fasttrack.audit.flow.threads import decided
from fasttrack.audit.flow.values import FALSE, TRUE, Value
from fasttrack.audit.program import Instruction, Register


def conditions_of(last: Instruction) -> tuple[Register, ...]:
    """Predicates that must hold: the guard, and those that a branch names."""
    found = [last.guard] if last.guard is not None else []
    if last.opcode in BRANCHES | ENDS:
        found.extend(
            one for one in last.operands if isinstance(one, Register) and is_predicate(one)
        )
    return tuple(found)


def undecided(context: Context, state: State, guard: Register) -> bool:
    """Whether a guard is not the same for all threads of a state, as far as is known."""
    value = context.register(state, guard, 0)
    number = settle(context, state, value.name, value.number)
    true, false, unknown = decided(number, state.mask, context.threads.count)
    return bool(unknown) or bool(true and false)


def may_run(context: Context, state: State, instruction: Instruction, runs: bool = True) -> int:
    """Threads for which a guard may be true; or, unless it `runs`, those for which it may not."""
    guard = instruction.guard
    if guard is None:
        return state.mask if runs else 0
    number = context.register(state, guard, 0).number
    true, false, unknown = decided(number, state.mask, context.threads.count)
    return unknown | (false if guard.negated is runs else true)


def divide(
    context: Context, state: State, conditions: tuple[Register, ...]
) -> tuple[State | None, State | None, bool]:
    """Threads for which all conditions hold, those for which one does not; and if all agree."""
    yes: State | None = state
    no: State | None = None
    uniform = True
    for condition in conditions:
        if yes is None:
            break
        yes, other, alike = by_one(context, yes, condition)
        uniform = uniform and alike
        if no is None:
            no = other
        elif other is not None:
            merge(no, other, context.threads.count)
    return yes, no, uniform


def by_one(
    context: Context, state: State, condition: Register
) -> tuple[State | None, State | None, bool]:
    """Threads for which one condition holds, those for which it does not; and if all agree."""
    value = context.register(state, condition, 0)
    number = settle(context, state, value.name, value.number)
    if number is None and value.name is not None:
        number = deduced(context.names, state, value.name)
    true, false, unknown = decided(number, state.mask, context.threads.count)
    if condition.negated:
        true, false = false, true
    yes, no = true | unknown, false | unknown
    if not no:
        return state, None, True
    if not yes:
        return None, state, True
    kept, other = state.copy(yes), state
    other.mask = no
    refine(kept, condition, value, truth=not condition.negated)
    refine(other, condition, value, truth=condition.negated)
    return kept, other, agreed(context, value)


def agreed(context: Context, value: Value) -> bool:
    """Whether all threads of a block see the same truth, though it is not known which."""
    return value.name is not None and context.names.uniform[value.name]


def go_alike(context: Context, states: list[State], conditions: tuple[Register, ...]) -> bool:
    """Whether threads that were told apart under guards go the same way all the same."""
    names = {tuple(context.register(one, at, 0).name for at in conditions) for one in states}
    known = context.names.uniform
    alike = len(names) == 1 and all(one is not None and known[one] for one in min(names))
    return alike and len({one.tokens for one in states}) == 1


def refine(state: State, condition: Register, value: Value, truth: bool) -> None:
    """Remembers in a state what its threads have in common now."""
    slot = slot_of(condition)
    if slot is not None:
        known = TRUE if truth else FALSE
        state.registers[slot] = Value(known.number, value.name, mark=value.mark)
    if value.name is not None:
        state.facts[value.name] = truth


def with_others(
    context: Context, state: State, conditions: tuple[Register, ...]
) -> tuple[State | None, State | None, bool]:
    """A branch that a warp takes for one of its threads: only if all agree is it sure."""
    _, no, _ = divide(context, state.copy(), conditions)
    return (state, None, True) if no is None else (state.copy(), state, False)
