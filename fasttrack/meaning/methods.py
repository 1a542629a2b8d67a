# SPDX-License-Identifier: Apache-2.0
"""What a method does to what it is called on, by its name: lists, queues, what others have made."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from fasttrack.meaning import handed, intrinsics, known, patching, sequences
from fasttrack.meaning.kinds import Kind, kind_of_method
from fasttrack.meaning.objects import element
from fasttrack.meaning.scopes import Scope
from fasttrack.meaning.values import (
    UNKNOWN,
    Bound,
    Foreign,
    Holder,
    Items,
    Made,
    Names,
    OwnClass,
    OwnObject,
    Text,
    Value,
    Values,
    joined,
    text,
)

if TYPE_CHECKING:
    from fasttrack.meaning.calls import Arguments
    from fasttrack.meaning.reader import Reader

_THREADS = frozenset({"threading.Thread", "threading.Timer"})
_PUTTING = frozenset({"append", "add", "insert", "appendleft", "push", "put", "setdefault"})
_FILLING = frozenset({"extend", "extendleft", "update"})
_ANY = frozenset({"popleft", "popitem", "get", "pop", "setdefault", "__getitem__", "__next__"})


def method(reader: "Reader", receiver: Value, name: str, arguments: "Arguments") -> Values:
    """Calls a method of a value of a known kind."""
    handler = _METHODS.get(receiver.__class__)
    return UNKNOWN if handler is None else handler(reader, receiver, name, arguments)


def _of_items(reader: "Reader", items: Items, name: str, arguments: "Arguments") -> Values:
    """A method of a list, dictionary or generator."""
    if name in _PUTTING or name in _FILLING or name == "__setitem__":
        _put(reader, items, name, arguments)
    if name == "sort" and (key := arguments.named.get("key")):
        for values in items.values:
            reader.apply(key, replace(arguments, given=(values,), named={}))
    if name == "send" and items.made_by is not None:
        function, given, named = items.made_by
        return reader.follow(function, given, named, arguments.node, arguments.at(0))
    return _taken(reader, items, name, arguments)


def _put(reader: "Reader", items: Items, name: str, arguments: "Arguments") -> None:
    if name in _FILLING:
        sequences.fill(reader, items, arguments.at(0))
        for key, values in arguments.named.items():
            items.put(values, key)
    elif name in {"setdefault", "__setitem__"}:
        items.put(arguments.at(1), text(arguments.at(0)))
    else:
        items.put(arguments.at(1 if name == "insert" else 0))


def _taken(reader: "Reader", items: Items, name: str, arguments: "Arguments") -> Values:
    """What a method gives of the elements."""
    if name in _ANY:
        wanted = text(arguments.at(0))
        return items.any() if wanted is None else element(reader, items, wanted, None)
    if name == "values":
        return (Items(list(items.values)),)
    if name == "items":
        keys: list[str | None] = items.keys or [None] * len(items.values)
        pairs = zip(keys, items.values, strict=False)
        return (Items([(Items([reader.project.text(k), v]),) for k, v in pairs]),)
    return (items,) if name in {"copy", "keys", "__iter__"} else UNKNOWN


def _of_holder(reader: "Reader", holder: Holder, _: str, arguments: "Arguments") -> Values:
    holder.put(*arguments.given)
    handed.call_back(reader, arguments)
    return holder.any()


def _of_held(_: "Reader", bound: Bound, __: str, ___: "Arguments") -> Values:
    """A method of something that a holder hands out."""
    return bound.receiver.any() if isinstance(bound.receiver, Holder) else UNKNOWN


def _of_names(reader: "Reader", names: Names, name: str, arguments: "Arguments") -> Values:
    """A method of `globals()`."""
    if name in {"update", "__setitem__", "setdefault"}:
        _bind_all(names.scope, arguments)
    elif name in {"items", "values"}:
        every = list(names.scope.names)
        bound = Items([names.scope.known(one) for one in every], [*every])
        return _of_items(reader, bound, name, arguments)
    elif name in {"get", "pop", "__getitem__"}:
        return element(reader, names, text(arguments.at(0)), None)
    return UNKNOWN


def _bind_all(scope: Scope, arguments: "Arguments") -> None:
    bound = list(arguments.named.items())
    for value in arguments.at(0):
        if isinstance(value, Items):
            bound += [(k, v) for k, v in zip(value.keys or (), value.values, strict=False) if k]
        elif isinstance(value, Text):
            bound.append((value.text, arguments.at(1)))
    for name, values in bound:
        scope.bind(name, values, weakly=True)


def _of_object(reader: "Reader", value: OwnObject, name: str, arguments: "Arguments") -> Values:
    """A method that an own class has from a foreign one above it."""
    if name in {"start", "__enter__"}:
        _begin(reader, value.of, name, arguments)
    held = Items([value.attributes.get("[...]", UNKNOWN)])
    if name in _PUTTING or name in _FILLING:
        _put(reader, held, name, arguments)
        value.attributes["[...]"] = held.any()
    return _taken(reader, held, name, arguments)


def _begin(reader: "Reader", kind: OwnClass, name: str, arguments: "Arguments") -> None:
    """Starts a thread of an own class, or enters an own mode of PyTorch and does not leave it."""
    bases = {base.name for values in kind.bases for base in values if isinstance(base, Foreign)}
    for base in sorted(bases):
        if name == "start" and base in _THREADS:
            reader.add(Kind.HOOKS, Foreign(base), "started", arguments.node)
        elif name == "__enter__" and base.startswith("torch.") and base.endswith("Mode"):
            reader.add(Kind.HOOKS, Foreign(base), "entered and not left", arguments.node)


def _of_made(reader: "Reader", receiver: Made, name: str, arguments: "Arguments") -> Values:
    """A method of what a foreign class made."""
    kind = receiver.of
    if kind == intrinsics.PATH:
        if name in known.PATH_WRITES or (
            name == "open" and intrinsics.writes(arguments.at(0, "mode"))
        ):
            reader.add(Kind.FILES, Foreign(f"{kind}.{name}"), "called", arguments.node)
        return (receiver,)
    if (effect := kind_of_method(kind, name)) is not None:
        reader.add(effect, Foreign(f"{kind}.{name}"), "called", arguments.node)
    elif kind in patching.PATCHERS:
        patching.patcher(reader, name, arguments)
    elif name == "__enter__" and kind.startswith(("torch.", "warnings.")):
        reader.add(Kind.HOOKS, Foreign(kind), "entered and not left", arguments.node)
    elif name == "enter_context":
        return _entered(reader, kind, arguments)
    elif kind.startswith("torch.") and reader.frame.at_import and _moves(name, arguments):
        reader.add(Kind.WORK, Foreign(f"{kind}.{name}"), "called at import", arguments.node)
    handed.call_back(reader, arguments)
    return (receiver,) if kind.startswith("torch.") else UNKNOWN


def _entered(reader: "Reader", kind: str, arguments: "Arguments") -> Values:
    """`stack.enter_context(x)`; of a stack that no `with` statement leaves, it stays entered."""
    found = arguments.at(0)
    for value in found:
        if isinstance(value, OwnObject) and not kind.endswith(".__enter__"):
            _begin(reader, value.of, "__enter__", arguments)
    return joined(UNKNOWN, *(v.any() if isinstance(v, Items) else (v,) for v in found))


def _moves(name: str, arguments: "Arguments") -> bool:
    """Whether a method of a tensor or module takes it to a GPU."""
    device = text(arguments.at(0, "device")) or ""
    return name == "cuda" or (name == "to" and device.startswith("cuda"))


_METHODS: Mapping[type, Callable[["Reader", Any, str, "Arguments"], Values]] = {
    Items: _of_items,
    Made: _of_made,
    Holder: _of_holder,
    Bound: _of_held,
    Names: _of_names,
    OwnObject: _of_object,
}
"""Kinds of values to what their methods do."""
