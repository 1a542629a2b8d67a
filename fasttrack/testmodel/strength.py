# SPDX-License-Identifier: Apache-2.0
"""How much an assertion says: what it compares, on a scale that only orders.

An assertion that is replaced by one lower on the scale is weaker, whatever the words around it.
"""

import ast
import re
from dataclasses import replace
from typing import TYPE_CHECKING

from fasttrack.testmodel.cuts import common
from fasttrack.testmodel.folding import SIGNS
from fasttrack.testmodel.values import Claim, Either, Opaque, Value, is_known, words

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

TRIVIAL = 0
"""Holds whatever the code under test does."""
TRUTH = 1
"""Something is there, or is not None."""
SHAPE = 2
"""A shape, type, length or other property of a result, not its content."""
RELATION = 3
"""An order, a membership, or one computation against itself."""
VALUE = 4
"""A content against an expected one."""

PARAMETER = "parameter "
"""What the words for a test's parameter begin with that may be anything."""

_SHAPE_WORDS = re.compile(
    r"\.(?:shape|dtype|device|ndim|size\(\)|dim\(\)|numel\(\))(?:\[[^\]]*\])?$"
)
_SHAPE_CALLS = re.compile(r"^(?:len|type|isinstance|hasattr|callable|id)\(")
_NAME = re.compile(r"[A-Za-z_]\w*")
_NOISE = frozenset(
    [
        "either",
        "torch",
        "numpy",
        "float32",
        "float16",
        "bfloat16",
        "float64",
        "int32",
        "int64",
        "cuda",
        "cpu",
        "device",
        "dtype",
        "shape",
        "item",
        "self",
        "abs",
        "max",
        "min",
        "mean",
        "sum",
        "all",
        "any",
        "not",
        "and",
        "the",
        "None",
        "True",
        "False",
        "len",
        "str",
        "int",
        "float",
        "list",
        "tuple",
        "default",
        "allclose",
        "approx",
        "isclose",
        "testing",
        "pytest",
        "manual_seed",
        "randn",
        "rand",
        "zeros",
        "ones",
    ]
)
_CALLED = re.compile(r"([A-Za-z_]\w*(?:\.\w+)+)\(")
_KNOWN_PACKAGES = re.compile(r"(?:torch|numpy|random|math|jax|itertools|collections)\.")
_ANYTHING = frozenset({"unittest.mock.ANY", "mock.ANY"})
_ORDERED = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)


def roots_of(text: str) -> frozenset[str]:
    """Names in canonical words that tell what they speak of."""
    return frozenset(name for name in _NAME.findall(text) if len(name) > 2 and name not in _NOISE)


def is_shape(value: Value) -> bool:
    """Whether a value is a property of a result instead of its content."""
    text = words(value)
    return bool(_SHAPE_WORDS.search(text) or _SHAPE_CALLS.match(text))


def of_comparison(kind: type[ast.cmpop], left: Value, right: Value) -> Claim:
    """What `left <kind> right` claims, for values of which one at least is not told."""
    for value, other in ((left, right), (right, left)):
        if isinstance(value, Claim) and kind in {ast.Eq, ast.Is}:
            if value.kind == "pytest.approx":
                text = f"{words(other)} == {value.text}"
                strength = min(value.strength, of_contents(words(other), value.text))
                cuts = common((other, value))
                return Claim(value.kind, text, strength, value.tolerances, cuts)
            if other is True:
                return value
    text = f"{words(left)} {SIGNS[kind]} {words(right)}"
    if isinstance(left, Claim) and isinstance(right, Claim) and "bound" in {left.kind, right.kind}:
        return Claim(SIGNS[kind], text, RELATION, cuts=common((left, right)))
    if kind in _ORDERED:
        return _bound(kind, left, right, text)
    return Claim(SIGNS[kind], text, _strength(kind, left, right), cuts=common((left, right)))


def _strength(kind: type[ast.cmpop], left: Value, right: Value) -> int:
    same = left is right and kind in {ast.Eq, ast.Is, ast.LtE, ast.GtE} and not is_known(left)
    if same or (kind is ast.Eq and is_anything(left, right)):
        return TRIVIAL
    if kind in {ast.Is, ast.IsNot}:
        return TRUTH
    if kind is ast.NotEq:
        return RELATION
    if is_shape(left) or is_shape(right):
        return SHAPE
    if kind is ast.Eq:
        return of_contents(words(left), words(right))
    return RELATION


def of_contents(one: str, other: str) -> int:
    """How much it says that two contents agree: less where one of them is made of the other.

    A result that is compared with a copy of itself agrees, whatever it is. A parameter that is not
    told is no result, even if a call gave it.
    """
    inner, outer = sorted((one, other), key=len)
    if one == other:
        return RELATION
    if inner.startswith(PARAMETER):
        return VALUE
    return RELATION if inner in outer and any(called_in(inner)) else VALUE


def called_in(text: str) -> "Iterator[str]":
    """Dotted names that canonical words call, those of well-known packages left out."""
    return (name for name in _CALLED.findall(text) if not _KNOWN_PACKAGES.match(name))


def is_anything(*values: Value) -> bool:
    """Whether one of some values equals whatever it is compared with."""
    return any(isinstance(value, Opaque) and value.words in _ANYTHING for value in values)


def _bound(kind: type[ast.cmpop], left: Value, right: Value, text: str) -> Claim:
    """An ordering: with a number on one side, the number is how far it lets things go."""
    if left is right and kind in {ast.LtE, ast.GtE}:
        return Claim("bound", text, TRIVIAL)
    cuts = common((left, right))
    upper = kind in {ast.Lt, ast.LtE}
    for value, other, at_most in ((right, left, upper), (left, right, not upper)):
        if _is_number(value):
            side = "at most" if at_most else "at least"
            strength = SHAPE if is_shape(other) else RELATION
            return Claim("bound", f"{words(other)} {side}", strength, {side: value}, cuts)
    return Claim("bound", text, RELATION, cuts=cuts)


def _is_number(value: Value) -> bool:
    if isinstance(value, Either):
        return all(_is_number(option) for option in value.values())
    return isinstance(value, int | float) and not isinstance(value, bool)


def one_of_many(claim: Claim) -> Claim:
    """What it says that a claim over many holds for one of them at least."""
    strength = max(claim.strength - 1, TRIVIAL)
    return replace(claim, text=f"any {claim.text}", strength=strength)


def claim_of(value: Value) -> Claim:
    """What asserting a value claims."""
    if isinstance(value, Claim):
        return value
    if isinstance(value, Opaque | Either):
        text = words(value)
        strength = SHAPE if _SHAPE_CALLS.match(text) else TRUTH
        return Claim("truth", text, strength, cuts=common((value,)))
    return Claim("truth", words(value), TRIVIAL if _always_true(value) else TRUTH)


def _always_true(value: Value) -> bool:
    if isinstance(value, tuple):
        return bool(value)
    return isinstance(value, bool | int | float | str | bytes) and bool(value)


def negated(claim: Claim) -> Claim:
    """What the opposite of a claim claims; a bound then bounds from the other side."""
    flipped: Mapping[str, Value] = {
        {"at most": "at least", "at least": "at most"}.get(name, name): value
        for name, value in claim.tolerances.items()
    }
    kind = {"==": "!=", "!=": "==", "is": "is not", "is not": "is"}.get(claim.kind, claim.kind)
    strength = VALUE if kind == "==" and claim.kind == "!=" else claim.strength
    return Claim(kind, f"not {claim.text}".replace("not not ", ""), strength, flipped, claim.cuts)
