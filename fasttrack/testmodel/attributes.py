# SPDX-License-Identifier: Apache-2.0
"""What a name and an attribute mean, and what assigning to one does."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fasttrack.testmodel.events import Replaced
from fasttrack.testmodel.known import ASSERTING, PREDICATES
from fasttrack.testmodel.pure import CONSTANTS, PURE
from fasttrack.testmodel.values import (
    NOTHING_CUT,
    BoundMethod,
    Claim,
    Class,
    Context,
    Either,
    Function,
    Instance,
    Mark,
    Module,
    Opaque,
    Partial,
    Scope,
    Value,
    shorten,
    words,
)

if TYPE_CHECKING:
    import ast

    from fasttrack.testmodel.follower import Follower

_CONTAINERS = (list, tuple, dict, set, str, bytes, range, int, float)
_ENUMS = ("enum.Enum", "enum.IntEnum", "enum.StrEnum", "enum.Flag")


@dataclass(eq=False, slots=True)
class Super:
    """What `super()` gives: the bases of a class, for one of its instances."""

    instance: Instance
    after: Class

    def find(self, name: str) -> Value:
        """What a name is in the classes that come after; None when no text tells."""
        found = False
        if isinstance(self.instance.kind, Class):
            for owner in self.instance.kind.line():
                if found and name in owner.names:
                    return owner.names[name]
                found = found or owner is self.after
        return None


def name_in(f: "Follower", name: str, scope: Scope) -> Value:
    """What a name means where it is used; words for one that nothing binds."""
    inner: Scope | None = scope
    while inner is not None:
        if name in inner.names:
            return inner.names[name]
        if inner.module is not None:
            return _module_name(f, inner.module, name)
        inner = inner.around
    return f.overrides.get(name, Opaque(name, external=True))


def _module_name(f: "Follower", module: Module, name: str) -> Value:
    if module.find is not None:
        try:
            return module.find(name)
        except KeyError:
            pass
    for star in module.stars:
        dotted = f"{star}.{name}"
        if dotted in ASSERTING or dotted in PREDICATES or dotted in PURE:
            return f.overrides.get(dotted, Opaque(dotted, external=True))
    return f.overrides.get(name, Opaque(name, external=True))


def attribute(f: "Follower", owner: Value, name: str) -> Value:  # noqa: C901, PLR0911
    """`owner.name`."""
    match owner:
        case Opaque(words=text, external=True):
            return _of_package(f, f"{text}.{name}")
        case Module():
            return _of_module(f, owner, name)
        case Instance():
            return _of_instance(f, owner, name)
        case Class():
            return _of_class(f, owner, name)
        case Super():
            return _of_bases(f, owner, name)
        case Function() if name in owner.attributes:
            return owner.attributes[name]
        case Function() if name == "__name__":
            return owner.name
        case Either():
            options = tuple((label, attribute(f, value, name)) for label, value in owner.options)
            return Either(options)
        case Mark() | Claim() | Context():
            return BoundMethod(owner, name)
        case Partial() if name in {"func", "args", "keywords"}:
            return {"func": owner.function, "args": owner.args, "keywords": dict(owner.kwargs)}[
                name
            ]
    if isinstance(owner, _CONTAINERS):
        return BoundMethod(owner, name)
    kept = owner.cuts if isinstance(owner, Opaque) else NOTHING_CUT
    return Opaque(shorten(f"{words(owner)}.{name}"), cuts=kept)


def _of_package(f: "Follower", dotted: str) -> Value:
    if dotted in f.overrides:
        return f.overrides[dotted]
    if dotted in CONSTANTS:
        return CONSTANTS[dotted]
    if dotted.startswith("pytest.mark."):
        return Mark(dotted.removeprefix("pytest.mark."))
    return Opaque(shorten(dotted), external=True)


def _of_module(f: "Follower", owner: Module, name: str) -> Value:
    if (dotted := f"{words(owner)}.{name}") in f.overrides:
        return f.overrides[dotted]
    if name in owner.names:
        return owner.names[name]
    if name == "__dict__":
        return owner.names
    found = _module_name(f, owner, name)
    if isinstance(found, Opaque) and found.words == name:
        return Opaque(dotted, external=True)
    return found


def _of_instance(f: "Follower", owner: Instance, name: str) -> Value:
    if name in owner.names:
        return owner.names[name]
    if name == "__dict__":
        return owner.names
    if not isinstance(owner.kind, Class):
        return Opaque(shorten(f"{words(owner.kind)}.{name}"), external=True)
    there, value = owner.kind.find(name)
    if not there:
        return Opaque(shorten(f"self.{name}"), external=name.startswith("assert"))
    if isinstance(value, Function):
        return _method(f, value, owner, owner.kind)
    return value


def _of_bases(f: "Follower", owner: Super, name: str) -> Value:
    value, kind = owner.find(name), owner.instance.kind
    if isinstance(value, Function) and isinstance(kind, Class):
        return _method(f, value, owner.instance, kind)
    if value is not None:
        return value
    return Opaque(shorten(f"self.{name}"), external=name.startswith("assert"))


def _method(f: "Follower", value: Function, owner: Instance, kind: Class) -> Value:
    decorators = value.attributes.get("decorators", ())
    if "staticmethod" in decorators:
        return value
    bound = Function(
        value.node, value.scope, value.defaults, kind if "classmethod" in decorators else owner,
        is_bound=True, marks=value.marks, attributes=value.attributes,
    )  # fmt: skip
    if {"property", "functools.cached_property"} & set(decorators):
        from fasttrack.testmodel.calling import call  # noqa: PLC0415  (calls look up attributes)

        return call(f, bound, [], {}, value.node, value.scope)
    return bound


def _of_class(f: "Follower", owner: Class, name: str) -> Value:
    if name in {"__name__", "__qualname__"}:
        return owner.name
    there, value = owner.find(name)
    if not there:
        return Opaque(f"{owner.name}.{name}")
    if isinstance(value, Function) and "classmethod" in value.attributes.get("decorators", ()):
        return _method(f, value, Instance(owner), owner)
    if owner.is_a(*_ENUMS) and not isinstance(value, Function):
        return Instance(owner, {"value": value, "name": name})
    return value


def set_attribute(  # noqa: PLR0917
    f: "Follower", owner: Value, name: str, value: Value, node: "ast.AST", scope: Scope
) -> None:
    """`owner.name = value`, however it is written."""
    place = f.place(node, scope)
    match owner:
        case Module():
            f.trace.replaced.append(Replaced(f"{words(owner)}.{name}", "assigned", place))
            f.overrides[f"{words(owner)}.{name}"] = value
            if name in owner.names:
                owner.names[name] = value
        case Class() | Instance():
            owner.names[name] = value
        case Function():
            f.world.before_write(owner.attributes)
            owner.attributes[name] = value
        case Opaque(words=text, external=True):
            f.trace.replaced.append(Replaced(f"{text}.{name}", "assigned", place))
            f.overrides[f"{text}.{name}"] = value
