# SPDX-License-Identifier: Apache-2.0
"""FT126: the change merges cleanly with the target branch."""

from collections.abc import Iterator

from fasttrack.case import Case
from fasttrack.finding import Finding, Level
from fasttrack.rules.base import Rule

NAMED_PATHS = 5
"""Conflicting paths that the finding names; git names the rest."""


class RebaseNeeded(Rule):
    """Changes that conflict with the target branch's tip."""

    id = "FT126"
    slug = "rebase-needed"
    title = "the change merges cleanly with the target branch"
    level = Level.ROUTE
    refuses = "A change whose merge with the tip of the target branch conflicts."
    why = (
        "What would be merged does not exist yet: a person will write it, and no rule has seen it."
    )
    blind = "Merges that are clean line by line and wrong in meaning."
    fix = "git rebase onto the target branch, then check again"
    false_alarms = "not measured yet"

    def check(self, case: Case) -> Iterator[Finding]:
        """Asks whether there is a judged tree."""
        if case.change.judged_tree is not None:
            return
        paths = case.change.conflicts
        named = (
            ", ".join(f"`{path}`" for path in paths[:NAMED_PATHS]) or "paths that git does not name"
        )
        more = f" and {len(paths) - NAMED_PATHS} more" if len(paths) > NAMED_PATHS else ""
        yield self.finding(
            saw=f"the merge with the target branch conflicts in {named}{more}",
            want="a clean merge",
        )
