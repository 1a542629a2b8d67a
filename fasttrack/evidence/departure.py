# SPDX-License-Identifier: Apache-2.0
"""What a plan's commit has otherwise than the target branch where it left it, beside the digests.

Whoever measures can rig a run by files that no digest holds: one that stands in for another, a
harness that lets everything pass, a check that is taken away. Any of them makes the commit differ
from the one of the target branch that it descends from, and `sign` has git to tell where. So a
statement names that commit and these differences, whether or not a run was seen to use them, and
nothing of what was as on the target branch.

What a file is called decides whether it counts (`fasttrack.evidence.counted`), not whether the run
was seen to read it: a compiler reads headers, a program asks whether a file is there, and an
environment in the tree may hold anything. Configuration counts where the run read it, too. What a
run used with other bytes than its commit's counts as it was used.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import date, datetime

from pydantic import ValidationError

from fasttrack.change.change import Change
from fasttrack.change.tree import ABSENT, Entry
from fasttrack.config import needed
from fasttrack.errors import InputError
from fasttrack.evidence.counted import Counted
from fasttrack.evidence.plan import Plan
from fasttrack.evidence.predicates.common import MAX_APART, BoundaryFile, Inputs
from fasttrack.evidence.side_digest import SideDigests
from fasttrack.evidence.statement import problems_of
from fasttrack.evidence.surroundings import START_DAYS, days_behind
from fasttrack.evidence.unit_paths import unbound_paths

Near = Collection[BoundaryFile]
"""What a unit's files and tests import directly from outside the roots."""


class Departure:
    """What a plan's commit has otherwise than the target branch.

    Attributes:
        target: the newest of the target branch's own commits that the plan's descends from.
    """

    def __init__(self, change: Change, roots: Sequence[str], folder: str) -> None:
        """Compares the commits.

        Args:
            change: from the target branch to the plan's commit.
            roots: the manifest's roots at that commit.
            folder: of the configuration.

        Raises:
            FactUnavailable: the histories do not meet in what is looked at, or is here.
        """
        self.target = change.branch_point
        self._tree = change.head_files
        self._digests = SideDigests(change)
        self._counts = Counted(roots, unbound_paths(folder))
        self._others = [entry for entry in change.departed if _other_bytes(entry)]

    def told(self, inputs: Inputs, bound: Collection[str], near: Near, where: str) -> Inputs:
        """What a statement says when it is signed, from what was collected.

        Args:
            inputs: of a run, with every file that it was seen to use.
            bound: paths of the files that its digests hold.
            near: the boundary of its unit in the plan's commit.
            where: how messages name the statement.

        Raises:
            FactUnavailable: a file that can not be read.
            InputError: too many files to tell, or a name that can not be told.
        """
        used = {file.path: file.sha256 for file in inputs.boundary}
        known = used.keys() | {file.path for file in near}
        apart = {
            entry.path: self._digests.of(entry.new)
            for entry in self._others
            if entry.path not in bound and (entry.path in known or self._counts.counts(entry))
        }
        apart |= self._edited(used)
        if len(apart) > MAX_APART:
            saw = f"{len(apart):,} files in no digest that are not as on the target branch"
            fix = "measure a commit that is nearer to the target branch"
            raise InputError.one(where, saw, f"at most {MAX_APART:,}", fix)
        files = [{"path": path, "sha256": apart[path]} for path in sorted(apart)]
        change = {"boundary": tuple(near), "target": self.target, "apart": tuple(files)}
        try:
            return Inputs(**(dict(inputs) | change))
        except ValidationError as error:
            raise InputError(problems_of(error, where)) from error

    def _edited(self, used: Mapping[str, str]) -> Iterator[tuple[str, str]]:
        """The files that a run used with other bytes than its commit has."""
        for path, sha256 in used.items():
            if self._digests.of(self._tree.get(path) or ABSENT) != sha256:
                yield path, sha256


def _other_bytes(entry: Entry) -> bool:
    """Whether more differs than the bit that says that a file can be executed."""
    return entry.old.oid != entry.new.oid or entry.is_symlink or entry.is_gitlink


def require_recent(change: Change, where: str, moment: datetime) -> None:
    """Refuses what coverage will not count, before anybody measures or signs it.

    Args:
        change: from the target branch to the commit that is measured.
        where: how messages name what asks.
        moment: when the run starts.

    Raises:
        FactUnavailable: the histories do not meet in what is looked at, or is here.
        InputError: the target branch went on from where the commit descends from too long ago.
    """
    target = change.branch_point
    if (days := days_behind(change, target, moment)) > START_DAYS:
        saw = f"it starts from {target[:12]}, which the target branch left {days} days before"
        fix = "rebase onto the target branch, then plan and measure"
        raise InputError.one(where, saw, f"at most {START_DAYS} days", fix)


def require_fresh(where: str, started: date, day: date) -> None:
    """Refuses a run that began long before it is signed: only its own clock says when.

    Args:
        where: how messages name the run.
        started: the day on which it says that it began.
        day: the signer's.

    Raises:
        InputError: more days lie between.
    """
    if (days := (day - started).days) > START_DAYS:
        saw = f"a run that says it began {days} days ago"
        raise InputError.one(where, saw, f"at most {START_DAYS} days", "measure and sign again")


def departure(change: Change, plan: Plan, folder: str) -> Departure:
    """The same, where nothing can go on without: what can not be told is an InputError.

    Args:
        change: from the target branch to the plan's commit.
        plan: the plan.
        folder: of the configuration.
    """
    with needed(f"commit {plan.commit[:12]}"):
        return Departure(change, plan.roots, folder)
