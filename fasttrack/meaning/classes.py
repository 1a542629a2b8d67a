# SPDX-License-Identifier: Apache-2.0
"""Classes with their source: their bodies, the hooks that making one runs, and their instances."""

import ast
from dataclasses import replace
from typing import TYPE_CHECKING

from fasttrack.meaning import hooks
from fasttrack.meaning.hooks import looked_up
from fasttrack.meaning.parameters import tells
from fasttrack.meaning.scopes import Scope
from fasttrack.meaning.values import (
    UNKNOWN,
    Foreign,
    Function,
    Items,
    OwnClass,
    OwnObject,
    Text,
    Values,
    joined,
)

if TYPE_CHECKING:
    from fasttrack.meaning.calls import Arguments
    from fasttrack.meaning.reader import Reader


def defined(reader: "Reader", node: ast.ClassDef) -> Values:
    """Runs a class statement: its body, then `__set_name__`, `__init_subclass__`, its metaclass."""
    bases = tuple(reader.value(base) for base in node.bases)
    keywords = {k.arg: reader.value(k.value) for k in node.keywords if k.arg is not None}
    frame = reader.frame
    outer, branches = frame.scope, frame.branches
    frame.scope = Scope(outer.path, outer.title, outer, is_class=True)
    frame.branches = 0
    reader.run(node.body)
    body = frame.scope.names
    frame.scope, frame.branches = outer, branches
    fields = tuple(
        item.target.id
        for item in node.body
        if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name)
    )
    made_class = OwnClass(node.name, bases, body, fields)
    made_class.metaclass = keywords.pop("metaclass", UNKNOWN) or _inherited(bases)
    made_class.instance = OwnObject(made_class)
    for values in body.values():
        for value in values:
            if isinstance(value, Function) and value.owner is None:
                value.owner = made_class
    _name_attributes(reader, made_class, node)
    _tell_bases(reader, made_class, keywords, node)
    _make_members(reader, made_class)
    return (made_class,)


def _inherited(bases: tuple[Values, ...]) -> Values:
    """The metaclass of the bases."""
    return joined(UNKNOWN, *(b.metaclass for v in bases for b in v if isinstance(b, OwnClass)))


def _name_attributes(reader: "Reader", kind: OwnClass, node: ast.AST) -> None:
    for name, values in list(kind.attributes.items()):
        for value in values:
            if isinstance(value, OwnObject):
                for hook in looked_up(value.of, "__set_name__"):
                    if isinstance(hook, Function):
                        given: tuple[Values, ...] = ((value,), (kind,), (Text(name),))
                        reader.follow(hook, given, {}, node)


def _tell_bases(
    reader: "Reader", kind: OwnClass, keywords: dict[str, Values], node: ast.AST
) -> None:
    bases = [b for values in kind.bases for b in values if isinstance(b, OwnClass)]
    for base in bases:
        for hook in looked_up(base, "__init_subclass__"):
            if isinstance(hook, Function):
                reader.follow(hook, ((kind,),), keywords, node)
    for metaclass in kind.metaclass:
        if isinstance(metaclass, OwnClass):
            _call_metaclass(reader, metaclass, kind, keywords, node)


def _call_metaclass(
    reader: "Reader", metaclass: OwnClass, kind: OwnClass, keywords: dict[str, Values],
    node: ast.AST,
) -> None:  # fmt: skip
    name: Values = (Text(kind.name),)
    bases: Values = (Items(list(kind.bases)),)
    handed: tuple[tuple[str, tuple[Values, ...]], ...] = (
        ("__prepare__", ((metaclass,), name, bases)),
        ("__new__", ((kind,), name, bases, (OwnObject(kind),))),
        ("__init__", ((kind,), name, bases, (OwnObject(kind),))),
    )
    for method, given in handed:
        for hook in looked_up(metaclass, method):
            if isinstance(hook, Function):
                reader.follow(hook, given, keywords, node)


def _make_members(reader: "Reader", kind: OwnClass) -> None:
    """What an enumeration does with the values in its body: its members are made of them."""
    bases = [b for values in kind.bases for b in values]
    if not any(isinstance(b, Foreign) and b.name.startswith("enum.") for b in bases):
        return
    for values in list(kind.attributes.values()):
        for value in values:
            if isinstance(value, Items | Foreign):
                parts = value.values if isinstance(value, Items) else [(value,)]
                for name in ("__init__", "__new__"):
                    hooks.hook(reader, OwnObject(kind), name, *parts)


def made(reader: "Reader", kind: OwnClass, arguments: "Arguments") -> Values:
    """An instance, after its `__init__` or as a data class takes its fields."""
    instance = OwnObject(kind)
    if any(looked_up(k, "__call__") for k in kind.metaclass if isinstance(k, OwnClass)):
        hooks.hook(reader, kind, "__call__", *arguments.given)
    own = replace(arguments, given=((instance,), *arguments.given))
    initial = looked_up(kind, "__init__")
    for function in initial:
        if isinstance(function, Function):
            reader.follow(function, own.given, dict(own.named), own.node)
    for function in looked_up(kind, "__new__"):
        if isinstance(function, Function):
            given = ((kind,), *arguments.given)
            reader.follow(function, given, dict(arguments.named), arguments.node)
    if not initial:
        _fill(reader, instance, arguments)
    _remember(instance)
    return (instance,)


def _fill(reader: "Reader", instance: OwnObject, arguments: "Arguments") -> None:
    """What a data class, an exception or another class without `__init__` keeps."""
    fields = instance.of.fields
    instance.attributes.update(zip(fields, arguments.given, strict=False))
    instance.attributes.update(arguments.named)
    if not fields and arguments.given:
        instance.attributes["args"] = (Items(list(arguments.given)),)
    hooks.hook(reader, instance, "__post_init__")


def _remember(instance: OwnObject) -> None:
    """Lets methods that are read later see what some instance holds."""
    known = instance.of.instance
    for name, values in instance.attributes.items() if known is not None else ():
        if known is not None and values and tells(values):
            known.attributes[name] = joined(known.attributes.get(name, UNKNOWN), values)
