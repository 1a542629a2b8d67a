# SPDX-License-Identifier: Apache-2.0
"""Whether files that no digest holds were measured as somebody can have seen them.

The target branch moves on while a change waits, and what it had is what people let in: all of it
together, at one of its commits. So is what the change itself brings, which the rules look at. Any
other bytes were there only while it was measured: a file beside the tests that rigs them, and is
put back before anybody looks, is in no digest of the unit. Neither may one pick, file by file, from
what the branch had at different times.
"""

import hashlib
from collections.abc import Iterable, Mapping
from typing import Protocol

from fasttrack.case import Case
from fasttrack.change.change import Change
from fasttrack.change.tree import ABSENT, Side, Tree
from fasttrack.config import judged_or_head
from fasttrack.evidence.inputs import INPUT_LIMIT

Then = Mapping[str, str | None]
"""Paths to the SHA-256 of what was there; None for no file."""


class Around(Protocol):
    """What else there is and was in a repository than what digests hold."""

    def now(self, path: str) -> str | None:
        """The SHA-256 of the regular file at a path in the judged tree; None where there is none.

        Raises:
            FactUnavailable: it can not be read.
        """

    def foreign(self, then: Then, bound: Iterable[str]) -> tuple[str, ...]:
        """Paths that nobody can have seen as they were in a run; none when all can.

        Args:
            then: everything that the run had.
            bound: files that digests hold. A file that the run lacked counts as missing only
                where these, as they are now, stood without it.

        Raises:
            PastUnavailable: not as far as can be told, and not everything can be.
        """


class Nowhere:
    """Knows of nothing: right for whoever asks only for statements without such files."""

    def now(self, path: str) -> str | None:
        """No file."""
        return None

    def foreign(self, then: Then, bound: Iterable[str]) -> tuple[str, ...]:
        """All of them."""
        return tuple(sorted(then))


class Surroundings:
    """The bytes that paths have had, in the target branch and by the change."""

    def __init__(self, change: Change, tree: Tree) -> None:
        """Looks at nothing yet.

        Args:
            change: the change, or one revision alone.
            tree: the judged tree.
        """
        self._change = change
        self._tree = tree
        self._known: dict[tuple[object, ...], tuple[str, ...]] = {}
        self._sha256: dict[str, str] = {}

    def now(self, path: str) -> str | None:
        """See `Around`."""
        return self._digest(self._tree.get(path) or ABSENT)

    def foreign(self, then: Then, bound: Iterable[str]) -> tuple[str, ...]:
        """See `Around`."""
        theirs = {path: sha256 for path, sha256 in then.items() if not self._brings(path, sha256)}
        held = frozenset(bound if None in theirs.values() else ())
        asked = frozenset(theirs.items()), held
        if asked not in self._known:
            self._known[asked] = self._never(theirs, held)
        return self._known[asked]

    def _never(self, then: Then, held: Iterable[str]) -> tuple[str, ...]:
        """The paths that never were so or, if each was, all that are not so now."""
        entry = self._change.entry
        fixed = {path: self._tree.get(path) or ABSENT for path in held if not entry(path)}
        never = set(then)
        for sides in self._change.former([*then, *fixed]):
            other = {path for path, sha256 in then.items() if self._digest(sides[path]) != sha256}
            if not other and all(sides[path] == side for path, side in fixed.items()):
                return ()
            never &= other
        return tuple(sorted(never or (p for p, sha256 in then.items() if self.now(p) != sha256)))

    def _brings(self, path: str, sha256: str | None) -> bool:
        """Whether the change leaves a path as it was in the run."""
        entry = self._change.entry(path)
        return entry is not None and self._digest(entry.new) == sha256

    def _digest(self, side: Side) -> str | None:
        """None for no file; a link or a submodule has no bytes, and is something else than both."""
        if not side.present:
            return None
        if side.is_symlink or side.is_gitlink:
            return "a link"
        if side.oid not in self._sha256:
            content = self._change.blob(side, INPUT_LIMIT)
            self._sha256[side.oid] = hashlib.sha256(content).hexdigest()
        return self._sha256[side.oid]


def surroundings(case: Case) -> Surroundings:
    """Those of a case; ask `case.once` for it."""
    return Surroundings(case.change, judged_or_head(case.change))
