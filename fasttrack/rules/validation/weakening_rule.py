# SPDX-License-Identifier: Apache-2.0
"""The shape of the rules that report one kind of weakening of the tests."""

from collections.abc import Iterator
from dataclasses import replace
from typing import ClassVar

from fasttrack.case import Case
from fasttrack.finding import Finding, Level
from fasttrack.rules.base import Rule
from fasttrack.testmodel.weakened import weakenings
from fasttrack.testmodel.weakening import Kind


class WeakeningRule(Rule):
    """One kind of weakening: of a test that a manifest names, and certain, it must not merge."""

    kind: ClassVar[Kind]
    """What the rule reports."""
    level = Level.ROUTE

    def check(self, case: Case) -> Iterator[Finding]:
        """Reports what of its kind the change does."""
        for found in case.once(weakenings):
            if found.kind is not self.kind:
                continue
            finding = self.finding(path=found.path, line=found.line, saw=found.saw, want=found.want)
            grave = found.sure and found.named
            yield replace(finding, level=Level.BLOCK) if grave else finding
