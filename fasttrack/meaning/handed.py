# SPDX-License-Identifier: Apache-2.0
"""What a foreign function may do with what it is handed: call it, write to it, keep it.

Nothing else is known of such a function. A callback is followed with the foreign objects that are
handed over beside it, and what keeps an object hands it out again.
"""

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from fasttrack.meaning.hooks import looked_up
from fasttrack.meaning.kinds import kind_of_change
from fasttrack.meaning.objects import elements
from fasttrack.meaning.parameters import tells
from fasttrack.meaning.values import (
    UNKNOWN,
    Bound,
    Foreign,
    Function,
    Holder,
    Items,
    Made,
    OwnObject,
    Partial,
    Value,
    Values,
)

if TYPE_CHECKING:
    from fasttrack.meaning.calls import Arguments
    from fasttrack.meaning.reader import Reader

BESIDE_LIMIT = 8
"""Foreign objects of one call with which a callback is followed."""
_CHANGING = frozenset(
    {
        "builtins.setattr", "builtins.delattr", "builtins.exec", "builtins.eval",
        "operator.setitem", "operator.delitem", "object.__setattr__",
    }
)  # fmt: skip
"""Functions that are looked at when they are handed on with what they change."""
_HOLDERS = frozenset(
    {
        "weakref.ref", "weakref.WeakMethod", "weakref.WeakSet", "contextvars.ContextVar",
        "queue.Queue", "queue.LifoQueue", "queue.PriorityQueue", "queue.SimpleQueue",
        "asyncio.Queue", "asyncio.Future", "concurrent.futures.Future", "itertools.cycle",
        "itertools.repeat", "itertools.islice", "itertools.tee", "itertools.accumulate",
        "itertools.batched", "itertools.pairwise", "itertools.chain.from_iterable",
        "itertools.compress", "itertools.groupby",
    }
)  # fmt: skip
"""Classes and functions whose result hands out what they were given."""
_EXCEPTION = re.compile(r"builtins\.\w*(?:Error|Exception|ExceptionGroup|Iteration|Warning|Exit)$")
_WITH_OUT = ("torch.", "numpy.", "cupy.")
_IN_PLACE = re.compile(r"[a-z]\w*[a-z0-9]_$")


def over(reader: "Reader", name: str, arguments: "Arguments") -> Values:
    """Follows what a foreign function is handed, and tells what it gives back."""
    handed = (*arguments.given, *arguments.named.values())
    if not any(tells(values) for values in handed):
        return (Holder([]),) if name in _HOLDERS else (Made(name),)
    call_back(reader, arguments)
    if name.startswith(_WITH_OUT):
        _write(reader, name, arguments)
        _tell_objects(reader, arguments)
    if name in _HOLDERS or _EXCEPTION.match(name) or _any_module(reader, handed):
        return (Holder([values for values in handed if values]),)
    return (Made(name),)


def call_back(reader: "Reader", arguments: "Arguments") -> None:
    """Calls the functions among some arguments with what stands behind or beside them."""
    given = arguments.given
    for position, values in enumerate(given):
        others = (*given[:position], *given[position + 1 :], *arguments.named.values())
        for value in values:
            _call(reader, value, given[position + 1 :], others, arguments)
    for name, values in arguments.named.items():
        beside = [held for key, held in arguments.named.items() if key != name]
        behind = arguments.named.get("args", UNKNOWN)
        for value in values:
            after = tuple(elements(reader, behind))
            _call(reader, value, after, (*given, *beside), arguments)


def _call(
    reader: "Reader", value: Value, after: tuple[Values, ...], others: tuple[Values, ...],
    arguments: "Arguments",
) -> None:  # fmt: skip
    """Calls one argument, if it is a function: as it is, as `f(*args)`, and with each object."""
    changing = isinstance(value, Foreign) and value.name in _CHANGING
    if not changing and not _is_callback(value):
        return
    tries: list[tuple[Values, ...]] = []
    if any(tells(values) for values in after):
        tries.append(after)
    if isinstance(value, Partial):
        tries.append(())
    if not changing:
        tries += [((one,),) for one in _foreign(others)]
    for given in dict.fromkeys(tries):
        reader.apply((value,), replace(arguments, given=given, named={}))


def _is_callback(value: Value) -> bool:
    if isinstance(value, OwnObject):
        return bool(looked_up(value.of, "__call__"))
    return isinstance(value, Function | Partial) or (
        isinstance(value, Bound) and isinstance(value.function, Function)
    )


def _foreign(handed: tuple[Values, ...]) -> list[Foreign]:
    """The foreign objects among some values, and those in lists of them."""
    return list(dict.fromkeys(_each(handed)))[:BESIDE_LIMIT]


def _each(handed: tuple[Values, ...]) -> Iterator[Foreign]:
    for values in handed:
        for value in values:
            if isinstance(value, Foreign):
                yield value
            elif isinstance(value, Items):
                yield from (v for inner in value.values for v in inner if isinstance(v, Foreign))


def _any_module(reader: "Reader", handed: tuple[Values, ...]) -> bool:
    """Whether a whole module is among the values: few functions are handed one for another end."""
    path_of = reader.project.modules.path_of
    return any(v.is_module or path_of(v.name) is not None for v in _foreign(handed))


def _write(reader: "Reader", name: str, arguments: "Arguments") -> None:
    """`out=` of a foreign tensor, and functions such as `torch.nn.init.normal_`."""
    changed = [arguments.named.get("out", UNKNOWN)]
    if _IN_PLACE.match(name.rpartition(".")[2]):
        changed.append(arguments.at(0))
    for value in _foreign(tuple(changed)):
        if is_held(reader, value):
            through = f"written to by `{name}`"
            reader.add(kind_of_change(value.name), value, through, arguments.node)


def _tell_objects(reader: "Reader", arguments: "Arguments") -> None:
    """Calls `__torch_function__` of own objects, as functions of PyTorch do."""
    for values in arguments.given:
        for value in values:
            if isinstance(value, OwnObject):
                handed: Values = (Items(list(arguments.given)),)
                for function in looked_up(value.of, "__torch_function__"):
                    given: tuple[Values, ...] = ((value.of,), UNKNOWN, UNKNOWN, handed)
                    reader.apply((function,), replace(arguments, given=given, named={}))


def changes_receiver(reader: "Reader", receiver: Foreign, method: str) -> bool:
    """Whether a method changes what it is called on: PyTorch's end in `_`."""
    return _IN_PLACE.match(method) is not None and is_held(reader, receiver)


def is_held(reader: "Reader", value: Foreign) -> bool:
    """Whether a value is an object in a module of the repository, and not that module."""
    path_of = reader.project.modules.path_of
    name = value.name.partition("[")[0]
    if path_of(name) is not None:
        return False
    while name := name.rpartition(".")[0]:
        if path_of(name) is not None:
            return True
    return False
