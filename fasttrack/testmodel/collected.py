# SPDX-License-Identifier: Apache-2.0
"""The tests of a module as pytest would collect them: names, marks, parameters, ids."""

import ast
import itertools
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from fasttrack.testmodel import folding
from fasttrack.testmodel.folding import CannotTell
from fasttrack.testmodel.ids import ids_of
from fasttrack.testmodel.settings import Settings
from fasttrack.testmodel.values import Class, Function, Mark, Module, Param, Value, words

CELLS_LIMIT = 4096
"""Combinations of parameters of one test that are spelled out."""
_CASES = ("unittest.TestCase", "TestCase", "unittest.IsolatedAsyncioTestCase", "absltest.TestCase")


@dataclass(frozen=True)
class ParamSet:
    """One set of values of a parametrisation: its id, and the marks on it."""

    values: tuple[Value, ...]
    id: str
    marks: tuple[Mark, ...] = ()

    @property
    def is_skipped(self) -> bool:
        """Whether a mark keeps it from running or failing, whatever the machine."""
        return any(is_skip(mark) for mark in self.marks)


@dataclass(frozen=True)
class Axis:
    """One parametrisation.

    Attributes:
        names: parameters that it sets.
        sets: their values; None when the text does not tell.
        text: canonical words of the values where it does not.
        fixture: it comes from a fixture of this name.
    """

    names: tuple[str, ...]
    sets: tuple[ParamSet, ...] | None
    text: str = ""
    fixture: str = ""


@dataclass(eq=False)
class Test:
    """One test function, with all its sets of parameters.

    Attributes:
        path: its file.
        name: `test_x` or `TestX::test_x`.
        function: its definition.
        owner: its class.
        marks: marks on it, its classes and its module, nearest first.
        make_axes: what makes its parametrisations, when they are asked for.
        body: the words of its body, once somebody asked for them.
        counted: how often it says each of them, likewise.
    """

    __test__ = False

    path: str
    name: str
    function: Function
    owner: Class | None
    marks: tuple[Mark, ...]
    module: Module
    make_axes: Callable[["Test"], Sequence[Axis]] = lambda _test: ()
    body: str = ""
    counted: Counter[str] | None = None

    @cached_property
    def axes(self) -> Sequence[Axis]:
        """Its parametrisations, in the order of the parts of its ids."""
        return self.make_axes(self)

    @property
    def line(self) -> int:
        """First line of the definition."""
        return self.function.node.lineno

    @property
    def end_line(self) -> int:
        """Last line of the definition."""
        return self.function.node.end_lineno or self.line

    @property
    def original(self) -> Function:
        """The function whose parameters count: what decorators say that it wraps."""
        found, steps = self.function, 0
        while isinstance(found.wraps, Function) and steps < 20:
            found, steps = found.wraps, steps + 1
        return found

    def parameters(self) -> list[str]:
        """Names of its parameters without `self`."""
        spec = self.original.node.args
        names = [a.arg for a in (*spec.posonlyargs, *spec.args, *spec.kwonlyargs)]
        is_static = "staticmethod" in self.original.attributes.get("decorators", ())
        return names[1:] if self.owner is not None and not is_static else names

    @property
    def decided(self) -> bool:
        """Whether the text tells all of its parametrisations."""
        return all(axis.sets is not None for axis in self.axes)

    def ids(self) -> list[str]:
        """Node ids below its file, parametrisations that are not told left open."""
        parts = [
            [s.id for s in axis.sets] if axis.sets is not None else ["?"] for axis in self.axes
        ]
        if not parts:
            return [self.name]
        tails = itertools.islice(itertools.product(*parts), CELLS_LIMIT)
        return [f"{self.name}[{'-'.join(tail)}]" for tail in tails]

    def count(self) -> int:
        """Number of combinations, as far as they are told."""
        size = 1
        for axis in self.axes:
            size *= len(axis.sets) if axis.sets is not None else 1
        return size

    def cells(self, *, skipped: bool = False) -> frozenset[frozenset[tuple[str, str]]] | None:
        """Combinations of parameter names and values that run; None when too many.

        Args:
            skipped: also those that a mark of their own keeps from running.
        """
        if self.count() > CELLS_LIMIT:
            return None
        rows = [
            [
                tuple(zip(axis.names, map(words, s.values), strict=False))
                for s in axis.sets
                if skipped or not s.is_skipped
            ]
            if axis.sets is not None
            else [tuple((name, axis.text) for name in axis.names)]
            for axis in self.axes
        ]
        return frozenset(
            frozenset(itertools.chain.from_iterable(row)) for row in itertools.product(*rows)
        )


def is_skip(mark: Mark) -> bool:
    """Whether a mark skips or expects failure on every machine."""
    if mark.name in {"skip", "xfail"}:
        return mark.name == "skip" or _condition(mark) is True
    return mark.name == "skipif" and _condition(mark) is True


def _condition(mark: Mark) -> bool | None:
    """Whether the condition of a mark holds; None when the text does not tell."""
    value = mark.option("condition", 0, mark.name != "skipif")
    try:
        return folding.truth(value) if not isinstance(value, str) else None
    except CannotTell:
        return None


def tests_of(module: Module, settings: Settings) -> list[Test]:
    """The tests of a module that was followed."""
    if module.names.get("__test__", True) is False:
        return []
    own = tuple(_listed(module.names.get("pytestmark")))
    found: list[Test] = []
    for name, value in list(module.names.items()):
        if isinstance(value, Function) and settings.is_function(name) and _is_plain(value):
            found.append(_test(module, name, value, None, own))
        elif isinstance(value, Class):
            found += _of_class(module, name, value, own, settings)
    return found


def _is_plain(value: Function) -> bool:
    wanted = value.attributes.get("__test__", True) is not False
    return wanted and "fixture" not in value.attributes and not isinstance(value.node, ast.Lambda)


def _of_class(
    module: Module, prefix: str, owner: Class, outer: tuple[Mark, ...], settings: Settings
) -> Iterator[Test]:
    is_case = owner.is_a(*_CASES)
    if not is_case and not settings.is_class(prefix.rpartition("::")[2]):
        return
    if owner.find("__test__") == (True, False):
        return
    if not is_case and any(owner.find(name)[0] for name in ("__init__", "__new__")):
        return
    marks = tuple(_class_marks(owner)) + outer
    seen: set[str] = set()
    for holder in owner.line():
        for name, value in list(holder.names.items()):
            if name in seen:
                continue
            seen.add(name)
            if isinstance(value, Function) and _is_plain(value):
                wanted = name.startswith("test") if is_case else settings.is_function(name)
                if wanted:
                    yield _test(module, f"{prefix}::{name}", value, owner, marks)
            elif isinstance(value, Class) and not is_case:
                yield from _of_class(module, f"{prefix}::{name}", value, marks, settings)


def _class_marks(owner: Class) -> Iterator[Mark]:
    for holder in reversed(list(owner.line())):
        yield from _listed(holder.names.get("pytestmark"))
        yield from holder.marks


def _listed(value: Value) -> Sequence[Mark]:
    marks = value if isinstance(value, list | tuple) else [value]
    return [mark for mark in marks if isinstance(mark, Mark)]


def _test(
    module: Module, name: str, function: Function, owner: Class | None, outer: tuple[Mark, ...]
) -> Test:
    own = [*function.marks, *_listed(function.attributes.get("pytestmark"))]
    return Test(module.path, name, function, owner, (*own, *outer), module)


def axis_of(mark: Mark) -> Axis:
    """One `parametrize` mark."""
    given = mark.option("argnames", 0, ())
    names = tuple(n.strip() for n in given.split(",")) if isinstance(given, str) else ()
    if isinstance(given, list | tuple):
        names = tuple(str(name) for name in given)
    names = tuple(name for name in names if name)
    single = isinstance(given, str) and len(names) == 1
    return made_axis(names, mark.option("argvalues", 1), mark.option("ids", 3), single=single)


def made_axis(
    names: tuple[str, ...], values: Value, ids: Value, *, fixture: str = "", single: bool = True
) -> Axis:
    """An axis from the values of a parametrisation.

    Args:
        names: parameters that it sets.
        values: its sets of values.
        ids: what `ids=` says.
        fixture: the fixture that it comes from.
        single: a set is one value and no sequence of values.
    """
    try:
        items = folding.items_of(values)
    except CannotTell:
        return Axis(names, None, words(values), fixture)
    rows: list[tuple[tuple[Value, ...], Value, tuple[Mark, ...]]] = []
    for item in items:
        own: Value = None
        marks: tuple[Mark, ...] = ()
        row: Value = (item,) if single else item
        if isinstance(item, Param):
            own, marks = item.id, tuple(m for m in item.marks if isinstance(m, Mark))
            row = item.values
        if not isinstance(row, list | tuple) or len(row) != len(names):
            return Axis(names, None, words(values), fixture)
        rows.append((tuple(row), own, marks))
    made = ids_of(names, [(row, own) for row, own, _ in rows], ids)
    sets = tuple(
        ParamSet(row, name, marks) for (row, _, marks), name in zip(rows, made, strict=True)
    )
    return Axis(names, sets, fixture=fixture)
