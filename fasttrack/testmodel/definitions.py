# SPDX-License-Identifier: Apache-2.0
"""How statements are followed that bind names: definitions, imports, `global`, `del`."""

import ast
from typing import TYPE_CHECKING

from fasttrack.testmodel import calling
from fasttrack.testmodel.arguments import defaults_of
from fasttrack.testmodel.attributes import attribute
from fasttrack.testmodel.binding import bind_name
from fasttrack.testmodel.frames import Flow, module_of
from fasttrack.testmodel.values import Class, Function, Module, Scope, Value, words

if TYPE_CHECKING:
    from fasttrack.testmodel.follower import Follower


_RECORDS = ("dataclasses.dataclass", "dataclass", "pydantic.dataclasses.dataclass", "attr.s")


_RECORD_BASES = ("typing.NamedTuple", "pydantic.BaseModel")


def function(f: "Follower", node: ast.FunctionDef | ast.AsyncFunctionDef, scope: Scope) -> Flow:
    """A function: its decorators make of it what its name is bound to."""
    value: Value = Function(node, scope, defaults_of(f, node.args, scope))
    for decorator in reversed(node.decorator_list):
        value = calling.decorate(f, f.value(decorator, scope), value, node, scope)
    bind_name(node.name, value, scope)
    return Flow.NORMAL


def class_(f: "Follower", node: ast.ClassDef, scope: Scope) -> Flow:
    """A class: its body is followed when it is defined."""
    bases = tuple(f.values(node.bases, scope))
    inner = Scope({}, scope)
    f.follow(node.body, inner)
    made = Class(node.name, node, bases, inner.names, scope)
    made.is_record = made.is_a(*_RECORD_BASES)
    value: Value = made
    for decorator in reversed(node.decorator_list):
        found = f.value(decorator, scope)
        if words(found).startswith(_RECORDS):
            made.is_record = True
        else:
            value = calling.decorate(f, found, value, node, scope)
    bind_name(node.name, value, scope)
    return Flow.NORMAL


def import_(f: "Follower", node: ast.Import, scope: Scope) -> Flow:
    """`import a.b`, which binds `a`, or `import a.b as c`."""
    path = module_of(scope).path
    for alias in node.names:
        if alias.asname is not None:
            bind_name(alias.asname, f.world.imported(path, alias.name, 0), scope)
        else:
            top = alias.name.partition(".")[0]
            bind_name(top, f.world.imported(path, top, 0), scope)
            if top != alias.name:
                f.world.imported(path, alias.name, 0)  # it runs, whatever it is called by
    return Flow.NORMAL


def import_from(f: "Follower", node: ast.ImportFrom, scope: Scope) -> Flow:
    """`from a import b`, and all names with `*`."""
    module = f.world.imported(module_of(scope).path, node.module or "", node.level)
    for alias in node.names:
        if alias.name != "*":
            bind_name(alias.asname or alias.name, attribute(f, module, alias.name), scope)
        elif isinstance(module, Module):
            chosen = module.names.get("__all__")
            listed = chosen if isinstance(chosen, list | tuple) else list(module.names)
            for name in listed:
                public = chosen is not None or not str(name).startswith("_")
                if public and name in module.names:
                    bind_name(name, module.names[name], scope)
            module_of(scope).stars.extend(module.stars)
        else:
            module_of(scope).stars.append(words(module))
    return Flow.NORMAL


def shared(_f: "Follower", node: ast.Global | ast.Nonlocal, scope: Scope) -> Flow:
    """`global` and `nonlocal`."""
    scope.shared.update(node.names)
    return Flow.NORMAL


def delete(_f: "Follower", node: ast.Delete, scope: Scope) -> Flow:
    """`del` of a name."""
    for target in node.targets:
        if isinstance(target, ast.Name):
            scope.names.pop(target.id, None)
    return Flow.NORMAL
