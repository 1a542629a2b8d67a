# SPDX-License-Identifier: Apache-2.0
"""How statements are followed that choose: `if`, `match`, and `try` with its handlers."""

import ast
from collections.abc import Sequence
from typing import TYPE_CHECKING

from fasttrack.testmodel import folding
from fasttrack.testmodel.folding import CannotTell
from fasttrack.testmodel.frames import Flow
from fasttrack.testmodel.known import SWALLOWED
from fasttrack.testmodel.spoken import in_words
from fasttrack.testmodel.strength import claim_of, negated
from fasttrack.testmodel.values import (
    Class,
    Function,
    Mark,
    Namespace,
    Opaque,
    Scope,
    Value,
    shorten,
    words,
)

if TYPE_CHECKING:
    from fasttrack.testmodel.follower import Follower

_TOLD = frozenset({Flow.RAISE, Flow.SKIP})
"""Ends of a branch that are events of their own; what comes after is no special case."""


def if_(f: "Follower", node: ast.If, scope: Scope) -> Flow:
    """`if`: one branch where the text tells which, both where it does not."""
    condition = f.value(node.test, scope)
    try:
        chosen, other = node.body, node.orelse
        if not folding.truth(condition):
            chosen, other = other, chosen
    except CannotTell:
        return _both_ways(f, node, condition, scope)
    f.note_dead(other, scope, "under a condition that never holds")
    return f.follow(chosen, scope)


def _both_ways(f: "Follower", node: ast.If, condition: Value, scope: Scope) -> Flow:
    text = in_words(f, node.test, scope)
    before = dict(scope.names)
    with f.trace.when(text):
        first = f.follow(node.body, scope)
    if first is Flow.RAISE and fails(node.body[-1]):
        claim = claim_of(condition)
        f.check(negated(claim), node, scope)
    taken = dict(scope.names)
    _reset(scope, before)
    with f.trace.when(f"not ({text})"):
        second = f.follow(node.orelse, scope)
    if first is not Flow.NORMAL and second is not Flow.NORMAL:
        return first if first is second else Flow.RETURN
    if first is not Flow.NORMAL:
        if first not in _TOLD:
            f.trace.conditions.append(f"not ({text})")
    elif second is not Flow.NORMAL:
        _reset(scope, taken)
        if second not in _TOLD:
            f.trace.conditions.append(text)
    else:
        _merge(scope, taken, text)
    if node.orelse == [] and scope.module is not None:
        _condition(node.body, taken, text)
    return Flow.NORMAL


def _condition(body: Sequence[ast.stmt], taken: Namespace, condition: str) -> None:
    """A test that is only defined under a condition is skipped without it."""
    for value in taken.values():
        if isinstance(value, Function | Class) and value.node in body:
            value.marks.append(Mark("skipif", (Opaque(f"not ({condition})"),)))


def _reset(scope: Scope, names: Namespace) -> None:
    scope.names.clear()
    scope.names.update(names)


def _merge(scope: Scope, taken: Namespace, condition: str) -> None:
    """After two branches, a name is what it is in either."""
    for name, value in taken.items():
        other = scope.names.get(name, value)
        if other is not value:
            try:
                value = folding.either([(condition, value), (f"not {condition}", other)])  # noqa: PLW2901
            except CannotTell:
                value = Opaque(f"{name} after a branch")  # noqa: PLW2901
        scope.names[name] = value


def match_(f: "Follower", node: ast.Match, scope: Scope) -> Flow:
    """`match`: each case under a condition of its own."""
    subject = words(f.value(node.subject, scope))
    before = dict(scope.names)
    for number, case in enumerate(node.cases):
        for part in ast.walk(case.pattern):
            if isinstance(part, ast.MatchAs) and part.name is not None:
                scope.names[part.name] = Opaque(shorten(f"part of {subject}"))
        with f.trace.when(f"case {number} of {subject}"):
            f.follow(case.body, scope)
        _reset(scope, before)
    return Flow.NORMAL


def try_(f: "Follower", node: ast.Try | ast.TryStar, scope: Scope) -> Flow:
    """`try`: whether a handler keeps a failure from failing the test."""
    catching = [handler for handler in node.handlers if _catches(f, handler, scope)]
    swallows = any(not _raises(handler) for handler in catching[:1])
    swallows = swallows or any(isinstance(s, ast.Return) for s in node.finalbody)
    with f.trace.dying("inside a `try` that catches its failure" if swallows else ""):
        flow = f.follow(node.body, scope)
        if flow is Flow.NORMAL:
            flow = f.follow(node.orelse, scope)
    if swallows and flow is Flow.RAISE:
        flow = Flow.NORMAL
    kept = dict(scope.names)
    for handler in node.handlers:
        kind = words(f.value(handler.type, scope)) if handler.type else "anything"
        with f.trace.when(f"{kind} is raised"):
            f.follow(handler.body, scope)
    _reset(scope, kept)
    end = f.follow(node.finalbody, scope)
    return flow if end is Flow.NORMAL else end


def _catches(f: "Follower", handler: ast.ExceptHandler, scope: Scope) -> bool:
    if handler.type is None:
        return True
    value = f.value(handler.type, scope)
    kinds = value if isinstance(value, tuple) else (value,)
    return any(words(kind) in SWALLOWED for kind in kinds)


def _raises(handler: ast.ExceptHandler) -> bool:
    """Whether a handler fails the test itself."""
    return any(isinstance(node, ast.Raise) for node in ast.walk(handler)) or fails(handler)


def fails(statement: ast.AST) -> bool:
    """Whether a piece of syntax fails the test as an assertion would."""
    for node in ast.walk(statement):
        match node:
            case ast.Raise(exc=ast.Call(func=ast.Name(id="AssertionError"))):
                return True
            case ast.Raise(exc=ast.Name(id="AssertionError")):
                return True
            case ast.Assert(test=ast.Constant(value=False)):
                return True
            case ast.Call(func=ast.Attribute(attr="fail") | ast.Name(id="fail")):
                return True
    return False
