# SPDX-License-Identifier: Apache-2.0
"""Where a reader should look for what a change takes from a test."""

from dataclasses import dataclass
from functools import cached_property

from fasttrack.testmodel.collected import Test
from fasttrack.testmodel.events import Place
from fasttrack.testmodel.reach import Reach, is_plain_test
from fasttrack.testmodel.weakening import Weakening


@dataclass(frozen=True, eq=False)
class Places:
    """Places that a change touches.

    Attributes:
        reach: what of the change concerns tests.
    """

    reach: Reach

    def of(self, test: Test, *places: Place) -> Place:
        """Where a reader should look: the first of some places that the change touches."""
        for path, line in (*places, (test.path, test.line)):
            if path in self._changed:
                return path, line
        return (self._helper, 0) if self._helper else (test.path, test.line)

    @cached_property
    def _changed(self) -> frozenset[str]:
        return frozenset(entry.path for entry in self.reach.entries)

    @cached_property
    def _helper(self) -> str:
        """A changed file of the tests that is itself no test; empty when there is none."""
        paths = (entry.path for entry in self.reach.entries if not entry.deleted)
        return next((path for path in paths if not is_plain_test(path)), "")

    def untold(self, head: Test, saw: str, *places: Place) -> Weakening:
        """What can not be told of a test any more, with the place to look at."""
        path, line = self.of(head, *places)
        return Weakening.untold(path, f"test `{head.name}`: {saw}", line)
