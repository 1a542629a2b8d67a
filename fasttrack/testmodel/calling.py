# SPDX-License-Identifier: Apache-2.0
"""What a call does: functions with a text are followed, classes make instances."""

import ast
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from fasttrack.testmodel import folding, methods
from fasttrack.testmodel.arguments import arguments_of, fields_of, is_generator, never_runs
from fasttrack.testmodel.cuts import DIGITS, common, of_call
from fasttrack.testmodel.events import Loop
from fasttrack.testmodel.folding import CannotTell
from fasttrack.testmodel.frames import Ended, Flow, Frame, module_of
from fasttrack.testmodel.known import SAMPLES
from fasttrack.testmodel.strength import one_of_many
from fasttrack.testmodel.values import (
    BoundMethod,
    Claim,
    Class,
    Context,
    Either,
    Function,
    Instance,
    Mark,
    Namespace,
    Opaque,
    Partial,
    Scope,
    Value,
    shorten,
    words,
)

if TYPE_CHECKING:
    from fasttrack.testmodel.follower import Follower

SAME_LIMIT = 3
"""Times that one function may be inside itself."""
_MANAGERS = frozenset(
    {"contextlib.contextmanager", "contextmanager", "contextlib.asynccontextmanager"}
)


def call_at(f: "Follower", node: ast.Call, scope: Scope) -> Value:
    """The value of a call expression."""
    callee = f.value(node.func, scope)
    args: list[Value] = []
    for argument in node.args:
        if isinstance(argument, ast.Starred):
            value = f.value(argument.value, scope)
            try:
                args += folding.items_of(value)
            except CannotTell:
                args.append(Opaque(shorten(f"*{words(value)}")))
        else:
            args.append(f.value(argument, scope))
    kwargs: Namespace = {}
    for keyword in node.keywords:
        value = f.value(keyword.value, scope)
        if keyword.arg is not None:
            kwargs[keyword.arg] = value
        elif isinstance(value, dict):
            kwargs.update({k: v for k, v in value.items() if isinstance(k, str)})
        else:
            kwargs["**"] = value
    _note_samples(f, callee, kwargs, node, scope)
    return call(f, callee, args, kwargs, node, scope)


def _note_samples(
    f: "Follower", callee: Value, kwargs: Mapping[str, Value], node: ast.AST, scope: Scope
) -> None:
    """How many samples a call asks an evaluation for."""
    for name in SAMPLES & kwargs.keys():
        count = kwargs[name]
        if isinstance(count, int) and not isinstance(count, bool):
            what = f"{name} of {words(callee).rpartition('.')[2]}"
            f.trace.loops.append(Loop(what, count, f.place(node, scope)))


def call(  # noqa: PLR0911, PLR0917
    f: "Follower",
    callee: Value,
    args: Sequence[Value],
    kwargs: Mapping[str, Value],
    node: ast.AST,
    scope: Scope,
) -> Value:
    """The value of calling something."""
    from fasttrack.testmodel import packages  # noqa: PLC0415  (it calls what it is handed)

    match callee:
        case Function():
            return _call_function(f, callee, args, kwargs, node, scope)
        case Class():
            return _instance(f, callee, args, kwargs, node, scope)
        case Partial():
            given = [*callee.args, *args]
            return call(f, callee.function, given, {**callee.kwargs, **kwargs}, node, scope)
        case Instance(kind=Class() as kind):
            there, method = kind.find("__call__")
            if there and isinstance(method, Function):
                return call(f, method, [callee, *args], kwargs, node, scope)
        case BoundMethod():
            return _call_method(f, callee, args, kwargs, node, scope)
        case Mark():
            return _marked(callee, args, kwargs)
        case Context():
            return decorate(f, callee, args[0], node, scope) if args else callee
        case Either() if len(callee.options) <= 4:
            made = [(label, call(f, v, args, kwargs, node, scope)) for label, v in callee.options]
            return folding.either(made)
    return packages.call(f, callee, args, kwargs, node, scope)


def resumed(  # noqa: PLR0917
    f: "Follower",
    function: Function,
    args: Sequence[Value],
    kwargs: Mapping[str, Value],
    inside: Callable[[Value], None],
    node: ast.AST,
    scope: Scope,
) -> None:
    """Follows a generator function up to its first `yield`, `inside`, and then its rest."""
    frame = Frame(function.node, resume=inside)
    with f.frame(frame), f.trace.at(f.place(node, scope)):
        inner = Scope(arguments_of(function, args, kwargs), function.scope)
        body = function.node.body
        flow = f.follow(body, inner) if isinstance(body, list) else Flow.NORMAL
    if frame.resume is not None and flow is Flow.NORMAL:
        inside(Opaque("nothing"))
    if flow in {Flow.SKIP, Flow.RAISE}:
        raise Ended(flow)


def _call_function(  # noqa: PLR0917
    f: "Follower",
    function: Function,
    args: Sequence[Value],
    kwargs: Mapping[str, Value],
    node: ast.AST,
    scope: Scope,
) -> Value:
    if function.is_bound:
        args = [function.bound, *args]
    path = module_of(function.scope).path
    inside = sum(frame.node is function.node for frame in f.frames)
    if inside >= SAME_LIMIT or not f.world.is_followed(path, function.name):
        dotted = f"{path.removesuffix('.py').replace('/', '.')}.{function.name}"
        return call_words(dotted, args, kwargs)
    made_by = function.attributes.get("decorators", ())
    if _MANAGERS & set(made_by) and is_generator(function.node):
        return Context("generator", (function, args, kwargs))
    inner = Scope(arguments_of(function, args, kwargs), function.scope)
    why = never_runs(function.node) if node is f.unused else ""
    place = f.place(node, scope)
    with f.trace.at(place), f.trace.dying(why), f.frame(Frame(function.node)) as frame:
        if isinstance(function.node, ast.Lambda):
            return f.value(function.node.body, inner)
        flow = f.follow(function.node.body, inner)
    if flow in {Flow.SKIP, Flow.RAISE} and not frame.returned:
        raise Ended(flow)
    if frame.produced:
        return frame.produced
    return _result(frame, flow)


def _result(frame: Frame, flow: Flow) -> Value:
    returned = list(frame.returned)
    if not returned:
        return None
    if flow is Flow.NORMAL:
        returned.append(("otherwise", None))
    if len(returned) == 1:
        return returned[0][1]
    try:
        return folding.either(returned)
    except CannotTell:
        return Opaque(shorten(f"one of {len(returned)} results"))


def _instance(  # noqa: PLR0917
    f: "Follower",
    kind: Class,
    args: Sequence[Value],
    kwargs: Mapping[str, Value],
    node: ast.AST,
    scope: Scope,
) -> Value:
    path = module_of(kind.scope).path
    if not f.world.is_followed(path, kind.name):
        dotted = f"{path.removesuffix('.py').replace('/', '.')}.{kind.name}"
        return call_words(dotted, args, kwargs)
    made = Instance(kind)
    there, initialiser = kind.find("__init__")
    if there and isinstance(initialiser, Function):
        call(f, initialiser, [made, *args], kwargs, node, scope)
    elif kind.is_record or any(owner.is_record for owner in kind.line()):
        fields = fields_of(kind)
        made.names.update(dict(zip(fields, args, strict=False)))
        made.names.update({name: value for name, value in kwargs.items() if name in fields})
    else:
        made.names.update({f"[{index}]": value for index, value in enumerate(args)})
    return made


def _call_method(  # noqa: PLR0911, PLR0917
    f: "Follower",
    method: BoundMethod,
    args: Sequence[Value],
    kwargs: Mapping[str, Value],
    node: ast.AST,
    scope: Scope,
) -> Value:
    owner = method.owner
    if isinstance(owner, Claim):
        if method.name in {"all", "item", "bool", "cpu"}:
            return owner
        if method.name == "any":
            return one_of_many(owner)
        return call_words(f"{owner.text}.{method.name}", args, kwargs, _as_words(owner))
    if isinstance(owner, Mark):  # `pytest.mark.parametrize(...).with_args(...)`
        return _marked(owner, args, kwargs) if method.name == "with_args" else owner
    if isinstance(owner, Context):
        return Opaque(f"<{owner.kind}>.{method.name}()", external=method.name.startswith("assert"))
    try:
        return methods.method(owner, method.name, args, kwargs)
    except CannotTell:
        if isinstance(owner, str) and method.name == "format":
            text = shorten(f"{owner!r}.format({', '.join(map(words, args))})")
            return Opaque(text, cuts=common(args) | DIGITS)
        if isinstance(owner, list) and method.name == "extend":
            owner.append(Opaque("more"))
            return None
        return call_words(f"{words(owner)}.{method.name}", args, kwargs)


def _as_words(claim: Claim) -> Opaque:
    """A comparison as a thing whose methods are called."""
    return Opaque(claim.text, cuts=claim.cuts)


def _marked(mark: Mark, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
    if len(args) == 1 and not kwargs and isinstance(args[0], Function | Class):
        args[0].marks.append(mark)
        return args[0]
    return Mark(mark.name, (*mark.args, *args), (*mark.kwargs, *kwargs.items()))


def decorate(f: "Follower", decorator: Value, value: Value, node: ast.AST, scope: Scope) -> Value:
    """What a decorator makes of a function or class."""
    if not isinstance(value, Function | Class):
        return value
    match decorator:
        case Mark():
            value.marks.append(decorator)
            return value
        case Context():
            return _decorated(decorator, value)
        case Function() | Partial() | Class() | Instance():
            made = call(f, decorator, [value], {}, node, scope)
            return value if isinstance(made, Opaque) else made
        case Opaque(words="unittest.expectedFailure"):
            value.marks.append(Mark("xfail"))
            return value
        case _:
            if isinstance(value, Function):
                names = value.attributes.setdefault("decorators", [])
                names.append(words(decorator))
                if words(decorator).endswith(".fixture"):
                    value.attributes["fixture"] = {}
            return value


def _decorated(decorator: Context, value: Function | Class) -> Value:
    if isinstance(value, Class):
        return value
    match decorator.kind:
        case "wraps":
            value.wraps = decorator.payload
            if isinstance(decorator.payload, Function):
                value.marks = [*decorator.payload.marks, *value.marks]
        case "fixture" | "settings":
            value.attributes.setdefault(decorator.kind, {}).update(decorator.payload)
        case "generator" | "swallows" | "patch" | "raises":
            value.attributes.setdefault("around", []).append(decorator)
    return value


def call_words(
    name: str, args: Sequence[Value], kwargs: Mapping[str, Value], callee: Value = None
) -> Opaque:
    """Canonical words of a call that is not followed."""
    given = [words(arg) for arg in args]
    given += [f"{key}={words(value)}" for key, value in sorted(kwargs.items())]
    cuts = of_call(callee, name, args, kwargs)
    return Opaque(shorten(f"{name}({', '.join(given)})"), cuts=cuts)
