# SPDX-License-Identifier: Apache-2.0
"""Which dotted name a file answers to, which file a name means, and whose a name is.

A module is *own* when its file lies under the roots of one manifest, and *foreign* otherwise:
built-ins, the standard library, packages, the repository's shared code, other manifests' roots.
"""

import posixpath
import sys
from collections.abc import Container, Iterable

from fasttrack.case import Case, lies_in
from fasttrack.change.tree import Tree
from fasttrack.config import judged_or_head
from fasttrack.manifest.model import Manifest
from fasttrack.policy.classes import fold

_ENDINGS = ("/__init__.py", ".py", "/__init__.pyi", ".pyi")


class Modules:
    """The modules of one tree as the code under some roots sees them."""

    def __init__(
        self, tree: Container[str], roots: Iterable[str], packages: Iterable[str] = ()
    ) -> None:
        """Takes a tree.

        Args:
            tree: every file there is.
            roots: paths of the code that is own.
            packages: top-level names that are known to be third-party packages.
        """
        self._tree = tree
        self._roots = tuple(roots)
        self._packages = frozenset(packages) | sys.stdlib_module_names
        self._folders = tuple(dict.fromkeys(["", *map(self._import_folder, self._roots)]))
        self._names: dict[str, str] = {}
        self._paths: dict[str, str | None] = {}

    def name_of(self, path: str) -> str:
        """The dotted name that a file is imported by; empty for one that is no module.

        The folder on the search path is the one above the file's outermost package.
        """
        if path not in self._names:
            self._names[path] = self._name_of(path)
        return self._names[path]

    def _name_of(self, path: str) -> str:
        stem, _, ending = path.rpartition(".")
        if ending not in {"py", "pyi", "pyw"}:
            return ""
        folder = self._import_folder(path)
        parts = stem.removeprefix(folder).split("/")
        if parts[-1] == "__init__" and len(parts) > 1:
            parts.pop()
        return ".".join(parts)

    def path_of(self, name: str) -> str | None:
        """The file in the tree that a dotted name means; None when it means none.

        Names that the standard library or a known package answers to are found only at the top:
        a folder `torch` inside a package is not what `import torch` finds.
        """
        if name not in self._paths:
            self._paths[name] = self._path_of(name)
        return self._paths[name]

    def _path_of(self, name: str) -> str | None:
        stem = name.replace(".", "/")
        known = name.partition(".")[0] in self._packages
        for folder in self._folders[:1] if known else self._folders:
            for ending in _ENDINGS:
                if stem and (path := f"{folder}{stem}{ending}") in self._tree:
                    return path
        return None

    def is_own(self, path: str | None) -> bool:
        """Whether a file lies under the roots."""
        return path is not None and lies_in(self._roots, path)

    def absolute(self, importer: str, module: str, level: int) -> str:
        """The dotted name that an import statement means; empty when it leads out of its package.

        Args:
            importer: path of the file that imports.
            module: dotted name as written.
            level: leading dots.
        """
        if not level:
            return module
        parts = self.name_of(importer).split(".")
        if posixpath.basename(importer).partition(".")[0] != "__init__":
            parts.pop()
        parts = parts[: len(parts) - level + 1] if level <= len(parts) else []
        return ".".join([*parts, *filter(None, [module])]) if parts else ""

    def _import_folder(self, path: str) -> str:
        """The folder above the outermost package of a path; empty or ending in `/`."""
        parents = posixpath.dirname(path.rstrip("/")).split("/")
        for depth in range(1, len(parents) + 1):
            if "/".join((*parents[:depth], "__init__.py")) in self._tree:
                return "".join(f"{parent}/" for parent in parents[: depth - 1])
        return "".join(f"{parent}/" for parent in parents if parent)


def modules_of(case: Case, manifest: Manifest, tree: Tree | None = None) -> Modules:
    """The modules of a tree (after the merge unless told) as a manifest's roots see them."""
    where = judged_or_head(case.change) if tree is None else tree
    return Modules(where, manifest.code.roots, case.policy.imports)


def module_name(case: Case, path: str) -> str:
    """The dotted name of a file after the merge, by the packages that it lies in."""
    return Modules(judged_or_head(case.change), [path]).name_of(path)


def is_governed(case: Case, path: str) -> bool:
    """Whether a path is under the roots of a manifest, at the target's tip or after the merge."""
    return case.governing(path) is not None


def folded_name(path: str) -> str:
    """The last part of a path, in the spelling that file systems compare by."""
    return fold(posixpath.basename(path))
