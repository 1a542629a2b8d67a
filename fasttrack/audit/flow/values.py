# SPDX-License-Identifier: Apache-2.0
"""What is known of a register: a number for each thread, a name for it, and what it points to.

Three things are kept apart. *Number*: its 32 bits, where they are known, for each thread. *Name*:
equal names are equal numbers in the same thread, so a condition that is computed twice is decided
once. *Bases*: the memory that an address may lie in; an index has none, whatever it was read from.
"""

from dataclasses import dataclass, replace
from enum import IntEnum
from typing import NamedTuple

import numpy as np

from fasttrack.audit.flow.threads import (
    Lanes,
    Number,
    join_numbers,
    mask_of,
    same_number,
    truth_of,
)


class Space(IntEnum):
    """Kinds of memory that an address may lie in."""

    PARAMETER = 1
    """Behind the pointer at that offset of the parameters."""
    TABLE = 2
    """Behind some pointer of the parameters from that offset on."""
    POINTEE = 3
    """Behind a pointer that was read from memory behind the pointer at that offset, if it is one:
    beside a firm base it is an index."""
    WINDOW = 4
    """The parameters themselves: where TMA descriptors lie. The number is the offset."""
    SHARED = 5
    LOCAL = 6
    """The stack. The number is the offset from where it began."""
    ONE_OF = 7
    """Stands beside the bases of an address that is one of them, not known which."""
    UNKNOWN = 8


class Base(NamedTuple):
    """One memory that an address may lie in."""

    space: Space
    offset: int = 0


UNKNOWN_BASE = Base(Space.UNKNOWN)
DISTANCE = Base(Space.UNKNOWN, 1)
"""Behind an address that was calculated from the numbers of pointers, such as their difference."""
ONE_OF = Base(Space.ONE_OF)
LOADED_BASE = Base(Space.POINTEE, -1)
"""Behind a pointer, if it is one, that came from memory of no known parameter."""
FROM_SHARED = Base(Space.POINTEE, -2)
"""Stands beside the bases of what was read from shared memory."""
_POINTERS = (Space.PARAMETER, Space.TABLE)
Bases = frozenset[Base]
NOWHERE: Bases = frozenset()


@dataclass(frozen=True, slots=True)
class Passed:
    """A predicate that is true once an mbarrier's phase is over.

    Attributes:
        barrier: its address in shared memory, or None.
        parity: the phase that was waited for, or None.
        at: address of the instruction.
    """

    barrier: Number
    parity: int | None
    at: int


@dataclass(frozen=True, slots=True)
class FlagRead:
    """A number that depends on one read of a flag.

    Attributes:
        offset: where the flag's pointer lies in the parameters.
        at: address of the load.
        acquired: whether reads after it are ordered behind it.
        strong: scope of the load, `GPU` or `SYS`.
        when: what a predicate must be that a whole warp has voted on; None where none has.
        asked: how it was compared, and with what.
    """

    offset: int
    at: int
    acquired: bool
    strong: str
    when: int | None = None
    asked: tuple[str, int | None, int | None] | None = None


@dataclass(frozen=True, slots=True)
class Few:
    """A number that is one of these, not known which."""

    numbers: frozenset[int]


@dataclass(frozen=True, slots=True)
class LowByte:
    """A number of which only the lowest byte is known: a flag that is kept there."""

    byte: int


MOST = 4
"""Of how many numbers it is kept that a register holds one of them."""
Spin = tuple[int, int, object, object]
"""The way out of a spin on a flag: the flag, where it leads, what was asked and the answer."""


@dataclass(frozen=True, slots=True, eq=False)
class Value:
    """What a register may hold. Without a number and a name, anything.

    `parts` says it anew for threads of some masks, where those hold different addresses.
    """

    number: Number = None
    name: int | None = None
    bases: Bases = NOWHERE
    mark: Passed | FlagRead | Few | LowByte | None = None
    parts: tuple[tuple[int, "Value"], ...] = ()

    def of(self, mask: int) -> "Value":
        """What it is for threads of a mask."""
        for threads, value in self.parts:
            if not mask & ~threads:
                return value
        return self


ANY = Value()
UNDEFINED = Value()
"""What a register holds before anything was written to it; no program depends on it."""
ZERO = Value(0)
TRUE = Value(1)
FALSE = Value(0)


def sum_bases(parts: tuple[Value, ...]) -> Bases:
    """The memory that a sum of addresses and indices may lie in.

    What was read from memory is an index if it is added to an address.
    """
    some = [part.bases for part in parts if part.bases]
    if len(some) < 2:
        return some[0] if some else NOWHERE
    firm = [bases for bases in some if not is_soft(bases)]
    return NOWHERE.union(*(firm or some))


def scaled_bases(bases: Bases) -> Bases:
    """The memory that is left of an address once it was multiplied or shifted.

    What was read from memory was an index. A parameter's pointer is none: the difference of two,
    a few times, may lead from the one to the other.
    """
    found = set()
    if any(one == DISTANCE or one.space in _POINTERS for one in bases):
        found.add(DISTANCE)
    if UNKNOWN_BASE in bases:
        found.add(UNKNOWN_BASE)
    return frozenset(found)


def is_distance(bases: Bases) -> bool:
    """Whether a number is surely part of a pointer, or was calculated from one."""
    pointer = bool(bases) and all(one.space in _POINTERS for one in bases)
    return pointer or DISTANCE in bases


def is_soft(bases: Bases) -> bool:
    """Whether a value may be an index as well as an address."""
    return bool(bases) and all(one.space is Space.POINTEE for one in bases)


def same(left: Value, right: Value) -> bool:
    """Whether two values say the same."""
    return left is right or (
        left.name == right.name
        and left.bases == right.bases
        and left.mark == right.mark
        and same_number(left.number, right.number)
        and len(left.parts) == len(right.parts)
        and all(
            one[0] == two[0] and same(one[1], two[1])
            for one, two in zip(left.parts, right.parts, strict=True)
        )
    )


def join_bases(left: Value, right: Value) -> Bases:
    """The memory of an address that comes from either side.

    Where one side has none and is no known number either, it may be an address of any memory.
    """
    if left.bases == right.bases:
        return left.bases
    bare = left if not left.bases else right if not right.bases else None
    either = left.bases | right.bases
    return either if bare is None or bare.number is not None else either | {UNKNOWN_BASE}


def join(left: Value, first: int, right: Value, second: int, count: int) -> Value:
    """A register's value where threads of two masks come together.

    Args:
        left: what it holds in threads of `first`.
        first: those threads.
        right: what it holds in threads of `second`.
        second: those threads.
        count: how many threads there are.
    """
    if left is right or (right is UNDEFINED and not left.bases):
        return left
    if left is UNDEFINED and not right.bases:
        return right
    joined = _whole(left, first, right, second, count)
    parts = apart(left, first, right, second, count)
    if parts:
        joined = replace(joined, parts=parts)
    return left if same(left, joined) else joined


def _whole(left: Value, first: int, right: Value, second: int, count: int) -> Value:
    """A register's value in threads that come from either side, for all of them alike."""
    if left is UNDEFINED or right is UNDEFINED:
        return right if left is UNDEFINED else left
    number = join_numbers(left.number, first, right.number, second, count)
    return Value(
        number,
        left.name if left.name == right.name else None,
        join_bases(left, right),
        left.mark if left.mark == right.mark else few(left, right),
    )


def apart(
    left: Value, first: int, right: Value, second: int, count: int
) -> tuple[tuple[int, Value], ...]:
    """The addresses of threads of either side, as far as no thread may have two of them."""
    alike = (left.bases, left.name) == (right.bases, right.name)
    if not (left.bases or right.bases) or (alike and not left.parts and not right.parts):
        return ()
    found: list[tuple[int, Value]] = []
    for mask, value in (*_parts(left, first), *_parts(right, second)):
        if isinstance(value.mark, FlagRead | Passed):
            return ()
        threads, whole = mask, value
        for one in [one for one in found if one[0] & mask or same(one[1], value)]:
            found.remove(one)
            whole = _whole(one[1], one[0], whole, threads, count)
            threads |= one[0]
        found.append((threads, whole))
    ordered = tuple(sorted(found, key=lambda one: one[0]))
    return ordered if 1 < len(ordered) <= MOST and any(one.bases for _, one in ordered) else ()


def _parts(value: Value, mask: int) -> list[tuple[int, Value]]:
    """The threads of a mask with what each holds."""
    found = [(threads & mask, one) for threads, one in value.parts if threads & mask]
    rest = mask
    for threads, _ in found:
        rest &= ~threads
    plain = replace(value, parts=()) if value.parts else value
    return [*found, (rest, plain)] if rest else found


def few(left: Value, right: Value) -> Few | None:
    """That a number is one of either side's, while those are few."""
    found: frozenset[int] = frozenset()
    for one in (left, right):
        if one.bases:
            return None
        if isinstance(one.number, int):
            found |= {one.number}
        elif isinstance(one.mark, Few):
            found |= one.mark.numbers
        else:
            return None
    return Few(found) if len(found) <= MOST else None


def any_of(values: list[Value], mask: int, count: int) -> Value:
    """A register's value where it is one of several in threads of a mask."""
    whole = UNDEFINED
    for value in values:
        whole = join(whole, mask, value, mask, count)
    return whole


def options(index: Value, mask: int) -> tuple[int, ...]:
    """The numbers that an index may be in some thread of a mask, if they are few; else none."""
    number = index.number
    if index.bases:
        return ()
    if isinstance(number, int):
        return (number,)
    if isinstance(number, Lanes) and not mask & ~mask_of(number.known):
        some = np.unique(number.values[truth_of(mask, len(number.known))])
        return tuple(int(one) for one in some) if len(some) <= MOST else ()
    return tuple(sorted(index.mark.numbers)) if isinstance(index.mark, Few) else ()
