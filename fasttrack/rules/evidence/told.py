# SPDX-License-Identifier: Apache-2.0
"""Rules about the statements that a change brings: one fault each, one finding per file.

Reading and verifying is slow to import and is done once for all of them, in
`fasttrack.evidence.weighed`; a change that brings no evidence pays for none of it. What lies in the
target branch already is not held against anybody's change.
"""

from collections.abc import Iterator
from typing import ClassVar, final

from fasttrack.case import Case
from fasttrack.change.tree import Entry
from fasttrack.evidence.faults import Fault
from fasttrack.finding import Finding
from fasttrack.rules.base import Rule


class StatementRule(Rule):
    """A rule that reports the statements with the fault that it is named by."""

    waivable = False
    want: ClassVar[str]
    """What a statement without the fault is like."""

    @final
    def check(self, case: Case) -> Iterator[Finding]:
        """Reports each file once, with the first of its statements that has the fault."""
        if not case.evidence_entries:
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


def brought_entries(case: Case) -> Iterator[Entry]:
    """Evidence that is there after the change, and is not like that in the target already."""
    for entry in case.evidence_entries:
        if entry.new.present and case.change.base.get(entry.path) != entry.new:
            yield entry
