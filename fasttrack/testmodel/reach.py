# SPDX-License-Identifier: Apache-2.0
"""Which test files a change can weaken: those that it edits, and those that depend on its edits."""

import ast
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from fasttrack.case import Case
from fasttrack.change.imports import parse
from fasttrack.change.tree import Entry, Side, Tree
from fasttrack.config import judged_or_head
from fasttrack.errors import FactUnavailable
from fasttrack.globs import matches
from fasttrack.meaning.source import is_python, is_regular, source_of
from fasttrack.policy.model import PathClass
from fasttrack.testmodel.settings import INI_FILES
from fasttrack.testmodel.texts import Outline, outline, tainted

PACKAGE = "__init__.py"
PARSED_LIMIT = 3_000_000
"""Characters of both sides that are parsed, about 0.6 s."""
READERS = 150
"""Files of tests that are searched for the name of a data file."""
_DOCUMENTED = re.compile(
    rb"""^[ \t]*[rRuU]?('''|\"\"\").*?\1[ \t]*$|#[^\n]*""", re.MULTILINE | re.DOTALL
)
"""Texts that stand alone, such as docstrings, and comments: they read nothing."""
_TEST_NAME = re.compile(r"(?:^|/)(?:test_[^/]*|[^/]*_test|conftest)\.py$")


@dataclass
class Bounds:
    """How much of a change was looked at.

    Attributes:
        parsed: characters of the files that were parsed.
        left_out: files of tests that may say less and were not compared.
    """

    parsed: int = 0
    left_out: int = 0

    @property
    def spent(self) -> bool:
        """Whether no more files are parsed."""
        return self.parsed > PARSED_LIMIT


@dataclass(frozen=True, eq=False)
class Reach:
    """What of a change concerns tests.

    Attributes:
        case: the change.
    """

    case: Case

    @cached_property
    def base(self) -> Tree:
        """Files at the target branch."""
        return self.case.change.base

    @cached_property
    def head(self) -> Tree:
        """Files after the merge."""
        return judged_or_head(self.case.change)

    @cached_property
    def _patterns(self) -> tuple[str, ...]:
        manifests = (*self.case.base.valid.values(), *self.case.head.valid.values())
        found = {pattern for m in manifests for unit in m.units for pattern in unit.tests}
        named = {test.partition("::")[0] for m in manifests for test in m.evidence.tests}
        return tuple(sorted(found | named))

    def is_named(self, path: str) -> bool:
        """Whether a unit of a manifest, or its `evidence`, names the tests of a path."""
        return any(matches(pattern, path) for pattern in self._patterns)

    def is_tests(self, path: str) -> bool:
        """Whether a Python file belongs to the tests."""
        if not is_python(path):
            return False
        known = self._known.get(path)
        if known is None:
            known = self.case.path_class(path) is PathClass.TESTS
            known = known or bool(_TEST_NAME.search(path)) or self.is_named(path)
            self._known[path] = known
        return known

    @cached_property
    def _known(self) -> dict[str, bool]:
        return {}

    @cached_property
    def entries(self) -> tuple[Entry, ...]:
        """Changed paths that tests consist of, or that decide over them."""
        return tuple(
            entry
            for entry in self.case.entries
            if self.is_tests(entry.path) or entry.path.rpartition("/")[2] in INI_FILES
        )

    @cached_property
    def edited(self) -> tuple[str, ...]:
        """Python files of tests that were there and are not any more as they were."""
        return tuple(
            entry.path
            for entry in self.entries
            if is_python(entry.path) and self.differs(entry.path) and entry.path in self.base
        )

    @cached_property
    def added(self) -> tuple[str, ...]:
        """Python files of tests that come in addition."""
        return tuple(
            entry.path
            for entry in self.entries
            if is_python(entry.path) and entry.path not in self.base and entry.path in self.head
        )

    @cached_property
    def imported_first(self) -> tuple[str, ...]:
        """Added files that are imported before tests and do more than bind names."""
        return tuple(
            path
            for path in self.added
            if path.endswith("conftest.py") or (path.endswith(PACKAGE) and self._acts(path))
        )

    def _acts(self, path: str) -> bool:
        found = self.outline(self.head, path)
        return found is None or bool(found.others)

    @cached_property
    def settings_edited(self) -> bool:
        """Whether a file that may hold settings of pytest changed."""
        return any(entry.path.rpartition("/")[2] in INI_FILES for entry in self.entries)

    def differs(self, path: str) -> bool:
        """Whether a path is not after the merge what it was at the target branch."""
        return self.base.get(path) != self.head.get(path)

    def tainted(self, path: str, known: Iterable[str] = ()) -> frozenset[str] | None:
        """Names of a file that may mean something else; None when all may."""
        return tainted(self.outline(self.base, path), self.outline(self.head, path), known)

    def outline(self, tree: Tree, path: str) -> Outline | None:
        """The outline of a file on one side; None when there is none that can be read."""
        side = tree.get(path)
        if side is None:
            return None
        if side.oid not in self._outlines:
            try:
                self.parsed(side)
            except FactUnavailable:
                self._outlines[side.oid] = None
        return self._outlines[side.oid]

    def parsed(self, side: Side) -> ast.Module:
        """The syntax tree of a file, one for both sides of the change, with its outline.

        Raises:
            FactUnavailable: it can not be read or parsed, or too much was parsed before.
        """
        if side.oid not in self._trees:
            source = source_of(self.case, side)
            self.bounds.parsed += len(source)
            if self.bounds.spent:
                raise FactUnavailable("more code of tests than is read for one change")
            self._trees[side.oid] = parse(source)
            self._outlines[side.oid] = outline(self._trees[side.oid], source.split("\n"))
        return self._trees[side.oid]

    def close(self) -> None:
        """Lets go of all syntax trees, of which there are many."""
        self._trees.clear()
        self._outlines.clear()

    @cached_property
    def bounds(self) -> "Bounds":
        """What was left out because it was too much."""
        return Bounds()

    @cached_property
    def _trees(self) -> dict[str, ast.Module]:
        return {}

    @cached_property
    def _outlines(self) -> dict[str, Outline | None]:
        return {}

    def reader_of(self, path: str) -> str:
        """A test file that names a data file; empty when none of those searched does."""
        folder, _, name = path.rpartition("/")
        around = folder.rpartition("/")[0]
        near = [p for p in self.base if self.is_tests(p) and p.startswith(around)]
        sides = [(p, side) for p in near[:READERS] if (side := self.base.get(p))]
        sides = [(p, side) for p, side in sides if is_regular(side)]
        wanted = name.encode("utf-8", "surrogateescape")
        blobs = self.case.change.blobs([side for _, side in sides])
        for (reader, _), blob in zip(sides, blobs, strict=True):
            if wanted in blob and wanted in _DOCUMENTED.sub(b"", blob):
                return reader
        return ""


def is_plain_test(path: str) -> bool:
    """Whether a file is named like a test module; `conftest.py` is none."""
    return bool(_TEST_NAME.search(path)) and not path.endswith("conftest.py")
