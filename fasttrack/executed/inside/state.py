# SPDX-License-Identifier: Apache-2.0
"""What modules hold, remembered object by object, and what of it has changed since.

The first look keeps every object that it meets, so that none can be confused with a later one at
the same place. The second look asks the same objects again. What a foreign module holds is looked
into four levels deep: module, class or container or instance, its members, theirs.
"""

import re
import sys
import types
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from typing import Any

Members = dict[str, object]

OBJECTS_LIMIT = 400_000
"""Objects that are remembered; PyTorch with all that it imports has a third of them."""
MEMBERS_LIMIT = 20_000
"""Members of one object that are compared."""
DEPTH = 4
TEXT = 160
"""Characters of a value that are told."""
PLAIN = (type(None), bool, int, float, complex, str, bytes, range, type(Ellipsis))
_SKIPPED_NAMES = frozenset(
    [
        *("__builtins__", "__cached__", "__doc__", "__file__", "__loader__", "__spec__"),
        *("__path__", "__warningregistry__", "__annotations_cache__", "__annotate_func__"),
    ]
)
"""Of modules and classes: what the import system and the interpreter write."""
_SKIPPED = frozenset(
    [
        ("sys", "modules"),
        ("sys", "last_exc"),
        ("sys", "last_type"),
        ("sys", "last_value"),
        ("sys", "last_traceback"),
        ("posix", "environ"),
        ("os", "environ"),
        ("os", "environb"),
        ("warnings", "_filters_version"),
        ("_warnings", "_filters_version"),
        ("warnings", "_onceregistry"),
        ("warnings", "onceregistry"),
        ("_warnings", "_onceregistry"),
        ("logging", "_handlers"),
        ("logging", "_handlerList"),
        ("torch", "ops"),
        ("torch.library", "_impls"),
        ("torch.library", "_defs"),
        ("torch.library", "_reserved_namespaces"),
    ]
)
"""Module and attribute: asked for elsewhere, or moved by whoever is imported."""
_SKIPPED_MODULES = ("threading", "_weakrefset", "weakref", "linecache", "_abc", "torch._library")
"""Modules whose insides move by themselves."""
_CACHES = (
    *("cache", "memo", "interned", "loggerdict"),
    *("inspect.modulesbyfile", "inspect._filesbymodname", "torch.ops", "torch.jit._builtins"),
)
"""Words in the names of what grows and shrinks when others are imported; there, only a member that
was there before and is another one tells anything."""


_PLACE = re.compile(r" #[0-9a-f]+")
"""Where a key is, which is another place in every process."""


class State:
    """The members of many objects at one time.

    Attributes:
        whole: whether everything was seen; not when there was too much of it.
    """

    def __init__(self, modules: Mapping[str, object], is_own: Callable[[str], bool]) -> None:
        """Looks at modules.

        Args:
            modules: name to module; none of them is one's own.
            is_own: tells the names of modules that may change as they like.
        """
        self._is_own = is_own
        self._records: list[tuple[object, str, Members]] = []
        self.whole = True
        self._look(modules)

    def changes(self) -> Iterator[tuple[str, str]]:
        """Dotted name and what became of it, for every member that is another one now."""
        for name, how in self._changes():
            yield _PLACE.sub("", name), how

    def _changes(self) -> Iterator[tuple[str, str]]:
        for thing, name, before in self._records:
            after = members(thing)
            for key in before.keys() & after.keys():
                if not _same(before[key], after[key]):
                    yield f"{name}{key}", f"is {described(after[key])}"
            if not any(word in name.lower() for word in _CACHES):
                yield from ((f"{name}{key}", "is gone") for key in before.keys() - after.keys())
                for key in after.keys() - before.keys():
                    if not self._is_submodule(name, key, after[key]):
                        yield f"{name}{key}", f"is new: {described(after[key])}"

    def _is_submodule(self, name: str, key: str, value: object) -> bool:
        """Whether an attribute is what the import system sets on a package."""
        full = f"{name}{key}"
        return isinstance(value, types.ModuleType) and sys.modules.get(full) is value

    def _look(self, modules: Mapping[str, object]) -> None:
        waiting: deque[tuple[object, str, int]] = deque()
        for name, module in modules.items():
            if not name.startswith(_SKIPPED_MODULES):
                waiting.append((module, name, 0))
        known: set[int] = set()
        while waiting:
            thing, name, depth = waiting.popleft()
            if id(thing) in known:
                continue
            if len(self._records) >= OBJECTS_LIMIT:
                self.whole = False
                return
            known.add(id(thing))
            found = members(thing)
            self._records.append((thing, name, found))
            if depth < DEPTH:
                for key, value in found.items():
                    if self._has_members(value) and id(value) not in known:
                        waiting.append((value, f"{name}{key}", depth + 1))

    def _has_members(self, value: object) -> bool:
        """Whether to look into a value that a member holds."""
        # The table of modules is looked at by itself, whatever others call it, as Triton does.
        if isinstance(value, (*PLAIN, types.ModuleType)) or value is sys.modules:
            return False
        kind = type(value)
        if isinstance(value, type):
            return not self._is_own(module_of(value))
        if kind in _CONTAINERS or kind in _FUNCTIONS:
            return True
        return not self._is_own(module_of(kind)) and bool(_dictionary(value))


def members(thing: object) -> Members:
    """The members of an object, by how one gets at them; empty for what has none."""
    kind = type(thing)
    if isinstance(thing, types.ModuleType):
        return _of_namespace(_dictionary(thing), str(_dictionary(thing).get("__name__", "")))
    if isinstance(thing, type):
        return _of_namespace(dict(type.__dict__["__dict__"].__get__(thing)), "")
    if kind in _FUNCTIONS:
        return _of_function(thing)
    if kind in _CONTAINERS:
        return _of_container(thing)
    held: Members = {}
    if isinstance(thing, dict | list | set):  # a subclass: its content, by the built-in's own code
        held |= _of_container(thing)
    return held | _of_namespace(_dictionary(thing), "")


def described(value: object) -> str:
    """A value in words that are the same in every process."""
    kind = type(value)
    if isinstance(value, PLAIN):
        return repr(value)[:TEXT]
    if isinstance(value, types.ModuleType):
        return f"module {_dictionary(value).get('__name__')}"
    if kind in _CONTAINERS:
        return f"a {kind.__name__} of {len(value)}"  # type: ignore[arg-type]
    if kind in _FUNCTIONS or isinstance(value, type):
        name = getattr(value, "__qualname__", "?")
        return f"{kind.__name__} {getattr(value, '__module__', '?')}.{name}"[:TEXT]
    if isinstance(value, types.CodeType):
        return f"code of {value.co_qualname}"[:TEXT]
    return f"an instance of {kind.__module__}.{kind.__qualname__}"[:TEXT]


def module_of(kind: type) -> str:
    """The module that a class says it is from."""
    found = getattr(kind, "__module__", "")
    return found if isinstance(found, str) else ""


def _same(old: object, new: object) -> bool:
    """Whether a member is still the same; plain values of one type are compared."""
    if old is new:
        return True
    if type(old) is not type(new):
        return False
    if isinstance(old, PLAIN):
        return old == new
    # Made anew whenever they are asked for.
    if isinstance(old, types.MethodType) and isinstance(new, types.MethodType):
        return old.__func__ is new.__func__ and old.__self__ is new.__self__
    if isinstance(old, tuple) and isinstance(new, tuple):
        return len(old) == len(new) and all(a is b for a, b in zip(old, new, strict=True))
    return False


def _of_namespace(held: Mapping[str, object], module: str) -> Members:
    return {
        f".{key}": value
        for key, value in _some(held)
        if key not in _SKIPPED_NAMES and (module, key) not in _SKIPPED
    }


def _of_function(thing: object) -> Members:
    found: Members = {}
    for name in ("__code__", "__defaults__", "__kwdefaults__", "__wrapped__"):
        with suppress(AttributeError):
            found[f".{name}"] = getattr(thing, name)
    for name in ("__func__", "fget", "fset", "fdel"):
        with suppress(AttributeError):
            found[f".{name}"] = getattr(thing, name)
    for place, cell in enumerate(getattr(thing, "__closure__", None) or ()):
        with suppress(ValueError):  # an empty cell
            found[f".__closure__[{place}]"] = cell.cell_contents
    return found | _of_namespace(_dictionary(thing), "")


def _of_container(thing: object) -> Members:
    if isinstance(thing, dict):
        return {f"[{_key(key)}]": value for key, value in _some(thing)}
    if isinstance(thing, set | frozenset):
        shown = [f"{{{_key(value)}}}" for value in list(thing)[:MEMBERS_LIMIT]]
        return dict.fromkeys(shown)
    if isinstance(thing, list | tuple | deque):
        return {f"[{place}]": value for place, value in enumerate(list(thing)[:MEMBERS_LIMIT])}
    return dict(_of_container(dict(thing)))  # type: ignore[call-overload]


def _some(held: Mapping[Any, object]) -> Iterator[tuple[Any, object]]:
    """The members of a dictionary, at most `MEMBERS_LIMIT`, safe against its being changed."""
    with suppress(RuntimeError):
        yield from list(dict.items(held))[:MEMBERS_LIMIT]  # type: ignore[arg-type]


def _key(key: object) -> str:
    """A key by its value or its name; two that look alike are told apart by where they are."""
    if isinstance(key, PLAIN):
        return repr(key)[:TEXT]
    if isinstance(key, tuple) and all(isinstance(part, PLAIN) for part in key):
        return repr(key)[:TEXT]
    return f"{described(key)} #{id(key):x}" if not isinstance(key, type) else described(key)


def _dictionary(thing: object) -> dict[str, object]:
    """An object's own dictionary, without asking code of its class."""
    try:
        held = object.__getattribute__(thing, "__dict__")
    except (AttributeError, TypeError):
        return {}
    return held if type(held) is dict else {}


_FUNCTIONS: Collection[type] = frozenset(
    [types.FunctionType, types.MethodType, staticmethod, classmethod, property]
)
_CONTAINERS: Collection[type] = frozenset(
    [dict, list, set, frozenset, tuple, deque, types.MappingProxyType]
)
