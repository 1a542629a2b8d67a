# SPDX-License-Identifier: Apache-2.0
"""What registers hold where a guard is true, though it is not known whether it is.

Compilers write the ends of unrolled loops without branches: under each of many guards a pointer is
made, and under the same guard it is used. Ways through so many guards are not kept apart; what was
written under a guard is therefore kept beside what the register holds otherwise, until the guard
or the register is written anew.
"""

from collections.abc import Iterable

from fasttrack.audit.flow.state import Guard, State, slot_of
from fasttrack.audit.flow.values import FlagRead, Passed, Value
from fasttrack.audit.program import Register

_SEEN = (FlagRead, Passed)
"""Marks that change while a value does not."""


def guard_of(guard: Register) -> Guard | None:
    """A guard by its place; None for the predicate that is always true."""
    slot = slot_of(guard)
    return None if slot is None else (slot, guard.negated)


def put_back(state: State, guard: Guard | None) -> list[tuple[int, Value]]:
    """Takes a guard for true; what registers held before that, to be put back if it need not be."""
    before = []
    for slot, (one, value) in state.under.items():
        if one == guard:
            before.append((slot, state.registers[slot]))
            state.registers[slot] = value
    return before


def forget(state: State, written: Iterable[int]) -> None:
    """Drops what no longer holds once registers or predicates are written."""
    gone = set(written)
    state.under = {
        slot: one for slot, one in state.under.items() if slot not in gone and one[0][0] not in gone
    }


def keep(states: Iterable[State], guard: Guard | None, written: Iterable[int], by: State) -> None:
    """Notes in states what was written under a guard that is true in one of them alone."""
    values = [(slot, by.registers[slot]) for slot in written]
    for state in states:
        for slot, value in values:
            if guard is not None and slot != guard[0] and not isinstance(value.mark, _SEEN):
                state.under[slot] = (guard, value)
