# SPDX-License-Identifier: Apache-2.0
"""The files of one side of a change, as imports between them see them.

Modules of tests are followed from top to bottom. Of any other module of the repository only
constants and helpers that assert are looked up, one by one; the code under test is never followed.
"""

import ast
import posixpath
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from operator import is_
from typing import TYPE_CHECKING

from fasttrack.change.tree import Side, Tree
from fasttrack.errors import FactUnavailable
from fasttrack.meaning.source import source_of
from fasttrack.testmodel.attributes import attribute
from fasttrack.testmodel.follower import Follower
from fasttrack.testmodel.frames import Exhausted, Flow
from fasttrack.testmodel.values import Module, Namespace, Opaque, Scope, Value

if TYPE_CHECKING:
    from fasttrack.case import Case
    from fasttrack.testmodel.events import Trace
    from fasttrack.testmodel.fixtures import Shelves
    from fasttrack.testmodel.hooks import Modified

STEPS_OF_A_SIDE = 80_000
"""Nodes that are followed for the tests of one side, about 0.4 s; twice that for its modules."""
MODULE_STEPS = 60_000
"""Nodes that are followed to load one module."""
PEEKS_LIMIT = 30
"""Other modules of one side that are parsed for a constant or a helper."""
PEEK_BYTES = 128 * 1024
"""Bytes of such a module that is parsed."""
CHAIN_LIMIT = 12
"""Modules that are being followed because of each other."""
_HELPER = re.compile(
    r"assert|check|close|compare|verify|expect|toler|(?:^|_)tol|cases|params", re.I
)
_SEARCHED = ("src/", "python/", "lib/")
"""Folders that projects put on the search path."""


def says(case: "Case", side: Side, name: str) -> bool:
    """Whether a file that is no test holds a name, and is small enough to be looked into."""
    try:
        small = case.change.size(side) <= PEEK_BYTES
        return small and name in source_of(case, side)
    except FactUnavailable:
        return False


def _is_same(one: Namespace, other: Namespace) -> bool:
    """Whether two namespaces hold the same objects under the same names in the same order."""
    return all(map(is_, one.values(), other.values())) and list(one) == list(other)


class Files:
    """Modules of one tree; a `World` to those who follow them."""

    def __init__(
        self,
        tree: Tree,
        parse: Callable[[Side], ast.Module],
        says: Callable[[Side, str], bool],
        is_tests: Callable[[str], bool],
    ) -> None:
        """Takes a tree.

        Args:
            tree: all files.
            parse: the syntax tree of a file; raises FactUnavailable.
            says: whether a file holds a name; not for one that is too large to be peeked into.
            is_tests: whether a path is followed.
        """
        self.depth = 0
        self.steps = STEPS_OF_A_SIDE
        self._module_steps = 2 * STEPS_OF_A_SIDE
        self.tree = tree
        self.overrides: Namespace = {}
        self.traces: dict[str, Trace] = {}
        self.shelves: Shelves = {}
        self.by_marks: dict[tuple[int, frozenset[str]], Modified] = {}
        self.undecided: set[str] = set()
        self._parse = parse
        self._says = says
        self._is_tests = is_tests
        self._modules: dict[str, Module] = {}
        self._loading = 0
        self._peeks: dict[str, ast.Module | None] = {}
        self._peeking: set[tuple[str, str]] = set()
        self._kept: list[tuple[Namespace, Namespace]] = []
        self._written: list[tuple[Namespace, Namespace]] = []

    def close(self) -> None:
        """Lets go of all modules, whose names refer to each other in circles."""
        for module in self._modules.values():
            module.names.clear()
            module.find = None
        for held in (self._modules, self._peeks, self.traces, self.shelves, self.by_marks):
            held.clear()
        self.overrides.clear()
        self._kept = []
        self._written.clear()

    def module(self, path: str) -> Module:
        """A module of tests, followed to its end.

        Raises:
            FactUnavailable: it can not be read or parsed.
        """
        if path not in self._modules:
            body = self.tree_of(path).body
            made = self._modules[path] = Module(path, find=self._package_finder(path))
            self._follow(made, body)
        return self._modules[path]

    @property
    def spent(self) -> bool:
        """Whether the bound on all steps was met, so that later answers are not decided."""
        return self.steps < 0

    def tree_of(self, path: str) -> ast.Module:
        """The syntax tree of a file; FactUnavailable when there is none."""
        side = self.tree.get(path)
        if side is None:
            raise FactUnavailable(f"{path}: no file")
        return self._parse(side)

    def _follow(self, made: Module, body: Sequence[ast.stmt]) -> None:
        follower = Follower(self, self.overrides, MODULE_STEPS)
        kept, self.steps = self.steps, self._module_steps
        self.traces[made.path] = follower.trace
        self._loading += 1
        try:
            follower.follow(body, Scope(made.names, None, made))
        except Exhausted:
            self.undecided.add(made.path)
        finally:
            self._loading -= 1
            self._module_steps, self.steps = self.steps, kept
        self.overrides.update(follower.overrides)

    def restore(self) -> Callable[[], None]:
        """What puts back the names of all modules and the attributes of all functions."""
        if len(self._kept) != len(self._modules):
            self._kept = [(module.names, dict(module.names)) for module in self._modules.values()]
        kept = self._kept
        self._written.clear()

        def put_back() -> None:
            for names, before in (*kept, *reversed(self._written)):
                if not _is_same(names, before):
                    names.clear()
                    names.update(before)

        return put_back

    def before_write(self, attributes: Namespace) -> None:
        """Keeps what is attached to a function, of which there may be thousands."""
        self._written.append((attributes, dict(attributes)))

    def is_followed(self, path: str, name: str) -> bool:
        """Whether calls of a function in a file are followed into its text."""
        return self._is_tests(path) or bool(_HELPER.search(name))

    def imported(self, importer: str, module: str, level: int) -> Value:
        """The module that an import in a file means."""
        for stem in self._stems(importer, module, level):
            found = self._at(stem)
            if found is not None:
                return found
        return Opaque(module or "package", external=True)

    def _stems(self, importer: str, module: str, level: int) -> list[str]:
        """Places where a module may be, without ending."""
        folder = posixpath.dirname(importer)
        tail = module.replace(".", "/")
        if level:
            for _ in range(level - 1):
                folder = posixpath.dirname(folder)
            return [posixpath.join(folder, tail).rstrip("/")]
        top = folder
        while top and f"{top}/__init__.py" in self.tree:
            top = posixpath.dirname(top)
        places = dict.fromkeys([f"{top}/" if top else "", "", *_SEARCHED])
        return [f"{place}{tail}" for place in places]

    def _at(self, stem: str) -> Value | None:
        for path in (f"{stem}.py", f"{stem}/__init__.py"):
            if path in self.tree:
                return self._loaded(path)
        if stem and self.tree.has_folder(stem) and posixpath.basename(stem).isidentifier():
            module = self._modules.get(stem) or Module(stem)
            module.find = self._package_finder(f"{stem}/__init__.py")
            self._modules[stem] = module
            return module
        return None

    def _loaded(self, path: str) -> Value:
        if not self._is_tests(path):
            if path not in self._modules:
                self._modules[path] = Module(path, find=lambda name: self._peek(path, name))
            return self._modules[path]
        if self._loading < CHAIN_LIMIT or path in self._modules:
            try:
                return self.module(path)
            except FactUnavailable:
                self.undecided.add(path)
        return Opaque(path.removesuffix(".py").replace("/", "."), external=True)

    def _package_finder(self, path: str) -> Callable[[str], Value] | None:
        folder, _, name = path.rpartition("/")
        if name != "__init__.py":
            return None

        def find(name: str) -> Value:
            found = self._at(f"{folder}/{name}")
            if found is None:
                raise KeyError(name)
            return found

        return find

    def _peek(self, path: str, name: str) -> Value:
        """One name of a module that is not followed; KeyError where it is of no interest."""
        folder, _, last = path.rpartition("/")
        if last == "__init__.py":
            found = self._at(f"{folder}/{name}")
            if found is not None:
                return found
        wanted = name.isupper() or _HELPER.search(name)
        if not wanted or (path, name) in self._peeking or len(self._peeking) > CHAIN_LIMIT:
            raise KeyError(name)
        body = self._peeked(path, name)
        binding = next((node for node in reversed(body) if name in _bound(node)), None)
        if binding is None:
            raise KeyError(name)
        self._peeking.add((path, name))
        try:
            return self._bound_value(path, name, binding)
        except Exhausted:
            raise KeyError(name) from None
        finally:
            self._peeking.discard((path, name))

    def _bound_value(self, path: str, name: str, binding: ast.stmt) -> Value:
        module = self._modules[path]
        if isinstance(binding, ast.ImportFrom):
            alias = next(a for a in binding.names if (a.asname or a.name) == name)
            source = self.imported(path, binding.module or "", binding.level)
            value = attribute(Follower(self), source, alias.name)
            module.names[name] = value
            return value
        flow = Follower(self).follow([binding], Scope(module.names, None, module))
        if flow is not Flow.NORMAL or name not in module.names:
            raise KeyError(name)
        return module.names[name]

    def _peeked(self, path: str, name: str) -> Sequence[ast.stmt]:
        """The statements of a module that is not followed; none where the name is not in it."""
        side = self.tree.get(path)
        if side is None or not self._says(side, name):
            return ()
        if path not in self._peeks:
            self._peeks[path] = None
            if len(self._peeks) <= PEEKS_LIMIT:
                with suppress(FactUnavailable):
                    self._peeks[path] = self._parse(side)
        tree = self._peeks[path]
        return () if tree is None else tree.body


def _bound(node: ast.stmt) -> Sequence[str]:
    """Names that a top-level statement binds, as far as peeking needs it."""
    match node:
        case ast.Assign(targets=targets):
            return [target.id for target in targets if isinstance(target, ast.Name)]
        case ast.AnnAssign(target=ast.Name(id=name)) | ast.FunctionDef(name=name):
            return [name]
        case ast.ImportFrom(names=names):
            return [alias.asname or alias.name for alias in names]
        case _:
            return ()
