# SPDX-License-Identifier: Apache-2.0
"""What a target does that is assigned to or deleted: names, attributes, elements, several at once.

This is where one reaches into a foreign object by plain syntax.
"""

import ast
from typing import TYPE_CHECKING

from fasttrack.meaning import hooks
from fasttrack.meaning.kinds import Kind, kind_of_change
from fasttrack.meaning.objects import elements, put_attribute, put_element
from fasttrack.meaning.values import (
    UNKNOWN,
    Bound,
    Foreign,
    Function,
    Holder,
    Items,
    Text,
    Value,
    Values,
    known_text,
    text,
)

if TYPE_CHECKING:
    from fasttrack.meaning.reader import Reader

_CONTAINERS = (ast.List, ast.Dict, ast.Set, ast.Tuple, ast.ListComp, ast.SetComp, ast.DictComp)


def store(
    reader: "Reader",
    target: ast.expr,
    values: Values,
    how: str = "assigned",
    statement: ast.stmt | None = None,
) -> None:
    """Assigns values to a target.

    Args:
        reader: what reads.
        target: what is assigned to.
        values: what it gets.
        how: what is done, in words.
        statement: what an effect is recorded with, where it says more than the target alone.
    """
    place = statement or target
    match target:
        case ast.Name(id=name):
            reader.bind(name, values, target)
        case ast.Attribute(value=base, attr=attr):
            for value in reader.value(base):
                set_attribute(reader, value, attr, values, how, place)
        case ast.Subscript(value=base, slice=index):
            key = reader.value(index)
            for value in reader.value(base):
                set_element(reader, value, key, values, how, place)
        case ast.Tuple(elts=parts) | ast.List(elts=parts):
            _unpack(reader, parts, values, statement)
        case ast.Starred(value=inner):
            store(reader, inner, values, how, statement)


def loop_target(reader: "Reader", target: ast.expr, values: Values) -> None:
    """Assigns one element to a loop's target, whatever it held before."""
    branches, reader.frame.branches = reader.frame.branches, 0
    store(reader, target, values)
    reader.frame.branches = branches


def _unpack(
    reader: "Reader", parts: list[ast.expr], values: Values, statement: ast.stmt | None
) -> None:
    found = elements(reader, values)
    if not any(isinstance(value, Items) for value in values):
        found *= len(parts)  # of others, each element is as good as any
    starred = next((i for i, part in enumerate(parts) if isinstance(part, ast.Starred)), None)
    if starred is not None:
        after = len(parts) - starred - 1
        end = max(starred, len(found) - after)
        rest: Values = (Items(found[starred:end]),)
        found = [*found[:starred], rest, *found[end:]]
    for position, part in enumerate(parts):
        given = found[position] if position < len(found) else UNKNOWN
        store(reader, part, given, statement=statement)


def set_attribute(  # noqa: PLR0917
    reader: "Reader", value: Value, attr: str, values: Values, how: str, node: ast.AST
) -> None:
    """Sets an attribute of a value."""
    match value:
        case Foreign():
            target = value.part(attr)
            reader.add(kind_of_change(target.name), target, how, node)
        case Bound(receiver=Holder() as holder):
            for held in holder.any():
                set_attribute(reader, held, attr, values, how, node)
        case Function(name=name) if attr == "__code__" and not any(map(_is_code, values)):
            reader.add(Kind.CODE, Foreign("types.CodeType"), f"set as the code of `{name}`", node)
        case _:
            put_attribute(reader, value, attr, values)


def _is_code(value: Value) -> bool:
    """Whether a value is an own function's code, as it is written."""
    return isinstance(value, Bound) and value.function == "__code__"


def set_element(  # noqa: PLR0917
    reader: "Reader", value: Value, key: Values, values: Values, how: str, node: ast.AST
) -> None:
    """Sets an element of a value."""
    match value:
        case Foreign():
            name = text(key)
            target = value.part(f"[{name!r}]" if name is not None else "[...]")
            if not is_own_module(reader, value, name):
                reader.add(kind_of_change(target.name, element=True), target, how, node)
        case Bound(receiver=Holder() as holder):
            for held in holder.any():
                set_element(reader, held, key, values, how, node)
        case _:
            put_element(reader, value, key, values)


def is_own_module(reader: "Reader", value: Foreign, key: str | None) -> bool:
    """Whether an element is this module's own entry in `sys.modules`."""
    return value.name == "sys.modules" and key == reader.frame.scope.title


def augment(reader: "Reader", node: ast.AugAssign, values: Values) -> None:
    """`x += y`: a list that is extended so is the same list, a number is not."""
    if not isinstance(node.target, ast.Name):
        store(reader, node.target, UNKNOWN, "changed in place", node)
        return
    held = reader.value(ast.Name(node.target.id, ast.Load()))
    hooks.changed_in_place(reader, node.op, held, values)
    known = isinstance(node.value, _CONTAINERS) or any(isinstance(v, Items) for v in values)
    for value in held:
        if isinstance(value, Foreign) and known:
            reader.add(kind_of_change(value.name), value, "changed in place", node)
    own = tuple(value for value in held if isinstance(value, Items | Foreign))
    reader.bind(node.target.id, own if known else UNKNOWN, node)
    if not known and any(isinstance(value, Text) for value in held):
        added = text(values)
        before = text(held)
        if added is not None and before is not None and isinstance(node.op, ast.Add):
            reader.bind(node.target.id, known_text(before + added), node)


def delete(reader: "Reader", target: ast.expr) -> None:
    """`del` of a target."""
    match target:
        case ast.Attribute(value=base, attr=attr):
            for value in reader.value(base):
                if isinstance(value, Foreign):
                    part = value.part(attr)
                    reader.add(kind_of_change(part.name), part, "deleted", target)
        case ast.Subscript(value=base, slice=index):
            key = text(reader.value(index))
            for value in reader.value(base):
                if isinstance(value, Foreign) and not is_own_module(reader, value, key):
                    part = value.part(f"[{key!r}]" if key is not None else "[...]")
                    kind = kind_of_change(part.name, element=True)
                    reader.add(kind, part, "deleted", target)
        case ast.Tuple(elts=parts) | ast.List(elts=parts):
            for inner in parts:
                delete(reader, inner)
        case ast.Name(id=name):
            reader.bind(name, UNKNOWN, target)
