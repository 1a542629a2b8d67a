# SPDX-License-Identifier: Apache-2.0
"""The shape of the rules that report one kind of effect of governed code."""

from collections.abc import Iterator
from typing import ClassVar

from fasttrack.case import Case
from fasttrack.finding import Finding
from fasttrack.meaning.effects import brought
from fasttrack.meaning.kinds import Kind
from fasttrack.rules.base import Rule


class EffectRule(Rule):
    """A rule on what code in the roots reaches out for; it reports what the change brings."""

    kind: ClassVar[Kind]
    """The effects that it reports."""
    want: ClassVar[str]
    """What would pass."""

    def check(self, case: Case) -> Iterator[Finding]:
        """One finding for each effect of the rule's kind that was not there before."""
        for entry, effect in brought(case):
            if effect.kind is self.kind:
                yield self.finding(
                    path=entry.path,
                    line=effect.line,
                    end_line=effect.end_line,
                    saw=f"`{effect.target}` {effect.how}",
                    want=self.want,
                    content=effect.key,
                )
