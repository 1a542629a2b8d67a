# SPDX-License-Identifier: Apache-2.0
"""FT125: the change is small enough to be looked through."""

from collections.abc import Iterator

from fasttrack.budget import added_lines
from fasttrack.case import Case
from fasttrack.finding import Finding, Level
from fasttrack.rules.base import Rule


class ChangeBudget(Rule):
    """Changes with too many files or added lines."""

    id = "FT125"
    slug = "change-budget"
    title = "the change stays within the policy's size"
    level = Level.ROUTE
    refuses = (
        "More changed paths than `budgets.files`, or more added lines over all files than "
        "`budgets.added_lines`. Evidence files do not count."
    )
    why = "Past some size nobody sees what does not belong."
    blind = "How dense the lines are."
    fix = "split the change into several that each stand alone"

    def check(self, case: Case) -> Iterator[Finding]:
        """Compares both amounts with the policy."""
        budgets = case.policy.budgets
        content = case.change.change_digest(case.config.classes.is_evidence)
        if len(case.entries) > budgets.files:
            saw = f"{len(case.entries)} changed files"
            yield self.finding(saw=saw, want=f"at most {budgets.files}", content=f"{saw} {content}")
        lines = added_lines(case)
        if lines > budgets.added_lines:
            saw, want = f"{lines} added lines", f"at most {budgets.added_lines}"
            yield self.finding(saw=saw, want=want, content=f"{saw} {content}")
