# SPDX-License-Identifier: Apache-2.0
"""FT114: files are in the repository, not behind a pointer of Git LFS."""

from collections.abc import Iterator

from fasttrack.case import Case
from fasttrack.change.tree import Entry
from fasttrack.finding import Finding, Level
from fasttrack.rules.base import EntryRule
from fasttrack.rules.confinement.readable import changed_file

POINTER_LIMIT = 1024
"""Bytes: the LFS specification wants pointers to be smaller."""
_STARTS = (b"version https://git-lfs.github.com/spec/", b"version https://hawser.github.com/spec/")


class LfsPointer(EntryRule):
    """Pointers to content that git does not hold."""

    id = "FT114"
    slug = "lfs-pointer"
    title = "no content behind Git LFS"
    level = Level.ROUTE
    refuses = "An added or changed file that is a Git LFS pointer."
    why = "The content is on a server and not in the change: no rule and no digest sees it."
    blind = "Other stores that replace content by a reference of their own form."
    fix = "commit the file itself, or let the code fetch it by digest"

    def check_entry(self, case: Case, entry: Entry) -> Iterator[Finding]:
        """Looks at the first bytes of one small file."""
        if not changed_file(entry) or case.change.size(entry.new) >= POINTER_LIMIT:
            return
        if case.change.blob(entry.new).startswith(_STARTS):
            yield self.finding(
                path=entry.path,
                saw="a Git LFS pointer",
                want="the file itself",
                content=entry.new.oid,
            )
