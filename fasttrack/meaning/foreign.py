# SPDX-License-Identifier: Apache-2.0
"""What it does to call something foreign, and what comes back."""

from typing import TYPE_CHECKING

from fasttrack.meaning import given, handed, intrinsics, known, patching
from fasttrack.meaning.kinds import Kind, kind_of_call, kind_of_change
from fasttrack.meaning.objects import element
from fasttrack.meaning.values import (
    UNKNOWN,
    Foreign,
    Items,
    Made,
    Values,
    joined,
    text,
    texts,
)

if TYPE_CHECKING:
    from fasttrack.meaning.calls import Arguments
    from fasttrack.meaning.reader import Reader

_ON_SELF = ("register_buffer", "register_parameter", "register_module", "_hook")
_TYPES = frozenset({"builtins.dict", "builtins.list", "builtins.set", "builtins.bytearray"})
_THREADS = frozenset({"threading.Thread", "threading.Timer"})


def called(  # noqa: C901, PLR0911  (one answer for each kind of function)
    reader: "Reader", function: Foreign, arguments: "Arguments"
) -> Values:
    """Calls a foreign function, class or method."""
    intrinsic = intrinsics.HANDLERS.get(function.name)
    if intrinsic is not None:
        return intrinsic(reader, function, arguments)
    owner, _, last = function.name.rpartition(".")
    receiver = Foreign(owner, function.steps, is_module=function.is_module)
    if owner in _TYPES and last in known.MUTATORS:
        for value in arguments.at(0):
            if isinstance(value, Foreign):
                _changed(reader, value, last, arguments)
        return UNKNOWN
    if owner.startswith("torch.library"):
        return operator(reader, function, arguments)
    if last in _BY_METHOD and (last != "__init__" or _is_module(reader, receiver)):
        _BY_METHOD[last](reader, receiver, arguments)
        return UNKNOWN
    if _is_container(reader, receiver, last):
        if last in known.MUTATORS:
            _changed(reader, receiver, last, arguments)
        if last in known.ELEMENTS:
            return _handed_out(reader, receiver, last, arguments)
    if handed.changes_receiver(reader, receiver, last):
        _changed(reader, receiver, last, arguments)
    _report(reader, function, arguments)
    if last == "__subclasses__":
        return (Items([(receiver.part("__subclasses__()[...]"),)]),)
    return _result(reader, function, arguments)


def _is_container(reader: "Reader", receiver: Foreign, last: str) -> bool:
    if last not in known.MUTATORS and last not in known.ELEMENTS:
        return False
    name = receiver.name
    return known.looks_like_container(name) or reader.project.reexports.is_container(name)


def _changed(reader: "Reader", target: Foreign, method: str, arguments: "Arguments") -> None:
    through = f"changed through `{method}`"
    if patching.own_module_entry(reader, target, arguments.at(0)):
        return
    reader.add(kind_of_change(target.name), target, through, arguments.node)


def _handed_out(reader: "Reader", receiver: Foreign, method: str, arguments: "Arguments") -> Values:
    """What a container's method gives of its elements."""
    if method in {"values", "items", "popitem"}:
        inner: Values = (receiver.part("[...]"),)
        pair: Values = (Items([UNKNOWN, inner]),)
        return (Items([inner if method == "values" else pair]),)
    if kind_of_change(receiver.name) is Kind.ENVIRONMENT:
        return UNKNOWN
    return joined(element(reader, receiver, text(arguments.at(0)), None), arguments.at(1))


def _report(reader: "Reader", function: Foreign, arguments: "Arguments") -> None:
    """Records what a call of this name does, unless it is taken back or concerns only `self`."""
    name = function.name
    kind = Kind.CODE if given.runs_code(name, arguments) else kind_of_call(name)
    if kind is None or (kind is Kind.WORK and not reader.frame.at_import):
        return
    if (arguments.entered and name in known.RESTORED) or (
        reader.frame.restored and name in known.WARNINGS
    ):
        return
    if kind is Kind.REGISTRY and name.endswith(_ON_SELF) and not _is_foreign(arguments.at(0)):
        return
    if kind is Kind.REGISTRY and not reader.project.registers(name):
        return
    if given.is_harmless(reader, name, arguments):
        return
    through = "called to register" if kind is Kind.REGISTRY else "called"
    if kind is Kind.WORK:
        through = "called at import"
    reader.add(kind, function, through, arguments.node)


def _is_module(reader: "Reader", value: Foreign) -> bool:
    return value.is_module or reader.project.modules.path_of(value.name) is not None


def _is_foreign(values: Values) -> bool:
    return any(isinstance(value, Foreign) for value in values)


def _result(reader: "Reader", function: Foreign, arguments: "Arguments") -> Values:
    """Follows a function of the repository that is handed something foreign."""
    if any(_is_foreign(values) for values in (*arguments.given, *arguments.named.values())):
        source = reader.project.function(function.name)
        if source is not None:
            return reader.follow(source, arguments.given, dict(arguments.named), arguments.node)
    return handed.over(reader, function.name, arguments)


def operator(reader: "Reader", function: Foreign, arguments: "Arguments") -> Values:
    """`torch.library`: defining or overriding operators, in whose namespace."""
    first = arguments.at(0, "qualname") or arguments.at(0, "ns")
    names = [value.name.removeprefix("torch.ops.").replace(".", "::", 1) for value in first
             if isinstance(value, Foreign) and value.name.startswith("torch.ops.")]  # fmt: skip
    for name in [*names, *texts(first)]:
        space = name.partition("::")[0]
        if not reader.project.is_own_namespace(space):
            target = Foreign(f"torch.ops.{name.replace('::', '.')}")
            through = f"reached through `{function.name}`"
            reader.add(Kind.OPERATORS, target, through, arguments.node)
    return (Made(function.name),)


def _logger(reader: "Reader", receiver: Foreign, arguments: "Arguments") -> None:
    kind = kind_of_change(receiver.name)
    reader.add(kind, receiver, "set up", arguments.node)


def _set(reader: "Reader", receiver: Foreign, arguments: "Arguments") -> None:
    patching.set_on(reader, receiver, arguments, "set through `__setattr__`")


def _delete(reader: "Reader", receiver: Foreign, arguments: "Arguments") -> None:
    patching.set_on(reader, receiver, arguments, "deleted through `__delattr__`")


def _py_impl(reader: "Reader", receiver: Foreign, arguments: "Arguments") -> None:
    reader.add(Kind.OPERATORS, receiver, "given an implementation", arguments.node)


def _begun_anew(reader: "Reader", receiver: Foreign, arguments: "Arguments") -> None:
    reader.add(kind_of_change(receiver.name), receiver, "begun anew", arguments.node)


def _run_again(reader: "Reader", receiver: Foreign, arguments: "Arguments") -> None:
    reader.add(Kind.MODULES, receiver, "made to run a module", arguments.node)


_BY_METHOD = {
    "__setattr__": _set,
    "__delattr__": _delete,
    "setLevel": _logger,
    "addHandler": _logger,
    "removeHandler": _logger,
    "addFilter": _logger,
    "removeFilter": _logger,
    "py_impl": _py_impl,
    "__init__": _begun_anew,
    "exec_module": _run_again,
    "load_module": _run_again,
}
"""Methods that say by their name what they do to their receiver."""
