# SPDX-License-Identifier: Apache-2.0
"""Which files inside the roots a set of files depends on, transitively.

Python: imports at module level and inside functions, with the `__init__` files above; not those
under `TYPE_CHECKING`; and what a string in quotes names by its path or dotted name, in an
`__init__` also by a bare name, because `__all__`, lazy imports and kernel sources are written so.
C, C++ and CUDA: `#include`. A name is matched against the end of a path, because nobody knows here
which folder is on the search path: too many dependencies cost a test run, one too few would let
stale evidence stand. Of a source in another language nobody can tell: it depends on everything.
"""

import posixpath
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import PurePosixPath

from fasttrack.change.imports import Import, imports_of
from fasttrack.errors import FactUnavailable

_CONTINUED = re.compile(r"\\[ \t]*\r?\n")
_BLANK = r"(?:[ \t\f\v]|/\*(?:[^*\n]|\*(?!/))*\*/)*"
_DIRECTIVE = re.compile(
    rf"^(?:[^\n]*\*/)?[ \t\f\v]*(?:#|%:|\?\?=){_BLANK}"
    rf"(?:(?:include|include_next|import|embed)\b{_BLANK}|(?=/\*))(.*)",
    re.MULTILINE,
)
"""What is included, in whatever form; the rest of the line where a comment hides which directive
it is."""
_INCLUDED = re.compile(r'["<]([^">]{1,512})[">]')
_QUOTED = re.compile(r"""["'](\.*[\w-]+(?:[./][\w-]+)*)["']""")
_C_SUFFIXES = frozenset(
    f".{name}" for name in (
        "c", "cc", "cl", "cpp", "cu", "cuh", "cxx", "h", "hh", "hip", "hpp", "hxx",
        "inc", "inl", "ipp", "metal", "s", "tpp",
    )
)  # fmt: skip
_UNREAD_SUFFIXES = frozenset({".pxd", ".pxi", ".pyd", ".pyx", ".rs", ".so"})
"""Sources and libraries that load others in ways that are not read here."""


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
        suffix = PurePosixPath(path).suffix.lower()
        try:
            if suffix in {".py", ".pyi", ".pyw"}:
                return self._python(path, self._text_of(path))
            if suffix in _C_SUFFIXES:
                return self._c(path, self._text_of(path))
        except FactUnavailable:
            return self._paths  # nobody can tell what it imports, so it may be anything
        return self._paths if suffix in _UNREAD_SUFFIXES else ()

    def _python(self, path: str, text: str) -> list[str]:
        found = [i for i in imports_of(text.removeprefix("\ufeff")) if not i.type_checking]
        return [
            *(p for i in found for p in self._imported(path, i)),
            *(p for name in set(_QUOTED.findall(text)) for p in self._quoted(path, name)),
        ]

    def _c(self, path: str, text: str) -> list[str]:
        named = _DIRECTIVE.findall(_CONTINUED.sub("", text))
        targets = [_INCLUDED.match(name) for name in named]
        if None in targets:
            raise FactUnavailable("it includes what a macro names")
        return [p for target in targets if target for p in self._included(path, target[1])]

    def _quoted(self, path: str, name: str) -> Iterator[str]:
        """What a string may name: a file by the end of its path, or a module."""
        parts = tuple(filter(None, name.split(".")))
        if "." in name:
            yield from self._by_suffix.get(_plain(name), ())
            if len(parts) > 1:
                yield from self._module(parts)
        if path.endswith("/__init__.py"):
            yield from self._module((*PurePosixPath(path).parent.parts, *parts))

    def _imported(self, path: str, found: Import) -> Iterator[str]:
        module = tuple(found.module.split(".")) if found.module else ()
        if found.level:
            parent = PurePosixPath(path).parent.parts
            kept = len(parent) - (found.level - 1)
            module = (*parent[: max(kept, 0)], *module)
        for end in range(1, len(module) + 1):
            yield from self._module(module[:end])
        for name in found.names:
            if name != "*":
                yield from self._module((*module, *name.split(".")))

    def _module(self, parts: tuple[str, ...]) -> Iterator[str]:
        if parts:
            stem = "/".join(parts)
            yield from self._by_suffix.get(f"{stem}.py", ())
            yield from self._by_suffix.get(f"{stem}/__init__.py", ())

    def _included(self, path: str, name: str) -> Iterator[str]:
        near = _plain(f"{PurePosixPath(path).parent}/{name}")
        if near in self._paths:
            yield near
        yield from self._by_suffix.get(_plain(name), ())

    def _inits(self, path: str) -> Iterator[str]:
        if path.endswith(".py"):
            for parent in PurePosixPath(path).parents:
                init = f"{parent}/__init__.py"
                if init in self._paths and init != path:
                    yield init


def _plain(path: str) -> str:
    """A relative path without `.` and `..`; those at its start are left out."""
    plain = posixpath.normpath(path)
    while plain.startswith("../"):
        plain = plain.removeprefix("../")
    return plain


def _suffixes(paths: Iterable[str]) -> Mapping[str, tuple[str, ...]]:
    """Every tail of a path, cut at `/`, to the paths that end so."""
    found: dict[str, list[str]] = defaultdict(list)
    for path in sorted(paths):
        parts = path.split("/")
        for start in range(len(parts)):
            found["/".join(parts[start:])].append(path)
    return {tail: tuple(ends) for tail, ends in found.items()}
