# SPDX-License-Identifier: Apache-2.0
"""FT112: changed files are text."""

from collections.abc import Iterator

from fasttrack.case import Case
from fasttrack.change.tree import Entry
from fasttrack.finding import Finding, Level
from fasttrack.policy.model import PathClass
from fasttrack.rules.base import EntryRule
from fasttrack.rules.confinement.readable import changed_file, is_text


class Binary(EntryRule):
    """Files that can not be read as text."""

    id = "FT112"
    slug = "binary"
    title = "changed files are text"
    level = Level.ROUTE
    refuses = (
        "An added or changed file that holds a NUL byte or is not UTF-8, unless it is "
        "documentation outside the roots, where pictures belong, or evidence, which may be "
        "compressed and of which FT501 and FT503 report what can not be read."
    )
    why = (
        "Nobody can read it, and no other rule here can: a compiled kernel would pass them all "
        "unseen."
    )
    blind = "Binary data written as text, such as base64; FT113 shows its long lines."
    fix = "commit the source that it is made from, in UTF-8"

    def entries(self, case: Case) -> Iterator[Entry]:
        """The changed paths that are no evidence."""
        yield from case.entries

    def check_entry(self, case: Case, entry: Entry) -> Iterator[Finding]:
        """Looks at one file's bytes."""
        documentation = case.path_class(entry.path) is PathClass.DOCS
        if not changed_file(entry) or (documentation and case.governing(entry.path) is None):
            return
        if not is_text(case.change.blob(entry.new)):
            yield self.finding(
                path=entry.path,
                saw=f"a file of {case.change.size(entry.new):,} bytes that is not UTF-8 text",
                want="UTF-8 text",
                content=entry.new.oid,
            )
