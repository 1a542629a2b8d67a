# SPDX-License-Identifier: Apache-2.0
"""Which statements of a function can run, as far as constants and plain exits tell."""

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence

Constants = Mapping[str, bool]
"""Names that a module binds once, to a literal, by whether that counts as true."""
Decide = Callable[[ast.expr], bool | None]
"""Whether a condition holds, by what is known beyond constants; None when that can not be told."""
_INVERSE = {
    ast.Lt: ast.GtE,
    ast.LtE: ast.Gt,
    ast.Gt: ast.LtE,
    ast.GtE: ast.Lt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}

_EXITS = (ast.Return, ast.Raise, ast.Continue, ast.Break)
_DEPTH = 40
"""Nested conditions that are followed."""


def constants(tree: ast.Module) -> Constants:
    """The literal flags of a module."""
    found: dict[str, list[bool]] = {}
    for node in tree.body:
        match node:
            case (
                ast.Assign(targets=[ast.Name(id=name)], value=ast.Constant(value=value))
                | ast.AnnAssign(target=ast.Name(id=name), value=ast.Constant(value=value))
            ):
                found.setdefault(name, []).append(bool(value))
    return {name: values[0] for name, values in found.items() if len(values) == 1}


def _undecided(_: ast.expr) -> bool | None:
    return None


def truth(
    test: ast.expr, known: Constants, decide: Decide = _undecided, depth: int = _DEPTH
) -> bool | None:
    """Whether a condition always or never holds; None when that can not be told."""
    answer = decide(test) if depth else None
    if answer is not None:
        return answer
    match test if depth else ast.Pass():
        case ast.Constant(value=value):
            answer = bool(value)
        case ast.Name(id=name):
            answer = known.get(name)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            inner = truth(operand, known, decide, depth - 1)
            answer = None if inner is None else not inner
        case ast.BoolOp(op=ast.Or(), values=values):
            answer = _any([truth(value, known, decide, depth - 1) for value in values])
            if answer is None and _are_all_there_is(values):
                answer = True
        case ast.BoolOp(op=ast.And(), values=values):
            parts = [truth(value, known, decide, depth - 1) for value in values]
            inverted = _any([None if part is None else not part for part in parts])
            answer = None if inverted is None else not inverted
        case ast.Compare(left=ast.Constant(value=one), ops=[op], comparators=[ast.Constant()]):
            other = test.comparators[0].value  # type: ignore[attr-defined]
            if isinstance(op, ast.Eq | ast.NotEq):
                answer = (one == other) is isinstance(op, ast.Eq)
    return answer


def _are_all_there_is(values: Sequence[ast.expr]) -> bool:
    """Whether one of some conditions is the opposite of another: `x <= 8 or x > 8`."""
    asked = [v for v in values if isinstance(v, ast.Compare) and len(v.ops) == 1]
    seen = {(type(v.ops[0]), ast.dump(v.left), ast.dump(v.comparators[0])) for v in asked}
    return any((_INVERSE[op], left, right) in seen for op, left, right in seen)


def _any(parts: Sequence[bool | None]) -> bool | None:
    if True in parts:
        return True
    return None if None in parts else False


def reachable(
    body: Sequence[ast.stmt], known: Constants, decide: Decide = _undecided
) -> Iterator[ast.AST]:
    """Every node that can run, without what constants and exits cut off; in no order."""
    stack: list[ast.AST] = [*running(body, known, decide)]
    while stack:
        node = stack.pop()
        yield node
        if isinstance(node, ast.If | ast.IfExp | ast.While):
            answer = truth(node.test, known, decide)
            if answer is None:  # a condition that never comes out otherwise decides nothing
                stack.append(node.test)
            body_, orelse = _arms(node)
            if answer is not False:
                stack += running(body_, known, decide)
            if answer is not True:
                stack += running(orelse, known, decide)
            continue
        if isinstance(node, ast.BoolOp):
            stack += _evaluated(node, known, decide)
            continue
        for _, value in ast.iter_fields(node):
            parts = value if isinstance(value, list) else [value]
            if parts and isinstance(parts[0], ast.stmt):
                parts = running(parts, known, decide)
            stack += [part for part in parts if isinstance(part, ast.AST)]


def _evaluated(node: ast.BoolOp, known: Constants, decide: Decide) -> list[ast.expr]:
    """The operands of an `and` or `or` up to the one that settles it."""
    settles = isinstance(node.op, ast.Or)
    for place, value in enumerate(node.values):
        if truth(value, known, decide) is settles:
            return node.values[: place + 1]
    return node.values


def _arms(node: ast.If | ast.IfExp | ast.While) -> tuple[list[ast.stmt], list[ast.stmt]]:
    if isinstance(node, ast.IfExp):
        return [ast.Expr(node.body)], [ast.Expr(node.orelse)]
    return node.body, node.orelse


def running(
    body: Sequence[ast.stmt], known: Constants, decide: Decide = _undecided
) -> list[ast.stmt]:
    """The statements of a block up to the first after which nothing runs."""
    for place, node in enumerate(body):
        if leaves(node, known, decide):
            return list(body[: place + 1])
    return list(body)


def leaves(
    node: ast.stmt, known: Constants, decide: Decide = _undecided, depth: int = _DEPTH
) -> bool:
    """Whether nothing runs after a statement of the same block."""
    if isinstance(node, _EXITS):
        return True
    if isinstance(node, ast.If) and depth:
        answer = truth(node.test, known, decide)
        first = any(leaves(inner, known, decide, depth - 1) for inner in node.body)
        other = any(leaves(inner, known, decide, depth - 1) for inner in node.orelse)
        return {True: first, False: other, None: first and other}[answer]
    return False
