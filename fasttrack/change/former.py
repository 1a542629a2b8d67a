# SPDX-License-Identifier: Apache-2.0
"""What a branch had at its paths before its tip, as far back as anybody asks.

Back along first parents alone: what was merged into the branch never was the branch, so that what a
change held before its last commit is none of it. No date counts, because whoever makes a commit
chooses it; the number of commits bounds the way.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import pairwise

from fasttrack.change.git import Git
from fasttrack.change.tree import Side, raw_entries
from fasttrack.errors import FactUnavailable

COMMITS_LIMIT = 4096
"""Commits that are looked at: a few months of the busiest projects, which is how long evidence
lasts."""
STEP = 512
"""Commits of one question to git; mostly the first answers it."""
STEP_BYTES = 16 * 1024 * 1024
"""Bytes of one answer."""

_Sides = Mapping[str, tuple[Side, ...]]


class FormerSides:
    """The sides of one branch's paths; each commit is compared once."""

    def __init__(self, git: Git, tip: str) -> None:
        """Asks nothing yet."""
        self._git = git
        self._tip = tip
        self._steps: dict[int, _Sides | FactUnavailable] = {}

    def of(self, path: str) -> Iterator[Side]:
        """What was at a path before the tip's side of it, newest first; absent sides too.

        Raises:
            FactUnavailable: commits or trees that are not in this clone, or too many changes.
        """
        for start in range(0, len(self._pairs), STEP):
            yield from self._step(start).get(path, ())

    @cached_property
    def _pairs(self) -> Sequence[tuple[str, str]]:
        """Commits with their first parents."""
        options = ("--first-parent", f"--max-count={COMMITS_LIMIT + 1}")
        commits = self._git.run("rev-list", *options, self._tip, "--").out.decode("ascii").split()
        return tuple(pairwise(commits))

    def _step(self, start: int) -> _Sides:
        if start not in self._steps:
            try:
                self._steps[start] = self._replaced(self._pairs[start : start + STEP])
            except FactUnavailable as reason:
                self._steps[start] = reason
        found = self._steps[start]
        if isinstance(found, FactUnavailable):
            raise found
        return found

    def _replaced(self, pairs: Sequence[tuple[str, str]]) -> _Sides:
        """What each of some commits changed, as it was before."""
        options = ("--stdin", "-r", "-z", "--raw", "--no-renames", "--no-abbrev", "--no-commit-id")
        asked = "".join(f"{commit} {parent}\n" for commit, parent in pairs).encode("ascii")
        raw = self._git.run("diff-tree", *options, stdin=asked, limit=STEP_BYTES).out
        found: dict[str, dict[Side, None]] = {}
        for entry in raw_entries(raw):
            found.setdefault(entry.path, {})[entry.old] = None
        return {path: tuple(sides) for path, sides in found.items()}
