# SPDX-License-Identifier: Apache-2.0
"""What a branch had at some paths together, commit by commit, as far back as anybody asks.

Back along first parents alone: what was merged into the branch never was the branch, so that what a
change held before its last commit is none of it. The way back ends at the commit that somebody
started from, which must be one of them. The number of commits bounds the way. Where a clone was
cut off before that bound, what the branch had earlier can not be told. A date is told of the
branch's own commits alone, as whoever may put commits there chose it.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from fasttrack.change.git import Git
from fasttrack.change.tree import Side, path_bytes, raw_entries_of_commits
from fasttrack.errors import FactUnavailable

COMMITS_LIMIT = 4096
"""Commits that are looked at: a few months of the busiest projects, which is how long evidence
lasts."""
STEP = 512
"""Commits of one question to git; mostly the first answers it."""
STEP_BYTES = 16 * 1024 * 1024
"""Bytes of one answer."""
PATHS_BYTES = 64 * 1024
"""Bytes of the paths that one question names; systems bound command lines."""

_Replaced = list[tuple[str, Side]]
"""Paths that one commit changed, as they were before."""


class PastUnavailable(FactUnavailable):
    """What a branch had earlier can not be told from this clone."""


@dataclass(frozen=True)
class Step:
    """One commit of a branch, by what it does to some paths.

    Attributes:
        parent: where the branch was before.
        commit: where it then was.
        before: the paths at `parent`; absent sides too.
        after: the same at `commit`.
    """

    parent: str
    commit: str
    before: Mapping[str, Side]
    after: Mapping[str, Side]


class FormerSides:
    """The sides of one branch's paths; each path is asked for once."""

    def __init__(self, git: Git, tip: str) -> None:
        """Asks nothing yet."""
        self._git = git
        self._tip = tip
        self._asked: dict[int, set[str]] = {}
        self._replaced: dict[int, list[_Replaced]] = {}
        self._failed: PastUnavailable | None = None

    def steps(self, now: Mapping[str, Side], since: str) -> Iterator[Step]:
        """The branch's commits that changed some paths, newest first.

        Args:
            now: what is there at the tip; absent sides too.
            since: a commit that `has` knows; those after it come.

        Raises:
            PastUnavailable: trees that are not in this clone, or too many changes.
        """
        after = dict(now)
        end = self._place[since]
        for start in range(0, end, STEP):
            for number, replaced in enumerate(self._step(start, now)[: end - start], start):
                mine = {path: side for path, side in replaced if path in after}
                if mine:
                    before = after | mine
                    yield Step(self._commits[number + 1], self._commits[number], before, after)
                    after = before

    def has(self, commit: str) -> bool:
        """Whether the branch is at a commit or was, as far back as anybody looks.

        Raises:
            PastUnavailable: not in this clone, which is cut off.
        """
        if commit in self._place:
            return True
        self._require_whole()
        return False

    def left_at(self, commit: str) -> int | None:
        """When the branch went on from one of its commits; None while it is there.

        Args:
            commit: one that `has` knows.

        Returns:
            Seconds since the epoch: the earliest committer date of the commits that followed that
            is no earlier than the commit's own, as whoever makes a commit chooses its date; the
            commit's own where there is none.
        """
        number = self._place[commit]
        own = self._own[number][0]
        followed = [date for date, _ in self._own[:number] if date >= own]
        return min(followed, default=own) if number else None

    def has_merged(self, commit: str) -> bool:
        """Whether a commit that the branch never was at is below one of its own all the same."""
        found = self._git.run("merge-base", "--is-ancestor", commit, self._tip, accept=(0, 1, 128))
        return found.code == 0

    def newest_below(self, commit: str) -> str:
        """The newest commit of the branch that another one descends from, or is.

        Raises:
            PastUnavailable: none of those that anybody looks at.
        """
        # Where dates lie, git may take more of them for newer, never fewer: an older one is found.
        newer = len(self._first_parents(f"^{commit}"))
        if newer < len(self._commits):
            return self._commits[newer]
        self._require_whole()
        raise PastUnavailable(
            f"{commit[:12]} descends from none of the branch's last {COMMITS_LIMIT:,} commits"
        )

    def _require_whole(self) -> None:
        if self._cut:
            saw = f"this clone is cut off at {self._cut[:12]}, and what the branch had before"
            raise PastUnavailable(f"{saw} can not be told: git fetch --unshallow")

    @cached_property
    def _own(self) -> Sequence[tuple[int, str]]:
        return self._first_parents()

    @cached_property
    def _commits(self) -> Sequence[str]:
        return tuple(commit for _, commit in self._own)

    def _first_parents(self, *without: str) -> Sequence[tuple[int, str]]:
        """The branch's own commits with their dates, newest first; one more than we look at."""
        options = ("--first-parent", "--timestamp", f"--max-count={COMMITS_LIMIT + 1}")
        out = self._git.run("rev-list", *options, self._tip, *without, "--").out
        pairs = (line.split() for line in out.decode("ascii").splitlines())
        return tuple((int(date), commit) for date, commit in pairs)

    @cached_property
    def _place(self) -> Mapping[str, int]:
        """Where each commit stands among them; statements by the thousand ask."""
        return {commit: number for number, commit in enumerate(self._commits)}

    @cached_property
    def _pairs(self) -> Sequence[tuple[str, str]]:
        """Commits with their first parents."""
        return tuple(pairwise(self._commits))

    @property
    def _cut(self) -> str:
        """The commit at which a shallow clone ends the way too early; empty when none does."""
        last = self._commits[-1]
        return last if len(self._pairs) < COMMITS_LIMIT and last in self._git.shallow else ""

    def _step(self, start: int, paths: Collection[str]) -> Sequence[_Replaced]:
        """What each commit of a step changed, newest first; of all paths asked for so far."""
        if self._failed:
            raise self._failed
        pairs = self._pairs[start : start + STEP]
        asked = self._asked.setdefault(start, set())
        found = self._replaced.setdefault(start, [[] for _ in pairs])
        new = sorted(set(paths) - asked)
        try:
            for some in _portions(new):
                self._ask(pairs, some, found)
        except FactUnavailable as reason:
            lacks = "unable to read" in str(reason)
            fix = "; git fetch --refetch --no-filter brings what is not here" if lacks else ""
            self._failed = PastUnavailable(f"{reason}{fix}")
            raise self._failed from reason
        asked.update(new)
        return found

    def _ask(
        self, pairs: Sequence[tuple[str, str]], paths: Sequence[str], found: Sequence[_Replaced]
    ) -> None:
        """Adds what some commits changed of some paths, as it was before."""
        options = ("--stdin", "-r", "-z", "--raw", "--no-renames", "--no-abbrev")
        asked = "".join(f"{commit} {parent}\n" for commit, parent in pairs).encode("ascii")
        named = (f":(literal){path}" for path in paths)
        raw = self._git.run("diff-tree", *options, "--", *named, stdin=asked, limit=STEP_BYTES).out
        place = {commit: number for number, (commit, _) in enumerate(pairs)}
        wanted = frozenset(paths)
        for commit, entry in raw_entries_of_commits(raw):
            if entry.path in wanted:  # a folder of that name has others below it
                found[place[commit]].append((entry.path, entry.old))


def _portions(paths: Iterable[str]) -> Iterator[Sequence[str]]:
    """The paths, in portions of at most `PATHS_BYTES`, or of one path."""
    some: list[str] = []
    size = 0
    for path in paths:
        length = len(path_bytes(path))
        if some and size + length > PATHS_BYTES:
            yield some
            some, size = [], 0
        some.append(path)
        size += length
    if some:
        yield some
