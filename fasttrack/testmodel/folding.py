# SPDX-License-Identifier: Apache-2.0
"""Operators and pure functions on values that the text tells; bounded, and never an error.

Whatever fails, or would grow past a bound, raises `CannotTell`, and the follower makes words of it.
"""

import ast
import itertools
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence

from fasttrack.testmodel.values import Either, Mark, Opaque, Value, is_known, words

ITEMS_LIMIT = 4096
"""Items of one container that is built; no parametrisation that people read has more."""
BITS_LIMIT = 4096
TEXT_LIMIT = 65536
OPTIONS_LIMIT = 64
"""Options of one value, and of one product of options."""

_BINARY: Mapping[type[ast.operator], Callable[[Value, Value], Value]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul,
    ast.Div: operator.truediv, ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod,
    ast.Pow: operator.pow, ast.LShift: operator.lshift, ast.RShift: operator.rshift,
    ast.BitOr: operator.or_, ast.BitAnd: operator.and_, ast.BitXor: operator.xor,
}  # fmt: skip
_COMPARED: Mapping[type[ast.cmpop], Callable[[Value, Value], Value]] = {
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le,
    ast.Gt: operator.gt, ast.GtE: operator.ge, ast.Is: operator.is_, ast.IsNot: operator.is_not,
    ast.In: lambda a, b: _holds(b, a), ast.NotIn: lambda a, b: not _holds(b, a),
}  # fmt: skip
SIGNS: Mapping[type[ast.AST], str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%",
    ast.Pow: "**", ast.LShift: "<<", ast.RShift: ">>", ast.BitOr: "|", ast.BitAnd: "&",
    ast.BitXor: "^", ast.MatMult: "@", ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=",
    ast.Gt: ">", ast.GtE: ">=", ast.Is: "is", ast.IsNot: "is not", ast.In: "in",
    ast.NotIn: "not in", ast.USub: "-", ast.UAdd: "+", ast.Not: "not ", ast.Invert: "~",
}  # fmt: skip
_FAILURES = (TypeError, ValueError, ArithmeticError, LookupError, AttributeError, MemoryError)


class CannotTell(Exception):  # noqa: N818  (it is no error)
    """The text does not tell the result."""


def binary(kind: type[ast.operator], left: Value, right: Value) -> Value:
    """The result of an operator on two values; options are combined."""
    if isinstance(left, Either) or isinstance(right, Either):
        return over_options(lambda a, b: binary(kind, a, b), left, right)
    if not (_computable(left) and _computable(right)) or kind not in _BINARY:
        raise CannotTell
    if kind in {ast.Pow, ast.LShift} and not _small_power(left, right):
        raise CannotTell
    if kind is ast.Mult and not _small_repeat(left, right):
        raise CannotTell
    if kind is ast.Mod and isinstance(left, str | bytes):
        raise CannotTell  # a width in the format may ask for gigabytes
    return checked(lambda: _BINARY[kind](left, right))


def compare(kind: type[ast.cmpop], left: Value, right: Value) -> Value:
    """The result of a comparison of known values."""
    if kind in {ast.Is, ast.IsNot} and right is None and isinstance(left, Mark):
        return kind is ast.IsNot
    if not (is_known(left) and is_known(right)):
        raise CannotTell
    return checked(lambda: _COMPARED[kind](left, right))


def _holds(container: Value, value: Value) -> bool:
    """`value in container`; Python would go through a range for what is no integer."""
    if isinstance(container, range) and not isinstance(value, int):
        return isinstance(value, float) and value.is_integer() and int(value) in container
    return value in container


def unary(kind: type[ast.unaryop], value: Value) -> Value:
    """The result of an operator on one value."""
    if isinstance(value, Either):
        return Either(tuple((label, unary(kind, item)) for label, item in value.options))
    if kind is ast.Not:
        return not truth(value)
    if not isinstance(value, int | float | complex):
        raise CannotTell
    match kind:
        case ast.USub:
            return -value
        case ast.UAdd:
            return value
        case _:
            return checked(lambda: ~value)  # type: ignore[operator]


def truth(value: Value) -> bool:
    """Whether a value counts as true; CannotTell for what the text does not tell."""
    if isinstance(value, list | tuple | set | frozenset | dict | str | bytes | range):
        return bool(value)
    if value is None or value is Ellipsis or isinstance(value, int | float | complex):
        return bool(value)
    if isinstance(value, Mark):
        return True
    raise CannotTell


def item(container: Value, key: Value) -> Value:
    """`container[key]`; every entry may be meant where the key is not told."""
    if isinstance(container, Either):
        return over_options(item, container, key)
    if isinstance(container, dict):
        return _entry(container, key)
    if isinstance(container, list | tuple | str | bytes | range):
        if isinstance(key, int | slice):
            return checked(lambda: container[key])
        if isinstance(container, list | tuple) and 0 < len(container) <= OPTIONS_LIMIT:
            return either((str(i), each) for i, each in enumerate(container))
    raise CannotTell


def _entry(container: dict[Value, Value], key: Value) -> Value:
    found = lookup(container, key)
    if found is not _MISSING:
        return found
    if isinstance(key, Either):
        hits = [(label, lookup(container, k)) for label, k in key.options]
        if all(value is not _MISSING for _, value in hits):
            return either(hits)
    if isinstance(key, Opaque | Either) and 0 < len(container) <= OPTIONS_LIMIT:
        return either((words(k), value) for k, value in container.items())
    raise CannotTell


_MISSING = object()


def lookup(container: Mapping[Value, Value], key: Value) -> Value:
    """An entry by its key; a private object when there is none."""
    try:
        return container.get(key, _MISSING)
    except TypeError:
        return _MISSING


def entry_or(container: Mapping[Value, Value], key: Value, default: Value) -> Value:
    """An entry, the default where the key is known and absent, or one of all."""
    found = lookup(container, key)
    if found is not _MISSING:
        return found
    if isinstance(key, Opaque | Either) and not (isinstance(key, Opaque) and key.external):
        options = [(words(k), value) for k, value in container.items()]
        return either([*options, ("default", default)])
    return default


def either(options: Iterable[tuple[str, Value]]) -> Value:
    """One of several values; the value itself when all are the same.

    Raises:
        CannotTell: too many.
    """
    flat: list[tuple[str, Value]] = []
    for label, value in options:
        if isinstance(value, Either):
            flat += [(f"{label} {inner}", each) for inner, each in value.options]
        else:
            flat.append((label, value))
    if not flat or len(flat) > OPTIONS_LIMIT:
        raise CannotTell
    first = flat[0][1]
    if len(flat) > 1 and all(same(first, value) for _, value in flat[1:]):
        return first
    return Either(tuple(flat))  # one alone stays open: an environment may say otherwise


def same(left: Value, right: Value) -> bool:
    """Whether two values are equal, types included: `1` is not `True`, nor `1.0`."""
    return left is right or (type(left) is type(right) and words(left) == words(right))


def items_of(value: Value) -> Sequence[Value]:
    """The items of an iterable that the text tells.

    Raises:
        CannotTell: it does not, or they are too many.
    """
    if isinstance(value, range):
        if len(value) > ITEMS_LIMIT:
            raise CannotTell
        return list(value)
    if isinstance(value, set | frozenset):
        return sorted(value, key=words)
    if isinstance(value, list | tuple | str | bytes | dict):
        if len(value) > ITEMS_LIMIT:
            raise CannotTell
        return list(value)
    raise CannotTell


def product(axes: Sequence[Sequence[Value]], repeat: int = 1) -> list[Value]:
    """The Cartesian product as tuples, within the limit on items."""
    size = 1
    for axis in axes:
        size *= len(axis)
    if repeat < 1 or repeat > 12 or size**repeat > ITEMS_LIMIT:
        raise CannotTell
    return list(itertools.product(*axes, repeat=repeat))


def _computable(value: Value) -> bool:
    if isinstance(value, str | bytes):
        return len(value) <= TEXT_LIMIT
    return value is None or isinstance(value, int | float | complex | list | tuple | set | dict)


def _small_power(left: Value, right: Value) -> bool:
    if not isinstance(right, int | float) or not isinstance(left, int | float):
        return False
    bits = left.bit_length() if isinstance(left, int) else 1
    return abs(right) * max(bits, 1) <= BITS_LIMIT


def _small_repeat(left: Value, right: Value) -> bool:
    for many, times in ((left, right), (right, left)):
        if isinstance(many, list | tuple | str | bytes) and isinstance(times, int):
            return len(many) * max(times, 0) <= ITEMS_LIMIT
    if isinstance(left, int) and isinstance(right, int):
        return left.bit_length() + right.bit_length() <= BITS_LIMIT
    return True


def checked(compute: Callable[[], Value]) -> Value:
    """A result within bounds; CannotTell for a failure or one beyond them."""
    try:
        result = compute()
    except _FAILURES as error:
        raise CannotTell from error
    if isinstance(result, int) and result.bit_length() > BITS_LIMIT:
        raise CannotTell
    if isinstance(result, list | tuple | set | dict) and len(result) > ITEMS_LIMIT:
        raise CannotTell
    if isinstance(result, str | bytes) and len(result) > TEXT_LIMIT:
        raise CannotTell
    return result


def over_options(compute: Callable[[Value, Value], Value], left: Value, right: Value) -> Value:
    """A result for each combination of options of two values."""
    lefts = left.options if isinstance(left, Either) else (("", left),)
    rights = right.options if isinstance(right, Either) else (("", right),)
    if len(lefts) * len(rights) > OPTIONS_LIMIT:
        raise CannotTell
    return either((f"{a} {b}".strip(), compute(x, y)) for a, x in lefts for b, y in rights)
