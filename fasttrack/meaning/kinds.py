# SPDX-License-Identifier: Apache-2.0
"""The kinds of effects, one for each rule, and which of them a change or a call is."""

from collections.abc import Iterator
from enum import StrEnum

from fasttrack.meaning import known


class Kind(StrEnum):
    """What code reaches for."""

    OBJECT = "object"
    """A foreign object is changed."""
    MODULES = "modules"
    """The table of modules, or how they are found."""
    ENVIRONMENT = "environment"
    """Environment variables."""
    BUILTINS = "builtins"
    """Built-in names."""
    OPERATORS = "operators"
    """Operators of PyTorch in a namespace that is not the path's own."""
    REGISTRY = "registry"
    """A table in which others look things up."""
    CODE = "code"
    """Text, bytes or computed names that are run."""
    NATIVE = "native"
    """Memory, native libraries, the garbage collector, other functions' frames."""
    PROCESS = "process"
    """Other processes."""
    NETWORK = "network"
    """The network."""
    FILES = "files"
    """The file system."""
    HOOKS = "hooks"
    """What the interpreter calls later, or from everywhere."""
    SETTINGS = "settings"
    """Settings of the whole process."""
    WORK = "work"
    """Work that an import should not do."""


def kind_of_change(name: str, *, element: bool = False) -> Kind:
    """Which effect it is to set, delete or change an object with this name.

    Args:
        name: dotted name of what is changed.
        element: it is an element of a container, not an attribute.
    """
    for form in _forms(name):
        if form in _CHANGES:
            return _CHANGES[form]
    if name.partition("[")[0].endswith(".__path__"):
        return Kind.MODULES
    if element and not name.partition("[")[0].endswith("__dict__"):
        return Kind.REGISTRY
    return Kind.OBJECT


def kind_of_call(name: str) -> Kind | None:
    """Which effect it is to call a foreign function by this name; None for an ordinary one."""
    last = name.rpartition(".")[2]
    for form in _forms(name):
        if form in _CALLED and not last.endswith(("Error", "Exception", "Warning", "Expired")):
            return _CALLED[form]
    return Kind.REGISTRY if known.REGISTERS.match(last) else None


def kind_of_method(maker: str, name: str) -> Kind | None:
    """Which effect a method of what a foreign function made has; None for an ordinary one."""
    if maker.startswith("numpy."):
        maker = "numpy.ndarray"
    return _CALLED.get(f"{maker}.{name}")


def _forms(name: str) -> Iterator[str]:
    """The rows of a table that a name may have, the most exact first."""
    plain = name.partition("[")[0]
    yield plain
    while plain := plain.rpartition(".")[0]:
        yield f"{plain}.*"


def _rows(kind: Kind, names: str) -> dict[str, Kind]:
    return dict.fromkeys(names.split(), kind)


_CHANGES: dict[str, Kind] = {
    "builtins": Kind.BUILTINS,
    "builtins.*": Kind.BUILTINS,
    "sys.modules.*": Kind.MODULES,
    "os.environ.*": Kind.ENVIRONMENT,
    "logging.root.*": Kind.SETTINGS,
    "logging.getLogger().*": Kind.SETTINGS,
    **_rows(Kind.MODULES, known.MODULES),
    **_rows(Kind.ENVIRONMENT, known.ENVIRONMENT),
    **_rows(Kind.HOOKS, known.HOOKS),
    **_rows(Kind.SETTINGS, known.SETTINGS),
    **_rows(Kind.OPERATORS, known.OPERATORS),
}
_CALLED: dict[str, Kind] = {
    name: Kind(kind) for kind, names in known.CALLS.items() for name in names.split()
}
