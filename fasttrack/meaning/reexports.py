# SPDX-License-Identifier: Apache-2.0
"""What the repository's modules bring in from others and hand on, by their text.

`from engine.shared import env` may be `os.environ`; a name is followed through the modules that
only pass it on.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress

from fasttrack.errors import FactUnavailable
from fasttrack.meaning.imports import Exports
from fasttrack.meaning.modules import Modules
from fasttrack.meaning.texts import Texts
from fasttrack.meaning.words import ROOTS

MODULES_LIMIT = 400
"""Modules of the repository that are looked into for one manifest."""
REEXPORTS_LIMIT = 6
"""Re-exports that a name is followed through."""


class Reexports:
    """The names that the modules of one tree bind, each module looked at once."""

    def __init__(self, modules: Modules, text_of: Callable[[str], str], texts: Texts) -> None:
        """Takes the names of files, and their texts, which may raise FactUnavailable."""
        self._modules = modules
        self._texts = texts
        self._text_of = text_of
        self._exports: dict[str, Exports] = {}
        self._ends: dict[tuple[str, str], str] = {}

    def exports(self, path: str) -> Exports:
        """What a module of the repository imports and defines, by its text."""
        if path not in self._exports:
            found = Exports({}, (), frozenset(), frozenset(), frozenset())
            if len(self._exports) < MODULES_LIMIT:
                with suppress(FactUnavailable):
                    found = self._texts.of(self._text_of(path)).exports
            self._exports[path] = found
        return self._exports[path]

    def target(self, path: str, name: str) -> str | None:
        """What a module re-exports under a name; None when it is its own."""
        exports = self.exports(path)
        if name in exports.imported:
            module, level, member = exports.imported[name]
            absolute = self._modules.absolute(path, module, level)
            return f"{absolute}.{member}" if member else absolute
        for module, level in exports.stars:
            absolute = self._modules.absolute(path, module, level)
            source = self._modules.path_of(absolute)
            if source is None or self._has(source, name, {path}):
                return f"{absolute}.{name}"
        return None

    def _has(self, path: str, name: str, seen: set[str]) -> bool:
        """Whether a module has a name, of its own or from another."""
        if path in seen or len(seen) > REEXPORTS_LIMIT:
            return False
        seen.add(path)
        exports = self.exports(path)
        if name in exports.defined or name in exports.imported:
            return True
        sources = (
            self._modules.path_of(self._modules.absolute(path, module, level))
            for module, level in exports.stars
        )
        return any(source is None or self._has(source, name, seen) for source in sources)

    def is_container(self, dotted: str) -> bool:
        """Whether a name of a module of the repository is bound to a container."""
        owner, _, last = dotted.rpartition(".")
        path = self._modules.path_of(owner)
        return path is not None and last in self.exports(path).containers

    def is_plain(self, path: str, name: str) -> bool:
        """Whether a name of a module is a function or class of its own."""
        return name in self.exports(path).plain

    def known(self, path: str, member: str, name: str) -> Iterator[str]:
        """The first part of what a module's member stands for, when that is in the tables.

        And the name that it is bound to, when that needs a look wherever it is used.
        """
        dotted = self._end(path, member)
        first = dotted.partition(".")[0]
        if first in ROOTS:
            yield first
            if first != "torch" or dotted.rpartition(".")[2] in ROOTS[first]:
                yield name

    def known_among(self, path: str, words: Iterable[str]) -> Iterator[str]:
        """The same for all members of a module that are among some words."""
        exports = self.exports(path)
        for word in exports.imported.keys() & words:
            yield from self.known(path, word, word)
        if exports.stars:
            for word in (ROOTS.keys() & words) - exports.defined - exports.imported.keys():
                yield from self.known(path, word, word)

    def _end(self, path: str, member: str) -> str:
        """What a member stands for in the end; empty when it is the module's own."""
        key = (path, member)
        if key not in self._ends:
            dotted, source = "", path
            for _ in range(REEXPORTS_LIMIT):
                target = self.target(source, member)
                if target is None or target == dotted:
                    break
                dotted = target
                owner, _, member = dotted.rpartition(".")
                found = self._modules.path_of(owner)
                if found is None:
                    break
                source = found
            self._ends[key] = dotted
        return self._ends[key]
