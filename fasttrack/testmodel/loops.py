# SPDX-License-Identifier: Apache-2.0
"""How loops are followed, and how often what they repeat runs."""

import ast
from collections.abc import Sequence
from typing import TYPE_CHECKING

from fasttrack.testmodel import folding
from fasttrack.testmodel.binding import bind
from fasttrack.testmodel.comprehensions import one_of
from fasttrack.testmodel.events import Loop
from fasttrack.testmodel.expressions import FEW_ITEMS
from fasttrack.testmodel.folding import CannotTell
from fasttrack.testmodel.frames import Flow, ast_text, source_text
from fasttrack.testmodel.values import Scope, Value

if TYPE_CHECKING:
    from fasttrack.testmodel.follower import Follower

WHILE_LIMIT = 300
"""Runs of a `while` whose condition the text tells."""


def for_(f: "Follower", node: ast.For | ast.AsyncFor, scope: Scope) -> Flow:
    """`for`: item by item while they are few, once for all otherwise."""
    iterable = f.value(node.iter, scope)
    met = len(f.trace.checks)
    try:
        items = folding.items_of(iterable)
        count = len(items)
    except CannotTell:
        items, count = [], len(iterable) if isinstance(iterable, range) else -1
    if 0 <= count <= FEW_ITEMS:
        flow = _each(f, node, items, scope)
    else:
        flow = _repeated(f, node, iterable, count, scope)
    if len(f.trace.checks) == met and isinstance(iterable, range) and _calls(node):
        f.trace.loops.append(
            Loop(" ".join(map(ast_text, node.body)), count * f.trace.times, f.place(node, scope))
        )
    if flow in {Flow.RETURN, Flow.RAISE, Flow.SKIP}:
        return flow
    return f.follow(node.orelse, scope)


def _each(
    f: "Follower", node: ast.For | ast.AsyncFor, items: Sequence[Value], scope: Scope
) -> Flow:
    if not items:
        f.note_dead(node.body, scope, "in a loop over nothing")
    for item in items:
        bind(f, node.target, item, scope)
        flow = f.follow(node.body, scope)
        if flow is Flow.BREAK:
            break
        if flow not in {Flow.NORMAL, Flow.CONTINUE}:
            return flow
    return Flow.NORMAL


def _repeated(
    f: "Follower", node: ast.For | ast.AsyncFor, iterable: Value, count: int, scope: Scope
) -> Flow:
    """One run that stands for all; how often it runs may not be told."""
    bind(f, node.target, one_of(iterable), scope)
    times = f.trace.times
    f.trace.times = times * count if count > 0 else 0
    try:
        flow = f.follow(node.body, scope)
    finally:
        f.trace.times = times
    if flow is Flow.RETURN:
        f.trace.conditions.append(f"{source_text(node.iter)} is empty")
    return flow if flow in {Flow.RAISE, Flow.SKIP} and count > 0 else Flow.NORMAL


def _calls(node: ast.AST) -> bool:
    return any(isinstance(inner, ast.Call) for inner in ast.walk(node))


def while_(f: "Follower", node: ast.While, scope: Scope) -> Flow:
    """`while`: as often as the text tells, and once more where it does not."""
    for _ in range(WHILE_LIMIT):
        try:
            if not folding.truth(f.value(node.test, scope)):
                return Flow.NORMAL
        except CannotTell:
            break
        flow = f.follow(node.body, scope)
        if flow is Flow.BREAK:
            return Flow.NORMAL
        if flow not in {Flow.NORMAL, Flow.CONTINUE}:
            return flow
    times, f.trace.times = f.trace.times, 0
    try:
        f.follow(node.body, scope)
    finally:
        f.trace.times = times
    return Flow.NORMAL
