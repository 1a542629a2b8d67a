# SPDX-License-Identifier: Apache-2.0
"""FT115: no file is larger than the policy's `budgets.file_bytes`."""

from collections.abc import Iterator

from fasttrack.case import Case
from fasttrack.change.tree import Entry
from fasttrack.evidence.store_files import MAX_FILE_BYTES
from fasttrack.finding import Finding, Level
from fasttrack.rules.base import EntryRule
from fasttrack.rules.confinement.readable import changed_file


class OversizedFile(EntryRule):
    """Large files."""

    id = "FT115"
    slug = "oversized-file"
    title = "no changed file is larger than the budget"
    level = Level.ROUTE
    refuses = (
        "An added or changed file of more bytes than the policy's `budgets.file_bytes`, or, for a "
        f"file of evidence, than {MAX_FILE_BYTES:,}, whatever the policy allows for code."
    )
    why = "It stays in every clone for ever, and nobody reads it."
    blind = "Many files that are each within the budget; FT125 counts those."
    fix = "split the file, or keep the data outside the repository"

    def check_entry(self, case: Case, entry: Entry) -> Iterator[Finding]:
        """Compares one file's size, without reading it."""
        evidence = case.config.classes.is_evidence(entry.path)
        limit = MAX_FILE_BYTES if evidence else case.policy.budgets.file_bytes
        if changed_file(entry) and case.change.size(entry.new) > limit:
            yield self.finding(
                path=entry.path,
                saw=f"{case.change.size(entry.new):,} bytes",
                want=f"at most {limit:,}",
                content=entry.new.oid,
            )
