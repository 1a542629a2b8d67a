# SPDX-License-Identifier: Apache-2.0
"""Where two lines of history meet, also in clones that hold only a part of it."""

from fasttrack.change.git import Git, GitFailure
from fasttrack.errors import InputError

_FETCH_ALL = "git fetch --unshallow (or git fetch --deepen=500)"


class History:
    """Merge bases of one repository; each pair of commits is looked up once."""

    def __init__(self, git: Git) -> None:
        self._git = git
        self._known: dict[tuple[str, str], tuple[str, ...]] = {}

    def merge_bases(self, one: str, other: str) -> tuple[str, ...]:
        """All best common ancestors of two commits, sorted by id; empty for unrelated histories.

        Raises:
            InputError: the history is cut off (shallow or damaged clone) before they meet.
        """
        pair = (one, other)
        if pair not in self._known:
            self._known[pair] = (one,) if one == other else self._look_up(one, other)
        return self._known[pair]

    def _look_up(self, one: str, other: str) -> tuple[str, ...]:
        try:
            output = self._git.run("merge-base", "--all", one, other, accept=(0, 1))
            bases = tuple(sorted(output.out.decode("ascii").split()))
            if self._git.shallow:
                self._refuse_cut_history(one, other, bases)
        except GitFailure as error:
            raise InputError.one(
                f"{one}...{other}", str(error), "the commits between them", _FETCH_ALL
            ) from error
        return bases

    def _refuse_cut_history(self, one: str, other: str, bases: tuple[str, ...]) -> None:
        """A cut above the merge base may hide a better one, so the answer would be a guess."""
        excluded = [f"^{base}" for base in bases]
        above = self._git.run("rev-list", one, other, *excluded, "--").out.decode("ascii").split()
        cut = sorted(self._git.shallow.intersection(above))
        if cut:
            raise InputError.one(
                f"{one}...{other}",
                f"a shallow clone that ends at {cut[0]}, before the merge base",
                "a clone that reaches the merge base",
                _FETCH_ALL,
            )
