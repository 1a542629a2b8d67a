# SPDX-License-Identifier: Apache-2.0
"""Which of a result is left when it is compared: a part, its mean, its digits, all of it.

A value remembers what was cut off on its way from the code under test to an assertion. An assertion
whose both sides lost more than before says less, whatever its tolerance.
"""

import ast
import re
from collections.abc import Iterable, Mapping, Sequence

from fasttrack.testmodel.values import (
    NOTHING_CUT,
    Claim,
    Cuts,
    Either,
    Opaque,
    Value,
    is_known,
    words,
)

PART = "a part of it"
DEPTH = 3
"""Containers inside each other that are looked into."""
_CALLS: Mapping[str, Sequence[str]] = {
    "its order left out": (
        "sorted", "sort", "set", "frozenset", "unique", "msort", "Counter", "assertCountEqual",
    ),
    "fewer of its digits": (
        "round", "around", "round_", "rint", "floor", "ceil", "trunc", "fix", "int", "long",
        "half", "bfloat16", "float16", "int8", "format",
    ),
    "values beyond a bound left out": (
        "clip", "clamp", "clamp_", "relu", "minimum", "maximum", "nan_to_num", "nan_to_num_",
    ),
    "no more than its sign": ("sign", "sgn", "signbit", "isfinite", "isnan", "isinf", "bool"),
    "its sum": ("sum", "nansum", "norm", "prod"),
    "its largest value": ("max", "amax", "nanmax"),
    "its mean or a quantile": (
        "mean", "nanmean", "average", "median", "nanmedian", "quantile", "nanquantile",
        "percentile", "nanpercentile", "kthvalue", "std", "var",
    ),
    "its smallest value": ("min", "amin", "nanmin"),
    "where its largest value is": ("argmax", "argmin"),
    "no more than its hash": ("hash", "id"),
    PART: (
        "narrow", "masked_select", "take", "index_select", "head", "first", "islice", "next",
        "topk", "pop", "popleft",
    ),
}  # fmt: skip
_CUT_BY: Mapping[str, Cuts] = {
    name: frozenset([kind]) for kind, names in _CALLS.items() for name in names
}
DIGITS = _CUT_BY["round"]
ORDER = _CUT_BY["sorted"]
_CASTS = frozenset({"to", "type", "astype", "asarray", "tensor"})
_NARROW = re.compile(r"\b(?:b?float(?:16|8\w*|4\w*)|half|u?int(?:8|4))\b")
_PASSING = re.compile(r"^(?:torch|numpy|jax|math|builtins|operator|itertools|collections)\.|^\w+$")
"""Functions whose result speaks of what they are given; others are the code under test."""
LOOSE_FIRST: Mapping[str, Mapping[str, int]] = {
    "at most": {"its smallest value": 0, "its mean or a quantile": 1},
    "at least": {"its largest value": 0, "its mean or a quantile": 1},
}
"""Reductions under a bound on a number, the loosest first; the others bound every value."""
_OVER_ALL = 2
_REDUCTIONS = frozenset({
    "its sum", "its largest value", "its mean or a quantile", "its smallest value",
})  # fmt: skip


def cuts_of(value: Value, depth: int = DEPTH) -> Cuts | None:
    """What was cut off a value; None for one that the text tells, which fits whatever it meets."""
    if isinstance(value, Opaque | Claim):
        return value.cuts
    if isinstance(value, Either):
        return common(value.values(), depth)
    if is_known(value, DEPTH):
        return None
    return common(value, depth - 1) if isinstance(value, list | tuple) and depth else NOTHING_CUT


def common(values: Iterable[Value], depth: int = DEPTH) -> Cuts:
    """What was cut off all of some values that are compared or computed with each other."""
    found: Cuts | None = None
    for value in values:
        cuts = cuts_of(value, depth)
        if cuts is not None:
            found = cuts if found is None else found & cuts
    return found or NOTHING_CUT


def of_call(callee: Value, name: str, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Cuts:
    """What is cut off the result of a call that is not followed."""
    last = name.rpartition(".")[2]
    is_method = isinstance(callee, Opaque) and not callee.external
    if not is_method and not _PASSING.match(name):
        return NOTHING_CUT
    kept = callee.cuts if is_method else common(args)
    if last == "zip" and any(PART in (cuts_of(arg) or ()) for arg in args):
        kept |= {PART}  # it ends with the shortest
    if last in _CASTS and any(_is_narrow(arg) for arg in (*args, *kwargs.values())):
        return kept | DIGITS
    return kept | _CUT_BY.get(last, NOTHING_CUT)


def _is_narrow(value: Value) -> bool:
    return isinstance(value, Opaque) and bool(_NARROW.search(value.words))


def of_operator(kind: type[ast.operator], left: Value, right: Value) -> Cuts:
    """What is cut off the result of an operator."""
    kept = common((left, right))
    zero = kind is ast.Mult and any(isinstance(v, int | float) and v == 0 for v in (left, right))
    if zero or (kind is ast.Sub and words(left) == words(right)):
        return kept | {"all of its values"}
    formats = kind is ast.Mod and isinstance(left, str)
    if formats or (kind is ast.FloorDiv and is_known(right, DEPTH)):
        return kept | DIGITS
    return kept


def of_item(owner: Value, key: Value) -> Cuts:
    """What is cut off one item or slice of a value."""
    kept = cuts_of(owner) or NOTHING_CUT
    return kept | {PART} if _selects(key) else kept


def _selects(key: Value) -> bool:
    """Whether a key leaves out some of what it is used on; that of a loop comes by all of it."""
    match key:
        case tuple():
            return any(map(_selects, key))
        case slice():
            return key != slice(None)
        case Claim():
            return True
        case Opaque():
            return not key.external and not key.words.startswith("item of")
        case _:
            return isinstance(key, int) and not isinstance(key, bool)


def lost(old: Cuts, new: Cuts, bounds: Iterable[str]) -> Cuts:
    """What an assertion cuts off that another one does not.

    Args:
        old: what the one of the target branch cuts off.
        new: what the one after the merge does.
        bounds: `at most`, `at least`, where both bound a number.
    """
    gained = new - old
    for bound in bounds:
        looseness = LOOSE_FIRST.get(bound, {})
        least = min((looseness.get(cut, _OVER_ALL) for cut in old), default=_OVER_ALL)
        looser = {cut for cut in gained if looseness.get(cut, _OVER_ALL) < least}
        gained = (gained - _REDUCTIONS) | looser
    return frozenset(gained)
