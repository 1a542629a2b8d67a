# SPDX-License-Identifier: Apache-2.0
"""The shape of a rule.

A rule is one class in one file of its family's folder. Its constants are its documentation:
`docs/rules/<family>.md` and `fasttrack explain` are made from them. A rule never catches
`FactUnavailable`; the engine turns a missing fact into "could not tell", of level `route`.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import replace
from typing import ClassVar, final

from fasttrack.case import Case
from fasttrack.change.tree import Entry
from fasttrack.errors import FactUnavailable
from fasttrack.finding import Finding, Level, fingerprint


class Rule(ABC):
    """One thing that a change may not do on the fast track."""

    id: ClassVar[str]
    """`FT` and three digits; the first digit is the family."""
    slug: ClassVar[str]
    """The rule's name; its file has the same, with underscores."""
    title: ClassVar[str]
    """What a change that passes looks like, in a few words."""
    level: ClassVar[Level]
    """Default level; the policy may set another."""
    refuses: ClassVar[str]
    """What the rule reports."""
    why: ClassVar[str]
    """The harm, in a sentence or two."""
    blind: ClassVar[str]
    """What the rule cannot see."""
    fix: ClassVar[str]
    """How to mend a change that it reports."""
    waivable: ClassVar[bool] = True
    """Whether a manifest's waiver can lift it; rules on trust and policy can not be lifted."""

    @abstractmethod
    def check(self, case: Case) -> Iterator[Finding]:
        """Yields what the rule finds; an empty run is a pass."""

    @final
    def finding(
        self,
        *,
        saw: str,
        want: str,
        fix: str = "",
        path: str = "",
        line: int = 0,
        end_line: int = 0,
        content: str = "",
    ) -> Finding:
        """A finding of this rule at its default level.

        Args:
            saw: what is there.
            want: what would pass.
            fix: the next command or edit; the rule's own `fix` when empty.
            path: repository path, empty for the whole change.
            line: first line in the new file, 0 for the whole path.
            end_line: last line; `line` when 0.
            content: what was judged, for the fingerprint; `saw` when empty.
        """
        return Finding(
            rule=self.id,
            slug=self.slug,
            level=self.level,
            path=path,
            line=line,
            end_line=end_line or line,
            saw=saw,
            want=want,
            fix=fix or self.fix,
            fingerprint=fingerprint(self.id, path, content or saw),
        )

    @final
    def could_not_tell(self, reason: FactUnavailable, path: str = "") -> Finding:
        """The finding for a fact that is missing: never a pass, always an ordinary review."""
        found = self.finding(
            path=path,
            saw=f"could not tell: {reason}",
            want=f"a change for which '{self.title}' can be established",
        )
        return replace(found, level=Level.ROUTE, unknown=True)


class EntryRule(Rule):
    """A rule that judges changed paths one by one, so that one missing fact hides no other path."""

    @abstractmethod
    def check_entry(self, case: Case, entry: Entry) -> Iterator[Finding]:
        """Yields what the rule finds at one changed path."""

    def entries(self, case: Case) -> Iterator[Entry]:
        """The changed paths that the rule looks at: all, evidence included, unless overridden."""
        yield from case.change.entries

    @final
    def check(self, case: Case) -> Iterator[Finding]:
        """Runs `check_entry` over the rule's entries."""
        for entry in self.entries(case):
            try:
                yield from self.check_entry(case, entry)
            except FactUnavailable as reason:
                yield self.could_not_tell(reason, entry.path)
