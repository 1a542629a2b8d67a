# SPDX-License-Identifier: Apache-2.0
"""What every arithmetic instruction needs: its spelling, marks of operands, decided conditions."""

from collections.abc import Callable

from fasttrack.audit.flow.operands import Context
from fasttrack.audit.flow.state import State
from fasttrack.audit.flow.threads import Number
from fasttrack.audit.flow.values import FlagRead, Value
from fasttrack.audit.program import Instruction, Special

Handler = Callable[[Context, State, Instruction], None]


def spelling(instruction: Instruction) -> str:
    """The opcode with its modifiers; uniform registers make no difference."""
    words = ".".join((instruction.opcode.removeprefix("U"), *instruction.modifiers))
    return words + "~" * instruction.text.count("~")


def mark_of(parts: tuple[Value, ...]) -> FlagRead | None:
    """The read of a flag that a result depends on, if it is but one."""
    marks = {one.mark for one in parts if isinstance(one.mark, FlagRead)}
    return marks.pop() if len(marks) == 1 else None


def settle(context: Context, state: State, name: int | None, number: Number) -> Number:
    """A condition's truth: as computed, else as a branch on the way has decided."""
    if number is not None or name is None:
        return number
    if name in state.facts:
        return int(state.facts[name])
    other = context.names.opposites.get(name)
    return int(not state.facts[other]) if other is not None and other in state.facts else None


def plain(context: Context, state: State, instruction: Instruction) -> None:
    """Any instruction of which only operands are known: the result has a name, no number."""
    parts = context.split(instruction)
    values = tuple(context.read(state, one) for one in parts.sources)
    name = None
    if not parts.predicates and not any(isinstance(one, Special) for one in parts.sources):
        name = context.names.combine(spelling(instruction), values)
    context.forget(state, instruction)
    if parts.register is not None:
        context.write(state, parts.register, Value(None, name, mark=mark_of(values)))
