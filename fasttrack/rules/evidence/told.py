# SPDX-License-Identifier: Apache-2.0
"""Rules about the statements that a change brings or relies on: one fault each, one finding a file.

Reading and verifying is slow to import and is done once for all of them, in
`fasttrack.evidence.weighed`; a change that neither brings evidence nor relies on any pays for none
of it. What lies in the target branch already is held against no change that does not rely on it.
"""

from collections.abc import Iterator
from typing import ClassVar, final

from fasttrack.case import Case
from fasttrack.change.tree import Entry
from fasttrack.evidence.faults import Fault
from fasttrack.evidence.owed import judge_coverage
from fasttrack.finding import Finding
from fasttrack.rules.base import Rule


class StatementRule(Rule):
    """A rule that reports the statements with the fault that it is named by."""

    waivable = False
    want: ClassVar[str]
    """What a statement without the fault is like."""
    of_relied: ClassVar[bool] = False
    """Whether statements of the target that cover what the change owes can have the fault, too."""

    @final
    def check(self, case: Case) -> Iterator[Finding]:
        """Reports each file once, with the first of its statements that has the fault."""
        if not (case.evidence_entries or (self.of_relied and _relies(case))):
            return
        from fasttrack.evidence.weighed import weighed  # noqa: PLC0415

        fault = Fault(self.slug)
        by_file: dict[str, list[tuple[int, str]]] = {}
        for one in case.once(weighed):
            if fault in one.faults:
                by_file.setdefault(one.path, []).append((one.line, one.faults[fault]))
        for path, found in by_file.items():
            line, text = found[0]
            more = f", and {len(found) - 1} more statements" if len(found) > 1 else ""
            yield self.finding(path=path, line=line, saw=f"{text}{more}", want=self.want)


def _relies(case: Case) -> bool:
    """Whether evidence covers something that the change owes."""
    return any(one.answer.covers for one in case.once(judge_coverage).owed)


def brought_entries(case: Case) -> Iterator[Entry]:
    """Evidence that is there after the change, and is not like that in the target already."""
    for entry in case.evidence_entries:
        if entry.new.present and case.change.base.get(entry.path) != entry.new:
            yield entry
