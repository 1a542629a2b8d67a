# SPDX-License-Identifier: Apache-2.0
"""Functions of Python and its library that following a test must understand."""

import ast
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from fasttrack.testmodel import calling, folding
from fasttrack.testmodel.attributes import Super, attribute, set_attribute
from fasttrack.testmodel.folding import CannotTell
from fasttrack.testmodel.frames import module_of
from fasttrack.testmodel.known import SWALLOWED
from fasttrack.testmodel.pure import PURE
from fasttrack.testmodel.strength import one_of_many
from fasttrack.testmodel.values import (
    Claim,
    Class,
    Context,
    Either,
    Function,
    Instance,
    Module,
    Opaque,
    Partial,
    Scope,
    Value,
    shorten,
    words,
)

if TYPE_CHECKING:
    from fasttrack.testmodel.follower import Follower

Args = Sequence[Value]
Kwargs = Mapping[str, Value]


def _partial(_f: "Follower", args: Args, kwargs: Kwargs, _node: ast.AST, _scope: Scope) -> Value:
    return Partial(args[0], tuple(args[1:]), dict(kwargs)) if args else Opaque("partial()")


def _wraps(_f: "Follower", args: Args, _kwargs: Kwargs, _node: ast.AST, _scope: Scope) -> Value:
    return Context("wraps", args[0] if args else None)


def _product(_f: "Follower", args: Args, kwargs: Kwargs, _node: ast.AST, _scope: Scope) -> Value:
    repeat = kwargs.get("repeat", 1)
    try:
        axes = [folding.items_of(arg) for arg in args]
        return folding.product(axes, repeat if isinstance(repeat, int) else 0)
    except CannotTell:
        return calling.call_words("itertools.product", args, kwargs)


def _environment(
    _f: "Follower", args: Args, kwargs: Kwargs, _node: ast.AST, _scope: Scope
) -> Value:
    """The default counts as a value, and never decides a branch: a machine may set another."""
    name = words(args[0]) if args else ""
    default = args[1] if len(args) > 1 else kwargs.get("default")
    if default is None:
        return Opaque(f"environment {name}")
    return Either(((f"environment {name} unset", default),))


def _namespace(_f: "Follower", args: Args, kwargs: Kwargs, _node: ast.AST, _scope: Scope) -> Value:
    given = dict(args[0]) if args and isinstance(args[0], dict) else {}
    return Instance(Opaque("namespace"), {**given, **kwargs})


def _dict(_f: "Follower", args: Args, kwargs: Kwargs, _node: ast.AST, _scope: Scope) -> Value:
    try:
        return {**(PURE["dict"](*args) if args else {}), **kwargs}
    except CannotTell:
        return calling.call_words("dict", args, kwargs)


def _getattr(f: "Follower", args: Args, _kwargs: Kwargs, node: ast.AST, scope: Scope) -> Value:
    if len(args) < 2 or not isinstance(args[1], str):
        return calling.call_words("getattr", args, {})
    return attribute(f, args[0], args[1])


def _setattr(f: "Follower", args: Args, kwargs: Kwargs, node: ast.AST, scope: Scope) -> Value:
    """`setattr`, and `monkeypatch.setattr` in both of its forms."""
    given = [*args, *(kwargs[name] for name in ("target", "name", "value") if name in kwargs)]
    if len(given) == 2 and isinstance(given[0], str):
        owner, _, name = given[0].rpartition(".")
        set_attribute(f, Opaque(owner, external=True), name, given[1], node, scope)
    elif len(given) >= 3 and isinstance(given[1], str):
        set_attribute(f, given[0], given[1], given[2], node, scope)
    return None


def _globals(_f: "Follower", _args: Args, _kwargs: Kwargs, _node: ast.AST, scope: Scope) -> Value:
    return module_of(scope).names


def _vars(f: "Follower", args: Args, _kwargs: Kwargs, _node: ast.AST, scope: Scope) -> Value:
    if not args:
        return scope.names
    if isinstance(args[0], Module | Class | Instance):
        return args[0].names
    return Opaque(shorten(f"vars({words(args[0])})"))


def _every(_f: "Follower", args: Args, kwargs: Kwargs, _node: ast.AST, _scope: Scope) -> Value:
    """`all`: the claim of its items, where those are claims."""
    if args and isinstance(args[0], Claim):
        return args[0]
    items = args[0] if args and isinstance(args[0], list | tuple) else ()
    claims = [item for item in items if isinstance(item, Claim)]
    if claims:
        return max(claims, key=lambda claim: claim.strength)
    if items and all(isinstance(item, bool) for item in items):
        return all(items)
    return calling.call_words("all", args, kwargs)


def _some(f: "Follower", args: Args, kwargs: Kwargs, node: ast.AST, scope: Scope) -> Value:
    """`any`: the same, for one of many."""
    found = _every(f, args, kwargs, node, scope)
    return (
        one_of_many(found) if isinstance(found, Claim) else calling.call_words("any", args, kwargs)
    )


def _map(f: "Follower", args: Args, _kwargs: Kwargs, node: ast.AST, scope: Scope) -> Value:
    try:
        rows = list(zip(*(folding.items_of(arg) for arg in args[1:]), strict=False))
    except CannotTell:
        rows = [tuple(Opaque(shorten(f"item of {words(arg)}")) for arg in args[1:])]
    if len(rows) > 64:
        return calling.call_words("map", args, {})
    return [calling.call(f, args[0], row, {}, node, scope) for row in rows]


def _next(_f: "Follower", args: Args, _kwargs: Kwargs, _node: ast.AST, _scope: Scope) -> Value:
    if args and isinstance(args[0], list) and args[0]:
        return args[0][0]
    return calling.call_words("next", args, {})


def _suppress(_f: "Follower", args: Args, _kwargs: Kwargs, _node: ast.AST, _scope: Scope) -> Value:
    return Context("swallows" if any(words(arg) in SWALLOWED for arg in args) else "value")


def _null(_f: "Follower", args: Args, kwargs: Kwargs, _node: ast.AST, _scope: Scope) -> Value:
    return Context("value", args[0] if args else kwargs.get("enter_result"))


def _import(f: "Follower", args: Args, _kwargs: Kwargs, _node: ast.AST, scope: Scope) -> Value:
    if not args or not isinstance(args[0], str):
        return calling.call_words("import_module", args, {})
    name = args[0].lstrip(".")
    return f.world.imported(module_of(scope).path, name, len(args[0]) - len(name))


def _field(f: "Follower", _args: Args, kwargs: Kwargs, node: ast.AST, scope: Scope) -> Value:
    if "default" in kwargs:
        return kwargs["default"]
    if isinstance(kwargs.get("default_factory"), Function):
        return calling.call(f, kwargs["default_factory"], [], {}, node, scope)
    return Opaque("field()")


def _type(_f: "Follower", args: Args, kwargs: Kwargs, _node: ast.AST, scope: Scope) -> Value:
    """`type(name, bases, names)` makes a class; with one argument it is a property."""
    if len(args) == 3 and isinstance(args[0], str) and isinstance(args[2], dict):
        bases = args[1] if isinstance(args[1], tuple) else ()
        node = ast.ClassDef(args[0], [], [], [], [])
        return Class(args[0], node, bases, dict(args[2]), scope)
    if args and isinstance(args[0], Instance):
        return args[0].kind
    return calling.call_words("type", args, kwargs)


def _super(f: "Follower", args: Args, kwargs: Kwargs, _node: ast.AST, scope: Scope) -> Value:
    """`super()`, also with a class and an instance."""
    method = next((frame.node for frame in reversed(f.frames) if _takes_self(frame.node)), None)
    known = f.value(ast.Name(_first_of(method), ast.Load()), scope) if method and not args else None
    owner = args[1] if len(args) == 2 else known
    instance = Instance(owner) if isinstance(owner, Class) else owner
    if isinstance(instance, Instance) and isinstance(instance.kind, Class):
        for kind in instance.kind.line():
            held = [value for value in kind.names.values() if isinstance(value, Function)]
            inside = not args and any(function.node is method for function in held)
            if inside or (args and kind is args[0]):
                return Super(instance, kind)
    return calling.call_words("super", args, kwargs)


def _takes_self(node: ast.AST | None) -> bool:
    return isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and bool(_first_of(node))


def _first_of(node: ast.AST) -> str:
    """Name of the first parameter of a function; empty when there is none."""
    spec = node.args if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) else None
    named = [*spec.posonlyargs, *spec.args] if spec is not None else []
    return named[0].arg if named else ""


def _set_item(_f: "Follower", args: Args, _kwargs: Kwargs, _node: ast.AST, _scope: Scope) -> Value:
    if len(args) == 3 and isinstance(args[0], dict):
        args[0][args[1]] = args[2]
    return None


BUILTIN: Mapping[str, Callable[["Follower", Args, Kwargs, ast.AST, Scope], Value]] = {
    "functools.partial": _partial, "functools.partialmethod": _partial, "functools.wraps": _wraps,
    "itertools.product": _product, "os.environ.get": _environment, "os.getenv": _environment,
    "types.SimpleNamespace": _namespace, "argparse.Namespace": _namespace, "dict": _dict,
    "types.MappingProxyType": lambda _f, args, _k, _n, _s: args[0] if args else {},
    "getattr": _getattr, "setattr": _setattr, "monkeypatch.setattr": _setattr,
    "globals": _globals, "vars": _vars, "locals": _vars, "all": _every, "any": _some,
    **dict.fromkeys(("torch.all", "numpy.all", "jax.numpy.all"), _every),
    **dict.fromkeys(("torch.any", "numpy.any", "jax.numpy.any"), _some),
    "map": _map, "next": _next, "type": _type, "super": _super, "contextlib.suppress": _suppress,
    "contextlib.nullcontext": _null, "importlib.import_module": _import, "__import__": _import,
    "dataclasses.field": _field, "operator.setitem": _set_item,
    "operator.attrgetter": lambda _f, args, _k, _n, _s: Opaque(f"attrgetter({words(args)})"),
}  # fmt: skip
"""Dotted name to what a call of it does."""
