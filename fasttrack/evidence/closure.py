# SPDX-License-Identifier: Apache-2.0
"""Which files inside the roots a set of files depends on, transitively.

Python: imports at module level and inside functions, with the `__init__` files above; not those
under `TYPE_CHECKING`. C, C++ and CUDA: `#include "..."`. A module name is matched against the end
of a path, because nobody knows here which folder is on the import path: too many dependencies
cost a test run, one too few would let stale evidence stand.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import PurePosixPath

from fasttrack.change.imports import Import, imports_of
from fasttrack.errors import FactUnavailable

_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"\n]{1,512})"', re.MULTILINE)
_C_SUFFIXES = frozenset({".c", ".cc", ".cpp", ".cu", ".cuh", ".cxx", ".h", ".hpp"})


class Closure:
    """The dependency graph of the files in the roots of one manifest, in one tree."""

    def __init__(self, paths: Iterable[str], text_of: Callable[[str], str]) -> None:
        """Takes the paths of the roots; texts are read when they are asked for.

        Args:
            paths: all files inside the roots.
            text_of: UTF-8 text of one of them; may raise FactUnavailable.
        """
        self._paths = frozenset(paths)
        self._text_of = text_of
        self._by_suffix = _suffixes(self._paths)
        self._direct: dict[str, frozenset[str]] = {}

    def of(self, start: Iterable[str]) -> frozenset[str]:
        """`start` and every root file that it depends on."""
        seen: set[str] = set()
        waiting = [path for path in start if path in self._paths]
        while waiting:
            path = waiting.pop()
            if path not in seen:
                seen.add(path)
                waiting.extend(self._dependencies(path) - seen)
        return frozenset(seen)

    def _dependencies(self, path: str) -> frozenset[str]:
        if path not in self._direct:
            self._direct[path] = frozenset(self._read(path)) | frozenset(self._inits(path))
        return self._direct[path]

    def _read(self, path: str) -> Iterable[str]:
        suffix = PurePosixPath(path).suffix
        try:
            if suffix == ".py":
                found = imports_of(self._text_of(path))
                return [p for i in found if not i.type_checking for p in self._imported(path, i)]
            if suffix in _C_SUFFIXES:
                return [
                    p
                    for name in _INCLUDE.findall(self._text_of(path))
                    for p in self._included(path, name)
                ]
        except FactUnavailable:
            return self._paths  # nobody can tell what it imports, so it may be anything
        return ()

    def _imported(self, path: str, found: Import) -> Iterator[str]:
        module = tuple(found.module.split(".")) if found.module else ()
        if found.level:
            parent = PurePosixPath(path).parent.parts
            kept = len(parent) - (found.level - 1)
            module = (*parent[: max(kept, 0)], *module)
        for end in range(1, len(module) + 1):
            yield from self._module(module[:end])
        for name in found.names:
            if name == "*":
                continue
            yield from self._module((*module, *name.split(".")))

    def _module(self, parts: tuple[str, ...]) -> Iterator[str]:
        if parts:
            stem = "/".join(parts)
            yield from self._by_suffix.get(f"{stem}.py", ())
            yield from self._by_suffix.get(f"{stem}/__init__.py", ())

    def _included(self, path: str, name: str) -> Iterator[str]:
        parts = [p for p in PurePosixPath(path).parent.joinpath(name).parts if p != "."]
        while ".." in parts[1:]:
            at = parts.index("..", 1)
            del parts[at - 1 : at + 1]
        near = "/".join(parts)
        if near in self._paths:
            yield near
        yield from self._by_suffix.get(name.lstrip("./"), ())

    def _inits(self, path: str) -> Iterator[str]:
        if path.endswith(".py"):
            for parent in PurePosixPath(path).parents:
                init = f"{parent}/__init__.py"
                if init in self._paths and init != path:
                    yield init


def _suffixes(paths: Iterable[str]) -> Mapping[str, tuple[str, ...]]:
    """Every tail of a path, cut at `/`, to the paths that end so."""
    found: dict[str, list[str]] = defaultdict(list)
    for path in sorted(paths):
        parts = path.split("/")
        for start in range(len(parts)):
            found["/".join(parts[start:])].append(path)
    return {tail: tuple(ends) for tail, ends in found.items()}
