# SPDX-License-Identifier: Apache-2.0
"""How each kind of statement is followed."""

import ast
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from fasttrack.testmodel import branches, definitions, loops
from fasttrack.testmodel.binding import bind
from fasttrack.testmodel.contexts import enter
from fasttrack.testmodel.events import Skip
from fasttrack.testmodel.frames import Flow, ast_text
from fasttrack.testmodel.strength import RELATION
from fasttrack.testmodel.values import (
    Claim,
    Scope,
    Value,
    is_known,
    words,
)

if TYPE_CHECKING:
    from fasttrack.testmodel.follower import Follower

_CLOSING = frozenset({"close", "aclose", "cancel"})
_SCHEDULING = frozenset({"create_task", "ensure_future"})
_SKIPPING = ("unittest.SkipTest", "SkipTest", "pytest.skip.Exception")


def _assign(f: "Follower", node: ast.Assign, scope: Scope) -> Flow:
    value = f.value(node.value, scope)
    for target in node.targets:
        bind(f, target, value, scope)
    return Flow.NORMAL


def _annotated(f: "Follower", node: ast.AnnAssign, scope: Scope) -> Flow:
    if node.value is not None:
        bind(f, node.target, f.value(node.value, scope), scope)
    return Flow.NORMAL


def _augmented(f: "Follower", node: ast.AugAssign, scope: Scope) -> Flow:
    load = ast.copy_location(_loaded(node.target), node.target)
    value = f.value(ast.copy_location(ast.BinOp(load, node.op, node.value), node), scope)
    bind(f, node.target, value, scope)
    return Flow.NORMAL


def _loaded(target: ast.expr) -> ast.expr:
    match target:
        case ast.Name(id=name):
            return ast.Name(name, ast.Load())
        case ast.Attribute(value=value, attr=attr):
            return ast.Attribute(value, attr, ast.Load())
        case ast.Subscript(value=value, slice=key):
            return ast.Subscript(value, key, ast.Load())
        case _:
            return target


def _expression(f: "Follower", node: ast.Expr, scope: Scope) -> Flow:
    f.unused = _called(node.value)
    f.value(node.value, scope)
    return Flow.NORMAL


def _called(node: ast.expr) -> ast.expr:
    """The call whose result a statement drops: at once, by closing it, or to run some time."""
    while isinstance(node, ast.Call) and isinstance(function := node.func, ast.Attribute):
        if function.attr in _SCHEDULING and node.args:
            node = node.args[0]
        elif function.attr in _CLOSING:
            node = function.value
        else:
            break
    return node


def _assert(f: "Follower", node: ast.Assert, scope: Scope) -> Flow:
    tests = [node.test]
    while isinstance(tests[0], ast.BoolOp) and isinstance(tests[0].op, ast.And):
        tests[:1] = tests[0].values
    for test in tests:
        value = f.value(test, scope)
        if value is False and isinstance(test, ast.Constant):
            return Flow.RAISE
        if is_known(value) and not _is_plain(f, test, scope):
            # What a callback may have changed meanwhile is not taken for a constant.
            f.check(Claim("truth", ast_text(test), RELATION), node, scope)
        else:
            f.asserted(value, node, scope)
    return Flow.NORMAL


def _is_plain(f: "Follower", test: ast.expr, scope: Scope) -> bool:
    """Whether an expression is made of literals and names of constants alone."""
    for part in ast.walk(test):
        if isinstance(part, ast.Call | ast.Attribute | ast.Subscript):
            return False
        if isinstance(part, ast.Name):
            value = f.value(part, scope)
            if not is_known(value) or isinstance(value, list | dict | set):
                return False
    return True


def _with(f: "Follower", node: ast.With | ast.AsyncWith, scope: Scope) -> Flow:
    ends: list[Flow] = []

    def from_item(index: int) -> None:
        if index == len(node.items):
            ends.append(f.follow(node.body, scope))
            return
        item = node.items[index]

        def inside(value: Value) -> None:
            if item.optional_vars is not None:
                bind(f, item.optional_vars, value, scope)
            from_item(index + 1)

        enter(f, f.value(item.context_expr, scope), inside, item.context_expr, scope)

    from_item(0)
    return ends[-1] if ends else Flow.NORMAL


def _return(f: "Follower", node: ast.Return, scope: Scope) -> Flow:
    value = None if node.value is None else f.value(node.value, scope)
    f.frames[-1].returned.append((" and ".join(f.trace.conditions), value))
    return Flow.RETURN


def _raise(f: "Follower", node: ast.Raise, scope: Scope) -> Flow:
    if node.exc is not None:
        text = words(f.value(node.exc, scope))
        if text.startswith(_SKIPPING):
            condition = " and ".join(f.trace.conditions)
            f.trace.skips.append(Skip("skip", condition, f.place(node, scope)))
            return Flow.SKIP
    return Flow.RAISE


def _break(_f: "Follower", _node: ast.Break, _scope: Scope) -> Flow:
    return Flow.BREAK


def _continue(_f: "Follower", _node: ast.Continue, _scope: Scope) -> Flow:
    return Flow.CONTINUE


TABLE: Mapping[type[ast.AST], Callable[["Follower", Any, Scope], Flow]] = {
    ast.Assign: _assign, ast.AnnAssign: _annotated, ast.AugAssign: _augmented,
    ast.Expr: _expression, ast.Assert: _assert, ast.If: branches.if_, ast.For: loops.for_,
    ast.AsyncFor: loops.for_, ast.While: loops.while_, ast.With: _with, ast.AsyncWith: _with,
    ast.Try: branches.try_, ast.TryStar: branches.try_, ast.Match: branches.match_,
    ast.Return: _return, ast.Raise: _raise, ast.FunctionDef: definitions.function,
    ast.AsyncFunctionDef: definitions.function, ast.ClassDef: definitions.class_,
    ast.Import: definitions.import_, ast.ImportFrom: definitions.import_from,
    ast.Global: definitions.shared, ast.Nonlocal: definitions.shared,
    ast.Delete: definitions.delete, ast.Break: _break, ast.Continue: _continue,
}  # fmt: skip
"""Kind of statement to what follows it; the others do nothing that counts."""
