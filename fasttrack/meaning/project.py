# SPDX-License-Identifier: Apache-2.0
"""The modules around a file: what a dotted name is, own or foreign, through whatever re-exports it.

Own modules are read for the names that they bind. Of the repository's other modules only their
imports are looked at, so that `from engine.shared import env` is known to be `os.environ`, and
single functions when they are handed something foreign.
"""

from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from fasttrack.change.imports import parse
from fasttrack.errors import FactUnavailable
from fasttrack.meaning.looks import Looks
from fasttrack.meaning.modules import Modules
from fasttrack.meaning.pieces import Sketch, tree_of
from fasttrack.meaning.reexports import MODULES_LIMIT, REEXPORTS_LIMIT, Reexports
from fasttrack.meaning.registering import keeps_to_itself
from fasttrack.meaning.scopes import Scope
from fasttrack.meaning.texts import Texts
from fasttrack.meaning.values import UNKNOWN, Foreign, Function, Names, Text, Values, reached

if TYPE_CHECKING:
    from fasttrack.meaning.reader import Reader

READING_LIMIT = 2
"""Modules that are read one because of the other."""


class Project:
    """The modules that the code under one manifest's roots can see."""

    def __init__(
        self,
        modules: Modules,
        text_of: Callable[[str], str],
        reader: "Callable[[Project, Scope], Reader]",
        namespaces: frozenset[str] = frozenset(),
        texts: Texts | None = None,
    ) -> None:
        """Takes what is needed to read modules.

        Args:
            modules: names and files of one tree.
            text_of: a file's text; may raise FactUnavailable.
            reader: makes the reader of a module that is only asked for its names.
            namespaces: namespaces of PyTorch operators that are the path's own.
            texts: what is known of texts, also by the projects of other trees.
        """
        self.modules = modules
        self._text_of = text_of
        self._reader = reader
        self._namespaces = namespaces
        self._reading = 0
        self._scopes: dict[str, Scope] = {}
        texts = texts or Texts()
        self.reexports = Reexports(modules, text_of, texts)
        self._looks = Looks(modules, self.reexports, text_of, texts)
        self._functions: dict[str, Function | None] = {}
        self._registering: dict[str, bool] = {}
        self._on_the_way: set[tuple[str, str]] = set()

    def absolute(self, path: str, module: str, level: int) -> str:
        """The dotted name that an import in a file means."""
        return self.modules.absolute(path, module, level)

    def is_own_namespace(self, name: str) -> bool:
        """Whether a namespace of operators is the path's: its name, or one that begins so."""
        return any(name == own or name.startswith(f"{own}_") for own in self._namespaces)

    def is_own_name(self, name: str, title: str) -> bool:
        """Whether a dotted name is a module's own, one below it, or another own module."""
        same = name == title or name.startswith(f"{title}.") or title.startswith(f"{name}.")
        return same or self.modules.is_own(self.modules.path_of(name))

    def text(self, known: str | None) -> Values:
        """A string as a value."""
        return UNKNOWN if known is None else (Text(known),)

    def imported(self, name: str, step: str) -> Values:
        """The module with a dotted name."""
        path = self.modules.path_of(name)
        if path is not None and self.modules.is_own(path):
            return (Names(self.scope(path)),)
        return (Foreign(name, (step,) if step else (), is_module=True),) if name else UNKNOWN

    def dotted(self, name: str) -> Values:
        """What a dotted name given as text means."""
        first, *rest = name.split(".")
        values = self.imported(first, "")
        for part in rest:
            values = tuple(
                found
                for value in values
                for found in (
                    self.part(value, part)
                    if isinstance(value, Foreign)
                    else self._own_part(value, part)
                )
            )
        return values

    def _own_part(self, value: object, name: str) -> Values:
        if not isinstance(value, Names):
            return UNKNOWN
        return value.scope.known(name) or self.below(value.scope, name)

    def member(self, module: str, name: str, step: str) -> Values:
        """What `from module import name` binds."""
        if not module:
            return UNKNOWN  # above the outermost package
        path = self.modules.path_of(module)
        if path is not None and self.modules.is_own(path):
            return reached(self._own_member(path, name), step)
        return self._canonical(f"{module}.{name}", (step,))

    def later(self, module: str, name: str, step: str) -> Callable[[], Values]:
        """The same when it is asked for: found from as far away as it would be now."""
        depth = self._reading

        def found() -> Values:
            now, self._reading = self._reading, depth
            try:
                return self.member(module, name, step)
            finally:
                self._reading = now

        return found

    def _own_member(self, path: str, name: str) -> Values:
        """What an own module has under a name; nothing is known of what can not matter."""
        below = f"{self.modules.name_of(path)}.{name}"
        if self.modules.path_of(below) is not None:
            return self.imported(below, "")
        target = self.reexports.target(path, name)
        if target is not None:
            step = f"`{self.modules.name_of(path)}` has it as `{target}`"
            return reached(self._followed(path, name, target), step)
        if self._reading < READING_LIMIT and self._looks.matters(path, name):
            scope = self.scope(path)
            return scope.known(name) or scope.last(name)
        return UNKNOWN

    def _followed(self, path: str, name: str, target: str) -> Values:
        """What a re-exported name is; nothing where the way leads back to it."""
        if (path, name) in self._on_the_way:
            return UNKNOWN
        self._on_the_way.add((path, name))
        try:
            module, _, last = target.rpartition(".")
            return self.member(module, last, "") if module else self.imported(last, "")
        finally:
            self._on_the_way.discard((path, name))

    def part(self, value: Foreign, name: str) -> Values:
        """An attribute of a foreign object."""
        if name[0] == "[":
            return (value.part(name),)
        return self._canonical(f"{value.name}.{name}", value.steps)

    def below(self, scope: Scope, name: str) -> Values:
        """A module below an own package."""
        dotted = f"{scope.title}.{name}"
        return self.imported(dotted, "") if self.modules.path_of(dotted) is not None else UNKNOWN

    def _canonical(self, dotted: str, steps: tuple[str, ...]) -> Values:
        """A foreign name, followed through the modules of the repository that re-export it."""
        for _ in range(REEXPORTS_LIMIT):
            owner, _, last = dotted.rpartition(".")
            if (path := self.modules.path_of(dotted)) is not None:
                own = self.modules.is_own(path)
                return (Names(self.scope(path)),) if own else (Foreign(dotted, steps),)
            path = self.modules.path_of(owner)
            if path is None:
                break
            if self.modules.is_own(path):
                return reached(self._own_member(path, last), *steps)
            target = self.reexports.target(path, last)
            if target is None or target == dotted:
                break
            dotted = target
        return (Foreign(dotted, steps),)

    def scope(self, path: str) -> Scope:
        """The names of an own module; those known so far when it is being read."""
        if path not in self._scopes:
            scope = Scope(path, self.modules.name_of(path))
            if self._reading >= READING_LIMIT:
                return scope
            self._scopes[path] = scope
            if len(self._scopes) < MODULES_LIMIT:
                self._reading += 1
                with suppress(FactUnavailable, RecursionError):
                    found = self._looks.lending(path)
                    if found is not None:
                        tree = tree_of(self._text_of(path), found)
                        self._reader(self, scope).read(tree)
                self._reading -= 1
        return self._scopes[path]

    def sketch(self, path: str, source: str | None = None) -> Sketch | None:
        """The part of a file that can have an effect; None when nothing can.

        Args:
            path: the file.
            source: its text, where it is not that of the tree.

        Raises:
            FactUnavailable: the file can not be read.
        """
        return self._looks.sketch(path, source)

    def touches(self, path: str, first: int, last: int) -> bool:
        """Whether some lines of a file can change something; see `Look.touches`."""
        return self._looks.touches(path, first, last)

    def stirs(self, path: str, name: str) -> bool:
        """Whether a function of a module can change what it is given."""
        return name in self._looks.stirring(path)

    def registers(self, dotted: str) -> bool:
        """Whether a function, by its name one that registers, may do so as far as can be seen."""
        if dotted not in self._registering:
            owner, _, last = dotted.rpartition(".")
            path, keeps = self.modules.path_of(owner), False
            if path is not None:
                with suppress(FactUnavailable, RecursionError):
                    tree = parse(self._text_of(path))
                    keeps = keeps_to_itself(tree, last, self.reexports.exports(path))
            self._registering[dotted] = not keeps
        return self._registering[dotted]

    def function(self, dotted: str) -> Function | None:
        """A function of the repository's shared code, with its source."""
        if dotted not in self._functions:
            self._functions[dotted] = None
            owner, _, last = dotted.rpartition(".")
            path = self.modules.path_of(owner)
            if path is not None and self.stirs(path, last):
                found = self.scope(path).known(last)
                if len(found) == 1 and isinstance(found[0], Function):
                    self._functions[dotted] = found[0]
        return self._functions[dotted]
