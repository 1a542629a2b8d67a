# SPDX-License-Identifier: Apache-2.0
"""What expressions stand for; evaluating one runs the calls in it."""

import ast
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from fasttrack.meaning import calls, hooks, stores
from fasttrack.meaning.objects import attribute, element, elements
from fasttrack.meaning.scopes import Scope
from fasttrack.meaning.values import (
    UNKNOWN,
    Items,
    Made,
    OwnClass,
    OwnObject,
    Values,
    joined,
    known_text,
    text,
)

if TYPE_CHECKING:
    from fasttrack.meaning.reader import Reader

PATH = "pathlib.Path"


def _name(reader: "Reader", node: ast.Name) -> Values:
    return reader.frame.scope.find(node.id)


def _attribute(reader: "Reader", node: ast.Attribute) -> Values:
    values = reader.value(node.value)
    return joined(*(attribute(reader, value, node.attr) for value in values)) if values else ()


def _subscript(reader: "Reader", node: ast.Subscript) -> Values:
    base, key = reader.value(node.value), reader.value(node.slice)
    if not base:
        return UNKNOWN
    known = text(key)
    position = _integer(node.slice)
    return joined(
        *(
            hooks.item(reader, value, key)
            if isinstance(value, OwnObject | OwnClass)
            else element(reader, value, known, position)
            for value in base
        )
    )


def _integer(node: ast.expr) -> int | None:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        number = _integer(node.operand)
        return None if number is None else -number
    if isinstance(node, ast.Constant) and isinstance(node.value, int):
        return node.value
    return None


def _constant(_: "Reader", node: ast.Constant) -> Values:
    return known_text(node.value) if isinstance(node.value, str) else UNKNOWN


def _joined_text(reader: "Reader", node: ast.JoinedStr) -> Values:
    parts = [text(reader.value(part)) for part in node.values]
    if any(part is None for part in parts):
        return UNKNOWN
    return known_text("".join(part or "" for part in parts))


def _formatted(reader: "Reader", node: ast.FormattedValue) -> Values:
    values = reader.value(node.value)
    if node.format_spec is None:
        return values
    reader.value(node.format_spec)
    return UNKNOWN


def _sequence(reader: "Reader", node: ast.List | ast.Tuple | ast.Set) -> Values:
    items = Items([])
    for item in node.elts:
        if isinstance(item, ast.Starred):
            for values in elements(reader, reader.value(item.value)):
                items.put(values)
        else:
            items.put(reader.value(item))
    return (items,)


def _dictionary(reader: "Reader", node: ast.Dict) -> Values:
    items = Items([], [])
    for key, value in zip(node.keys, node.values, strict=True):
        values = reader.value(value)
        if key is not None:
            items.put(values, text(reader.value(key)))
            continue
        for other in values:
            if isinstance(other, Items) and other.keys is not None:
                for name, held in zip(other.keys, other.values, strict=True):
                    items.put(held, name)
    return (items,)


def _operation(reader: "Reader", node: ast.BinOp) -> Values:
    """Text and lists that are put together; a long chain is followed without recursion."""
    chain: list[ast.BinOp] = [node]
    while isinstance(left := chain[-1].left, ast.BinOp):
        chain.append(left)
    values = reader.value(chain[-1].left)
    for operation in reversed(chain):
        right = reader.value(operation.right)
        own = hooks.operated(reader, operation.op, values, right)
        values = joined(own, _put_together(values, operation.op, right))
    return values


def _put_together(left: Values, operator: ast.operator, right: Values) -> Values:
    if any(isinstance(value, Made) and value.of == PATH for value in left):
        return (Made(PATH),)
    one, other = text(left), text(right)
    if isinstance(operator, ast.Add) and one is not None and other is not None:
        return known_text(one + other)
    held = [value for value in (*left, *right) if isinstance(value, Items)]
    if isinstance(operator, ast.Add | ast.BitOr) and held:
        keyed = all(value.keys is not None for value in held)
        merged = Items([], [] if keyed else None)
        for value in held:
            for position, values in enumerate(value.values):
                merged.put(values, value.keys[position] if value.keys else None)
        return (merged,)
    return UNKNOWN


def _either(reader: "Reader", node: ast.BoolOp) -> Values:
    return joined(UNKNOWN, *(reader.value(value) for value in node.values))


def _choice(reader: "Reader", node: ast.IfExp) -> Values:
    reader.value(node.test)
    with reader.branch():
        return joined(reader.value(node.body), reader.value(node.orelse))


def _walrus(reader: "Reader", node: ast.NamedExpr) -> Values:
    values = reader.value(node.value)
    stores.store(reader, node.target, values)
    return values


def _lambda(reader: "Reader", node: ast.Lambda) -> Values:
    return (reader.defined(node),)


def _comprehension(
    reader: "Reader", node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp
) -> Values:
    """Each element of what is looped over, one after the other."""
    items = Items([], [] if isinstance(node, ast.DictComp) else None)
    outer = reader.frame.scope
    reader.frame.scope = Scope(outer.path, outer.title, outer)
    _loop(reader, node, list(node.generators), items)
    reader.frame.scope = outer
    return (items,)


def _loop(
    reader: "Reader",
    node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp,
    generators: list[ast.comprehension],
    items: Items,
) -> None:
    if not generators:
        if isinstance(node, ast.DictComp):
            items.put(reader.value(node.value), text(reader.value(node.key)))
        else:
            items.put(reader.value(node.elt))
        return
    first, *rest = generators
    for values in reader.rounds(reader.value(first.iter)):
        stores.loop_target(reader, first.target, values)
        for test in first.ifs:
            reader.value(test)
        _loop(reader, node, rest, items)


def _comparison(reader: "Reader", node: ast.Compare) -> Values:
    left = reader.value(node.left)
    for sign, comparator in zip(node.ops, node.comparators, strict=True):
        right = reader.value(comparator)
        hooks.compared(reader, sign, left, right)
        left = right
    return UNKNOWN


def _parts(reader: "Reader", node: ast.AST) -> Values:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.expr):
            reader.value(child)
    return UNKNOWN


def _starred(reader: "Reader", node: ast.Starred | ast.Await) -> Values:
    return reader.value(node.value)


def _yield(reader: "Reader", node: ast.Yield) -> Values:
    reader.frame.yielded.append(reader.value(node.value))
    return reader.frame.sent


def _yield_from(reader: "Reader", node: ast.YieldFrom) -> Values:
    values = reader.value(node.value)
    reader.frame.yielded += elements(reader, values)
    return joined(UNKNOWN, *(value.result for value in values if isinstance(value, Items)))


HANDLERS: Mapping[type[ast.AST], Callable[["Reader", Any], Values]] = {
    ast.Attribute: _attribute,
    ast.Await: _starred,
    ast.BinOp: _operation,
    ast.BoolOp: _either,
    ast.Call: calls.call,
    ast.Compare: _comparison,
    ast.Constant: _constant,
    ast.Dict: _dictionary,
    ast.DictComp: _comprehension,
    ast.FormattedValue: _formatted,
    ast.GeneratorExp: _comprehension,
    ast.IfExp: _choice,
    ast.JoinedStr: _joined_text,
    ast.Lambda: _lambda,
    ast.List: _sequence,
    ast.ListComp: _comprehension,
    ast.Name: _name,
    ast.NamedExpr: _walrus,
    ast.Set: _sequence,
    ast.SetComp: _comprehension,
    ast.Slice: _parts,
    ast.Starred: _starred,
    ast.Subscript: _subscript,
    ast.Tuple: _sequence,
    ast.UnaryOp: _parts,
    ast.Yield: _yield,
    ast.YieldFrom: _yield_from,
}
"""Kinds of expressions to what reads them; any other has no value and no effect."""
