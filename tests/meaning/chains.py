# SPDX-License-Identifier: Apache-2.0
"""Random programs that carry an object from hand to hand and then change it.

A chain starts with an import of a module, passes it through carriers, some of which hand it to the
next module, and ends in a change. `ran` runs one, which proves that the chain holds; the rules must
find the same by reading.
"""

import importlib
import importlib.abc
import importlib.machinery
import sys
import types
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from .corpus import KERNELS, Files, Made, project

SHARED, OWN = "host.shared.ops", "host.fast.own.ops"
PRELUDE = (
    "from contextlib import nullcontext\nfrom functools import partial\n"
    "from types import SimpleNamespace\n\n\ndef other(value):\n    return value\n"
)

STARTS = {
    "import": ("import <M>\n", "<M>"),
    "import as": ("import <M> as ops_\n", "ops_"),
    "from import": ("from <P> import ops\n", "ops"),
    "from import as": ("from <P> import ops as ops_\n", "ops_"),
    "in a function": ("def start():\n    import <M> as found\n\n    return found\n", "start()"),
    "by name": ('import importlib\n\nops_ = importlib.import_module("<M>")\n', "ops_"),
}
"""Ways to come by the object: code, and the expression that is then the object."""
CARRIERS = {
    "alias": ("a<i> = <X>\n", "a<i>"),
    "two aliases": ("a<i> = b<i> = <X>\n", "b<i>"),
    "annotated": ("a<i>: object = <X>\n", "a<i>"),
    "tuple": ("a<i>, b<i> = None, <X>\n", "b<i>"),
    "starred": ("a<i>, *b<i> = None, <X>\n", "b<i>[0]"),
    "walrus": ("[(a<i> := <X>)]\n", "a<i>"),
    "for": ("for a<i> in (<X>,):\n    pass\n", "a<i>"),
    "while": ("while True:\n    a<i> = <X>\n    break\n", "a<i>"),
    "with": ("with nullcontext(<X>) as a<i>:\n    pass\n", "a<i>"),
    "try": ("try:\n    a<i> = <X>\nfinally:\n    pass\n", "a<i>"),
    "if": ("a<i> = None\nif other(1):\n    a<i> = <X>\n", "a<i>"),
    "conditional": ("", "(<X> if other(1) else None)"),
    "or": ("", "(None or <X>)"),
    "list": ("", "[<X>][0]"),
    "dictionary": ("a<i> = {'k': <X>}\n", "a<i>['k']"),
    "get": ("a<i> = dict(k=<X>)\n", "a<i>.get('k')"),
    "comprehension": ("a<i> = [b for b in (<X>,)]\n", "a<i>[0]"),
    "generator": ("", "next(b for b in (<X>,))"),
    "class body": ("class A<i>:\n    held = <X>\n", "A<i>.held"),
    "subclass": ("class B<i>:\n    held = <X>\n\n\nclass A<i>(B<i>):\n    pass\n", "A<i>.held"),
    "instance": (
        "class A<i>:\n    def __init__(self, given):\n        self.held = given\n",
        "A<i>(<X>).held",
    ),
    "method": ("class A<i>:\n    def held(self):\n        return <X>\n", "A<i>().held()"),
    "property": (
        "class A<i>:\n    @property\n    def held(self):\n        return <X>\n",
        "A<i>().held",
    ),
    "static method": (
        "class A<i>:\n    @staticmethod\n    def held(given):\n        return given\n",
        "A<i>.held(<X>)",
    ),
    "namespace": ("a<i> = SimpleNamespace(held=<X>)\n", "a<i>.held"),
    "attribute of a function": ("def a<i>():\n    pass\n\n\na<i>.held = <X>\n", "a<i>.held"),
    "getattr": ("class A<i>:\n    held = <X>\n", "getattr(A<i>, 'held')"),
    "globals": ("a<i> = <X>\n", "globals()['a<i>']"),
    "parameter": ("def a<i>(given):\n    return given\n", "a<i>(<X>)"),
    "keyword": ("def a<i>(*, given):\n    return given\n", "a<i>(given=<X>)"),
    "arguments": ("def a<i>(*given, **named):\n    return given[0]\n", "a<i>(<X>)"),
    "default argument": ("def a<i>(given=<X>):\n    return given\n", "a<i>()"),
    "closure": (
        "def a<i>(given):\n    def inner():\n        return given\n\n    return inner\n",
        "a<i>(<X>)()",
    ),
    "global": (
        "def a<i>():\n    global b<i>\n    b<i> = <X>\n\n\nb<i> = None\na<i>()\n",
        "b<i>",
    ),
    "yield": ("def a<i>():\n    yield <X>\n", "next(a<i>())"),
    "lambda": ("a<i> = lambda given: given\n", "a<i>(<X>)"),
    "partial": ("a<i> = partial(lambda given: given, <X>)\n", "a<i>()"),
    "map": ("", "list(map(lambda given: given, [<X>]))[0]"),
    "zip": ("for a<i>, b<i> in zip((1,), (<X>,)):\n    pass\n", "b<i>"),
    "enumerate": ("for a<i>, b<i> in enumerate([<X>]):\n    pass\n", "b<i>"),
}
"""Code that takes the object `<X>`, and the expression that is then the object."""
HANDOVERS = {
    "from import": ("from host.fast.<m> import a<i>\n", "a<i>"),
    "from import as": ("from host.fast.<m> import a<i> as b<i>\n", "b<i>"),
    "relative": ("from .<m> import a<i>\n", "a<i>"),
    "relative module": ("from . import <m>\n", "<m>.a<i>"),
    "module": ("import host.fast.<m> as b<i>\n", "b<i>.a<i>"),
    "star": ("from host.fast.<m> import *\n", "a<i>"),
}
"""How the next module takes what the last one has bound to a name."""
ACTS = {
    "assign": "<X>.scale = other\n",
    "add": "<X>.LIMIT += 1\n",
    "delete": "del <X>.LEGACY\n",
    "setattr": "setattr(<X>, 'scale', other)\n",
    "entry": "<X>.LIMITS['rows'] = 9\n",
    "update": "<X>.LIMITS.update(rows=9)\n",
    "append": "<X>.ORDER.append('fast')\n",
    "namespace": "vars(<X>)['scale'] = other\n",
    "defaults": "<X>.clip.__defaults__ = (9.0,)\n",
}
"""What is done to the object at last."""
PLACES = {
    "module": "<A>",
    "function": "def act():\n    <A>\n\n\nact()\n",
    "class body": "class Act:\n    <A>\n",
    "method": "class Act:\n    def __init__(self):\n        <A>\n\n\nAct()\n",
    "decorator": (
        "def act(function):\n    <A>\n    return function\n\n\n@act\ndef acted():\n    pass\n"
    ),
    "branch": "if other(1):\n    <A>\n",
}
"""Where that happens."""


@dataclass(frozen=True)
class Chain:
    """A program, by the names of its pieces.

    Attributes:
        start: one of STARTS.
        steps: each one of CARRIERS, or of HANDOVERS behind a slash.
        act: one of ACTS.
        place: one of PLACES.
    """

    start: str
    steps: tuple[str, ...]
    act: str
    place: str

    def made(self, module: str) -> Made:
        """The change of the host project that carries this module and changes it."""
        code, carried = (
            text.replace("<M>", module).replace("<P>", module.rpartition(".")[0])
            for text in STARTS[self.start]
        )
        text, change = f"{PRELUDE}\n\n{code}", {}
        for number, step in enumerate(self.steps):
            here = {"<X>": carried, "<i>": str(number), "<m>": f"mid{number}"}
            if step.startswith("/"):
                change[f"host/fast/mid{number}.py"] = f"{text}\n\na{number} = {carried}\n"
                code, carried = (_put(part, here) for part in HANDOVERS[step[1:]])
                text = f"{PRELUDE}\n\n{code}"
            else:
                code, carried = (_put(part, here) for part in CARRIERS[step])
                text += f"\n\n{code}"
        act = _put(ACTS[self.act], {"<X>": carried})
        text += f"\n\n{PLACES[self.place].replace('<A>', act.rstrip())}\n"
        return Made(project(), {**change, KERNELS: text}, "host.fast.kernels")


def ran(change: Made, module: str) -> bool:
    """Whether importing the changed module changes another one."""
    with _imported_from(change.head):
        watched = importlib.import_module(module)
        before = _state(watched)
        importlib.import_module(change.module)
        return _state(watched) != before


def _put(template: str, marks: dict[str, str]) -> str:
    for mark, text in marks.items():
        template = template.replace(mark, text)
    return template


def _state(module: types.ModuleType) -> dict[str, str]:
    names = {k: repr(v) for k, v in vars(module).items() if not k.startswith("__")}
    return {**names, "defaults": repr(module.clip.__defaults__)}


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.InspectLoader):
    """Imports the packages of the host project from a dictionary."""

    def __init__(self, files: Files) -> None:
        self._files = files

    def _path(self, name: str) -> str:
        stem = name.replace(".", "/")
        return next((p for p in (f"{stem}/__init__.py", f"{stem}.py") if p in self._files), "")

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """The module when the project has it."""
        del path, target
        found = self._path(name)
        if not found:
            return None
        package = found.endswith("/__init__.py")
        return importlib.machinery.ModuleSpec(name, self, origin=found, is_package=package)

    def get_source(self, name: str) -> str:
        """Its text."""
        return self._files[self._path(name)]


@contextmanager
def _imported_from(files: Files) -> Iterator[None]:
    finder, before = _Finder(files), dict(sys.modules)
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
        for name in sys.modules.keys() - before.keys():
            if name.partition(".")[0] == "host":
                del sys.modules[name]
