# SPDX-License-Identifier: Apache-2.0
"""Whether a run had what the target branch had where it started, with the change on top of it.

A statement names the commit of the target branch that its run started from, and what was otherwise
than there (`fasttrack.evidence.departure`). What the branch had is what people let in, and what the
change brings is what the rules look at; no other bytes were to be there, and none of either alone.
So the commit must be one of the branch's own. What was otherwise than there, in digests or not,
must be what the change does to just those files; or, once it has landed, what one later commit of
the branch did to them. A few files of a newer branch on top of an older one never stood together:
tests that rely on a check that was not made yet, or an import that is strict beside one that is
lax. What landed in between counts only whole, but for what was measured as it then landed.

And the run must have had the lines by which the change wires the path up elsewhere: they are
measured with the rest. No other file elsewhere is a change's to edit on the fast track.

Nor may the run have started from what the branch had long before, with checks that were lax around
the code then. By when it went on from the commit, not by when that was made: a branch that stands
still keeps its evidence.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Protocol

from fasttrack.case import Case, lies_in
from fasttrack.change.change import Change
from fasttrack.change.tree import ABSENT, Side, Tree
from fasttrack.config import judged_or_head
from fasttrack.evidence.counted import Counted
from fasttrack.evidence.inputs import UnitInputs
from fasttrack.evidence.predicates.common import Inputs
from fasttrack.evidence.side_digest import SideDigests

START_DAYS = 14
"""Days for which a commit may be measured after the target branch went on from it."""
_DAY = 24 * 60 * 60
TRIES = 16
"""Commits of the target branch that a run's surroundings are held against whole."""

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

    def strange(self, ran: Inputs, moved: Then, unit: UnitInputs) -> tuple[str, ...]:
        """Paths that nobody can have seen as they were in a run; none when all can.

        Args:
            ran: where the run started from, which `was_at` knows, and what was otherwise there.
            moved: what it had just outside the roots that is otherwise now.
            unit: the unit's inputs now, which the run had, too.

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

    def strange(self, ran: Inputs, moved: Then, unit: UnitInputs) -> tuple[str, ...]:
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

    def strange(self, ran: Inputs, moved: Then, unit: UnitInputs) -> tuple[str, ...]:
        """See `Around`."""
        apart = {file.path: file.sha256 for file in ran.apart}
        others = {path: sha256 for path, sha256 in moved.items() if path not in apart}
        picked = {path for path in moved.keys() & apart.keys() if moved[path] != apart[path]}
        bytes_now = unit.unit, unit.digest, unit.tests_digest
        asked = ran.target, frozenset(apart.items()), frozenset(others.items()), bytes_now
        if asked not in self._known:
            self._known[asked] = self._strange(str(ran.target), apart, others, unit)
        return tuple(sorted({*picked, *self._known[asked]}))

    def _strange(self, start: str, apart: Then, others: Then, unit: UnitInputs) -> tuple[str, ...]:
        run = _Run(self._change, self._tree, self._digests, start)
        if moved := tuple(p for p in sorted(others) if run.digest_at_start(p) != others[p]):
            return moved
        if lacking := run.lacks(apart, unit):
            return lacking
        own = run.own(apart, unit)
        rest = {p: sha for p, sha in own.items() if not run.is_brought(p, sha, p in unit.bound)}
        if not rest or run.has_landed(own, rest, unit):
            return ()
        return tuple(sorted(rest))


class _Run:
    """What a run had, beside what the target branch had where it started."""

    def __init__(self, change: Change, tree: Tree, digests: SideDigests, start: str) -> None:
        self._change, self._tree, self._digests, self._start = change, tree, digests, start
        self._since = change.between(start, change.base_tip) if start != change.base_tip else {}

    def _at_start(self, path: str) -> Side:
        entry = self._since.get(path)
        return entry.old if entry else self._change.base.get(path) or ABSENT

    def digest_at_start(self, path: str) -> str | None:
        """Of what the branch had there where the run started."""
        return self._digests.of(self._at_start(path))

    def own(self, apart: Then, unit: UnitInputs) -> Then:
        """What it had otherwise than there: surroundings, and files that digests hold."""
        now = {path: self._tree.get(path) or ABSENT for path in unit.bound}
        own = {
            path: self._digests.of(side)
            for path, side in now.items()
            if side.oid != self._at_start(path).oid
        }
        others = {p: sha256 for p, sha256 in apart.items() if sha256 != self.digest_at_start(p)}
        return others | own

    def lacks(self, apart: Then, unit: UnitInputs) -> tuple[str, ...]:
        """Where the change wires the path up and the run did not have it so."""
        entries = [self._change.entry(path) for path in {*unit.wired} - unit.bound]
        return tuple(
            entry.path
            for entry in entries
            if entry and self._digests.of(entry.new) != self._had(entry.path, apart)
        )

    def _had(self, path: str, apart: Then) -> str | None:
        return apart[path] if path in apart else self.digest_at_start(path)

    def is_brought(self, path: str, sha256: str | None, bound: bool) -> bool:
        """Whether the change makes it so of what was there; merging may add what others did.

        Not to files that digests hold: what the branch did to these meanwhile, it brought. With
        several merge bases merging can also undo what the change brings beside one of them.
        """
        entry = self._change.entry(path)
        return (
            entry is not None
            and self._change.merges_from_its_start
            and not (bound and path in self._since)
            and entry.old == self._at_start(path)
            and self._digests.of(entry.new) == sha256
        )

    def has_landed(self, own: Then, rest: Then, unit: UnitInputs) -> bool:
        """Whether the branch did the rest since: all that it did, or a single change of it.

        A change is one commit, and the run had all that counts of it. What other commits did
        before, the run may lack only where nothing else is otherwise than at its start, and what
        was measured stands as it landed.
        """
        tried = 0
        for step in self._change.steps(rest, self._start):
            if any(self._digests.of(step.after[path]) != sha256 for path, sha256 in rest.items()):
                continue
            alone = all(side == self._at_start(path) for path, side in step.before.items())
            landed = alone and own == rest and self._stands_since(step.commit, unit)
            since = step.parent if landed else self._start
            if self._had_all(since, step.commit, own, unit):
                return True
            tried += 1
            if tried == TRIES:
                return False
        return False

    def _stands_since(self, commit: str, unit: UnitInputs) -> bool:
        """Whether a unit is as it was at a commit.

        It can have lost a file that it then had only by a change that takes one away.
        """
        tip = self._change.base_tip
        since = self._change.between(commit, tip) if commit != tip else {}
        counted = Counted(unit.roots, unit.unbound)
        return not any(path in unit.bound for path in since) and not any(
            entry.path in unit.bound
            or (entry.deleted and (counted.counts(entry) or lies_in(unit.roots, entry.path)))
            for entry in self._change.entries
        )

    def _had_all(self, since: str, commit: str, own: Then, unit: UnitInputs) -> bool:
        """Whether the run had all that counts of what the branch did between two commits."""
        counted = Counted(unit.roots, unit.unbound)
        return all(
            path in own and self._digests.of(entry.new) == own[path]
            for path, entry in self._change.between(since, commit).items()
            if path in unit.bound or path in own or counted.counts(entry)
        )


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
