# SPDX-License-Identifier: Apache-2.0
"""FT502: evidence stays in the store as long as it says something."""

from collections.abc import Iterator

from fasttrack.case import Case
from fasttrack.finding import Finding, Level
from fasttrack.rules.base import Rule


class RemovedEvidence(Rule):
    """Evidence files that the change deletes."""

    id = "FT502"
    slug = "removed-evidence"
    title = "evidence stays as long as it says something"
    level = Level.BLOCK
    refuses = (
        "The deletion of an evidence file in which a trusted statement speaks of a cell that is "
        "asked for after the merge, of its bytes as they then are - also that it failed. Other "
        "deletions, and those that go with the configuration folder, are FT101's."
    )
    why = (
        "A run that failed, or another answer under the same run id, would be gone with it, and "
        "cells that are covered would silently be owed again."
    )
    blind = "What was deleted before; a signed statement that nobody ever brought."
    fix = "leave the file; `fasttrack evidence gc` lists those that may go"
    waivable = False

    def check(self, case: Case) -> Iterator[Finding]:
        """Looks at every evidence file of the target that would be gone."""
        gone = [e for e in case.evidence_entries if e.deleted and e.path in case.change.base]
        if not gone:
            return
        from fasttrack.evidence.weighed import still_counted  # noqa: PLC0415

        counted = {} if case.folder_moves_to else case.once(still_counted)
        for entry in gone:
            if says := counted.get(entry.path):
                yield self.finding(
                    path=entry.path,
                    saw=f"a deleted file that still says {says}",
                    want="evidence that is only added",
                    content=entry.old.oid,
                )
