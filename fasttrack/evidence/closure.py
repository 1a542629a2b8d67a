# SPDX-License-Identifier: Apache-2.0
"""Which files of a set (such as the roots) some files depend on, transitively, and through whom.

What a source names is read in `named`; besides imports and includes a string in quotes may name a
file by its path or dotted name, in an `__init__` also by a bare name, because `__all__`, lazy
imports and kernel sources are written so. A module brings the `__init__` files above it. A name is
matched against the end of a path, because nobody knows here which folder is on the search path:
too many dependencies cost a test run, one too few would let stale evidence stand. Only where the
whole name is a path from the top, a file that ends so inside a package (`tests/engine/ops.py` for
`engine.ops`) is another module. A source of which nobody can tell what it loads depends on
everything.
"""

from collections import defaultdict, deque
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from pathlib import PurePosixPath

from fasttrack.errors import FactUnavailable
from fasttrack.evidence.named import Named, files_named, names_in, plain


class Closure:
    """The dependency graph of a set of files in one tree."""

    def __init__(
        self, paths: Iterable[str], text_of: Callable[[str], str], tree: Container[str] = ()
    ) -> None:
        """Takes the paths of the set; texts are read when they are asked for.

        Args:
            paths: all files of the set; no other is ever found.
            text_of: UTF-8 text of one of them; may raise FactUnavailable.
            tree: every file there is, which tells what a name means from the top.
        """
        self._paths = frozenset(paths)
        self._tree = tree
        self._text_of = text_of
        self._by_suffix = _suffixes(self._paths)
        self._direct: dict[str, Mapping[str, str]] = {}
        self._named: dict[str, Named | None] = {}

    def of(self, start: Iterable[str]) -> frozenset[str]:
        """`start` and every file of the set that it depends on."""
        return frozenset(self.reasons(dict.fromkeys(start, "")))

    def reasons(self, start: Mapping[str, str]) -> dict[str, str]:
        """Path to why it is in: what `start` says, or how it was reached and from which file.

        Of several ways the shortest is told, and of equally short ones the first by path.

        Args:
            start: path to reason; paths outside the set are left out.
        """
        found = {path: start[path] for path in sorted(start) if path in self._paths}
        waiting = deque(found)
        while waiting:
            path = waiting.popleft()
            for other, how in self._dependencies(path).items():
                if other not in found:
                    found[other] = f"{how} {path}"
                    waiting.append(other)
        return found

    def named(self, path: str) -> Named | None:
        """What a file of the set names; None when nobody can tell."""
        if path not in self._named:
            try:
                self._named[path] = names_in(path, self._text_of)
            except FactUnavailable:
                self._named[path] = None
        return self._named[path]

    def _dependencies(self, path: str) -> Mapping[str, str]:
        """Path to how it is reached, in the order of paths."""
        if path not in self._direct:
            found: dict[str, str] = {}
            for other, how in self._read(path):
                found.setdefault(other, how)
            self._direct[path] = dict(sorted(found.items()))
        return self._direct[path]

    def _read(self, path: str) -> Iterator[tuple[str, str]]:
        named = self.named(path)
        if named is None:
            yield from ((other, "perhaps loaded by") for other in self._paths)
            return
        yield from files_named(path, named, self)
        for name in named.quoted:
            yield from ((other, "named in") for other in self._quoted(path, name))

    def _quoted(self, path: str, name: str) -> Iterator[str]:
        """What a string may name: a file by the end of its path, or a module."""
        parts = tuple(filter(None, name.split(".")))
        if "." in name:
            yield from self.ending(plain(name))
            if len(parts) > 1:
                yield from self.module(parts)
        if path.endswith("/__init__.py"):
            yield from self.module((*PurePosixPath(path).parent.parts, *parts))

    def holds(self, path: str) -> bool:
        """See `Index`."""
        return path in self._paths

    def module(self, parts: tuple[str, ...]) -> Iterator[str]:
        """See `Index`: wherever it is, but for namesakes in packages of a module at the top."""
        if not parts:
            return
        stem = "/".join(parts)
        tails = (f"{stem}.py", f"{stem}/__init__.py")
        at_top = any(tail in self._tree for tail in tails)
        for tail in tails:
            for path in self.ending(tail):
                above = path.removesuffix(tail)
                if not (above and at_top and f"{above}__init__.py" in self._tree):
                    yield path

    def ending(self, tail: str) -> Iterable[str]:
        """See `Index`."""
        return self._by_suffix.get(tail, ())


def _suffixes(paths: Iterable[str]) -> Mapping[str, tuple[str, ...]]:
    """Every tail of a path, cut at `/`, to the paths that end so."""
    found: dict[str, list[str]] = defaultdict(list)
    for path in sorted(paths):
        parts = path.split("/")
        for start in range(len(parts)):
            found["/".join(parts[start:])].append(path)
    return {tail: tuple(ends) for tail, ends in found.items()}
