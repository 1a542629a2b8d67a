# SPDX-License-Identifier: Apache-2.0
"""Parameters and what they get; what a function or record is by its text."""

import ast
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from fasttrack.testmodel.values import Class, Function, Namespace, Opaque, Scope, Value

if TYPE_CHECKING:
    from fasttrack.testmodel.follower import Follower


def is_generator(node: ast.AST) -> bool:
    """Whether a function yields."""
    known = getattr(node, "yields", None)
    if known is None:
        known = any(isinstance(inner, ast.Yield | ast.YieldFrom) for inner in _own_nodes(node))
        node.yields = known  # type: ignore[attr-defined]
    return bool(known)


def never_runs(node: ast.AST) -> str:
    """Why the body of a function does not run when it is called and the result is dropped."""
    if is_generator(node):
        return "in a generator that nobody iterates"
    return "in a coroutine that nobody awaits" if isinstance(node, ast.AsyncFunctionDef) else ""


def _own_nodes(node: ast.AST) -> Sequence[ast.AST]:
    """The nodes of a function without those of functions inside it."""
    found: list[ast.AST] = []
    stack = list(ast.iter_child_nodes(node))
    while stack:
        inner = stack.pop()
        found.append(inner)
        if not isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            stack.extend(ast.iter_child_nodes(inner))
    return found


def arguments_of(
    function: Function, args: Sequence[Value], kwargs: Mapping[str, Value]
) -> Namespace:
    """Parameters by name; words for what nobody gives."""
    spec = function.node.args
    positional = [*spec.posonlyargs, *spec.args]
    names: Namespace = {}
    for parameter, value in zip(positional, args, strict=False):
        names[parameter.arg] = value
    if spec.vararg is not None:
        names[spec.vararg.arg] = tuple(args[len(positional) :])
    known = {p.arg for p in (*positional, *spec.kwonlyargs)}
    names.update({name: value for name, value in kwargs.items() if name in known})
    if spec.kwarg is not None:
        more = {name: value for name, value in kwargs.items() if name not in known}
        names[spec.kwarg.arg] = more
    for parameter in (*positional, *spec.kwonlyargs):
        if parameter.arg not in names:
            names[parameter.arg] = function.defaults.get(parameter.arg, Opaque(parameter.arg))
    return names


def defaults_of(f: "Follower", spec: ast.arguments, scope: Scope) -> Namespace:
    """Defaults of a function's parameters, as its definition evaluates them."""
    positional = [*spec.posonlyargs, *spec.args]
    found: Namespace = {}
    if spec.defaults:
        for parameter, default in zip(
            positional[-len(spec.defaults) :], spec.defaults, strict=True
        ):
            found[parameter.arg] = f.value(default, scope)
    for parameter, keyword_default in zip(spec.kwonlyargs, spec.kw_defaults, strict=True):
        if keyword_default is not None:
            found[parameter.arg] = f.value(keyword_default, scope)
    return found


def fields_of(kind: Class) -> list[str]:
    """Annotated names of a record, those of its bases first."""
    found: list[str] = []
    for owner in reversed(list(kind.line())):
        for statement in owner.node.body:
            if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
                found.append(statement.target.id)
    return list(dict.fromkeys(found))
