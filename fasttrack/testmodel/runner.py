# SPDX-License-Identifier: Apache-2.0
"""Functions of test runners: what skips, marks, parametrises, expects to fail."""

import ast
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from fasttrack.testmodel import calling, folding
from fasttrack.testmodel.events import Skip
from fasttrack.testmodel.frames import Ended, Flow, source_text
from fasttrack.testmodel.known import SWALLOWED
from fasttrack.testmodel.spoken import joined
from fasttrack.testmodel.values import (
    Class,
    Context,
    Function,
    Mark,
    Opaque,
    Param,
    Scope,
    Value,
    words,
)

if TYPE_CHECKING:
    from fasttrack.testmodel.follower import Follower

Args = Sequence[Value]
Kwargs = Mapping[str, Value]
_Meaning = Callable[["Follower", Args, Kwargs, ast.AST, Scope], Value]

NOT_IMPORTED = " can not be imported"
"""How a condition ends that a missing module fulfils."""


def _skipping(how: str, flow: Flow) -> _Meaning:
    def meaning(f: "Follower", _args: Args, _kwargs: Kwargs, node: ast.AST, scope: Scope) -> Value:
        condition = joined(f.trace.conditions)
        f.trace.skips.append(Skip(how, condition, f.place(node, scope)))
        raise Ended(flow)

    return meaning


def _fail(_f: "Follower", _args: Args, _kwargs: Kwargs, _node: ast.AST, _scope: Scope) -> Value:
    raise Ended(Flow.RAISE)


def _import_or_skip(
    f: "Follower", args: Args, _kwargs: Kwargs, node: ast.AST, scope: Scope
) -> Value:
    name = args[0] if args and isinstance(args[0], str) else words(list(args))
    condition = joined([*f.trace.conditions, f"{name}{NOT_IMPORTED}"])
    f.trace.skips.append(Skip("skip", condition, f.place(node, scope)))
    return Opaque(name, external=True)


def _raises(_f: "Follower", args: Args, kwargs: Kwargs, _node: ast.AST, _scope: Scope) -> Value:
    expected = args[0] if args else kwargs.get("expected_exception")
    kinds = expected if isinstance(expected, tuple) else (expected,)
    text = ", ".join(sorted(words(kind) for kind in kinds))
    return Context("raises", (text, any(words(kind) in SWALLOWED for kind in kinds)))


def _param(_f: "Follower", args: Args, kwargs: Kwargs, _node: ast.AST, _scope: Scope) -> Value:
    marks = kwargs.get("marks", ())
    marks = tuple(marks) if isinstance(marks, list | tuple | set) else (marks,)
    return Param(tuple(args), kwargs.get("id"), marks)


def _fixture(f: "Follower", args: Args, kwargs: Kwargs, node: ast.AST, scope: Scope) -> Value:
    options = Context("fixture", dict(kwargs))
    if args and isinstance(args[0], Function):
        return calling.decorate(f, options, args[0], node, scope)
    return options


def _settings(_f: "Follower", _args: Args, kwargs: Kwargs, _node: ast.AST, _scope: Scope) -> Value:
    return Context("settings", dict(kwargs))


def _given(_f: "Follower", args: Args, kwargs: Kwargs, _node: ast.AST, _scope: Scope) -> Value:
    drawn: dict[int | str, Value] = dict(enumerate(args, -len(args)))
    drawn.update(kwargs.items())
    return Context("settings", {"given": tuple(kwargs), "given_last": len(args), "drawn": drawn})


def _marks(name: str, *, takes_condition: bool = False) -> _Meaning:
    """`unittest.skip` and its kin as marks of pytest."""

    def meaning(f: "Follower", args: Args, kwargs: Kwargs, node: ast.AST, scope: Scope) -> Value:
        mark = Mark(name, tuple(args[:1]) if takes_condition else (), ())
        if args and isinstance(args[0], Function | Class):
            return calling.decorate(f, Mark(name), args[0], node, scope)
        return mark

    return meaning


def _skip_unless(
    f: "Follower", args: Args, _kwargs: Kwargs, _node: ast.AST, _scope: Scope
) -> Value:
    known = isinstance(args[0], bool | int) if args else False
    return Mark("skipif", (not args[0] if known else Opaque(f"not {words(list(args[:1]))}"),))


def _fixture_value(
    f: "Follower", args: Args, _kwargs: Kwargs, _node: ast.AST, _scope: Scope
) -> Value:
    return f.requested(args[0]) if args and isinstance(args[0], str) else Opaque("a fixture")


def _add_marker(f: "Follower", args: Args, _kwargs: Kwargs, node: ast.AST, scope: Scope) -> Value:
    """A hook marks an item: `item` stands for the test that is being followed."""
    if args and isinstance(args[0], Mark) and args[0].name in {"skip", "xfail", "skipif"}:
        condition = joined([*f.trace.conditions, *map(words, args[0].args)])
        f.trace.skips.append(Skip(args[0].name, condition, f.place(node, scope)))
    return None


def _assume(f: "Follower", args: Args, _kwargs: Kwargs, node: ast.AST, _scope: Scope) -> Value:
    """Inputs that do not fulfil it are drawn again: what follows is seen by the others alone."""
    condition = node.args[0] if isinstance(node, ast.Call) and node.args else None
    if condition is None or not args:
        return None
    try:
        if not folding.truth(args[0]):
            raise Ended(Flow.SKIP)
    except folding.CannotTell:
        f.trace.conditions.append(source_text(condition))
    return True


def _closest_marker(
    _f: "Follower", args: Args, _kwargs: Kwargs, _node: ast.AST, _scope: Scope
) -> Value:
    """Whether an item whose marks stand first has one of a name."""
    if len(args) < 2 or not isinstance(args[1], str):
        return Opaque("a mark")
    return Mark(args[1]) if args[1] in args[0] else None


def _markers(_f: "Follower", args: Args, kwargs: Kwargs, _node: ast.AST, _scope: Scope) -> Value:
    name = args[1] if len(args) > 1 else kwargs.get("name")
    return [Mark(mark) for mark in args[0] if name in {None, mark}]


def _parametrize(f: "Follower", args: Args, kwargs: Kwargs, _node: ast.AST, _scope: Scope) -> Value:
    """`pytest_generate_tests` asks for a parametrisation."""
    mark = Mark("parametrize", tuple(args), tuple(kwargs.items()))
    f.generated.append((mark, joined(f.trace.conditions)))
    return None


def _add_equality(
    f: "Follower", args: Args, _kwargs: Kwargs, _node: ast.AST, _scope: Scope
) -> Value:
    f.equalities += args[1:2]
    return None


RUNNER: Mapping[str, _Meaning] = {
    "pytest.skip": _skipping("skip", Flow.SKIP), "pytest.xfail": _skipping("xfail", Flow.SKIP),
    "self.skipTest": _skipping("skip", Flow.SKIP), "pytest.exit": _skipping("skip", Flow.SKIP),
    "pytest.fail": _fail, "self.fail": _fail, "pytest.importorskip": _import_or_skip,
    "pytest.raises": _raises, "self.assertRaises": _raises, "pytest.param": _param,
    "self.assertRaisesRegex": _raises, "pytest.warns": _raises, "self.assertWarns": _raises,
    "self.assertWarnsRegex": _raises, "pytest.deprecated_call": _raises,
    "pytest.fixture": _fixture, "pytest_asyncio.fixture": _fixture,
    "hypothesis.settings": _settings, "hypothesis.given": _given,
    "unittest.skip": _marks("skip"), "unittest.skipIf": _marks("skipif", takes_condition=True),
    "unittest.skipUnless": _skip_unless, "unittest.expectedFailure": _marks("xfail"),
    "request.getfixturevalue": _fixture_value, "item.add_marker": _add_marker,
    "request.node.add_marker": _add_marker, "request.applymarker": _add_marker,
    "hypothesis.assume": _assume, "hypothesis.reject": _skipping("skip", Flow.SKIP),
    "closest marker": _closest_marker, "markers": _markers,
    "metafunc.parametrize": _parametrize, "self.addTypeEqualityFunc": _add_equality,
}  # fmt: skip
"""Dotted name to what a call of it does."""
