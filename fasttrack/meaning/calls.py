# SPDX-License-Identifier: Apache-2.0
"""What calls do: of functions with source, of foreign ones by name, and of what stands for one."""

import ast
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from fasttrack.meaning import classes, foreign, methods
from fasttrack.meaning.hooks import looked_up
from fasttrack.meaning.objects import attribute, element, elements
from fasttrack.meaning.values import (
    UNKNOWN,
    Bound,
    Foreign,
    Function,
    Holder,
    Items,
    Made,
    Names,
    Operation,
    OwnClass,
    OwnObject,
    Partial,
    Value,
    Values,
    joined,
    text,
    texts,
)

if TYPE_CHECKING:
    from fasttrack.meaning.reader import Reader

_STACKS = frozenset({"contextlib.ExitStack", "contextlib.AsyncExitStack"})
"""Context managers that leave others, when they are left themselves."""
METHOD_KINDS = {
    "builtins.staticmethod": "staticmethod",
    "builtins.classmethod": "classmethod",
    "builtins.property": "property",
    "functools.cached_property": "property",
}
"""Decorators that change what a method is called with."""


@dataclass(frozen=True, slots=True)
class Arguments:
    """What a call hands over.

    Attributes:
        given: positional arguments.
        named: keyword arguments.
        node: the call, for its place.
        entered: a `with` statement enters what it returns.
    """

    given: tuple[Values, ...]
    named: Mapping[str, Values]
    node: ast.AST
    entered: bool = False

    def at(self, position: int, name: str = "") -> Values:
        """One argument, by position or name."""
        if position < len(self.given):
            return self.given[position]
        return self.named.get(name, UNKNOWN)

    def after(self, *given: Values) -> "Arguments":
        """The same with other arguments in front."""
        return replace(self, given=(*given, *self.given))


def call(reader: "Reader", node: ast.Call) -> Values:
    """Evaluates a call and everything in it."""
    entered, reader.frame.entered = reader.frame.entered, False
    functions = reader.value(node.func)
    given: list[Values] = []
    for argument in node.args:
        if isinstance(argument, ast.Starred):
            given += elements(reader, reader.value(argument.value))
        else:
            given.append(reader.value(argument))
    named: dict[str, Values] = {}
    for keyword in node.keywords:
        values = reader.value(keyword.value)
        if keyword.arg is not None:
            named[keyword.arg] = values
            continue
        for value in values:
            if isinstance(value, Items) and value.keys is not None:
                named.update({key: value.under(key) for key in value.keys if key is not None})
    if not functions:
        return UNKNOWN
    return apply(reader, functions, Arguments(tuple(given), named, node, entered))


def apply(reader: "Reader", functions: Values, arguments: Arguments) -> Values:
    """Calls whatever some values are."""
    return joined(UNKNOWN, *(_apply(reader, value, arguments) for value in functions))


def _apply(reader: "Reader", value: Value, arguments: Arguments) -> Values:
    handler = _CALLED.get(value.__class__)
    return UNKNOWN if handler is None else handler(reader, value, arguments)


def _function(reader: "Reader", value: Function, arguments: Arguments) -> Values:
    return reader.follow(value, arguments.given, dict(arguments.named), arguments.node)


def _bound(reader: "Reader", value: Bound, arguments: Arguments) -> Values:
    """A method: with its source, of a function, or by name."""
    if isinstance(value.function, Function):
        return _function(reader, value.function, arguments.after((value.receiver,)))
    if isinstance(value.receiver, Function):
        return _of_function(reader, value.receiver, value.function, arguments)
    return methods.method(reader, value.receiver, value.function, arguments)


def _object(reader: "Reader", value: OwnObject, arguments: Arguments) -> Values:
    return apply(reader, looked_up(value.of, "__call__"), arguments.after((value,)))


def _partial(reader: "Reader", value: Partial, arguments: Arguments) -> Values:
    named = {**dict(value.named), **arguments.named}
    return apply(reader, value.function, replace(arguments.after(*value.given), named=named))


def _holder(_: "Reader", value: Holder, __: Arguments) -> Values:
    return value.any()


def _of_function(reader: "Reader", function: Function, name: str, arguments: Arguments) -> Values:
    """A method of a function, or of the property that it makes."""
    match name:
        case "__get__":
            return tuple(Bound(receiver, function) for receiver in arguments.at(0))
        case "setter":
            function.attributes["fset"] = arguments.at(0)
            return (function,)
        case "__set__":
            return apply(reader, function.attributes.get("fset", UNKNOWN), arguments)
        case "__call__":
            return apply(reader, (function,), arguments)
        case _:
            return UNKNOWN


def _operate(reader: "Reader", operation: Operation, arguments: Arguments) -> Values:
    """`attrgetter("a.b")(x)`, `itemgetter(k)(x)`, `methodcaller("m", ...)(x)`."""
    subject, found = arguments.at(0), UNKNOWN
    if operation.name == "itemgetter":
        key = text(operation.given[0]) if operation.given else None
        return joined(UNKNOWN, *(element(reader, value, key, None) for value in subject))
    for name in texts(operation.given[0]) if operation.given else ():
        values = subject
        for part in name.split("."):
            values = joined(UNKNOWN, *(attribute(reader, value, part) for value in values))
        found = joined(found, values)
    if operation.name == "attrgetter":
        return found
    rest = replace(arguments, given=operation.given[1:], named=dict(operation.named))
    return apply(reader, found, rest)


def decorated(reader: "Reader", decorator: Values, values: Values, node: ast.expr) -> Values:
    """What a decorator makes of a function or class; itself, when nobody can tell."""
    arguments = Arguments((values,), {}, node)
    made = UNKNOWN
    for value in decorator:
        result = _apply(reader, value, arguments)
        made = joined(made, UNKNOWN if isinstance(value, Foreign) else result)
    return joined(values, made) if made else values


def entered(reader: "Reader", managers: Values, node: ast.expr) -> Values:
    """What a `with` statement binds: the result of `__enter__`, or what a generator yields."""
    found: list[Values] = []
    for value in managers:
        if isinstance(value, OwnObject):
            arguments = Arguments(((value,),), {}, node)
            found.append(apply(reader, looked_up(value.of, "__enter__"), arguments))
            unset = Arguments(((value,), UNKNOWN, UNKNOWN, UNKNOWN), {}, node)
            apply(reader, looked_up(value.of, "__exit__"), unset)
        elif isinstance(value, Items):
            found.append(value.any())
        elif isinstance(value, Made) and value.of in _STACKS:
            found.append((Made(f"{value.of}.__enter__"),))
        elif not isinstance(value, Names):
            found.append((value,))
    return joined(UNKNOWN, *found)


_CALLED: Mapping[type, Callable[["Reader", Any, Arguments], Values]] = {
    Foreign: foreign.called,
    Function: _function,
    Bound: _bound,
    OwnClass: classes.made,
    OwnObject: _object,
    Partial: _partial,
    Operation: _operate,
    Holder: _holder,
}
"""Kinds of values to what calling one does."""
