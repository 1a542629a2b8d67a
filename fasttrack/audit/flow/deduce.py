# SPDX-License-Identifier: Apache-2.0
"""Conditions that follow from those which branches on the way have decided.

`m - 1 < 3` and `m >= 1` leave three numbers for m, and for none of them `m & 3` is zero: so a loop
that was unrolled by four is never left out as a whole. Expressions are known by their names; what
is worked out here is that of one number that is not known, for the few that it may be.
"""

from collections.abc import Callable, Iterator, Mapping

from fasttrack.audit.flow.names import Names
from fasttrack.audit.flow.state import State
from fasttrack.audit.flow.threads import WORD

MOST = 16
"""How many numbers are tried at most."""
_SIGN = 0x8000_0000
_PROBES = (0, 1, 6, 0x1234)
Parts = tuple[int, ...]
_OPERATIONS: Mapping[str, Callable[[Parts], int]] = {
    "IADD3": sum,
    "IADD": sum,
    "VIADD": sum,
    "IMAD": lambda parts: parts[0] * parts[1] + parts[2],
    "IMAD.IADD": lambda parts: parts[0] * parts[1] + parts[2],
    "LOP3.LUT 192": lambda parts: parts[0] & parts[1],
    "LT True": lambda parts: int(parts[0] < parts[1]),
    "LT False": lambda parts: int(parts[0] ^ _SIGN < parts[1] ^ _SIGN),
    "EQ False": lambda parts: int(parts[0] == parts[1]),
    "nonzero": lambda parts: int(parts[0] != 0),
    "not": lambda parts: 1 - parts[0],
}
"""Names of expressions, by the word that they begin with; the others are numbers of their own."""


def deduced(names: Names, state: State, name: int) -> int | None:
    """The truth of a condition in a state, if it follows from the facts there."""
    unknown = _unknowns(names, name)
    if len(unknown) != 1 or not state.facts:
        return None
    (one,) = unknown
    facts = {fact: truth for fact, truth in state.facts.items() if _unknowns(names, fact) == {one}}

    def possible(numbers: list[int]) -> list[int]:
        return [
            number
            for number in numbers
            if all(_worked_out(names, f, one, number) == int(t) for f, t in facts.items())
        ]

    for fact, truth in facts.items():
        some = _numbers(names, fact, one, truth)
        answers = {_worked_out(names, name, one, number) for number in possible(some or [])}
        if len(answers) == 1:
            return answers.pop()
    for truth in (True, False) if facts else ():
        some = _numbers(names, name, one, truth)
        if some is not None and not possible(some):
            return int(not truth)
    return None


def _unknowns(names: Names, name: int) -> frozenset[int]:
    """Names in an expression that are of no operation which is known here."""
    found = names.unknowns.get(name)
    if found is None:
        found = frozenset({name})
        if names.keys[name][0] in _OPERATIONS:
            found = frozenset().union(
                *(_unknowns(names, part) for part in names.keys[name][1:] if isinstance(part, int))
            )
        names.unknowns[name] = found
    return found


def _worked_out(names: Names, name: int, unknown: int, number: int) -> int:
    """The value of an expression if its one unknown is that number."""
    if name == unknown:
        return number
    operation, *parts = names.keys[name]
    words = tuple(
        _worked_out(names, part, unknown, number) if isinstance(part, int) else part[0]  # type: ignore[index]
        for part in parts
    )
    return _OPERATIONS[str(operation)](words) & WORD


def _numbers(names: Names, fact: int, unknown: int, truth: bool) -> list[int] | None:
    """The numbers that a comparison leaves, if they are few."""
    operation, *parts = names.keys[fact]
    if operation == "not" and isinstance(parts[0], int):
        return _numbers(names, parts[0], unknown, not truth)
    for expression, some in _bounds(str(operation), truth, parts):
        by = _distance(names, expression, unknown) if isinstance(expression, int) else None
        if by is not None and len(some) <= MOST:
            return [(number - by) & WORD for number in some]
    return None


def _bounds(operation: str, truth: bool, parts: list[object]) -> Iterator[tuple[object, range]]:
    """An expression, and the numbers that it may be, as words without signs."""
    if len(parts) != 2 or operation not in ("LT True", "EQ False"):
        return
    for expression, bound in (parts, parts[::-1]):
        if not isinstance(bound, tuple):
            continue
        if operation == "EQ False" and truth:
            yield expression, range(bound[0], bound[0] + 1)
        elif operation == "LT True" and truth and expression is parts[0]:
            yield expression, range(bound[0])
        elif operation == "LT True" and not truth and expression is parts[1]:
            yield expression, range(bound[0] + 1)


def _distance(names: Names, name: int, unknown: int) -> int | None:
    """What an expression adds to the unknown, if it does no more than that."""
    found = {(_worked_out(names, name, unknown, at) - at) & WORD for at in _PROBES}
    return found.pop() if len(found) == 1 else None
