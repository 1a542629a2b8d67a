# SPDX-License-Identifier: Apache-2.0
"""FT105: no submodule is added, moved or removed."""

from collections.abc import Iterator

from fasttrack.case import Case
from fasttrack.change.tree import Entry
from fasttrack.finding import Finding, Level
from fasttrack.rules.base import EntryRule
from fasttrack.rules.confinement.listed_paths import Listing, what_happened

SUBMODULE_LIST = Listing(paths=(".gitmodules",))
"""git reads it at the top of the repository only."""


class Submodule(EntryRule):
    """Submodule commits and the file that says where they come from."""

    id = "FT105"
    slug = "submodule"
    title = "no submodule changes"
    level = Level.ROUTE
    refuses = "A submodule commit that is added, changed or removed, and any edit of `.gitmodules`."
    why = (
        "The code behind a submodule is in another repository: none of its lines are in the "
        "change, and no digest here covers them."
    )
    blind = "Code that a build step downloads; FT118 and FT123 show the files that decide that."
    fix = (
        "bring the files that are needed into the roots, or send the submodule for ordinary review"
    )

    def check_entry(self, case: Case, entry: Entry) -> Iterator[Finding]:
        """Reports one submodule commit or the list of submodules."""
        del case
        if entry.is_gitlink:
            commit = entry.new if entry.new.is_gitlink else entry.old
            saw = f"a submodule commit {commit.oid[:12]}, {what_happened(entry)}"
        elif SUBMODULE_LIST.holds(entry.path):
            saw = f"the list of submodules, {what_happened(entry)}"
        else:
            return
        yield self.finding(
            path=entry.path,
            saw=saw,
            want="files of this repository",
            content=f"{entry.old.oid} {entry.new.oid}",
        )
