# SPDX-License-Identifier: Apache-2.0
"""Whether files just outside the roots were measured as somebody can have seen them.

The target branch moves on while a change waits, and a boundary that it had is one that people let
in. So is what the change itself brings there, which the rules look at. Any other bytes were there
only while it was measured: a file beside the tests that rigs them, and is put back before anybody
looks, is in no digest of the unit.
"""

import hashlib
from collections.abc import Callable, Iterator

from fasttrack.case import Case
from fasttrack.change.change import Change
from fasttrack.change.tree import ABSENT, Side
from fasttrack.evidence.inputs import INPUT_LIMIT

Had = Callable[[str, str | None], bool]
"""Whether a path had these bytes, by their SHA-256, where somebody can have seen them; None for no
file. May raise FactUnavailable."""


class Surroundings:
    """The bytes that paths have had, in the target branch and by the change."""

    def __init__(self, change: Change) -> None:
        """Looks at nothing yet."""
        self._change = change
        self._known: dict[tuple[str, str | None], bool] = {}
        self._sha256: dict[str, str] = {}

    def had(self, path: str, sha256: str | None) -> bool:
        """See `Had`.

        Raises:
            FactUnavailable: not there, as far as can be told, and not everything can be.
        """
        asked = (path, sha256)
        if asked not in self._known:
            self._known[asked] = any(self._is(side, sha256) for side in self._sides(path))
        return self._known[asked]

    def _sides(self, path: str) -> Iterator[Side]:
        """What the change brings, then the target branch's tip and what that had before."""
        change = self._change
        if entry := change.entry(path):
            yield entry.new
        yield change.base.get(path) or ABSENT
        yield from change.former(path)

    def _is(self, side: Side, sha256: str | None) -> bool:
        if not side.present or sha256 is None:
            return not side.present and sha256 is None
        return not side.is_symlink and not side.is_gitlink and self._digest(side) == sha256

    def _digest(self, side: Side) -> str:
        if side.oid not in self._sha256:
            content = self._change.blob(side, INPUT_LIMIT)
            self._sha256[side.oid] = hashlib.sha256(content).hexdigest()
        return self._sha256[side.oid]


def surroundings(case: Case) -> Surroundings:
    """Those of a case; ask `case.once` for it."""
    return Surroundings(case.change)
