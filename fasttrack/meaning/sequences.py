# SPDX-License-Identifier: Apache-2.0
"""Functions that hand on what is in other objects, one after the other: `list`, `zip`, `map`."""

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from fasttrack.meaning.handlers import Handler, rows
from fasttrack.meaning.objects import elements
from fasttrack.meaning.values import UNKNOWN, Foreign, Items, Values, joined, text

if TYPE_CHECKING:
    from fasttrack.meaning.calls import Arguments
    from fasttrack.meaning.reader import Reader


def _sequence(reader: "Reader", _: Foreign, arguments: "Arguments") -> Values:
    _keyed(reader, arguments)
    return (Items(elements(reader, arguments.at(0))),)


def _keyed(reader: "Reader", arguments: "Arguments") -> None:
    """Calls what `key=` gives with every element, as sorting does."""
    if key := arguments.named.get("key"):
        for values in elements(reader, arguments.at(0)):
            reader.apply(key, replace(arguments, given=(values,), named={}))


def _dict(reader: "Reader", _: Foreign, arguments: "Arguments") -> Values:
    items = Items(list(arguments.named.values()), list(arguments.named))
    fill(reader, items, arguments.at(0))
    return (items,)


def fill(reader: "Reader", items: Items, given: Values) -> None:
    """Puts into a dictionary what another, or pairs of keys and values, hold."""
    for value in given:
        if isinstance(value, Items) and value.keys is not None:
            for key, values in zip(value.keys, value.values, strict=True):
                items.put(values, key)
            continue
        for pair in elements(reader, (value,)):
            inner = elements(reader, pair)
            if len(inner) == 2:
                items.put(inner[1], text(inner[0]))
            else:
                items.put(pair)


def _until(reader: "Reader", function: Foreign, arguments: "Arguments") -> Values:
    """`iter(x)`, or `iter(f, end)` that calls its first argument again and again."""
    if len(arguments.given) == 2:
        return (Items([_called(reader, arguments, ())]),)
    return _sequence(reader, function, arguments)


def _filter(reader: "Reader", _: Foreign, arguments: "Arguments") -> Values:
    kept = elements(reader, arguments.at(1))
    for values in kept:
        _called(reader, arguments, (values,))
    return (Items(kept),)


def _by_default(reader: "Reader", _: Foreign, arguments: "Arguments") -> Values:
    """`collections.defaultdict`: what its factory makes, and what it is given besides."""
    made = _called(reader, arguments, ())
    items = Items([made], [None])
    fill(reader, items, arguments.at(1))
    return (items,)


def _next(reader: "Reader", _: Foreign, arguments: "Arguments") -> Values:
    _keyed(reader, arguments)
    return joined(UNKNOWN, *elements(reader, arguments.at(0)))


def _enumerate(reader: "Reader", _: Foreign, arguments: "Arguments") -> Values:
    pairs: list[Values] = [(Items([UNKNOWN, v]),) for v in elements(reader, arguments.at(0))]
    return (Items(pairs),)


def _zip(reader: "Reader", _: Foreign, arguments: "Arguments") -> Values:
    columns = [elements(reader, values) for values in arguments.given]
    length = max((len(column) for column in columns), default=0)
    rows: list[Values] = [
        (Items([c[row] if row < len(c) else UNKNOWN for c in columns]),) for row in range(length)
    ]
    return (Items(rows),)


def _map(reader: "Reader", _: Foreign, arguments: "Arguments") -> Values:
    columns = [elements(reader, values) for values in arguments.given[1:]]
    length = max((len(column) for column in columns), default=0)
    results = []
    for row in range(length):
        given = tuple(c[row] if row < len(c) else UNKNOWN for c in columns)
        results.append(_called(reader, arguments, given))
    return (Items(results),)


def _starmap(reader: "Reader", _: Foreign, arguments: "Arguments") -> Values:
    rows = elements(reader, arguments.at(1))
    return (Items([_called(reader, arguments, tuple(elements(reader, row))) for row in rows]),)


def _reduce(reader: "Reader", _: Foreign, arguments: "Arguments") -> Values:
    left = elements(reader, arguments.at(1))
    result = arguments.at(2) or (left.pop(0) if left else UNKNOWN)
    for values in left:
        result = _called(reader, arguments, (result, values))
    return result


def _called(reader: "Reader", arguments: "Arguments", given: tuple[Values, ...]) -> Values:
    """The first argument, called."""
    return reader.apply(arguments.at(0), replace(arguments, given=given, named={}))


def _call_first(reader: "Reader", _: Foreign, arguments: "Arguments") -> Values:
    rest = replace(arguments, given=arguments.given[1:])
    return reader.apply(arguments.at(0), rest)


def _chain(reader: "Reader", _: Foreign, arguments: "Arguments") -> Values:
    return (Items([v for values in arguments.given for v in elements(reader, values)]),)


HANDLERS: Mapping[str, Handler] = {
    **rows(_sequence, "builtins.list builtins.tuple builtins.set builtins.frozenset "
           "builtins.sorted builtins.reversed collections.deque"),
    **rows(_until, "builtins.iter"),
    **rows(_filter, "builtins.filter itertools.filterfalse itertools.takewhile "
           "itertools.dropwhile"),
    **rows(_by_default, "collections.defaultdict"),
    **rows(_dict, "builtins.dict collections.OrderedDict types.MappingProxyType"),
    **rows(_next, "builtins.next builtins.max builtins.min random.choice"),
    **rows(_enumerate, "builtins.enumerate"),
    **rows(_zip, "builtins.zip itertools.product itertools.zip_longest"),
    **rows(_map, "builtins.map"),
    **rows(_starmap, "itertools.starmap"),
    **rows(_reduce, "functools.reduce"),
    **rows(_call_first, "operator.call"),
    **rows(_chain, "itertools.chain"),
}  # fmt: skip
"""Names of functions to what the model does for them."""
