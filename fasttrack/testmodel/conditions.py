# SPDX-License-Identifier: Apache-2.0
"""What a condition says of the sets of parameters that a test had before.

`if backend == "new": pytest.skip(...)` takes nothing from a test whose old sets of parameters all
have another backend. A condition is read as an expression over the parameters; what it says of
anything else is not told, and counts for neither side.
"""

import ast
import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from fasttrack.testmodel.collected import Test
from fasttrack.testmodel.events import Check
from fasttrack.testmodel.values import Either, Value, words

COMBINATIONS_LIMIT = 4_000
"""Combinations of the parameters in one condition that are looked at."""
_Sets = Mapping[str, str]
"""Name of a parameter to the words of its value."""


class _Untold:
    """A value that the text does not tell."""


_UNTOLD = _Untold()


def concerns(condition: str, base: Test, standing: Sequence[Test], known: Sequence[str]) -> bool:
    """Whether a condition may hold where the test ran before.

    Args:
        condition: canonical words, of a test that stands for `base`.
        base: the test at the target branch.
        standing: what stands for it.
        known: conditions that it was left out under before.
    """
    tree = _parsed(condition)
    if tree is None:
        return True
    names = _names(tree).union(*(_names(old) for old in map(_parsed, known) if old is not None))
    before = _combinations(base, names)
    after = [sets for test in standing for sets in _combinations(test, _names(tree)) or ()]
    if not before or not after:
        return True
    shared = frozenset(before[0]) & frozenset(after[0])
    spared = {_part(sets, shared) for sets in after if _truth(tree, sets) is False}
    for sets in before:
        rest = _rest(tree, sets)
        left_out = (_rest(old, sets) for old in map(_parsed, known) if old is not None)
        if _part(sets, shared) not in spared and not any(one in {"True", rest} for one in left_out):
            return True
    return False


def alternatives(condition: str) -> frozenset[str]:
    """The conditions that each suffice for one, in one spelling."""
    tree = _parsed(condition)
    if tree is None:
        return frozenset([condition])
    parts = tree.values if isinstance(tree, ast.BoolOp) and isinstance(tree.op, ast.Or) else [tree]
    return frozenset(map(ast.unparse, parts))


def excludes(condition: str, other: str) -> bool:
    """Whether one condition is the opposite of another."""
    (left, even), (right, odd) = _positive(condition), _positive(other)
    return even is not odd and left == right != ""


@lru_cache(maxsize=1024)
def _positive(condition: str) -> tuple[str, bool]:
    """A condition without the `not`s before it, and whether it is meant as it stands."""
    node, meant = _parsed(condition), True
    while isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        node, meant = node.operand, not meant
    return "" if node is None else ast.unparse(node), meant


def as_before(check: Check, base: Test, standing: Sequence[Test]) -> Check:
    """A check at the head without what concerns only sets of parameters that are new."""
    conditions = tuple(c for c in check.conditions if concerns(f"not ({c})", base, standing, ()))
    tolerances = {
        name: _narrowed(value, standing, (base,), at_least=name == "at least", best=True)
        for name, value in check.tolerances.items()
    }
    return replace(check, conditions=conditions, tolerances=tolerances)


def as_still(check: Check, base: Test, standing: Sequence[Test]) -> Check:
    """A check at the base without what concerned only sets of parameters that are gone."""
    tolerances = {
        name: _narrowed(value, (base,), standing, at_least=name == "at least", best=False)
        for name, value in check.tolerances.items()
    }
    return replace(check, tolerances=tolerances)


def _narrowed(
    value: Value, own: Sequence[Test], there: Sequence[Test], *, at_least: bool, best: bool
) -> Value:
    """The options of a value for sets of parameters that other tests have as well.

    Args:
        value: what may have options.
        own: the tests that it is from.
        there: the other tests.
        at_least: a small number is the loose one.
        best: of several sets that are one there, the strictest counts.
    """
    if not isinstance(value, Either):
        return value
    trees = [_parsed(label) for label, _ in value.options]
    names = frozenset[str]().union(*(_names(tree) for tree in trees if tree is not None))
    ours = [sets for test in own for sets in _combinations(test, names) or ()]
    theirs = [sets for test in there for sets in _combinations(test, names) or ()]
    if not ours or not theirs or None in trees:
        return value
    shared = frozenset(ours[0]) & frozenset(theirs[0])
    wanted = {_part(sets, shared) for sets in theirs}
    found: dict[_Part, list[frozenset[int]]] = {}
    for sets in ours:
        if (part := _part(sets, shared)) in wanted:
            told = ((i, _truth(tree, sets)) for i, tree in enumerate(trees) if tree is not None)
            found.setdefault(part, []).append(frozenset(i for i, t in told if t is not False))

    def looseness(chosen: frozenset[int]) -> float:
        numbers = [value.options[i][1] for i in chosen]
        known = [n for n in numbers if isinstance(n, int | float)]
        return math.inf if len(known) < len(numbers) else max(-n if at_least else n for n in known)

    several = [filter(None, choices) for choices in found.values()]
    kept = [[min(one, key=looseness, default=frozenset())] if best else one for one in several]
    chosen = sorted({i for one in kept for choice in one for i in choice})
    options = tuple(value.options[i] for i in chosen) or value.options
    return Either(options) if len(options) > 1 else options[0][1]


_Part = frozenset[tuple[str, str]]


def _part(sets: _Sets, names: frozenset[str]) -> _Part:
    return frozenset(pair for pair in sets.items() if pair[0] in names)


@lru_cache(maxsize=1024)
def _parsed(condition: str) -> ast.expr | None:
    try:
        return ast.parse(condition, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _names(tree: ast.expr) -> frozenset[str]:
    return frozenset(node.id for node in ast.walk(tree) if isinstance(node, ast.Name))


def _combinations(test: Test, names: frozenset[str]) -> list[_Sets] | None:
    """All values that the parameters of some names have together; None when not told."""
    rows: list[list[_Sets]] = []
    size = 1
    for axis in test.axes:
        if not names.isdisjoint(axis.names):
            if axis.sets is None:
                return None
            sets = [
                dict(zip(axis.names, s.values, strict=False)) for s in axis.sets if not s.is_skipped
            ]
            rows.append([{n: words(v) for n, v in one.items() if n in names} for one in sets])
            size *= len(sets)
    if size > COMBINATIONS_LIMIT:
        return None
    return [{k: v for part in one for k, v in part.items()} for one in itertools.product(*rows)]


def _truth(node: ast.expr, sets: _Sets) -> bool | None:
    """Whether an expression holds for some values; None when that is not told."""
    match node:
        case ast.BoolOp(op=op, values=parts):
            found = [_truth(part, sets) for part in parts]
            settles = isinstance(op, ast.Or)
            if settles in found:
                return settles
            return None if None in found else not settles
        case ast.UnaryOp(op=ast.Not(), operand=inner):
            truth = _truth(inner, sets)
            return None if truth is None else not truth
        case ast.Compare(left=left, ops=[op], comparators=[right]):
            return _compared(op, _value(left, sets), _value(right, sets))
        case ast.Constant():
            return None  # the label of a value, and no condition
        case _:
            value = _value(node, sets)
            return None if isinstance(value, _Untold) else bool(value)


def _rest(node: ast.expr, sets: _Sets) -> str:
    """What is left of a condition for some values: `True`, `False`, or what is not told of it."""
    truth = _truth(node, sets)
    if truth is not None:
        return str(truth)
    if isinstance(node, ast.BoolOp):
        sign = " or " if isinstance(node.op, ast.Or) else " and "
        parts = (_rest(part, sets) for part in node.values)
        return sign.join(f"({part})" for part in parts if part not in {"True", "False"})
    return ast.unparse(node)


def _compared(op: ast.cmpop, left: object, right: object) -> bool | None:
    parts = (left, *right) if isinstance(right, tuple) else (left, right)
    if any(isinstance(part, _Untold) for part in parts):
        return None
    match op:
        case ast.In() | ast.NotIn() if isinstance(right, tuple):
            return (left in right) is isinstance(op, ast.In)
        case ast.Eq() | ast.Is():
            return left == right
        case ast.NotEq() | ast.IsNot():
            return left != right
        case _ if isinstance(left, int | float) and isinstance(right, int | float):
            return _ordered(op, left, right)
        case _:
            return None


def _ordered(op: ast.cmpop, left: float, right: float) -> bool | None:
    match op:
        case ast.Lt():
            return left < right
        case ast.LtE():
            return left <= right
        case ast.Gt():
            return left > right
        case ast.GtE():
            return left >= right
        case _:
            return None


def _value(node: ast.expr, sets: _Sets) -> object:
    """The value of a literal or parameter; other names have none."""
    if isinstance(node, ast.Name):
        return _literal(sets[node.id]) if node.id in sets else _UNTOLD
    if isinstance(node, ast.IfExp):
        truth = _truth(node.test, sets)
        chosen = node.body if truth else node.orelse
        return _UNTOLD if truth is None else _value(chosen, sets)
    if isinstance(node, ast.Tuple | ast.List | ast.Set):
        return tuple(_value(part, sets) for part in node.elts)
    return _literal(ast.unparse(node))


@lru_cache(maxsize=1024)
def _literal(text: str) -> object:
    if text in _DTYPES:
        return _DTYPES[text]
    try:
        return ast.literal_eval(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return _UNTOLD


@dataclass(frozen=True)
class _Dtype:
    """A data type of PyTorch; two names of one are the same."""

    name: str


_SAME = {"half": "float16", "float": "float32", "double": "float64", "long": "int64"}
_DTYPES = {
    f"torch.{name}": _Dtype(_SAME.get(name, name))
    for name in (
        *_SAME,
        *_SAME.values(),
        *("bfloat16", "int8", "int16", "int32", "uint8", "bool"),
        *("float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu", "float4_e2m1fn_x2"),
    )
}
