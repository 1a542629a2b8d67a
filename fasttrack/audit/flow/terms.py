# SPDX-License-Identifier: Apache-2.0
"""What every arithmetic instruction needs: its spelling, marks of operands, decided conditions."""

from collections.abc import Callable

from fasttrack.audit.flow.operands import Context
from fasttrack.audit.flow.state import State
from fasttrack.audit.flow.threads import Number
from fasttrack.audit.flow.values import NOWHERE, FlagRead, Value, scaled_bases
from fasttrack.audit.program import Instruction, Special

OF_OTHERS = frozenset({"REDUX", "CREDUX", "MATCH", "B2R", "MOVM", "BMOV"})
"""Instructions whose result is not that of a thread's own operands."""
Handler = Callable[[Context, State, Instruction], None]


def spelling(instruction: Instruction) -> str:
    """The opcode with its modifiers; uniform registers make no difference."""
    words = ".".join((instruction.opcode.removeprefix("U"), *instruction.modifiers))
    return words + "~" * instruction.text.count("~")


def mark_of(parts: tuple[Value, ...]) -> FlagRead | None:
    """The read of a flag that a result depends on, if it is but one, and on nothing unknown."""
    marks = {one.mark for one in parts if isinstance(one.mark, FlagRead)}
    lone = all(
        isinstance(one.mark, FlagRead) or one.number is not None or one.name is not None
        for one in parts
    )
    return marks.pop() if len(marks) == 1 and lone else None


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
    bases = NOWHERE.union(*(scaled_bases(one.bases) for one in values))
    own = instruction.opcode.removeprefix("U") not in OF_OTHERS
    own = own and not any(isinstance(one, Special) for one in parts.sources)
    if own and not parts.predicates:
        name = context.names.combine(spelling(instruction), values)
    context.forget(state, instruction)
    if parts.register is not None:
        context.write(state, parts.register, Value(None, name, bases, mark=mark_of(values)))
