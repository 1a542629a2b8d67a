# SPDX-License-Identifier: Apache-2.0
"""Functions that change what they are given: `setattr`, `operator.setitem`, `mock.patch`."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from fasttrack.meaning import stores
from fasttrack.meaning.handlers import Handler, rows
from fasttrack.meaning.kinds import Kind, kind_of_change
from fasttrack.meaning.values import UNKNOWN, Foreign, Values, joined, text, texts

if TYPE_CHECKING:
    from fasttrack.meaning.calls import Arguments
    from fasttrack.meaning.reader import Reader

HIDDEN = "[...]"
"""A name that is not known."""
PATCHERS = frozenset({"pytest.MonkeyPatch", "_pytest.monkeypatch.MonkeyPatch"})


def own_module_entry(reader: "Reader", target: Foreign, key: Values) -> bool:
    """Whether this module changes its own entry in `sys.modules`."""
    return stores.is_own_module(reader, target, text(key))


def is_type_of(value: Foreign) -> bool:
    """Whether a value is the class of a foreign object, as `type(x)` gives it."""
    return value.name.endswith(".__class__")


def set_on(reader: "Reader", receiver: Foreign, arguments: "Arguments", how: str) -> None:
    """`x.__setattr__(name, value)`, or `object.__setattr__(x, name, value)`."""
    if receiver.name in {"builtins.object", "builtins.type"} or is_type_of(receiver):
        _change(reader, arguments.at(0), arguments.at(1), arguments.at(2), how, arguments)
    else:
        _change(reader, (receiver,), arguments.at(0), arguments.at(1), how, arguments)


def _change(  # noqa: PLR0917
    reader: "Reader", subjects: Values, names: Values, values: Values, how: str,
    arguments: "Arguments",
) -> None:  # fmt: skip
    for subject in subjects:
        for name in texts(names) or (HIDDEN,):
            stores.set_attribute(reader, subject, name, values, how, arguments.node)


def patcher(reader: "Reader", name: str, arguments: "Arguments") -> None:
    """A method of `pytest.MonkeyPatch`."""
    how = f"set through `MonkeyPatch.{name}`"
    if name in {"setenv", "delenv"}:
        reader.add(Kind.ENVIRONMENT, Foreign("os.environ"), how, arguments.node)
    elif name in {"setattr", "delattr"}:
        if text(arguments.at(0)) is not None:
            _patch_text(reader, arguments, how)
        else:
            _change(reader, arguments.at(0), arguments.at(1), UNKNOWN, how, arguments)
    elif name in {"setitem", "delitem"}:
        for value in arguments.at(0):
            stores.set_element(reader, value, arguments.at(1), UNKNOWN, how, arguments.node)


def _patch_text(reader: "Reader", arguments: "Arguments", how: str) -> None:
    for name in texts(arguments.at(0, "target")):
        owner, _, last = name.rpartition(".")
        for value in reader.project.dotted(owner):
            stores.set_attribute(reader, value, last, UNKNOWN, how, arguments.node)


def _named_or_given(reader: "Reader", values: Values) -> Values:
    """An object, or the one that a text names."""
    return joined(values, *(reader.project.dotted(name) for name in texts(values)))


def _patch(reader: "Reader", function: Foreign, arguments: "Arguments") -> Values:
    """`unittest.mock.patch` and its forms, whether or not it is taken back later."""
    how = f"patched through `{function.name}`"
    if function.name.endswith(".object"):
        _change(reader, arguments.at(0, "target"), arguments.at(1), UNKNOWN, how, arguments)
    elif function.name.endswith(".dict"):
        for value in _named_or_given(reader, arguments.at(0, "in_dict")):
            stores.set_element(reader, value, UNKNOWN, UNKNOWN, how, arguments.node)
    elif function.name.endswith(".multiple"):
        for value in _named_or_given(reader, arguments.at(0, "target")):
            stores.set_attribute(reader, value, HIDDEN, UNKNOWN, how, arguments.node)
    else:
        _patch_text(reader, arguments, how)
    return UNKNOWN


def _set_attribute(reader: "Reader", _: Foreign, arguments: "Arguments") -> Values:
    how = "set through `setattr`"
    _change(reader, arguments.at(0), arguments.at(1), arguments.at(2), how, arguments)
    return UNKNOWN


def _delete_attribute(reader: "Reader", _: Foreign, arguments: "Arguments") -> Values:
    how = "deleted through `delattr`"
    _change(reader, arguments.at(0), arguments.at(1), UNKNOWN, how, arguments)
    return UNKNOWN


def _set_item(reader: "Reader", function: Foreign, arguments: "Arguments") -> Values:
    how = f"set through `{function.name}`"
    for value in arguments.at(0):
        stores.set_element(reader, value, arguments.at(1), arguments.at(2), how, arguments.node)
    return UNKNOWN


def _in_place(reader: "Reader", function: Foreign, arguments: "Arguments") -> Values:
    for value in arguments.at(0):
        if isinstance(value, Foreign):
            how = f"changed through `{function.name}`"
            reader.add(kind_of_change(value.name), value, how, arguments.node)
    return arguments.at(0)


HANDLERS: Mapping[str, Handler] = {
    **rows(_set_attribute, "builtins.setattr"),
    **rows(_delete_attribute, "builtins.delattr"),
    **rows(_set_item, "operator.setitem operator.delitem"),
    **rows(_in_place, "operator.iadd operator.ior operator.iconcat functools.update_wrapper "
           "bisect.insort bisect.insort_left bisect.insort_right heapq.heappush heapq.heappop "
           "heapq.heapify heapq.heappushpop heapq.heapreplace random.shuffle numpy.copyto "
           "numpy.put numpy.place numpy.putmask numpy.fill_diagonal numpy.random.shuffle"),
    **rows(_patch, "unittest.mock.patch unittest.mock.patch.object unittest.mock.patch.dict "
           "unittest.mock.patch.multiple mock.patch mock.patch.object mock.patch.dict"),
}  # fmt: skip
"""Names of functions to what the model does for them."""
