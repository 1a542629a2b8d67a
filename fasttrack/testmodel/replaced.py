# SPDX-License-Identifier: Apache-2.0
"""Whether what a test replaces is the code that it is there to test."""

from collections.abc import Iterator, Sequence

from fasttrack.errors import FactUnavailable
from fasttrack.manifest.model import Manifest
from fasttrack.meaning.imports import exports_of
from fasttrack.meaning.modules import modules_of
from fasttrack.meaning.source import source_of
from fasttrack.testmodel.events import Check
from fasttrack.testmodel.reach import Reach

_SEARCHED = ("", "src/", "python/", "lib/")


def paths_of(name: str) -> Iterator[str]:
    """Paths that a module of a dotted name may have."""
    stem = name.replace(".", "/")
    for place in _SEARCHED:
        yield from (f"{place}{stem}{ending}" for ending in (".py", "/__init__.py"))


class Replacements:
    """Tells governed objects by their dotted names."""

    def __init__(self, reach: Reach) -> None:
        self._reach = reach

    def governed(self, target: str) -> bool:
        """Whether a dotted name leads to something that the roots of a manifest hold themselves."""
        parts = target.split(".")
        for count in range(len(parts), 0, -1):
            for path in paths_of(".".join(parts[:count])):
                if path in self._reach.head:
                    manifest = self._reach.case.governing(path)
                    if manifest is None:
                        return False
                    return not self._is_borrowed(manifest, path, parts[count:])
        return False

    def _is_borrowed(self, manifest: Manifest, path: str, names: Sequence[str]) -> bool:
        """Whether a module has a name only because it imports it from outside the roots."""
        case, side = self._reach.case, self._reach.head.get(path)
        try:
            exports = exports_of("" if side is None else source_of(case, side))
        except FactUnavailable:
            return False
        if not names or names[0] in exports.defined or names[0] not in exports.imported:
            return False
        modules = modules_of(case, manifest)
        module, level, member = exports.imported[names[0]]
        name = modules.absolute(path, module, level)
        origin = modules.path_of(f"{name}.{member}") or modules.path_of(name)
        return origin is None or case.governing(origin) is None

    def is_checked(self, target: str, checks: Sequence[Check]) -> bool:
        """Whether the assertions of the test speak of the very object."""
        name = target.rpartition(".")[2]
        return any(target in check.text or name in check.roots for check in checks)
