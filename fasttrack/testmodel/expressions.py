# SPDX-License-Identifier: Apache-2.0
"""What each kind of expression stands for."""

import ast
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from fasttrack.testmodel import calling, folding
from fasttrack.testmodel.arguments import defaults_of
from fasttrack.testmodel.attributes import attribute, name_in
from fasttrack.testmodel.binding import bind
from fasttrack.testmodel.comprehensions import comprehension, dict_comprehension
from fasttrack.testmodel.cuts import DIGITS, ORDER, common, of_item, of_operator
from fasttrack.testmodel.folding import SIGNS, CannotTell
from fasttrack.testmodel.spoken import in_words
from fasttrack.testmodel.strength import TRIVIAL, TRUTH, claim_of, negated, of_comparison
from fasttrack.testmodel.values import (
    NOTHING_CUT,
    Claim,
    Class,
    Function,
    Instance,
    Opaque,
    Scope,
    Value,
    shorten,
    words,
)

if TYPE_CHECKING:
    from fasttrack.testmodel.follower import Follower

FEW_ITEMS = 8
"""Items of a loop that are followed one by one."""


def _constant(_f: "Follower", node: ast.Constant, _scope: Scope) -> Value:
    return node.value


def _name(f: "Follower", node: ast.Name, scope: Scope) -> Value:
    return name_in(f, node.id, scope)


def _attribute(f: "Follower", node: ast.Attribute, scope: Scope) -> Value:
    return attribute(f, f.value(node.value, scope), node.attr)


def _sequence(f: "Follower", node: ast.List | ast.Tuple | ast.Set, scope: Scope) -> Value:
    found: list[Value] = []
    for item in node.elts:
        if isinstance(item, ast.Starred):
            value = f.value(item.value, scope)
            try:
                found += folding.items_of(value)
            except CannotTell:
                cuts = common((value,)) | (ORDER if isinstance(node, ast.Set) else NOTHING_CUT)
                return Opaque(shorten(f"[*{words(value)}]"), cuts=cuts)
        else:
            found.append(f.value(item, scope))
    if isinstance(node, ast.Tuple):
        return tuple(found)
    if isinstance(node, ast.Set):
        try:
            return set(found)
        except TypeError:
            return found
    return found


def _dict(f: "Follower", node: ast.Dict, scope: Scope) -> Value:
    found: dict[Value, Value] = {}
    for key_node, value_node in zip(node.keys, node.values, strict=True):
        value = f.value(value_node, scope)
        if key_node is None:
            if not isinstance(value, dict):
                return Opaque(shorten(f"{{**{words(value)}}}"))
            found.update(value)
            continue
        try:
            found[f.value(key_node, scope)] = value
        except TypeError:
            return Opaque("{}")
    return found


def _binary(f: "Follower", node: ast.BinOp, scope: Scope) -> Value:
    left, right = _operands(f, node, scope)
    sign = SIGNS[type(node.op)]
    try:
        if isinstance(node.op, ast.BitAnd) and isinstance(left, Claim) and isinstance(right, Claim):
            return _both(left, right)
        return folding.binary(type(node.op), left, right)
    except CannotTell:
        text = shorten(f"({words(left)} {sign} {words(right)})")
        return Opaque(text, cuts=of_operator(type(node.op), left, right))


def _operands(f: "Follower", node: ast.BinOp, scope: Scope) -> tuple[Value, Value]:
    """Both operands; long chains `a + b + ...` lean to the left and must not eat the depth."""
    if isinstance(node.left, ast.BinOp):
        chain: list[ast.BinOp] = []
        inner: ast.expr = node.left
        while isinstance(inner, ast.BinOp) and len(chain) < 500:
            chain.append(inner)
            inner = inner.left
        value = f.value(inner, scope)
        for link in reversed(chain):
            right = f.value(link.right, scope)
            try:
                value = folding.binary(type(link.op), value, right)
            except CannotTell:
                sign = SIGNS[type(link.op)]
                cuts = of_operator(type(link.op), value, right)
                value = Opaque(shorten(f"({words(value)} {sign} {words(right)})"), cuts=cuts)
        return value, f.value(node.right, scope)
    return f.value(node.left, scope), f.value(node.right, scope)


def _both(left: Claim, right: Claim) -> Claim:
    return left if left.strength >= right.strength else right


def _unary(f: "Follower", node: ast.UnaryOp, scope: Scope) -> Value:
    value = f.value(node.operand, scope)
    try:
        return folding.unary(type(node.op), value)
    except CannotTell:
        if isinstance(node.op, ast.Not | ast.Invert) and isinstance(value, Claim):
            return negated(value)
        return Opaque(shorten(f"{SIGNS[type(node.op)]}{words(value)}"), cuts=common((value,)))


def _boolean(f: "Follower", node: ast.BoolOp, scope: Scope) -> Value:
    """`and` and `or`: an `or` with something that is always true claims nothing."""
    stops = isinstance(node.op, ast.Or)
    unknown: list[Value] = []
    for operand in node.values:
        value = f.value(operand, scope)
        try:
            known = folding.truth(value)
        except CannotTell:
            unknown.append(value)
            continue
        if known is stops:
            if not unknown or (
                isinstance(value, str | int | float) and not isinstance(value, bool)
            ):
                return value if not unknown else Opaque(shorten(f"{words(unknown[0])} or ..."))
            text = f"{words(unknown[0])} {'or' if stops else 'and'} {value!r}"
            return Claim("always", text, TRIVIAL) if stops else False
    if not unknown:
        return f.value(node.values[-1], scope)
    claims = [claim_of(value) for value in unknown]
    pick = min if stops else max
    chosen = pick(claims, key=lambda claim: claim.strength)
    if chosen.strength <= TRUTH and not any(isinstance(value, Claim) for value in unknown):
        text = (" or " if stops else " and ").join(words(value) for value in unknown)
        return Opaque(shorten(text)) if len(unknown) > 1 else unknown[0]
    return chosen


def _compare(f: "Follower", node: ast.Compare, scope: Scope) -> Value:
    operands = f.values([node.left, *node.comparators], scope)
    claims: list[Claim] = []
    for kind, left, right in zip(map(type, node.ops), operands, operands[1:], strict=False):
        try:
            if not folding.compare(kind, left, right):
                return False
        except CannotTell:
            claims.append(_by_own_equality(f, kind, left, right, node, scope))
    if not claims:
        return True
    first = claims[0]
    merged = {name: value for claim in claims for name, value in claim.tolerances.items()}
    strongest = max(c.strength for c in claims)
    return Claim(first.kind, first.text, strongest, merged, common(claims))


def _by_own_equality(  # noqa: PLR0917
    f: "Follower", kind: type[ast.cmpop], left: Value, right: Value, node: ast.AST, scope: Scope
) -> Claim:
    """What a comparison claims, with the equality that a class of the tests gives itself."""
    if kind is ast.Eq:
        for one, other in ((left, right), (right, left)):
            there, _ = one.kind.find("__eq__") if _is_made_here(one) else (False, None)
            if there:
                said = calling.call(f, attribute(f, one, "__eq__"), [other], {}, node, scope)
                claim = claim_of(said)
                return claim if isinstance(said, Claim) else replace(claim, strength=TRUTH)
    return of_comparison(kind, left, right)


def _is_made_here(value: Value) -> bool:
    return isinstance(value, Instance) and isinstance(value.kind, Class)


def _conditional(f: "Follower", node: ast.IfExp, scope: Scope) -> Value:
    condition = f.value(node.test, scope)
    try:
        return f.value(node.body if folding.truth(condition) else node.orelse, scope)
    except CannotTell:
        text = in_words(f, node.test, scope, words(condition))
        options = ((text, f.value(node.body, scope)), (f"not {text}", f.value(node.orelse, scope)))
        return folding.either(options)


def _subscript(f: "Follower", node: ast.Subscript, scope: Scope) -> Value:
    owner, key = f.value(node.value, scope), f.value(node.slice, scope)
    try:
        return folding.item(owner, key)
    except CannotTell:
        return Opaque(shorten(f"{words(owner)}[{words(key)}]"), cuts=of_item(owner, key))


def _slice(f: "Follower", node: ast.Slice, scope: Scope) -> Value:
    parts = [None if p is None else f.value(p, scope) for p in (node.lower, node.upper, node.step)]
    if all(part is None or isinstance(part, int) for part in parts):
        return slice(*parts)
    return Opaque(shorten(":".join(words(part) for part in parts)))


def _lambda(f: "Follower", node: ast.Lambda, scope: Scope) -> Value:
    return Function(node, scope, defaults_of(f, node.args, scope))


def _joined(f: "Follower", node: ast.JoinedStr, scope: Scope) -> Value:
    parts: list[str] = []
    told = True
    for part in node.values:
        if isinstance(part, ast.Constant):
            parts.append(str(part.value))
        elif isinstance(part, ast.FormattedValue):
            value = f.value(part.value, scope)
            plain = part.format_spec is None and part.conversion == -1
            told = told and plain and isinstance(value, str | int | float)
            parts.append(str(value) if told else words(value))
    text = "".join(parts)
    if told and len(text) <= folding.TEXT_LIMIT:
        return text
    formats = any(isinstance(p, ast.FormattedValue) and p.format_spec for p in node.values)
    return Opaque(shorten(f"f'{text}'"), cuts=DIGITS if formats else NOTHING_CUT)


def _named(f: "Follower", node: ast.NamedExpr, scope: Scope) -> Value:
    value = f.value(node.value, scope)
    bind(f, node.target, value, scope)
    return value


def _call(f: "Follower", node: ast.Call, scope: Scope) -> Value:
    return calling.call_at(f, node, scope)


def _yield(f: "Follower", node: ast.Yield | ast.YieldFrom, scope: Scope) -> Value:
    value = f.value(node.value, scope) if node.value is not None else None
    frame = f.frames[-1]
    if frame.resume is not None:
        resume, frame.resume = frame.resume, None
        resume(value)
    elif isinstance(node, ast.YieldFrom):
        frame.produced.extend(_some_items(value))
    else:
        frame.produced.append(value)
    return Opaque("sent")


def _some_items(value: Value) -> Sequence[Value]:
    try:
        return folding.items_of(value)
    except CannotTell:
        return [Opaque(shorten(f"items of {words(value)}"))]


def _await(f: "Follower", node: ast.Await | ast.Starred, scope: Scope) -> Value:
    return f.value(node.value, scope)


TABLE: Mapping[type[ast.AST], Callable[["Follower", Any, Scope], Value]] = {
    ast.Constant: _constant, ast.Name: _name, ast.Attribute: _attribute, ast.List: _sequence,
    ast.Tuple: _sequence, ast.Set: _sequence, ast.Dict: _dict, ast.BinOp: _binary,
    ast.UnaryOp: _unary, ast.BoolOp: _boolean, ast.Compare: _compare, ast.IfExp: _conditional,
    ast.Subscript: _subscript, ast.Slice: _slice, ast.Lambda: _lambda, ast.JoinedStr: _joined,
    ast.NamedExpr: _named, ast.ListComp: comprehension, ast.SetComp: comprehension,
    ast.GeneratorExp: comprehension, ast.DictComp: dict_comprehension, ast.Call: _call,
    ast.Yield: _yield, ast.YieldFrom: _yield, ast.Await: _await, ast.Starred: _await,
}  # fmt: skip
"""Kind of expression to what evaluates it."""
