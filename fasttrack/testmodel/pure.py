# SPDX-License-Identifier: Apache-2.0
"""Pure functions and constants of Python and its library on values that the text tells."""

import ast
import itertools
from collections.abc import Callable, Iterable, Mapping

from fasttrack.testmodel.folding import (
    ITEMS_LIMIT,
    CannotTell,
    binary,
    checked,
    items_of,
    over_options,
    truth,
)
from fasttrack.testmodel.values import Either, Value, is_known


def _numbers(compute: Callable[..., Value]) -> Callable[..., Value]:
    def folded(*args: Value) -> Value:
        if not all(is_known(arg) for arg in args):
            raise CannotTell
        return checked(lambda: compute(*args))

    return folded


def _sized(compute: Callable[..., Value]) -> Callable[..., Value]:
    def folded(*args: Value) -> Value:
        if any(isinstance(arg, range) and len(arg) > ITEMS_LIMIT for arg in args):
            raise CannotTell
        return checked(lambda: compute(*args))

    return folded


def _float(value: Value) -> Value:
    if isinstance(value, Either):
        return Either(tuple((label, _float(each)) for label, each in value.options))
    if isinstance(value, str) and len(value) > 64:
        raise CannotTell
    return _numbers(float)(value)


def _text(value: Value) -> Value:
    if isinstance(value, str | int | float) or value is None:
        return str(value)
    raise CannotTell


def _zipped(*args: Value) -> Value:
    if any(isinstance(arg, list | tuple | dict | str | range) and not arg for arg in args):
        return []  # whatever the others hold
    return list(zip(*(items_of(arg) for arg in args), strict=False))


def _numbered(values: Value, start: Value = 0) -> Value:
    if not isinstance(start, int):
        raise CannotTell
    return list(enumerate(items_of(values), start))


def _sorted(values: Value) -> Value:
    listed = items_of(values)
    if not is_known(list(listed)):
        raise CannotTell
    return checked(lambda: sorted(listed))


def _dictionary(pairs: Value = ()) -> Value:
    if isinstance(pairs, dict):
        return dict(pairs)
    return checked(lambda: dict(items_of(pairs)))


def _chained(*args: Value) -> Value:
    return [each for arg in args for each in items_of(arg)]


def _one_of(pick: Callable[[Iterable[Value]], Value]) -> Callable[..., Value]:
    def folded(*args: Value) -> Value:
        values = items_of(args[0]) if len(args) == 1 else args
        if any(isinstance(value, Either) for value in values) and len(values) == 2:
            return over_options(lambda a, b: checked(lambda: pick((a, b))), values[0], values[1])
        if not values or not all(isinstance(value, int | float | str) for value in values):
            raise CannotTell
        return checked(lambda: pick(values))

    return folded


PURE: Mapping[str, Callable[..., Value]] = {
    "range": _numbers(range), "len": _sized(len), "abs": _numbers(abs), "round": _numbers(round),
    "int": _numbers(int), "bool": lambda value=False: truth(value), "float": _float,
    "str": _text, "divmod": _numbers(divmod), "pow": lambda a, b: binary(ast.Pow, a, b),
    "list": lambda values=(): list(items_of(values)),
    "tuple": lambda values=(): tuple(items_of(values)),
    "set": lambda values=(): checked(lambda: set(items_of(values))),
    "frozenset": lambda values=(): checked(lambda: frozenset(items_of(values))),
    "dict": _dictionary, "sorted": _sorted, "reversed": lambda v: list(items_of(v))[::-1],
    "zip": _zipped, "enumerate": _numbered, "min": _one_of(min), "max": _one_of(max),
    "sum": lambda values: _numbers(sum)(list(items_of(values))),
    "iter": lambda values: list(items_of(values)),
    "itertools.chain": _chained,
    "itertools.chain.from_iterable": lambda rows: _chained(*items_of(rows)),
    "itertools.permutations": lambda v, n=None: _combined(itertools.permutations, v, n),
    "itertools.combinations": lambda v, n: _combined(itertools.combinations, v, n),
    "itertools.repeat": lambda value, times: [value] * times if _is_few(times) else _fail(),
    "itertools.islice": lambda v, *bounds: list(items_of(v))[slice(*bounds)],
    "copy.copy": lambda value: value, "copy.deepcopy": lambda value: value,
    "typing.cast": lambda _, value: value, "math.sqrt": _numbers(lambda v: v**0.5),
    "sys.intern": lambda value: value, "operator.index": _numbers(int),
}  # fmt: skip
"""Pure functions by dotted name; those of `builtins` without it."""


CONSTANTS: Mapping[str, Value] = {
    "typing.TYPE_CHECKING": False,
    "math.pi": 3.141592653589793, "math.inf": float("inf"), "numpy.inf": float("inf"),
    "torch.inf": float("inf"), "sys.maxsize": 2**63 - 1,
}  # fmt: skip


def _is_few(times: Value) -> bool:
    return isinstance(times, int) and 0 <= times <= ITEMS_LIMIT


def _fail() -> Value:
    raise CannotTell


def _combined(kind: Callable[..., Iterable[Value]], values: Value, count: Value) -> Value:
    listed = items_of(values)
    if len(listed) > 7:
        raise CannotTell
    return checked(lambda: list(kind(listed, count)))
