# SPDX-License-Identifier: Apache-2.0
"""What the assertions of a test speak of: the code under test, and files of expected data."""

import re
from collections.abc import Iterator, Sequence

from fasttrack.testmodel.events import Check, Place
from fasttrack.testmodel.reach import Reach
from fasttrack.testmodel.replaced import Replacements, paths_of
from fasttrack.testmodel.strength import VALUE, called_in

_DATA = re.compile(
    r"[\w.-]+\.(?:json|jsonl|npy|npz|pt|pth|pkl|txt|csv|ya?ml|toml|safetensors|bin|parquet|h5)\b"
)
_SIDES = re.compile(r" (?:==|~) ")
_CUT_SHORT = "…"
"""What stands in words that are too long, see `values.shorten`."""


class Expected:
    """What assertions speak of no longer, and what they are held against instead."""

    def __init__(self, reach: Reach, replacements: Replacements) -> None:
        self._reach = reach
        self._replacements = replacements

    def changes(
        self, base: Sequence[Check], head: Sequence[Check]
    ) -> Iterator[tuple[str, Sequence[Place]]]:
        """What differs between the live assertions of a test, each with where to look."""
        live = [check for check in head if not check.dead]
        if not base or not live:
            return
        yield from self._data(base, live)
        yield from self._code(base, live)
        yield from self._own(base, live)

    def _data(
        self, base: Sequence[Check], head: Sequence[Check]
    ) -> Iterator[tuple[str, Sequence[Place]]]:
        """Files that the change adds, in the place of files that were there."""
        old = {name for check in base for name in _DATA.findall(check.text)}
        new = {name: check for check in head for name in _DATA.findall(check.text)}
        gone = sorted(old - new.keys())
        for name, check in new.items():
            if gone and name not in old and name in self._added:
                yield f"it is held against the new `{name}` instead of `{gone[0]}`", check.site

    @property
    def _added(self) -> frozenset[str]:
        entries = self._reach.case.entries
        return frozenset(e.path.rpartition("/")[2] for e in entries if e.added)

    def _code(
        self, base: Sequence[Check], head: Sequence[Check]
    ) -> Iterator[tuple[str, Sequence[Place]]]:
        """Code inside the roots that no assertion speaks of any more.

        What is called instead may lead there, unless the test called it before.
        """
        if any(_CUT_SHORT in check.text for check in (*base, *head)):
            return
        before, after = _called(base), _called(head)
        gone = sorted(before - after)
        if not gone or after - before or any(map(self._replacements.governed, after)):
            return
        found = next(filter(self._replacements.governed, gone), None)
        if found is not None:
            yield f"no assertion speaks of `{found}` any more", head[0].site

    def _own(
        self, base: Sequence[Check], head: Sequence[Check]
    ) -> Iterator[tuple[str, Sequence[Place]]]:
        """Results that are held against results of the code under test alone."""
        if not any(self._is_outside(name) for name in _called(base)):
            return
        if any(self._is_outside(name) for name in _called(head)):
            return
        for check in head:
            sides = [frozenset(called_in(side)) for side in _SIDES.split(check.text)]
            within = [any(map(self._replacements.governed, side)) for side in sides]
            if within == [True, True] and check.strength == VALUE:
                yield "its results are held against nothing but the code under test", check.site
                return

    def _is_outside(self, name: str) -> bool:
        """Whether a dotted name leads to a file of the repository outside the roots."""
        parts = name.split(".")
        stems = (".".join(parts[:count]) for count in range(len(parts), 0, -1))
        if not any(path in self._reach.base for stem in stems for path in paths_of(stem)):
            return False
        return not self._replacements.governed(name)


def _called(checks: Sequence[Check]) -> frozenset[str]:
    """Dotted names that the words of some assertions call, those of other packages left out."""
    return frozenset(name for check in checks for name in called_in(check.text))
