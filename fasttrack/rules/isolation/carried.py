# SPDX-License-Identifier: Apache-2.0
"""What an expression stands for on one side of a change, however it is carried there.

A value may come by an alias, a helper, a class, a decorator, a table or another file. The follower
of the test model works that out from the text; only files that the change touches are followed, as
what stands elsewhere the change did not carry. The model is imported where it is asked, which most
changes do not.
"""

import ast
import posixpath
from collections.abc import Container
from functools import cached_property, partial
from typing import TYPE_CHECKING

from fasttrack.case import Case
from fasttrack.change.tree import Tree
from fasttrack.config import judged_or_head
from fasttrack.errors import FactUnavailable
from fasttrack.meaning.source import parsed

if TYPE_CHECKING:
    from fasttrack.testmodel.modules import Files
    from fasttrack.testmodel.values import Value

_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
UNKNOWN = object()
"""Stands for an expression that can not be followed."""


class Carried:
    """Expressions of the modules of one tree."""

    def __init__(self, case: Case, tree: Tree) -> None:
        """Reads nothing yet."""
        self._case = case
        self._tree = tree
        touched = [entry.path for entry in case.entries]
        self._stems = {posixpath.basename(path).partition(".")[0] for path in touched}
        self._stems |= {posixpath.basename(posixpath.dirname(path)) for path in touched}
        self._names: dict[tuple[str, str], Value] = {}

    def value(self, path: str, node: ast.expr) -> "Value":
        """What an expression at the top of a file, or that uses its names, stands for."""
        if not isinstance(node, ast.Name):
            return self._value(path, node)
        if (path, node.id) not in self._names:
            self._names[path, node.id] = self._value(path, node)
        return self._names[path, node.id]

    def _value(self, path: str, node: ast.expr) -> "Value":
        from fasttrack.testmodel.follower import Follower  # noqa: PLC0415
        from fasttrack.testmodel.frames import Exhausted  # noqa: PLC0415
        from fasttrack.testmodel.values import Scope  # noqa: PLC0415

        try:
            module = self._files.module(path)
            return Follower(self._files).value(node, Scope(dict(module.names), None, module))
        except (FactUnavailable, Exhausted):
            return UNKNOWN

    @cached_property
    def _files(self) -> "Files":
        from fasttrack.testmodel.modules import Files, says  # noqa: PLC0415

        touched = {entry.path for entry in self._case.entries}
        parse, holds = partial(parsed, self._case), partial(says, self._case)
        return Files(self._tree, parse, holds, touched.__contains__)

    def may_carry(self, tree: ast.Module, name: str) -> bool:
        """Whether a name at the top of a module may stand for what the change put there: cheap.

        It is assigned or defined there, or comes from a file that the change touches.
        """
        rest = [node for node in tree.body if not isinstance(node, _DEFINITIONS)]
        for node in ast.walk(ast.Module(rest, [])):
            match node:
                case ast.ImportFrom(module=module, names=names):
                    for alias in names:
                        stems = {alias.name, *(module or "").split(".")}
                        taken = alias.name == "*" or (alias.asname or alias.name) == name
                        if taken and stems & self._stems:
                            return True
                case ast.Import(names=names):
                    for alias in names:
                        parts = alias.name.split(".")
                        if (alias.asname or parts[0]) == name and {*parts} & self._stems:
                            return True
                case ast.Name(id=bound, ctx=ast.Store()) if bound == name:
                    return True
        return any(isinstance(n, _DEFINITIONS) and n.name == name for n in tree.body)

    def spoken(self, path: str, node: ast.expr) -> str:
        """The same in words: of a thing that has a name, its dotted name; empty when unknown."""
        from fasttrack.testmodel.values import words  # noqa: PLC0415

        value = self.value(path, node)
        return "" if value is UNKNOWN else words(value)

    def comes_to(self, path: str, node: ast.expr, names: Container[str]) -> bool:
        """Whether an expression stands for something of one of these names, or a tuple with one."""
        from fasttrack.testmodel.values import words  # noqa: PLC0415

        value = self.value(path, node)
        many = value if isinstance(value, tuple | list | set) else [value]
        return any(words(one).rpartition(".")[2] in names for one in many if one is not UNKNOWN)

    def constant(self, path: str, node: ast.expr) -> str | None:
        """The text of a constant; of a constant of another package, its own name in lower case."""
        from fasttrack.testmodel.values import Opaque  # noqa: PLC0415

        value = self.value(path, node)
        if isinstance(value, Opaque) and value.external:
            kind, _, member = value.words.rpartition(".")
            return member.lower() if kind and member.isupper() else None
        return str(value) if isinstance(value, str | int | None) else None


class BothSides:
    """The two sides of a change."""

    def __init__(self, case: Case) -> None:
        """Reads nothing yet; kept for a case by `case.once`."""
        self.old = Carried(case, case.change.base)
        self.new = Carried(case, judged_or_head(case.change))
