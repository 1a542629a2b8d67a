# SPDX-License-Identifier: Apache-2.0
"""Methods of known containers and texts; containers change in place, within bounds."""

from collections.abc import Mapping, Sequence

from fasttrack.testmodel.folding import ITEMS_LIMIT, CannotTell, checked, entry_or, items_of
from fasttrack.testmodel.values import Value, is_known

_TEXT_METHODS = frozenset(
    {"split", "upper", "lower", "strip", "format", "join", "replace", "startswith", "endswith",
     "removeprefix", "removesuffix", "rstrip", "lstrip", "encode", "title"}
)  # fmt: skip


def method(owner: Value, name: str, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
    """The result of a method of a known container or text; containers change in place."""
    if isinstance(owner, dict):
        return _dict_method(owner, name, args, kwargs)
    if isinstance(owner, list):
        return _list_method(owner, name, args)
    if isinstance(owner, str) and name in _TEXT_METHODS and not kwargs:
        if name == "replace" and len(owner) > 1024:
            raise CannotTell
        if all(is_known(arg) for arg in args) and name != "format":
            return checked(lambda: getattr(owner, name)(*args))
    if isinstance(owner, set) and name == "add" and len(args) == 1:
        return owner.add(args[0])
    if isinstance(owner, float | int) and name in {"is_integer", "bit_length"}:
        return checked(lambda: getattr(owner, name)())  # noqa: PLW0108
    raise CannotTell


def _dict_method(  # noqa: C901, PLR0911
    owner: dict[Value, Value], name: str, args: Sequence[Value], kwargs: Mapping[str, Value]
) -> Value:
    match name, args:
        case "items", ():
            return list(owner.items())
        case "keys", ():
            return list(owner)
        case "values", ():
            return list(owner.values())
        case "copy", ():
            return dict(owner)
        case "get", (key,):
            return entry_or(owner, key, None)
        case "get", (key, default):
            return entry_or(owner, key, default)
        case "setdefault", (key, default):
            return checked(lambda: owner.setdefault(key, default))
        case "pop", (key, *_):
            return checked(lambda: owner.pop(key, *args[1:]))
        case "update", ():
            return owner.update(kwargs)
        case "update", (dict() as more,):
            return owner.update({**more, **kwargs})
        case _:
            raise CannotTell


def _list_method(owner: list[Value], name: str, args: Sequence[Value]) -> Value:
    if len(owner) >= ITEMS_LIMIT:
        raise CannotTell
    match name, args:
        case "append", (value,):
            return owner.append(value)
        case "extend", (values,):
            return owner.extend(items_of(values))
        case "insert", (int() as at, value):
            return owner.insert(at, value)
        case "pop" | "remove" | "clear" | "reverse" | "copy" | "index" | "count", _:
            return checked(lambda: getattr(owner, name)(*args))
        case "sort", ():
            return checked(owner.sort)
        case _:
            raise CannotTell
