# SPDX-License-Identifier: Apache-2.0
"""Whether a shared function that is named as if it registered something leaves every table alone.

`register_to_config` of one project wraps a method and stores nothing. A function that names
nothing but its arguments, what it makes itself, built-ins and a few harmless modules has no table
at hand; of every other one nobody can tell at this price, and its name is believed.
"""

import ast
from collections.abc import Iterator, Set
from dataclasses import dataclass

from fasttrack.meaning import known
from fasttrack.meaning.imports import Exports

_HARMLESS = """
    ArithmeticError AssertionError AttributeError Exception False IndexError KeyError None
    NotImplemented NotImplementedError RuntimeError True TypeError ValueError abs all any bool
    bytes callable dict enumerate filter float frozenset getattr hasattr id int isinstance
    issubclass iter len list map max min next object print property range repr reversed set slice
    sorted staticmethod str sum super tuple type zip
"""
"""Built-in names that no table is reached or changed with."""
_MODULES = frozenset(["collections", "copy", "dataclasses", "functools", "inspect", "typing"])
"""Modules that hold no table of others."""
_Function = ast.FunctionDef | ast.AsyncFunctionDef
_Block = ast.If | ast.Try | ast.With


def keeps_to_itself(tree: ast.Module, name: str, exports: Exports) -> bool:
    """Whether every function of a name at the top of a module has no table at hand."""
    found = list(_definitions(tree.body, name))
    return bool(found) and all(_keeps(node, exports) for node in found)


def _definitions(body: list[ast.stmt], name: str) -> Iterator[ast.stmt]:
    """What gives a module's name its value; statements other than `def` are handed out too."""
    for node in body:
        if isinstance(node, _Block):
            blocks = [node.body, *(getattr(node, part, []) for part in ("orelse", "finalbody"))]
            handlers = node.handlers if isinstance(node, ast.Try) else []
            for block in (*blocks, *(handler.body for handler in handlers)):
                yield from _definitions(block, name)
        elif isinstance(node, _Function | ast.ClassDef):
            if node.name == name:
                yield node
        elif any(_binds(part, name) for part in ast.walk(node)):
            yield node


def _binds(node: ast.AST, name: str) -> bool:
    match node:
        case ast.Name(id=bound, ctx=ast.Store()):
            return bound == name
        case ast.alias(name=whole, asname=short):
            return (short or whole) == name
        case _:
            return False


@dataclass(frozen=True)
class _Names:
    """The names of a function.

    Attributes:
        handed: its parameters that callers fill.
        made: what it binds itself, those of functions inside it included.
    """

    handed: Set[str]
    made: Set[str]


def _keeps(node: ast.stmt, exports: Exports) -> bool:
    if not isinstance(node, _Function):
        return False
    inside = list(_without_annotations(node))
    names = _names_of(node, inside)
    asked = {part for call in inside for part in _asked_types(call)}
    return all(part in asked or _is_harmless(part, names, exports) for part in inside)


def _without_annotations(node: ast.AST) -> Iterator[ast.AST]:
    yield node
    for field, value in ast.iter_fields(node):
        if field not in {"annotation", "returns"}:
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    yield from _without_annotations(child)


def _names_of(node: _Function, inside: list[ast.AST]) -> _Names:
    spec = node.args
    handed = {arg.arg for arg in (*spec.posonlyargs, *spec.args, *spec.kwonlyargs)}
    made = {part.id for part in inside if isinstance(part, ast.Name) and _is_stored(part)}
    made |= {part.arg for part in inside if isinstance(part, ast.arg)} - handed
    made |= {part.name for part in inside if isinstance(part, _Function)} - {node.name}
    return _Names(handed, made - handed)


def _is_stored(node: ast.Name | ast.Attribute | ast.Subscript) -> bool:
    return isinstance(node.ctx, ast.Store | ast.Del)


def _asked_types(node: ast.AST) -> Iterator[ast.Name]:
    """Types that `isinstance` is asked about."""
    match node:
        case ast.Call(func=ast.Name(id="isinstance" | "issubclass"), args=[_, asked]):
            parts = asked.elts if isinstance(asked, ast.Tuple) else [asked]
            yield from (part for part in parts if isinstance(part, ast.Name))


def _is_harmless(node: ast.AST, names: _Names, exports: Exports) -> bool:
    match node:
        case ast.Global() | ast.Import() | ast.ImportFrom() | ast.Await():
            return False
        case ast.Name(id=name):
            return name in names.made or name in names.handed or _is_plain(name, exports)
        case ast.Subscript(value=owner) if _is_stored(node):
            return isinstance(owner, ast.Name) and owner.id in names.made
        case ast.Attribute(value=owner) if _is_stored(node):
            return isinstance(owner, ast.Name)
        case ast.Call(func=ast.Attribute(value=owner, attr=method)):
            changes = method in known.MUTATORS or known.REGISTERS.match(method)
            return not changes or (isinstance(owner, ast.Name) and owner.id in names.made)
        case _:
            return True


def _is_plain(name: str, exports: Exports) -> bool:
    """Whether a name from outside a function leads to no table."""
    if name in exports.imported:
        module, level, _ = exports.imported[name]
        return not level and module.partition(".")[0] in _MODULES
    return name in _HARMLESS.split() and name not in exports.defined
