# SPDX-License-Identifier: Apache-2.0
"""What statements do: bind names, open scopes, branch, loop, and enter context managers."""

import ast
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from fasttrack.meaning import annotations, calls, classes, patterns, stores
from fasttrack.meaning.values import UNKNOWN, Foreign, Made, Values, joined

if TYPE_CHECKING:
    from fasttrack.meaning.reader import Reader

RAISED_LIMIT = 1_000
"""Exceptions of one file that are carried to where they are caught."""
_WARNINGS_KEPT = "warnings.catch_warnings"


def _import(reader: "Reader", node: ast.Import) -> None:
    for alias in node.names:
        top = alias.name if alias.asname else alias.name.partition(".")[0]
        values = reader.project.imported(
            top, _step(top, alias.asname or top, reader.spot(node.lineno))
        )
        reader.frame.scope.bind(alias.asname or top, values, weakly=reader.frame.branches > 0)


def _import_from(reader: "Reader", node: ast.ImportFrom) -> None:
    scope = reader.frame.scope
    module = reader.project.absolute(scope.path, node.module or "", node.level)
    for alias in node.names:
        if alias.name == "*":
            scope.module.stars.append(reader.project.imported(module, ""))
            continue
        name = alias.asname or alias.name
        step = _step(f"{module}.{alias.name}", name, reader.spot(node.lineno))
        weakly = reader.frame.branches > 0
        if scope.parent is None and not (weakly and name in scope.names):
            scope.bind_late(name, reader.project.later(module, alias.name, step))
        else:
            values = reader.project.member(module, alias.name, step)
            scope.bind(name, values, weakly=weakly)


def _step(name: str, bound: str, place: str) -> str:
    """How a name came here, in words."""
    if name == bound:
        return f"imported at {place}"
    return f"`{bound}` is `{name}`, imported at {place}"


def _assign(reader: "Reader", node: ast.Assign) -> None:
    values = reader.value(node.value)
    for target in node.targets:
        stores.store(reader, target, values, statement=node)


def _annotated(reader: "Reader", node: ast.AnnAssign) -> None:
    if node.value is not None:
        stores.store(reader, node.target, reader.value(node.value), statement=node)
    annotations.evaluate(reader, node.annotation)


def _augmented(reader: "Reader", node: ast.AugAssign) -> None:
    stores.augment(reader, node, reader.value(node.value))


def _delete(reader: "Reader", node: ast.Delete) -> None:
    for target in node.targets:
        stores.delete(reader, target)


def _expression(reader: "Reader", node: ast.Expr) -> None:
    reader.value(node.value)


def _return(reader: "Reader", node: ast.Return) -> None:
    reader.frame.returned.append(reader.value(node.value))


def _if(reader: "Reader", node: ast.If) -> None:
    """A chain of `elif` is followed without recursion."""
    chain: Sequence[ast.stmt] = [node]
    with reader.branch():
        while len(chain) == 1 and isinstance(only := chain[0], ast.If):
            reader.value(only.test)
            if not _is_script(only.test):
                reader.run(only.body)
            chain = only.orelse
        reader.run(chain)


def _is_script(test: ast.expr) -> bool:
    """Whether a block runs only where the file is started as a program, and never on import."""
    match test:
        case ast.Compare(
            left=ast.Name(id="__name__"),
            ops=[ast.Eq()],
            comparators=[ast.Constant(value="__main__")],
        ):
            return True
        case _:
            return False


def _for(reader: "Reader", node: ast.For | ast.AsyncFor) -> None:
    """Runs the body for each element that is known, or once."""
    looped = reader.value(node.iter)
    with reader.branch():
        for values in reader.rounds(looped):
            stores.loop_target(reader, node.target, values)
            reader.run(node.body)
        reader.run(node.orelse)


def _while(reader: "Reader", node: ast.While) -> None:
    reader.value(node.test)
    with reader.branch():
        reader.run(node.body)
        reader.run(node.orelse)


def _try(reader: "Reader", node: ast.Try | ast.TryStar) -> None:
    before = len(reader.raised)
    with reader.branch():
        reader.run(node.body)
        caught = joined(UNKNOWN, *reader.raised[before:])
        for handler in node.handlers:
            if handler.name is not None:
                reader.bind(handler.name, caught, handler)
            reader.run(handler.body)
        reader.run(node.orelse)
    reader.run(node.finalbody)


def _with(reader: "Reader", node: ast.With | ast.AsyncWith) -> None:
    restoring = 0
    for item in node.items:
        reader.frame.entered = isinstance(item.context_expr, ast.Call)
        manager = reader.value(item.context_expr)
        reader.frame.entered = False
        restoring += any(_keeps_warnings(value) for value in manager)
        entered = calls.entered(reader, manager, item.context_expr)
        if item.optional_vars is not None:
            stores.store(reader, item.optional_vars, entered)
    reader.frame.restored += restoring
    reader.run(node.body)
    reader.frame.restored -= restoring


def _keeps_warnings(value: object) -> bool:
    return isinstance(value, Made) and value.of == _WARNINGS_KEPT


def _function(reader: "Reader", node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
    decorators = [reader.value(decorator) for decorator in node.decorator_list]
    function = reader.defined(node)
    values: Values = (function,)
    for decorator, expression in reversed(list(zip(decorators, node.decorator_list, strict=True))):
        names = {value.name for value in decorator if isinstance(value, Foreign)}
        if names & calls.METHOD_KINDS.keys():
            function.kind = next(calls.METHOD_KINDS[n] for n in names if n in calls.METHOD_KINDS)
            continue
        values = calls.decorated(reader, decorator, values, expression)
    reader.frame.scope.bind(node.name, values, weakly=reader.frame.branches > 0)


def _class(reader: "Reader", node: ast.ClassDef) -> None:
    values = classes.defined(reader, node)
    for expression in reversed(node.decorator_list):
        values = calls.decorated(reader, reader.value(expression), values, expression)
    reader.frame.scope.bind(node.name, values, weakly=reader.frame.branches > 0)


def _match(reader: "Reader", node: ast.Match) -> None:
    subject = reader.value(node.subject)
    with reader.branch():
        for case in node.cases:
            patterns.bind(reader, case.pattern, subject)
            reader.value(case.guard)
            reader.run(case.body)


def _global(reader: "Reader", node: ast.Global) -> None:
    reader.frame.scope.globals.update(node.names)


def _nonlocal(reader: "Reader", node: ast.Nonlocal) -> None:
    reader.frame.scope.nonlocals.update(node.names)


def _raise(reader: "Reader", node: ast.Raise) -> None:
    raised = reader.value(node.exc)
    reader.value(node.cause)
    if raised and len(reader.raised) < RAISED_LIMIT:
        reader.raised.append(raised)


def _parts(reader: "Reader", node: ast.Assert) -> None:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.expr):
            reader.value(child)


HANDLERS: Mapping[type[ast.AST], Callable[["Reader", Any], None]] = {
    ast.AnnAssign: _annotated,
    ast.Assert: _parts,
    ast.Assign: _assign,
    ast.AsyncFor: _for,
    ast.AsyncFunctionDef: _function,
    ast.AsyncWith: _with,
    ast.AugAssign: _augmented,
    ast.ClassDef: _class,
    ast.Delete: _delete,
    ast.Expr: _expression,
    ast.For: _for,
    ast.FunctionDef: _function,
    ast.Global: _global,
    ast.If: _if,
    ast.Import: _import,
    ast.ImportFrom: _import_from,
    ast.Match: _match,
    ast.Nonlocal: _nonlocal,
    ast.Raise: _raise,
    ast.Return: _return,
    ast.Try: _try,
    ast.TryStar: _try,
    ast.While: _while,
    ast.With: _with,
}
"""Kinds of statements to what reads them; any other does nothing."""
