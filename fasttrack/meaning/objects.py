# SPDX-License-Identifier: Apache-2.0
"""Attributes and elements of values: what is found there, and what is put there."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from fasttrack.meaning import hooks
from fasttrack.meaning.hooks import looked_up
from fasttrack.meaning.values import (
    UNKNOWN,
    Bound,
    Foreign,
    Function,
    Holder,
    Items,
    Made,
    Names,
    OwnClass,
    OwnObject,
    Partial,
    Value,
    Values,
    joined,
    known_text,
    text,
)

if TYPE_CHECKING:
    from fasttrack.meaning.reader import Reader

_PATH = "pathlib.Path"
_PATH_PARTS = frozenset({"parent", "parents"})
_LOGGERS = {
    "parent": "logging.getLogger()",
    "root": "logging.root",
    "manager": "logging.root.manager",
}
"""Attributes of a logger that are not the path's own."""
_BASES = frozenset({"__bases__", "__orig_bases__"})
_OF_NAMES = frozenset({"update", "setdefault", "get", "pop", "items", "values", "__getitem__",
                       "__setitem__"})  # fmt: skip
"""Methods of `globals()`."""
_OF_FUNCTIONS = frozenset({"__get__", "__call__", "__code__", "__set__", "setter", "getter"})
"""What functions have, and properties that are made of them."""


def attribute(reader: "Reader", value: Value, name: str) -> Values:
    """What an attribute of a value is."""
    handler = _ATTRIBUTES.get(value.__class__)
    return (Bound(value, name),) if handler is None else handler(reader, value, name)


def _of_foreign(reader: "Reader", value: Foreign, name: str) -> Values:
    return reader.project.part(value, name)


def _of_names(reader: "Reader", value: Names, name: str) -> Values:
    """A name of an own module, or a method of `globals()`."""
    if name == "__dict__":
        return (value,)
    found = value.scope.known(name) or reader.project.below(value.scope, name)
    if found or name.startswith("__"):
        return found
    if name in _OF_NAMES:
        return (Bound(value, name),)
    answers = [
        reader.follow(function, (known_text(name),), {}, reader.place)
        for function in value.scope.known("__getattr__")
        if isinstance(function, Function)
    ]
    return joined(UNKNOWN, *answers)


def _of_object(reader: "Reader", value: OwnObject, name: str) -> Values:
    if name == "__class__":
        return (value.of,)
    if name == "__dict__":
        return (Items(list(value.attributes.values()), list(value.attributes)),)
    return value.attributes.get(name) or _of_class(reader, value.of, name, value)


def _of_function(_: "Reader", value: Function, name: str) -> Values:
    if name == "__globals__":
        return (Names(value.scope.module),)
    held = value.attributes.get(name, UNKNOWN)
    return (Bound(value, name),) if not held and name in _OF_FUNCTIONS else held


def _of_made(_: "Reader", value: Made, name: str) -> Values:
    if value.of == _PATH and name in _PATH_PARTS:
        return (value,)
    if value.of == "logging.getLogger" and name in _LOGGERS:
        return (Foreign(_LOGGERS[name], (f"the {name} of a logger",)),)
    return (Bound(value, name),)


def _of_bound(reader: "Reader", value: Bound, name: str) -> Values:
    """An attribute of what a holder hands out."""
    if not isinstance(value.receiver, Holder):
        return (Bound(value, name),)
    return joined(UNKNOWN, *(attribute(reader, held, name) for held in value.receiver.any()))


def _of_own_class(reader: "Reader", value: OwnClass, name: str) -> Values:
    return _of_class(reader, value, name, value)


def _of_class(reader: "Reader", kind: OwnClass, name: str, receiver: Value) -> Values:
    """An attribute that is looked up in a class, bound to its receiver."""
    if name == "__mro__":
        return (Items([(kind,), *kind.bases]),)
    if name in _BASES:
        return (Items(list(kind.bases)),)
    if name == "__base__":
        return joined(UNKNOWN, *kind.bases[:1])
    if name == "__dict__":
        return (Items(list(kind.attributes.values()), list(kind.attributes)),)
    found = looked_up(kind, name)
    if not found and isinstance(receiver, OwnObject):
        return joined((Bound(receiver, name),), hooks.missing_attribute(reader, receiver, name))
    return joined(UNKNOWN, *(_bound(reader, value, receiver) for value in found))


def _bound(reader: "Reader", value: Value, receiver: Value) -> Values:
    if isinstance(value, Partial) and value.is_method:
        inner = joined(UNKNOWN, *(_bound(reader, one, receiver) for one in value.function))
        return (Partial(inner, value.given, value.named),)
    if hooks.has(value, "__get__"):
        return hooks.hook(reader, value, "__get__", (receiver,), UNKNOWN)
    return _method(reader, value, receiver) if isinstance(value, Function) else (value,)


def _method(reader: "Reader", function: Function, receiver: Value) -> Values:
    """A function of a class, as what it is decorated with has it reached."""
    if function.kind == "classmethod":
        owner = receiver.of if isinstance(receiver, OwnObject) else receiver
        return (Bound(owner, function),)
    if function.kind == "staticmethod" or isinstance(receiver, OwnClass):
        return (function,)
    if function.kind == "property":
        return reader.follow(function, ((receiver,),), {}, reader.place)
    return (Bound(receiver, function),)


_ATTRIBUTES: Mapping[type, Callable[["Reader", Any, str], Values]] = {
    Foreign: _of_foreign,
    Names: _of_names,
    OwnClass: _of_own_class,
    OwnObject: _of_object,
    Function: _of_function,
    Made: _of_made,
    Bound: _of_bound,
}
"""Kinds of values to how their attributes are found; of others they are methods by name."""


def element(reader: "Reader", value: Value, key: str | None, position: int | None) -> Values:
    """What is in a value under a key or at a position."""
    match value:
        case Foreign():
            return _of_foreign_container(reader, value, key)
        case OwnClass() | OwnObject():
            return hooks.item(reader, value, reader.project.text(key))
        case Names(scope=scope):
            return UNKNOWN if key is None else scope.find(key)
        case _:
            return _of_container(value, key, position)


def _of_container(value: Value, key: str | None, position: int | None) -> Values:
    match value:
        case Items(keys=keys) if keys is not None and key is not None:
            return value.under(key) if key in keys else value.any() if None in keys else UNKNOWN
        case Items(keys=None, values=values) if position is not None:
            inside = -len(values) <= position < len(values)
            return values[position] if inside else UNKNOWN
        case Items() | Holder():
            return value.any()
        case Bound(receiver=Holder() as holder):
            return holder.any()
        case Made(of=kind) if kind == _PATH:
            return (value,)
        case _:
            return UNKNOWN


def _of_foreign_container(reader: "Reader", value: Foreign, key: str | None) -> Values:
    if key is not None and value.name == "sys.modules":
        return reader.project.imported(key, f"`sys.modules[{key!r}]`")
    if key is not None and value.name.endswith(".__dict__"):
        whole = Foreign(value.name.removesuffix(".__dict__"), value.steps)
        return reader.project.part(whole, key)
    return (value.part(f"[{key!r}]" if key is not None else "[...]"),)


def elements(reader: "Reader", values: Values) -> list[Values]:
    """What a loop over some values hands out, one after the other."""
    found: list[Values] = []
    for value in values:
        match value:
            case Items(keys=None, values=inner):
                found += inner
            case Items(keys=keys):
                found += [reader.project.text(key) for key in keys or ()]
            case Foreign():
                found.append((value.part("[...]"),))
            case Holder():
                found.append(value.any())
            case Bound(receiver=Holder() as holder):
                found.append(holder.any())
            case OwnObject():
                found += hooks.iterated(reader, value)
            case _:
                pass
    return found


def put_attribute(reader: "Reader", value: Value, name: str, values: Values) -> None:
    """Sets an attribute of a value that is no foreign object."""
    match value:
        case Names(scope=scope):
            scope.bind(name, values, weakly=True)
        case OwnClass(attributes=attributes) | OwnObject(attributes=attributes):
            if isinstance(value, OwnObject):
                hooks.put_attribute(reader, value, name, values)
            before = attributes.get(name, UNKNOWN)
            attributes[name] = joined(before, values) if before else values
        case Function():
            value.attributes[name] = values
        case Holder():
            value.put(values)
        case _:
            pass


def put_element(reader: "Reader", value: Value, key: Values, values: Values) -> None:
    """Sets an element of a value that is no foreign object."""
    match value:
        case Items():
            value.put(values, text(key))
        case Names(scope=scope) if (name := text(key)) is not None:
            scope.bind(name, values, weakly=True)
        case Holder():
            value.put(values)
        case OwnObject():
            hooks.put_item(reader, value, key, values)
        case _:
            pass
