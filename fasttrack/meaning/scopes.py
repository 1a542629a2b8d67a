# SPDX-License-Identifier: Apache-2.0
"""Names and where they are bound: module, class and function scopes as Python has them."""

import ast
import builtins
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from fasttrack.meaning.values import (
    UNKNOWN,
    Foreign,
    FunctionNode,
    Names,
    Text,
    Values,
    joined,
    reached,
)

BUILTINS = frozenset(dir(builtins))
_SCOPES = frozenset({ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda})
_BINDING = frozenset(
    {
        *(_SCOPES - {ast.Lambda}), ast.Global, ast.Nonlocal, ast.Name, ast.Import, ast.ImportFrom,
        ast.ExceptHandler, ast.MatchAs, ast.MatchStar, ast.MatchMapping,
    }
)  # fmt: skip
_PLAIN = frozenset(
    {
        str, int, float, complex, bytes, bool, type(None), type(...), ast.Constant, ast.Load,
        ast.Store, ast.Del, ast.Pass, ast.Break, ast.Continue,
    }
)  # fmt: skip
"""Parts of a tree in which nothing is bound."""


class Scope:
    """The names of one module, class body or function call.

    Attributes:
        path: file that it belongs to.
        names: what is known of the names bound so far; see `known`.
        parent: where a name that is not bound here is looked for; None for a module.
        is_class: the names of a class body are not seen by the functions in it.
        globals: names that are the module's, by `global`.
        nonlocals: names that are an outer function's, by `nonlocal`.
        stars: values of modules that all names are imported from.
        late: imported names that nobody has asked for yet, with what tells their values.
    """

    __slots__ = (
        "globals", "is_class", "late", "local", "names", "nonlocals", "parent", "path", "stars",
        "title",
    )  # fmt: skip

    def __init__(
        self,
        path: str,
        title: str,
        parent: "Scope | None" = None,
        local: frozenset[str] = frozenset(),
        *,
        is_class: bool = False,
    ) -> None:
        """Starts without names; `title` is a module's dotted name, `local` a function's names."""
        self.path = path
        self.title = title
        self.parent = parent
        self.local = local
        self.is_class = is_class
        self.names: dict[str, Values] = {}
        self.globals: set[str] = set()
        self.nonlocals: set[str] = set()
        self.stars: list[Values] = []
        self.late: dict[str, Callable[[], Values]] = {}

    @property
    def module(self) -> "Scope":
        """The module's scope."""
        scope = self
        while scope.parent is not None:
            scope = scope.parent
        return scope

    @property
    def seen_by_functions(self) -> "Scope":
        """The scope that a function defined here closes over: class bodies are left out."""
        scope = self
        while scope.is_class and scope.parent is not None:
            scope = scope.parent
        return scope

    def bind(self, name: str, values: Values, *, weakly: bool = False) -> None:
        """Binds a name; weakly, when it may also keep what it was."""
        scope = self.module if name in self.globals else self
        if name in self.nonlocals:
            scope, weakly = self._binding(name), True
        if weakly and name in scope.names:
            values = joined(scope.known(name), values)
        scope.late.pop(name, None)
        scope.names[name] = values

    def bind_late(self, name: str, values: Callable[[], Values]) -> None:
        """Binds a name of a module to what is only found out when somebody asks for it."""
        self.names[name] = UNKNOWN
        self.late[name] = values

    def known(self, name: str) -> Values:
        """What is known of a name that is bound here; nothing of any other."""
        if name in self.late:
            self.names[name] = self.late.pop(name)()
        return self.names.get(name, UNKNOWN)

    def _binding(self, name: str) -> "Scope":
        """The nearest outer function's scope that has a name of its own."""
        scope = self.parent
        while scope is not None and name not in scope.local and name not in scope.names:
            scope = scope.parent
        return scope or self

    def find(self, name: str) -> Values:
        """What a name stands for here."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope.names and name not in scope.globals:
                return scope.known(name)
            if name in scope.local and name not in scope.globals:
                return UNKNOWN
            if scope.parent is None:
                return scope.last(name)
            scope = scope.parent
        return UNKNOWN

    def last(self, name: str) -> Values:
        """What a module answers for a name that none of its statements binds."""
        starred = joined(*(_exported(values, name) for values in self.stars))
        if name not in BUILTINS:
            return starred or _of_module(self, name)
        return starred or _of_module(self, name) or (Foreign(f"builtins.{name}"),)


def _exported(values: Values, name: str) -> Values:
    """What a star import of some modules brings under a name."""
    found: list[Values] = []
    for value in values:
        if isinstance(value, Names):
            step = f"`{name}` from a star import of `{value.scope.title}`"
            found.append(reached(value.scope.known(name), step))
        elif isinstance(value, Foreign) and name not in BUILTINS and not name.startswith("_"):
            step = f"`{name}` from a star import of `{value.name}`"
            found.append((Foreign(f"{value.name}.{name}", (step,)),))
    return joined(*found)


def _of_module(scope: Scope, name: str) -> Values:
    if name == "__name__":
        return (Text(scope.title),)
    if name == "__file__":
        return (Text(scope.path),)
    if name == "__builtins__":
        return (Foreign("builtins"),)
    return UNKNOWN


def bound_names(node: FunctionNode) -> frozenset[str]:
    """The names that are local to a function."""
    arguments = node.args
    names = {a.arg for a in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)}
    names |= {a.arg for a in (arguments.vararg, arguments.kwarg) if a is not None}
    outer: set[str] = set()
    if not isinstance(node, ast.Lambda):
        for found in _inside(node.body):
            if isinstance(found, ast.Global | ast.Nonlocal):
                outer.update(found.names)
            else:
                names.update(_bound_by(found))
    return frozenset(names - outer)


def _inside(body: Sequence[ast.stmt]) -> Iterator[ast.AST]:
    """All nodes of a body that may bind a name, but those of scopes in it."""
    stack: list[Any] = list(body)
    while stack:
        node = stack.pop()
        kind = node.__class__
        if kind in _BINDING:
            yield node
        if kind not in _SCOPES:
            for field in node._fields:
                value = getattr(node, field, None)
                if value.__class__ is list:
                    stack += [part for part in value if part.__class__ not in _PLAIN]
                elif value.__class__ not in _PLAIN:
                    stack.append(value)


def _bound_by(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
            yield name
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
        case ast.Import() | ast.ImportFrom():
            for alias in node.names:
                yield alias.asname or alias.name.partition(".")[0]
        case (
            ast.ExceptHandler(name=str(name))
            | ast.MatchAs(name=str(name))
            | ast.MatchStar(name=str(name))
            | ast.MatchMapping(rest=str(name))
        ):
            yield name
