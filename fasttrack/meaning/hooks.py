# SPDX-License-Identifier: Apache-2.0
"""Special methods of own classes, which syntax and Python's own functions call: `__getitem__`."""

import ast
from collections.abc import Mapping
from typing import TYPE_CHECKING

from fasttrack.meaning.values import (
    UNKNOWN,
    Function,
    Items,
    OwnClass,
    OwnObject,
    Text,
    Value,
    Values,
    joined,
    known_text,
)

if TYPE_CHECKING:
    from fasttrack.meaning.reader import Reader

BASES_LIMIT = 100
"""Classes that a name is looked up in."""
_OPERATORS: Mapping[type[ast.AST], str] = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.MatMult: "matmul", ast.Div: "truediv",
    ast.FloorDiv: "floordiv", ast.Mod: "mod", ast.Pow: "pow", ast.LShift: "lshift",
    ast.RShift: "rshift", ast.BitAnd: "and", ast.BitOr: "or", ast.BitXor: "xor",
    ast.Eq: "eq", ast.NotEq: "ne", ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge",
}  # fmt: skip
"""Signs to the middle of the method's name that stands for them."""
_MIRRORED = {"lt": "gt", "gt": "lt", "le": "ge", "ge": "le", "eq": "eq", "ne": "ne"}


def looked_up(kind: OwnClass, name: str) -> Values:
    """What a class or one of its own bases has under a name, the nearest first."""
    todo, seen = [kind], {kind}
    while todo and len(seen) <= BASES_LIMIT:
        found = todo.pop()
        if name in found.attributes:
            return found.attributes[name]
        bases = [b for values in found.bases for b in values if isinstance(b, OwnClass)]
        todo += [base for base in reversed(bases) if base not in seen]
        seen.update(bases)
    return UNKNOWN


def hook(reader: "Reader", value: Value, name: str, *given: Values) -> Values:
    """What a special method of an own object, or of a class's own metaclass, returns."""
    found: Values = UNKNOWN
    if isinstance(value, OwnObject):
        found = looked_up(value.of, name)
    elif isinstance(value, OwnClass):
        kinds = [kind for kind in value.metaclass if isinstance(kind, OwnClass)]
        found = joined(UNKNOWN, *(looked_up(kind, name) for kind in kinds))
    return _called(reader, found, ((value,), *given))


def has(value: Value, name: str) -> bool:
    """Whether an own object's class defines a special method."""
    return isinstance(value, OwnObject) and bool(looked_up(value.of, name))


def _called(reader: "Reader", functions: Values, given: tuple[Values, ...]) -> Values:
    results = [
        reader.follow(function, given[function.kind == "staticmethod" :], {}, reader.place)
        for function in functions
        if isinstance(function, Function)
    ]
    return joined(UNKNOWN, *results)


def item(reader: "Reader", value: OwnObject | OwnClass, key: Values) -> Values:
    """`x[key]` of an own object or class; a class that is subscripted is mostly still itself."""
    if isinstance(value, OwnClass):
        own = _called(reader, looked_up(value, "__class_getitem__"), ((value,), key))
        return joined((value,), own, hook(reader, value, "__getitem__", key))
    if has(value, "__getitem__"):
        return hook(reader, value, "__getitem__", key)
    held = value.attributes.get("[...]", UNKNOWN)
    return joined(held, hook(reader, value, "__missing__", key))


def put_item(reader: "Reader", value: OwnObject, key: Values, values: Values) -> None:
    """`x[key] = values` of an own object, which a class above it may keep."""
    hook(reader, value, "__setitem__", key, values)
    value.attributes["[...]"] = joined(value.attributes.get("[...]", UNKNOWN), values)


def iterated(reader: "Reader", value: OwnObject) -> list[Values]:
    """What a loop over an own object hands out."""
    if not has(value, "__iter__"):
        found = hook(reader, value, "__getitem__", UNKNOWN)
        found = joined(found, value.attributes.get("[...]", UNKNOWN))
        return [found] if found else []
    inner: list[Values] = []
    own: Values = (value,) if has(value, "__next__") else UNKNOWN
    for iterator in joined(own, hook(reader, value, "__iter__")):
        if isinstance(iterator, Items):
            inner += iterator.values
        elif isinstance(iterator, OwnObject):
            inner.append(hook(reader, iterator, "__next__"))
    return inner


def missing_attribute(reader: "Reader", value: OwnObject, name: str) -> Values:
    """What `__getattr__` or `__getattribute__` answers for a name."""
    if name.startswith("__"):
        return UNKNOWN
    asked: Values = (Text(name),)
    hooks = ("__getattr__", "__getattribute__")
    return joined(UNKNOWN, *(hook(reader, value, name, asked) for name in hooks))


def put_attribute(reader: "Reader", value: OwnObject, name: str, values: Values) -> None:
    """What setting an attribute of an own object calls: its class's hook, or a descriptor."""
    hook(reader, value, "__setattr__", known_text(name), values)
    for descriptor in looked_up(value.of, name):
        if isinstance(descriptor, Function):
            setters = descriptor.attributes.get("fset", UNKNOWN)
            _called(reader, setters, ((value,), values))
        else:
            hook(reader, descriptor, "__set__", (value,), values)


def operated(reader: "Reader", sign: ast.AST, left: Values, right: Values) -> Values:
    """What an operator's methods return, of whichever side is an own object."""
    name = _OPERATORS.get(sign.__class__)
    if name is None:
        return UNKNOWN
    results = [hook(reader, value, f"__{name}__", right) for value in left]
    mirrored = _MIRRORED.get(name, f"r{name}")
    results += [hook(reader, value, f"__{mirrored}__", left) for value in right]
    return joined(UNKNOWN, *results)


def changed_in_place(reader: "Reader", sign: ast.AST, left: Values, right: Values) -> None:
    """`left += right`, where that is an own object."""
    name = _OPERATORS.get(sign.__class__)
    for value in left:
        hook(reader, value, f"__i{name}__", right)


def compared(reader: "Reader", sign: ast.AST, left: Values, right: Values) -> None:
    """A comparison of which one side is an own object."""
    if isinstance(sign, ast.In | ast.NotIn):
        for value in right:
            hook(reader, value, "__contains__", left)
    else:
        operated(reader, sign, left, right)
