# SPDX-License-Identifier: Apache-2.0
"""Unedited files of tests that an edit can weaken: they use what it touched in other files.

Words decide who is looked at: a file that names the module of an edited helper and one of its
names may use it. Whether it does, and what that means, is found out when its tests are compared.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice

from fasttrack.change.tree import ABSENT
from fasttrack.testmodel.reach import PACKAGE, Reach, is_plain_test

COMPARED_FILES = 30
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
        uses = self._uses
        found = self._users([p for p in self._unedited if is_plain_test(p)], uses) if uses else ()
        return tuple(islice(found, COMPARED_FILES + 1))

    @property
    def tainted(self) -> frozenset[str] | None:
        """Names that edited helpers give another meaning; None when that can not be told."""
        _ = self._uses
        return None if None in self._taints.values() else self._known

    @cached_property
    def _uses(self) -> Sequence["Use"]:
        """What shows that a file uses an edited helper, or one between it and an edited one."""
        fresh: list[str] = [p for p in self.reach.edited if not is_plain_test(p)]
        fresh += self.reach.imported_first
        found: list[Use] = []
        for number in range(CHAIN + 1):
            uses = [use for path in fresh if (use := self._use_of(path)) is not None]
            found += uses
            if not uses or number == CHAIN:
                break
            helpers = [p for p in self._unedited if not is_plain_test(p) and p not in self._taints]
            fresh = list(self._users(helpers, uses))
        return found

    @cached_property
    def _taints(self) -> dict[str, frozenset[str] | None]:
        """Edited helpers, and those between them and tests, to the names that they taint."""
        return {}

    @property
    def _known(self) -> frozenset[str]:
        return frozenset().union(*(names for names in self._taints.values() if names is not None))

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

    def _use_of(self, path: str) -> "Use | None":
        """How a file shows that it may use what changed in a helper; None when nothing did."""
        names = self.reach.tainted(path, self._known)
        self._taints[path] = names
        if names is not None and not names:
            return None
        few = names is not None and len(names) <= MANY_NAMES
        says = tuple(map(_bytes, sorted({*(names or ()), "import *"}))) if few else None
        if path.endswith("conftest.py") or (path.endswith(PACKAGE) and names is None):
            return Use(b"", says, path[: path.rfind("/") + 1])
        return Use(_bytes(_stem(path)), says, "")

    def _users(self, paths: Sequence[str], uses: Sequence["Use"]) -> Iterator[str]:
        reach = self.reach
        sides = [reach.base.get(path) or ABSENT for path in paths[:SEARCHED_FILES]]
        read = 0
        for path, blob in zip(paths, reach.case.change.blobs(sides), strict=False):
            read += len(blob)
            if read > SEARCHED_BYTES:
                break
            if any(use.holds(path, blob) for use in uses):
                yield path
        else:
            return
        reach.bounds.left_out += reach.is_named(path)


@dataclass(frozen=True)
class Use:
    """How a test file shows that it may use something; whether it does is found out later.

    Attributes:
        module: the name that it imports.
        names: what it takes from there, one of them; None when that does not matter.
        folder: where it lies.
    """

    module: bytes
    names: tuple[bytes, ...] | None
    folder: str

    def holds(self, path: str, blob: bytes) -> bool:
        """Whether a file shows it."""
        if not path.startswith(self.folder) or self.module not in blob:
            return False
        return self.names is None or any(name in blob for name in self.names)


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _stem(path: str) -> str:
    """The last part of a module's name."""
    parts = path.removesuffix(".py").split("/")
    return parts[-2] if parts[-1] == "__init__" and len(parts) > 1 else parts[-1]
