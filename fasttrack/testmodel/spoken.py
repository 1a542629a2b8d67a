# SPDX-License-Identifier: Apache-2.0
"""Conditions in words that speak of a test's parameters by their own names.

A helper may call a parameter something else, and a test may give its name to another value. Who
reads the words later, see `conditions`, must be able to rely on the names.
"""

import ast
import copy
from collections.abc import Iterable, Mapping
from contextlib import suppress
from types import MappingProxyType
from typing import TYPE_CHECKING

from fasttrack.testmodel.frames import source_text
from fasttrack.testmodel.values import Either, Opaque, Scope, Value, shorten

if TYPE_CHECKING:
    from fasttrack.testmodel.follower import Follower


def in_words(f: "Follower", node: ast.expr, scope: Scope, otherwise: str = "") -> str:
    """A condition, with parameters by their names and other things of those names marked.

    Args:
        f: who follows the test.
        node: the condition.
        scope: where it stands.
        otherwise: words for a condition on no parameter; its source where none are given.
    """
    if not f.parameters:
        return otherwise or _source(node)
    names = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
    spoken = {name: _spoken(f, name, _looked_up(scope, name)) for name in names}
    said = {n.id for tree in spoken.values() for n in ast.walk(tree) if isinstance(n, ast.Name)}
    if otherwise and f.parameters.keys().isdisjoint(said):
        return otherwise
    plain = {
        name for name, tree in spoken.items() if isinstance(tree, ast.Name) and tree.id == name
    }
    return _source(node, {name: tree for name, tree in spoken.items() if name not in plain})


def _source(node: ast.expr, renamed: Mapping[str, ast.expr] = MappingProxyType({})) -> str:
    """A condition as people write it, with other names for some."""
    try:
        text = ast.unparse(_Renamed(renamed).visit(copy.deepcopy(node)) if renamed else node)
    except RecursionError:
        return f"{source_text(node)}..."
    return shorten(" ".join(text.split()))


def joined(conditions: Iterable[str]) -> str:
    """Conditions that must hold together, as one."""
    return " and ".join(f"({c})" if " or " in c or " if " in c else c for c in conditions)


def _looked_up(scope: Scope, name: str) -> Value:
    inner: Scope | None = scope
    while inner is not None:
        if name in inner.names:
            return inner.names[name]
        inner = inner.around
    return None


def _spoken(f: "Follower", name: str, value: Value) -> ast.expr:
    """What a name stands for, in words: `"b" if n == "a" else n` after `if n == "a": n = "b"`."""
    match value:
        case Either(options=((condition, str() | int() as constant), *others)):
            for own, known in f.parameters.items():
                if isinstance(known, Either) and others == [
                    (f"not {condition} {label}", each) for label, each in known.options
                ]:
                    with suppress(SyntaxError, ValueError, RecursionError, MemoryError):
                        test = ast.parse(condition, mode="eval").body
                        return ast.IfExp(test, ast.Constant(constant), ast.Name(own))
    return ast.Name(_name_of(f, name, value))


def _name_of(f: "Follower", name: str, value: Value) -> str:
    """The parameter that a name stands for here; marked when it is another thing of that name."""
    own = f.parameters.get(name)
    if own is not None and (own is value or (type(own) is type(value) and own == value)):
        return name
    if isinstance(value, Either | Opaque):
        for other, known in f.parameters.items():
            if known is value:
                return other
    return f"{name}_" if name in f.parameters else name


class _Renamed(ast.NodeTransformer):
    """Says something else for some names."""

    def __init__(self, names: Mapping[str, ast.expr]) -> None:
        self._names = names

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self._names.get(node.id, node)
