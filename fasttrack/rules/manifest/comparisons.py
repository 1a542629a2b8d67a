# SPDX-License-Identifier: Apache-2.0
"""Patterns against many paths, with a bound on the work that hostile patterns can make."""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence

from fasttrack.errors import FactUnavailable
from fasttrack.globs import matches

MAX_COMPARISONS = 300_000
"""Patterns times paths of one manifest; about half a second."""
_LAST = chr(0x10FFFF)


class Comparisons:
    """Answers about the paths of one tree, until the bound is reached."""

    def __init__(self, paths: Iterable[str]) -> None:
        self._paths = sorted(paths)
        self._left = MAX_COMPARISONS

    def match_any(self, patterns: Sequence[str], path: str) -> bool:
        """Whether one of the patterns matches a path.

        Raises:
            FactUnavailable: the bound is reached.
        """
        self._spend(len(patterns))
        return any(matches(pattern, path) for pattern in patterns)

    def finds_any(self, pattern: str) -> bool:
        """Whether a pattern matches some path of the tree; raises as `match_any` does."""
        for path in self._candidates(pattern):
            self._spend(1)
            if matches(pattern, path):
                return True
        return False

    def _candidates(self, pattern: str) -> Iterator[str]:
        """The paths that begin with what stands before the first wildcard."""
        prefix = pattern.replace("?", "*").partition("*")[0]
        start = bisect_left(self._paths, prefix)
        end = bisect_left(self._paths, prefix + _LAST)
        return (self._paths[i] for i in range(start, end))

    def _spend(self, comparisons: int) -> None:
        self._left -= comparisons
        if self._left < 0:
            raise FactUnavailable("the manifest has too many patterns for so many files")
