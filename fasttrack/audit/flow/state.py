# SPDX-License-Identifier: Apache-2.0
"""What holds for the threads that may be at one point: their registers, and what they waited for.

Threads that have waited for different things are never put together: that is why a wait in a
loop's first iteration needs no special case.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from fasttrack.audit.flow.values import (
    ANY,
    TRUE,
    UNDEFINED,
    ZERO,
    Value,
    join,
    same,
)
from fasttrack.audit.program import File, Register

UNIFORM = 256
PREDICATE = 384
UNIFORM_PREDICATE = 392
SLOTS = 400
"""Where each register file begins in the list of a state's registers, and its length."""
PDL = "pdl"
"""Token: the kernels before this one are complete and seen."""
TRIGGER = "trigger"
"""Token: the next kernel may have begun."""
Tokens = frozenset[str]
Guard = tuple[int, bool]
"""A predicate's place in the list, and whether it must be false."""


def flag_token(offset: int) -> str:
    """Token: the flag at that offset of the parameters was acquired."""
    return f"flag:{offset}"


def seen_token(offset: int) -> str:
    """Token: the flag was seen, but later reads are not ordered behind that."""
    return f"seen:{offset}"


def all_token(token: str) -> str:
    """Token: what another says of one flag of an array holds of all of them."""
    return f"all-{token}"


def again_token(head: int) -> str:
    """Token: the loop that begins there was gone through once; it is no one's to pass on."""
    return f"again:{head}"


def passed_on(tokens: Tokens) -> frozenset[str]:
    """Tokens that one thread may gain from another."""
    return frozenset(one for one in tokens if one != TRIGGER and not one.startswith("again:"))


def slot_of(register: Register) -> int | None:
    """Where a register lies in the list; None for one that is always zero or true."""
    index, file = register.index, register.file
    if index is None:
        return None
    if file is File.R:
        return index
    if file is File.UNIFORM:
        return UNIFORM + index
    if file is File.PREDICATE:
        return PREDICATE + index
    return UNIFORM_PREDICATE + index if file is File.UNIFORM_PREDICATE else None


def fixed(register: Register) -> Value:
    """What a register without a slot reads as."""
    if register.file in (File.PREDICATE, File.UNIFORM_PREDICATE):
        return TRUE
    return ZERO if register.file in (File.R, File.UNIFORM) else ANY


@dataclass(slots=True)
class State:
    """What holds for the threads of `mask` at one point.

    Attributes:
        registers: a value for each.
        mask: threads that may be here with these tokens.
        tokens: what each of them has waited for.
        facts: conditions that a branch on the way here has decided, by name.
        stack: values on the stack by their offset.
        spilled: what was put somewhere on the stack; None if nothing was.
        dropped: what lay at places that are not the same on all ways; None if nothing did.
        under: within a run, what registers hold where the guard is true under which they were last
            written.
    """

    registers: list[Value]
    mask: int
    tokens: Tokens = frozenset()
    facts: dict[int, bool] = field(default_factory=dict)
    stack: dict[int, Value] = field(default_factory=dict)
    spilled: Value | None = None
    dropped: Value | None = None
    under: dict[int, tuple[Guard, Value]] = field(default_factory=dict)

    def copy(self, mask: int | None = None) -> "State":
        """The same, to be changed apart."""
        return State(
            self.registers[:], self.mask if mask is None else mask, self.tokens,
            dict(self.facts), dict(self.stack), self.spilled, self.dropped, dict(self.under),
        )  # fmt: skip


def start(mask: int) -> State:
    """What holds where a kernel begins."""
    return State([UNDEFINED] * SLOTS, mask)


def merge(old: State, new: State, count: int) -> bool:
    """Joins a state into another of the same tokens; whether that changed it."""
    changed = new.mask & ~old.mask != 0
    old.under = dict(_both_under(old, new, count)) if old.under or new.under else {}
    registers = old.registers
    if registers != new.registers:  # values are equal only if they are the same object
        for at, (left, right) in enumerate(zip(registers, new.registers, strict=True)):
            if left is not right:
                joined = join(left, old.mask, right, new.mask, count)
                if joined is not left:
                    registers[at] = joined
                    changed = True
    kept = {name: truth for name, truth in old.facts.items() if new.facts.get(name) is truth}
    changed |= len(kept) != len(old.facts)
    old.facts = kept
    changed |= _merge_stack(old, new, count)
    old.mask |= new.mask
    return changed


def _both_under(old: State, new: State, count: int) -> Iterator[tuple[int, tuple[Guard, Value]]]:
    """What registers hold under guards in both of two states; a guard that is false says all."""
    for slot in old.under.keys() | new.under.keys():
        one, two = old.under.get(slot), new.under.get(slot)
        if one is not None and two is not None and one[0] == two[0]:
            yield slot, (one[0], join(one[1], old.mask, two[1], new.mask, count))
        elif one is not None and two is None and _is_false(new, one[0]):
            yield slot, one
        elif two is not None and one is None and _is_false(old, two[0]):
            yield slot, two


def _is_false(state: State, guard: Guard) -> bool:
    number = state.registers[guard[0]].number
    return isinstance(number, int) and bool(number) is guard[1]


def _merge_stack(old: State, new: State, count: int) -> bool:
    changed = False
    for at in old.stack.keys() | new.stack.keys() if old.stack != new.stack else ():
        left, right = old.stack.get(at), new.stack.get(at)
        if left is None or right is None:
            changed |= old.stack.pop(at, None) is not None
            changed |= _keep(old, "dropped", left or right, new.mask, count)
            continue
        joined = join(left, old.mask, right, new.mask, count)
        if joined is not left:
            old.stack[at] = joined
            changed = True
    changed |= _keep(old, "spilled", new.spilled, new.mask, count)
    return changed | _keep(old, "dropped", new.dropped, new.mask, count)


def _keep(state: State, where: str, value: Value | None, mask: int, count: int) -> bool:
    """Joins a value into what lies somewhere; whether that changed it."""
    if value is None:
        return False
    kept: Value | None = getattr(state, where)
    joined = value if kept is None else join(kept, state.mask, value, mask, count)
    if kept is not None and same(joined, kept):
        return False
    setattr(state, where, joined)
    return True
