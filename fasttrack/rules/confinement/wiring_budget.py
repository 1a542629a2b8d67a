# SPDX-License-Identifier: Apache-2.0
"""FT103: wired files change by no more lines than the policy and the manifest allow."""

from collections.abc import Iterator

from fasttrack.case import Case
from fasttrack.errors import FactUnavailable
from fasttrack.finding import Finding, Level
from fasttrack.rules.base import Rule
from fasttrack.rules.confinement.wired import allowance


class WiringBudget(Rule):
    """Wired files over their line budget, alone or together."""

    id = "FT103"
    slug = "wiring-budget"
    title = "the wiring stays within its line budgets"
    level = Level.ROUTE
    refuses = (
        "More added plus removed lines in a wired file than its `max_lines` (the stricter of "
        "policy and manifest, over the file's symbols), or over all wired files together than "
        "the policy's `budgets.wiring_lines`."
    )
    why = "Wiring is what a maintainer reads line by line; its promise is that it fits on a page."
    blind = "How much one line does."
    fix = "move logic into the roots and leave only the call in the shared file"

    def check(self, case: Case) -> Iterator[Finding]:
        """Adds up the changed lines, file by file."""
        total = 0
        wired: list[str] = []
        for entry in case.entries:
            allowed = allowance(case, entry.path)
            if allowed is None:
                continue
            try:
                lines = sum(case.change.line_counts(entry))
            except FactUnavailable as reason:
                yield self.could_not_tell(reason, entry.path)
                continue
            total += lines
            wired.append(f"{entry.path} {entry.old.oid} {entry.new.oid}")
            if lines > allowed.max_lines:
                yield self.finding(
                    path=entry.path,
                    saw=f"{lines} changed lines in a wired file",
                    want=f"at most {allowed.max_lines}",
                    content=f"{entry.old.oid} {entry.new.oid}",
                )
        if total > case.policy.budgets.wiring_lines:
            yield self.finding(
                saw=f"{total} changed lines over all wired files",
                want=f"at most {case.policy.budgets.wiring_lines}",
                content="\n".join(wired),
            )
