# SPDX-License-Identifier: Apache-2.0
"""FT126: the change merges cleanly with the target branch, and the merge does what it shows."""

from collections.abc import Iterator, Sequence

from fasttrack.case import Case
from fasttrack.change.tree import Entry
from fasttrack.finding import Finding, Level
from fasttrack.rules.base import Rule

NAMED_PATHS = 5
"""Paths that a finding names; git names the rest."""


class RebaseNeeded(Rule):
    """Changes that conflict with the target branch's tip, or that do more to it than they show."""

    id = "FT126"
    slug = "rebase-needed"
    title = "the change merges cleanly with the target branch"
    level = Level.ROUTE
    refuses = (
        "A change whose merge with the tip of the target branch conflicts, or does to some path "
        "what the change itself does not show: where the target branch renamed the file since, "
        "where head and target branch have merged from each other more than once, or where "
        "`--base` names another commit than the merge base."
    )
    why = (
        "What would be merged does not exist yet, or undoes what others merged: no rule has seen "
        "those lines."
    )
    blind = "Merges that are clean line by line and wrong in meaning."
    fix = "git rebase onto the target branch, then check again"
    waivable = False

    def check(self, case: Case) -> Iterator[Finding]:
        """Asks for the judged tree, and whether it differs from the target as the change says."""
        if case.change.judged_tree is None:
            named = _named(case.change.conflicts) or "paths that git does not name"
            yield self.finding(
                saw=f"the merge with the target branch conflicts in {named}",
                want="a clean merge",
            )
        elif unseen := [entry for entry in case.change.landing if not _is_shown(case, entry)]:
            yield self.finding(
                saw=f"the merge does more than the change shows, in {_named(_paths(unseen))}",
                want="a merge that changes what the change itself changes",
                content="\n".join(f"{e.path} {e.old.oid} {e.new.oid}" for e in unseen),
            )


def _is_shown(case: Case, landing: Entry) -> bool:
    """Whether the rules have seen what the merge does to one path of the target branch."""
    entry = case.change.entry(landing.path)
    if entry is None or case.change.merges_from_its_start:
        return entry is not None
    return (entry.old, entry.new) == (landing.old, landing.new)


def _paths(entries: Sequence[Entry]) -> Sequence[str]:
    return [entry.path for entry in entries]


def _named(paths: Sequence[str]) -> str:
    """The first paths, and how many more there are."""
    more = f" and {len(paths) - NAMED_PATHS} more" if len(paths) > NAMED_PATHS else ""
    return ", ".join(f"`{path}`" for path in paths[:NAMED_PATHS]) + more
