# SPDX-License-Identifier: Apache-2.0
"""Which fixtures a test gets, in which order, and the parametrisations that they bring."""

from collections.abc import Iterator, MutableMapping, Sequence
from dataclasses import dataclass

from fasttrack.testmodel.collected import Axis, Test, axis_of, made_axis
from fasttrack.testmodel.values import Function, Module, Namespace

FIXTURES_LIMIT = 60
"""Fixtures of one test that are followed."""
_SCOPES = ("session", "package", "module", "class", "function")


@dataclass(frozen=True)
class Shelf:
    """The fixtures that one module or class defines.

    Attributes:
        names: what they were found in.
        named: name to fixture.
        automatic: names of those that every test gets.
    """

    names: Namespace
    named: dict[str, Function]
    automatic: tuple[str, ...]


Shelves = MutableMapping[int, Shelf]
"""Identity of a namespace to its fixtures, for the tests that share it."""


def _shelf(names: Namespace) -> Shelf:
    named: dict[str, Function] = {}
    automatic: list[str] = []
    for bound, value in names.items():
        if isinstance(value, Function) and "fixture" in value.attributes:
            options = value.attributes["fixture"]
            name = options.get("name") or bound
            named.setdefault(name, value)
            if options.get("autouse") is True:
                automatic.append(name)
    return Shelf(names, named, tuple(automatic))


class Fixtures:
    """The fixtures that a test sees: in its class, its module, and `conftest.py` files above."""

    def __init__(self, test: Test, conftests: Sequence[Module], known: Shelves) -> None:
        places = [] if test.owner is None else [holder.names for holder in test.owner.line()]
        places += [test.module.names, *(conftest.names for conftest in conftests)]
        for names in places:
            if id(names) not in known:
                known[id(names)] = _shelf(names)
        self._shelves = [known[id(names)] for names in places]

    def find(self, name: str) -> Function | None:
        """The fixture of a name, the nearest one."""
        return next((s.named[name] for s in self._shelves if name in s.named), None)

    def automatic(self) -> Iterator[str]:
        """Names of fixtures that every test here gets, those furthest away first."""
        for shelf in reversed(self._shelves):
            yield from shelf.automatic


def wanted_fixtures(test: Test, fixtures: Fixtures, axes: Sequence[Axis]) -> list[str]:
    """Names of the fixtures of a test, in the order in which pytest sets them up.

    Args:
        test: the test.
        fixtures: what it sees.
        axes: its parametrisations, or those of them that are its own.
    """
    direct = {name for axis in axes for name in axis.names if not axis.fixture}
    used = [
        argument
        for mark in test.marks
        if mark.name == "usefixtures"
        for argument in mark.args
        if isinstance(argument, str)
    ]
    asked = [name for name in test.parameters() if name not in test.original.defaults]
    names = list(dict.fromkeys([*fixtures.automatic(), *used, *asked]))
    closure = list(names)
    for name in closure:
        function = fixtures.find(name)
        if function is not None and name not in direct and len(closure) < FIXTURES_LIMIT:
            closure += [p for p in asked_by(function) if p not in closure]
    return sorted(closure, key=lambda name: _scope_rank(fixtures.find(name)))


def _scope_rank(function: Function | None) -> int:
    scope = function.attributes["fixture"].get("scope", "function") if function else "function"
    return _SCOPES.index(scope) if scope in _SCOPES else len(_SCOPES) - 1


def asked_by(function: Function) -> list[str]:
    """Names of the fixtures that one asks for; a parameter with a default asks for none."""
    return [name for name in parameters_of(function) if name not in function.defaults]


def parameters_of(function: Function) -> list[str]:
    """Names of the parameters of a fixture or a test."""
    spec = function.node.args
    return [a.arg for a in (*spec.posonlyargs, *spec.args, *spec.kwonlyargs) if a.arg != "self"]


def axes_of(test: Test, fixtures: Fixtures) -> list[Axis]:
    """The parametrisations of a test: those of its fixtures first, as in its ids."""
    direct = [axis_of(mark) for mark in test.marks if mark.name == "parametrize"]
    taken = {name for axis in direct for name in axis.names}
    own: list[Axis] = []
    for name in wanted_fixtures(test, fixtures, direct):
        function = fixtures.find(name)
        if function is None or name in taken:
            continue
        options = function.attributes["fixture"]
        if options.get("params") is not None:
            own.append(made_axis((name,), options["params"], options.get("ids"), fixture=name))
    return [*own, *direct]
