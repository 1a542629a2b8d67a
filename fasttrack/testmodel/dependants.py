# SPDX-License-Identifier: Apache-2.0
"""Unedited files of tests that an edit can weaken: they use what it touched in other files.

Imports decide who is looked at: a file that takes a tainted name from an edited helper may use it,
and so may one that names its module and imports in a way that is not told. Whether it does, and
what that means, is found out when its tests are compared.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice

from fasttrack.change.tree import ABSENT
from fasttrack.testmodel.reach import PACKAGE, Reach, is_plain_test
from fasttrack.testmodel.taken import Taken, stem_of

COMPARED_FILES = 120
"""Unedited test files that are compared because of an edited helper."""
SEARCHED_FILES = 2_000
"""Files of tests that are searched for uses of an edited helper."""
SEARCHED_BYTES = 16 * 1024 * 1024
CHAIN = 3
"""Helpers that lead from an edited helper to a test."""
MANY_NAMES = 30
"""Names of a helper beyond which a file that names its module is not searched for each of them."""


@dataclass(frozen=True, eq=False)
class Dependants:
    """What uses the edited helpers of a change.

    Attributes:
        reach: what of the change concerns tests.
    """

    reach: Reach

    @cached_property
    def tests(self) -> tuple[str, ...]:
        """Test files, those that a manifest names first; one more than are compared if too many."""
        uses = tuple(self._uses.values())
        found = self._users([p for p in self._unedited if is_plain_test(p)], uses) if uses else ()
        return tuple(islice(found, COMPARED_FILES + 1))

    def tainted(self, path: str) -> frozenset[str] | None:
        """Names of a file of tests that may mean something else; None when all may.

        Its own edit makes them so, or that of a helper that it takes names from.
        """
        if path not in self._tainted:
            self._tainted[path] = self._tainted_by(path, self._uses.values())
        return self._tainted[path]

    def _tainted_by(self, path: str, uses: Iterable["Use"]) -> frozenset[str] | None:
        known: set[str] = set()
        for use in uses:
            if use.path == path:
                continue
            names = use.names_in(self._taken(path))
            if names is None:
                return None
            known |= names
        return self.reach.tainted(path, known)

    @cached_property
    def _tainted(self) -> dict[str, frozenset[str] | None]:
        return {}

    @cached_property
    def _uses(self) -> Mapping[str, "Use"]:
        """Edited helpers, and those between them and tests, with what is tainted in each."""
        found: dict[str, Use] = {}
        edited = [p for p in self.reach.edited if not is_plain_test(p)]
        fresh = [*edited, *self.reach.imported_first]
        for number in range(CHAIN + 1):
            uses: list[Use] = []
            for path in fresh:
                use = self._use_of(path, found.values())
                if use is not None and use != found.get(path):
                    found[path] = use
                    uses.append(use)
            if not uses or number == CHAIN:
                break
            helpers = [*edited, *(p for p in self._unedited if not is_plain_test(p))]
            fresh = list(self._users(helpers, uses))
        return found

    @cached_property
    def _unedited(self) -> Sequence[str]:
        """Files of tests that the change leaves alone, those that a manifest names first."""
        reach = self.reach
        paths = [
            path
            for path in reach.base
            if reach.is_tests(path) and path in reach.head and not reach.differs(path)
        ]
        return sorted(paths, key=lambda path: not reach.is_named(path))

    def _use_of(self, path: str, known: Iterable["Use"]) -> "Use | None":
        """How a file shows that it may use what changed in a helper; None when nothing did."""
        names = self._tainted_by(path, tuple(known))
        if names is not None and not names:
            return None
        around = path.endswith("conftest.py") or (path.endswith(PACKAGE) and names is None)
        return Use(path, names, path[: path.rfind("/") + 1] if around else None)

    def _users(self, paths: Sequence[str], uses: Sequence["Use"]) -> Iterator[str]:
        reach = self.reach
        sides = [reach.base.get(path) or ABSENT for path in paths[:SEARCHED_FILES]]
        read = 0
        for path, blob in zip(paths, reach.case.change.blobs(sides), strict=False):
            read += len(blob)
            if read > SEARCHED_BYTES:
                break
            taken = Taken(path, blob)
            if any(use.holds(taken) for use in uses):
                self._known_taken[path] = taken
                yield path
        else:
            return
        reach.bounds.left_out += reach.is_named(path)

    @cached_property
    def _known_taken(self) -> dict[str, Taken]:
        return {}

    def _taken(self, path: str) -> Taken:
        """What a file takes from others, at the target branch where it is there."""
        if path not in self._known_taken:
            side = self.reach.base.get(path) or self.reach.head.get(path) or ABSENT
            blob = b"".join(self.reach.case.change.blobs([side]))
            self._known_taken[path] = Taken(path, blob)
        return self._known_taken[path]


@dataclass(frozen=True)
class Use:
    """A helper that an edit gives another meaning, and what shows that a file may use it.

    Attributes:
        path: the helper.
        names: what is tainted in it; None when all may be.
        folder: below which files have its names without an import; None where they import it.
    """

    path: str
    names: frozenset[str] | None
    folder: str | None

    def holds(self, taken: Taken) -> bool:
        """Whether a file shows that it uses it."""
        names = self.names_in(taken)
        return names is None or bool(names)

    def names_in(self, taken: Taken) -> frozenset[str] | None:
        """Tainted names that a file may have from here; None when all of its names may be."""
        if self.folder is not None and taken.path.startswith(self.folder):
            return self._said(taken)
        inside = self.path.endswith(PACKAGE) and taken.path.startswith(f"{stem_of(self.path)}/")
        module = b"." if inside else self._module  # `from . import x` names no package
        if module not in taken.blob:
            return frozenset()
        if taken.may_hide(module):
            return self._said(taken)
        names = taken.of(self.path)
        if names is None:
            return self._said(taken)
        return names if self.names is None else names & self.names

    def _said(self, taken: Taken) -> frozenset[str] | None:
        """All tainted names, where a file says one of them, or takes whatever there is."""
        if self.names is None:
            return None
        few = len(self.names) <= MANY_NAMES
        if not few or b"import *" in taken.blob or any(n in taken.blob for n in self._bytes):
            return self.names
        return frozenset()

    @cached_property
    def _bytes(self) -> Sequence[bytes]:
        return tuple(map(_bytes, sorted(self.names or ())))

    @cached_property
    def _module(self) -> bytes:
        return _bytes(stem_of(self.path).rpartition("/")[2])


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")
