# SPDX-License-Identifier: Apache-2.0
"""Calls whose effect depends on what they are handed: loaders that may run code, marks on others.

`yaml.load` with a safe loader reads data, and with another one it calls what the text names.
`torch.fx.wrap` of an own function is how the path is traced, and of another one's function it
changes how everybody is.
"""

import ast
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from fasttrack.meaning.values import Foreign, Values, texts

if TYPE_CHECKING:
    from fasttrack.meaning.calls import Arguments
    from fasttrack.meaning.reader import Reader

_Judge = Callable[["Reader", "Arguments"], bool]
_SAFE_LOADERS = frozenset({"SafeLoader", "CSafeLoader", "BaseLoader", "CBaseLoader"})


def is_harmless(reader: "Reader", name: str, arguments: "Arguments") -> bool:
    """Whether a call that may have an effect has none with these arguments."""
    judge = _HARMFUL.get(name)
    return judge is not None and not judge(reader, arguments)


def runs_code(name: str, arguments: "Arguments") -> bool:
    """Whether a loader of data is told to run what the data names."""
    option = _UNSAFE.get(name)
    if option is None or not isinstance(arguments.node, ast.Call):
        return False
    word, unsafe = option
    given = [k.value for k in arguments.node.keywords if k.arg == word]
    return any(isinstance(v, ast.Constant) and v.value is unsafe for v in given)


def _by_loader(_: "Reader", arguments: "Arguments") -> bool:
    """Whether YAML is loaded by a loader that is known to make any object."""
    loaders = arguments.at(1, "Loader")
    names = [v.name.rpartition(".")[2] for v in loaders if isinstance(v, Foreign)]
    return bool(names) and not _SAFE_LOADERS.issuperset(names)


def _marks_another(_: "Reader", arguments: "Arguments") -> bool:
    return _is_foreign(arguments.at(0, "fn"))


def _marks_another_for_good(reader: "Reader", arguments: "Arguments") -> bool:
    """`disable` wraps what it is given, and changes it where it is not to be recursive."""
    node = arguments.node
    shallow = isinstance(node, ast.Call) and any(
        k.arg == "recursive" and isinstance(k.value, ast.Constant) and not k.value.value
        for k in node.keywords
    )
    return shallow and _marks_another(reader, arguments)


def _wraps_another(reader: "Reader", arguments: "Arguments") -> bool:
    """`torch.fx.wrap` of a function, or by the name of one of this module."""
    first = arguments.at(0, "fn_or_name")
    module = reader.frame.scope.module
    named = [module.known(name) for name in texts(first)]
    return _is_foreign(first) or any(not v or _is_foreign(v) for v in named)


def _is_foreign(values: Values) -> bool:
    return any(isinstance(value, Foreign) for value in values)


_HARMFUL: Mapping[str, _Judge] = {
    "yaml.load": _by_loader,
    "yaml.load_all": _by_loader,
    "torch.fx.wrap": _wraps_another,
    "torch._dynamo.allow_in_graph": _marks_another,
    "torch.compiler.allow_in_graph": _marks_another,
    "torch._dynamo.disable": _marks_another_for_good,
    "torch.compiler.disable": _marks_another_for_good,
    "ctypes.cast": lambda _, arguments: arguments.at(1, "typ") != (Foreign("ctypes.c_void_p"),),
}
"""Calls to whether they have their effect; a cast to an address changes nothing."""
_UNSAFE = {
    "torch.load": ("weights_only", False),
    "numpy.load": ("allow_pickle", True),
}
"""Loaders to the option, and its value, with which they unpickle."""
