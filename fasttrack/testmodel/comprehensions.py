# SPDX-License-Identifier: Apache-2.0
"""Comprehensions: run by run where the text tells the items, once for all where it does not."""

import ast
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from fasttrack.testmodel import folding
from fasttrack.testmodel.binding import bind
from fasttrack.testmodel.cuts import PART, common
from fasttrack.testmodel.folding import CannotTell
from fasttrack.testmodel.values import Claim, Opaque, Scope, Value, is_known, shorten, words

if TYPE_CHECKING:
    from fasttrack.testmodel.follower import Follower


def comprehension(
    f: "Follower", node: ast.ListComp | ast.SetComp | ast.GeneratorExp, scope: Scope
) -> Value:
    """The list, set or generator that a comprehension makes."""
    try:
        found = [f.value(node.elt, inner) for inner in _runs(f, node.generators, scope)]
    except CannotTell:
        inner = _once(f, node.generators, scope)
        value = f.value(node.elt, inner)
        if isinstance(value, Claim):
            return value
        cuts = common((value,))
        if any(generator.ifs for generator in node.generators):
            cuts |= {PART}
        return Opaque(shorten(f"[{words(value)} for ...]"), cuts=cuts)
    if isinstance(node, ast.SetComp) and is_known(found):
        try:
            return set(found)
        except TypeError:
            return found
    return found


def dict_comprehension(f: "Follower", node: ast.DictComp, scope: Scope) -> Value:
    """The dictionary that a comprehension makes."""
    try:
        return {
            f.value(node.key, inner): f.value(node.value, inner)
            for inner in _runs(f, node.generators, scope)
        }
    except (CannotTell, TypeError):
        inner = _once(f, node.generators, scope)
        return Opaque(shorten(f"{{{words(f.value(node.value, inner))} for ...}}"))


def _runs(
    f: "Follower", generators: Sequence[ast.comprehension], scope: Scope, first: int = 0
) -> Iterator[Scope]:
    """A scope for each run of a comprehension; CannotTell where their number is not told."""
    if first == len(generators):
        yield scope
        return
    generator = generators[first]
    for item in folding.items_of(f.value(generator.iter, scope)):
        inner = Scope({}, scope)
        bind(f, generator.target, item, inner)
        if all(folding.truth(f.value(test, inner)) for test in generator.ifs):
            yield from _runs(f, generators, inner, first + 1)


def _once(f: "Follower", generators: Sequence[ast.comprehension], scope: Scope) -> Scope:
    """One scope that stands for all runs."""
    for generator in generators:
        iterable = f.value(generator.iter, scope)
        scope = Scope({}, scope)
        bind(f, generator.target, one_of(iterable), scope)
    return scope


def one_of(iterable: Value) -> Value:
    """A value that stands for any item of an iterable."""
    try:
        items = folding.items_of(iterable)
        return folding.either((str(i), item) for i, item in enumerate(items))
    except CannotTell:
        return Opaque(shorten(f"item of {words(iterable)}"), cuts=common((iterable,)))
