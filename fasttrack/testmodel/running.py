# SPDX-License-Identifier: Apache-2.0
"""One test as pytest would run it: marks, fixtures around it, its body; and what it met there."""

import ast
from collections.abc import Callable, Mapping, Sequence

from fasttrack.testmodel import calling, folding
from fasttrack.testmodel.arguments import is_generator
from fasttrack.testmodel.collected import Axis, Test
from fasttrack.testmodel.contexts import enter
from fasttrack.testmodel.drawn import size_of
from fasttrack.testmodel.events import Loop, Place, Skip, Trace
from fasttrack.testmodel.fixtures import Fixtures, asked_by, parameters_of, wanted_fixtures
from fasttrack.testmodel.folding import CannotTell
from fasttrack.testmodel.follower import Follower
from fasttrack.testmodel.frames import Ended, Exhausted
from fasttrack.testmodel.modules import Files
from fasttrack.testmodel.strength import PARAMETER
from fasttrack.testmodel.values import (
    Class,
    Function,
    Instance,
    Mark,
    Module,
    Namespace,
    Opaque,
    Value,
    words,
)

RERUN = frozenset({"flaky", "rerun", "repeat_on_failure"})
"""Marks of plug-ins that run a failing test again until it passes."""
STEPS_OF_A_TEST = 20
"""What following a test costs besides its nodes, in nodes."""
NESTED_FIXTURES = 12
"""Fixtures that ask for each other."""
_SETUPS = ("setUpClass", "setup_class", "setUp", "setup_method", "setup", "asyncSetUp")
_MODULE_SETUPS = ("setUpModule", "setup_module", "setup_function")


def followed(
    test: Test, files: Files, conftests: Sequence[Module], packages: Sequence[Module] = ()
) -> Trace:
    """What a test meets when it is followed.

    Args:
        test: the test.
        files: the modules of its side.
        conftests: those above it, for their fixtures.
        packages: modules that are imported before its own.
    """
    fixtures = Fixtures(test, conftests, files.shelves)
    follower = Follower(files, files.overrides)
    trace = follower.trace
    _inherit(trace, files, (test.module, *conftests, *packages))
    _note_marks(test, trace)
    files.steps -= STEPS_OF_A_TEST
    put_back = files.restore()
    try:
        _Run(test, fixtures, follower).run()
    except Exhausted:
        trace.complete = False
    except Ended:
        pass
    finally:
        put_back()
    if test.path in files.undecided or files.spent:
        trace.complete = False
    return trace


def _inherit(trace: Trace, files: Files, modules: Sequence[Module]) -> None:
    """What the import of a test's modules does: skip all, seed, replace."""
    for module in modules:
        before = files.traces.get(module.path)
        if before is not None:
            trace.skips += before.skips
            trace.seeds += before.seeds
            trace.replaced += before.replaced


def _note_marks(test: Test, trace: Trace) -> None:
    place = (test.path, test.line)
    for mark in test.marks:
        if mark.name == "skip" or (mark.name == "xfail" and not _has_condition(mark)):
            trace.skips.append(Skip(mark.name, "", place))
        elif mark.name in {"skipif", "xfail"}:
            _note_condition(mark, trace, place)
        elif mark.name in RERUN:
            trace.skips.append(Skip("rerun", "", place))
    _note_examples(test, trace, place)


def _note_examples(test: Test, trace: Trace, place: Place) -> None:
    """How many inputs a property-based test generates, and what they are drawn from."""
    settings = test.function.attributes.get("settings", {})
    phases = settings.get("phases")
    if isinstance(phases, list | tuple | set) and not any("generate" in words(p) for p in phases):
        trace.skips.append(Skip("ungenerated", "", place))
    names = test.parameters()
    for key, strategy in settings.get("drawn", {}).items():
        name = key if isinstance(key, str) else names[key] if -key <= len(names) else "a value"
        what = f"values that `{name}` is drawn from"
        trace.loops.append(Loop(what, size_of(strategy), place))
    examples = settings.get("max_examples")
    if isinstance(examples, int):
        trace.loops.append(Loop("generated examples", examples, place))
    elif examples is not None:
        trace.loops.append(Loop("generated examples", 0, place))


def _has_condition(mark: Mark) -> bool:
    return bool(mark.args) or "condition" in dict(mark.kwargs)


def _note_condition(mark: Mark, trace: Trace, place: tuple[str, int]) -> None:
    conditions = mark.args or [dict(mark.kwargs).get("condition")]
    for condition in conditions:
        try:
            if not isinstance(condition, str) and not folding.truth(condition):
                continue
            text = condition if isinstance(condition, str) else ""
        except CannotTell:
            text = words(condition)
        trace.skips.append(Skip("skip" if mark.name == "skipif" else "xfail", text, place))


class _Run:
    """Follows one test with its fixtures around it."""

    def __init__(self, test: Test, fixtures: Fixtures, follower: Follower) -> None:
        self._test = test
        self._fixtures = fixtures
        self._f = follower
        self._given: Namespace = {
            name: Opaque(name, external=True)
            for name in ("monkeypatch", "mocker", "request", "capsys", "tmp_path", "caplog")
        }
        self._self = Instance(test.owner) if test.owner is not None else None
        follower.requested = self._requested

    def run(self) -> None:
        """Sets up, follows the body, and tears down."""
        for axis in self._test.axes:
            if not axis.fixture:
                self._f.parameters.update(_values(axis))
        self._given.update(self._f.parameters)
        order: list[str] = []
        for name in wanted_fixtures(self._test, self._fixtures, self._test.axes):
            self._with_needed(name, order)
        self._set_up([name for name in order if name not in self._given], 0)

    def _with_needed(self, name: str, order: list[str], depth: int = 0) -> None:
        """Adds a fixture to an order, behind those that it asks for."""
        function = self._fixtures.find(name)
        if function is not None and depth < NESTED_FIXTURES:
            for needed in asked_by(function):
                if needed not in order and needed != name:
                    self._with_needed(needed, order, depth + 1)
        if name not in order:
            order.append(name)

    def _requested(self, name: str) -> Value:
        if name in self._given:
            return self._given[name]
        function = self._fixtures.find(name)
        if function is None:
            return Opaque(name, external=True)
        found: list[Value] = []
        self._enter(name, function, found.append)
        return found[0] if found else Opaque(name)

    def _set_up(self, names: Sequence[str], index: int) -> None:
        if index == len(names):
            self._body()
            return
        name = names[index]
        function = self._fixtures.find(name)

        def inside(value: Value) -> None:
            self._given[name] = value
            self._set_up(names, index + 1)

        if function is None:
            inside(Opaque(name))
        else:
            self._enter(name, function, inside)

    def _enter(self, name: str, function: Function, inside: Callable[[Value], None]) -> None:
        node, scope = function.node, function.scope
        arguments = self._arguments(function, self._request(name))
        if is_generator(node):
            calling.resumed(self._f, function, [], arguments, inside, node, scope)
        else:
            inside(calling.call(self._f, function, [], arguments, node, scope))

    def _request(self, name: str) -> Value:
        axis = next((axis for axis in self._test.axes if axis.fixture == name), None)
        param = _values(axis)[name] if axis is not None else Opaque(f"{PARAMETER}of {name}")
        return Instance(Opaque("request", external=True), {"param": param})

    def _arguments(self, function: Function, request: Value = None) -> Namespace:
        given = {"self": self._self, **self._given}
        if request is not None:
            given["request"] = request
        return {
            name: given[name]
            for name in ("self", *parameters_of(function))
            if name in given and (name != "self" or self._self is not None)
        }

    def _body(self) -> None:
        test = self._test
        self._call_setups()
        function = test.function
        arounds = list(function.attributes.get("around", ()))
        unwrapped = test.original
        arguments = self._arguments(unwrapped)
        arguments.pop("self", None)

        def inside(_value: Value = None) -> None:
            if arounds:
                manager = arounds.pop()
                enter(self._f, manager, inside, _expression(function), function.scope)
                return
            positional = [self._self] if self._takes_self(function) else []
            self._call(function, positional, arguments)

        inside()

    def _takes_self(self, function: Function) -> bool:
        is_static = "staticmethod" in function.attributes.get("decorators", ())
        return self._self is not None and not is_static

    def _call(self, function: Function, args: Sequence[Value], kwargs: Mapping[str, Value]) -> None:
        """The test itself is always followed, wherever it is defined; not noted as a call."""
        calling.call(self._f, function, args, kwargs, function.node, function.scope)

    def _call_setups(self) -> None:
        owner = self._test.owner
        places: list[tuple[Namespace, Sequence[str], Value]] = [
            (self._test.module.names, _MODULE_SETUPS, None)
        ]
        if isinstance(owner, Class):
            names = {k: v for h in reversed(list(owner.line())) for k, v in h.names.items()}
            places.append((names, _SETUPS, self._self))
        for names, setups, bound in places:
            for name in setups:
                function = names.get(name)
                if isinstance(function, Function) and "fixture" not in function.attributes:
                    args = [] if bound is None else [bound]
                    calling.call(self._f, function, args, {}, function.node, function.scope)


def _values(axis: Axis) -> Namespace:
    """What each parameter of an axis may be."""
    if axis.sets is None:
        return {name: Opaque(f"{PARAMETER}{name} of {axis.text}") for name in axis.names}
    found: Namespace = {}
    for position, name in enumerate(axis.names):
        try:
            found[name] = folding.either((s.id, s.values[position]) for s in axis.sets)
        except CannotTell:
            found[name] = Opaque(f"{PARAMETER}{name}")
    return found


def _expression(function: Function) -> ast.expr:
    """A stand-in for the expression of a decorator, at the function's line."""
    return ast.copy_location(ast.Constant(None), function.node)
