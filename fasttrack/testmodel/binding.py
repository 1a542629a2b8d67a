# SPDX-License-Identifier: Apache-2.0
"""What an assignment's target, a loop's variable or a `with` name is bound to."""

import ast
from typing import TYPE_CHECKING

from fasttrack.testmodel import folding
from fasttrack.testmodel.attributes import set_attribute
from fasttrack.testmodel.cuts import common
from fasttrack.testmodel.folding import CannotTell
from fasttrack.testmodel.values import Either, Opaque, Scope, Value, shorten, words

if TYPE_CHECKING:
    from fasttrack.testmodel.follower import Follower


def bind(f: "Follower", target: ast.expr, value: Value, scope: Scope) -> None:
    """Binds a target to a value."""
    match target:
        case ast.Name(id=name):
            bind_name(name, value, scope)
        case ast.Tuple(elts=targets) | ast.List(elts=targets):
            _unpack(f, targets, value, scope)
        case ast.Starred(value=inner):
            bind(f, inner, value, scope)
        case ast.Attribute(value=owner, attr=name):
            set_attribute(f, f.value(owner, scope), name, value, target, scope)
        case ast.Subscript(value=owner, slice=key):
            held, where = f.value(owner, scope), f.value(key, scope)
            if isinstance(held, Opaque) and isinstance(owner, ast.Name) and _is_all(where):
                bind_name(owner.id, value, scope)  # nothing is left of what it held
            else:
                _set_item(held, where, value)


def bind_name(name: str, value: Value, scope: Scope) -> None:
    """Binds a name where an assignment to it binds it."""
    inner = scope
    while name in inner.shared and inner.around is not None:
        inner = inner.around
        while inner.around is not None and name not in inner.names and inner.module is None:
            inner = inner.around
    if inner.module is not None:
        inner.module.names[name] = value
    else:
        inner.names[name] = value


def _unpack(f: "Follower", targets: list[ast.expr], value: Value, scope: Scope) -> None:
    if isinstance(value, Either):
        for index, target in enumerate(targets):
            bind(f, target, _part(value, index, len(targets)), scope)
        return
    try:
        items = folding.items_of(value)
    except CannotTell:
        cuts = common((value,))
        items = [Opaque(shorten(f"{words(value)}[{i}]"), cuts=cuts) for i in range(len(targets))]
    starred = next((i for i, t in enumerate(targets) if isinstance(t, ast.Starred)), None)
    if starred is not None and len(items) >= len(targets) - 1:
        behind = len(targets) - starred - 1
        middle = list(items[starred : len(items) - behind])
        items = [*items[:starred], middle, *items[len(items) - behind :]]
    for index, target in enumerate(targets):
        known = items[index] if index < len(items) else Opaque(shorten(f"{words(value)}[{index}]"))
        bind(f, target, known, scope)


def _part(value: Either, index: int, count: int) -> Value:
    """What one of several targets gets of a value with options."""
    parts: list[tuple[str, Value]] = []
    for label, option in value.options:
        if not isinstance(option, tuple | list) or len(option) != count:
            return Opaque(shorten(f"{words(value)}[{index}]"))
        parts.append((label, option[index]))
    return folding.either(parts)


def _is_all(key: Value) -> bool:
    return key is Ellipsis or (isinstance(key, slice) and key == slice(None))


def _set_item(owner: Value, key: Value, value: Value) -> None:
    if isinstance(owner, dict):
        try:
            owner[key] = value
        except TypeError:
            owner.clear()
    elif isinstance(owner, list) and isinstance(key, int) and -len(owner) <= key < len(owner):
        owner[key] = value
    elif isinstance(owner, list) and isinstance(key, slice):
        owner[:] = list(value) if isinstance(value, list | tuple) else [Opaque("items")]
