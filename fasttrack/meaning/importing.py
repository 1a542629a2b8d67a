# SPDX-License-Identifier: Apache-2.0
"""Functions that import, or find an object by its dotted name."""

import ast
from collections.abc import Mapping
from typing import TYPE_CHECKING

from fasttrack.meaning.handlers import Handler, rows
from fasttrack.meaning.kinds import Kind
from fasttrack.meaning.values import (
    UNKNOWN,
    Foreign,
    Function,
    Items,
    Names,
    Value,
    Values,
    joined,
    texts,
)

if TYPE_CHECKING:
    from fasttrack.meaning.calls import Arguments
    from fasttrack.meaning.reader import Reader


def _import(reader: "Reader", function: Foreign, arguments: "Arguments") -> Values:
    """`import_module` and `__import__`: a known name is an import, a computed one runs anything."""
    name = arguments.at(0, "name")
    if not texts(name):
        if not _stays_below(reader, arguments.node):
            reader.add(Kind.CODE, function, "called with a computed name", arguments.node)
        return UNKNOWN
    scope, found = reader.frame.scope, UNKNOWN
    for known in texts(name):
        module = known.lstrip(".")
        absolute = reader.project.absolute(scope.path, module, len(known) - len(module))
        whole = function.name.endswith("import_module") or len(arguments.given) > 3
        imported = absolute if whole else absolute.partition(".")[0]
        found = joined(found, reader.project.imported(imported, f"imported as {known!r}"))
    return found


def _stays_below(reader: "Reader", node: ast.AST) -> bool:
    """Whether a computed name begins with the text of an own package, and so ends below it."""
    match node:
        case ast.Call(args=[ast.JoinedStr(values=[ast.Constant(value=str(start)), *_]), *rest]):
            module = start.lstrip(".")
            level = len(start) - len(module)
        case _:
            return False
    named = [keyword.value for keyword in node.keywords]
    if level and not any(_is_here(one) for one in (*rest, *named)):
        return False
    package, dot, _ = module.rpartition(".")
    path = reader.frame.scope.path
    found = reader.project.modules.path_of(reader.project.absolute(path, package, level))
    return bool(dot) and reader.project.modules.is_own(found)


def _is_here(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id == "__package__"


def _resolve(reader: "Reader", _: Foreign, arguments: "Arguments") -> Values:
    """The object that a dotted name in a text means."""
    names = [name.replace(":", ".") for name in texts(arguments.at(0))]
    return joined(UNKNOWN, *(reader.project.dotted(name) for name in names))


def _module_of(_: "Reader", __: Foreign, arguments: "Arguments") -> Values:
    """`inspect.getmodule`: where a function or class is from."""
    found: list[Value] = []
    for value in arguments.at(0):
        if isinstance(value, Foreign) and "." in value.name:
            owner = value.name if value.is_module else value.name.rpartition(".")[0]
            found.append(Foreign(owner, value.steps, is_module=True))
        elif isinstance(value, Function):
            found.append(Names(value.scope.module))
    return tuple(found)


def _members(_: "Reader", __: Foreign, arguments: "Arguments") -> Values:
    """`inspect.getmembers`: pairs of names and what they are."""
    inner = [(value.part("[...]"),) for value in arguments.at(0) if isinstance(value, Foreign)]
    return (Items([(Items([UNKNOWN, values]),) for values in inner]),)


HANDLERS: Mapping[str, Handler] = {
    **rows(_import, "importlib.import_module builtins.__import__ importlib.__import__"),
    **rows(_resolve, "pkgutil.resolve_name pydoc.locate pydoc.resolve"),
    **rows(_module_of, "inspect.getmodule"),
    **rows(_members, "inspect.getmembers inspect.getmembers_static"),
}
"""Names of functions to what the model does for them."""
