# SPDX-License-Identifier: Apache-2.0
"""Whether files that no digest holds were measured as somebody can have seen them.

A statement names the commit of the target branch that its run started from, and what was otherwise
than there (`fasttrack.evidence.departure`). What the branch had is what people let in, and what the
change brings is what the rules look at. So the commit must be one of the branch's own, and all the
differences must stand together in what would be merged, or in what the change brings, or have stood
so at one of the branch's later commits: the change has landed then. Any other bytes were there only
while it was measured, or were picked, file by file, from what the branch had at different times.

Nor may the run have started from what the branch had long before, with checks that were lax around
the code then. By when it went on from the commit, not by when that was made: a branch that stands
still keeps its evidence.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Protocol

from fasttrack.case import Case
from fasttrack.change.change import Change
from fasttrack.change.tree import ABSENT, Side, Tree
from fasttrack.config import judged_or_head
from fasttrack.evidence.predicates.common import Inputs
from fasttrack.evidence.side_digest import SideDigests

START_DAYS = 14
"""Days for which a commit may be measured after the target branch went on from it."""
_DAY = 24 * 60 * 60

Then = Mapping[str, str | None]
"""Paths to the SHA-256 of what was there; None for no file."""


class Around(Protocol):
    """What else there is and was in a repository than what digests hold."""

    def now(self, path: str) -> str | None:
        """The digest of what is at a path in the judged tree; None where nothing is.

        Raises:
            FactUnavailable: it can not be read.
        """

    def was_at(self, commit: str) -> bool:
        """Whether the target branch is at a commit, or was.

        Raises:
            PastUnavailable: not as far as can be told.
        """

    def has_merged(self, commit: str) -> bool:
        """Whether a commit where the target branch never was came to it by a merge."""

    def days_behind(self, commit: str, moment: datetime) -> int:
        """Days after which the target branch went on from a commit that `was_at` knows; 0 or more.

        Args:
            commit: where a run started from.
            moment: when.
        """

    def strange(self, ran: Inputs, moved: Then, bound: Iterable[str]) -> tuple[str, ...]:
        """Paths that nobody can have seen as they were in a run; none when all can.

        Args:
            ran: where the run started from, which `was_at` knows, and what was otherwise there.
            moved: what it had just outside the roots that is otherwise now.
            bound: files that digests hold.

        Raises:
            PastUnavailable: what the branch had can not be told.
        """


class Nowhere:
    """Knows of no branch: right for whoever asks only for statements without such files."""

    def now(self, path: str) -> str | None:
        """No file."""
        return None

    def was_at(self, commit: str) -> bool:
        """At any commit: nothing tells it from another."""
        return True

    def has_merged(self, commit: str) -> bool:
        """Nothing."""
        return False

    def days_behind(self, commit: str, moment: datetime) -> int:
        """None: it is still there."""
        return 0

    def strange(self, ran: Inputs, moved: Then, bound: Iterable[str]) -> tuple[str, ...]:
        """All of them."""
        return tuple(sorted({*moved, *(file.path for file in ran.apart)}))


class Surroundings:
    """What paths have had, in the target branch and by the change."""

    def __init__(self, change: Change, tree: Tree) -> None:
        """Looks at nothing yet.

        Args:
            change: the change, or one revision alone.
            tree: the judged tree.
        """
        self._change = change
        self._tree = tree
        self._digests = SideDigests(change)
        self._known: dict[tuple[object, ...], tuple[str, ...]] = {}

    def now(self, path: str) -> str | None:
        """See `Around`."""
        return self._digests.of(self._tree.get(path) or ABSENT)

    def was_at(self, commit: str) -> bool:
        """See `Around`."""
        return self._change.was_at(commit)

    def has_merged(self, commit: str) -> bool:
        """See `Around`."""
        return self._change.has_merged(commit)

    def days_behind(self, commit: str, moment: datetime) -> int:
        """See `Around`."""
        return days_behind(self._change, commit, moment)

    def strange(self, ran: Inputs, moved: Then, bound: Iterable[str]) -> tuple[str, ...]:
        """See `Around`."""
        apart = {file.path: file.sha256 for file in ran.apart}
        others = {
            path: sha256 for path, sha256 in moved.items() if (path, sha256) not in apart.items()
        }
        own = self._left_alone(bound) if others else frozenset[str]()
        asked = ran.target, frozenset(apart.items()), frozenset(others.items()), own
        if asked not in self._known:
            self._known[asked] = self._strange(str(ran.target), apart, others, own)
        return self._known[asked]

    def _strange(
        self, start: str, apart: Then, others: Then, own: Iterable[str]
    ) -> tuple[str, ...]:
        missing = tuple(path for path in sorted(apart) if self.now(path) != apart[path])
        if missing and self._brings(apart):
            missing = ()
        if not missing and not others:
            return ()
        sides: Mapping[str, Side] = {}
        for sides in self._change.former([*apart, *others, *own], start):
            if missing and self._agree(sides, {**apart, **others}) and self._same(sides, own):
                return ()
        if missing:
            return missing
        if not self._same(sides, own):
            return tuple(sorted(others))
        return tuple(p for p in sorted(others) if self._digests.of(sides[p]) != others[p])

    def _same(self, sides: Mapping[str, Side], paths: Iterable[str]) -> bool:
        return all(sides[path] == (self._tree.get(path) or ABSENT) for path in paths)

    def _brings(self, then: Then) -> bool:
        """Whether the change leaves all paths as they were; merging may add what others did.

        With several merge bases merging can also undo what the change brings beside one of them.
        """
        entries = {path: self._change.entry(path) for path in then}
        return self._change.merges_from_its_start and all(
            entry is not None and self._digests.of(entry.new) == then[path]
            for path, entry in entries.items()
        )

    def _agree(self, sides: Mapping[str, Side], then: Then) -> bool:
        return all(self._digests.of(sides[path]) == then[path] for path in then)

    def _left_alone(self, bound: Iterable[str]) -> frozenset[str]:
        """Of the files that digests hold those that a change of some of them does not bring.

        The target branch had them so where the run started, or they were carried back to what it
        had around them before. Of a change that has landed nothing is left to bring.
        """
        paths = frozenset(bound)
        mine = frozenset(path for path in paths if self._change.entry(path))
        return paths - mine if mine else mine


def days_behind(change: Change, commit: str, moment: datetime) -> int:
    """Days from when a target branch went on from one of its commits until a moment, at least 0.

    Args:
        change: any change of that branch.
        commit: one that `Change.was_at` knows.
        moment: when a run started there.
    """
    left = change.left_at(commit)
    return 0 if left is None else max(0, int(moment.timestamp()) - left) // _DAY


def surroundings(case: Case) -> Surroundings:
    """Those of a case; ask `case.once` for it."""
    return Surroundings(case.change, judged_or_head(case.change))
