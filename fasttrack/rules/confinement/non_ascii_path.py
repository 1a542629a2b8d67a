# SPDX-License-Identifier: Apache-2.0
"""FT110: new paths are ASCII."""

from collections.abc import Iterator

from fasttrack.case import Case
from fasttrack.change.tree import Entry
from fasttrack.finding import Finding, Level
from fasttrack.rules.base import EntryRule
from fasttrack.rules.confinement.characters import named


class NonAsciiPath(EntryRule):
    """Paths with characters beyond ASCII."""

    id = "FT110"
    slug = "non-ascii-path"
    title = "new paths are ASCII"
    level = Level.ROUTE
    refuses = "A new path with a character beyond ASCII."
    why = (
        "Letters of other scripts look like ASCII ones, and file systems disagree about their "
        "normal form: a reader can not be sure which file is meant."
    )
    blind = "ASCII look-alikes such as `l` and `1`. Bytes that are no UTF-8 at all are FT109."
    fix = "git mv the file to an ASCII name"

    def check_entry(self, case: Case, entry: Entry) -> Iterator[Finding]:
        """Reports the first such character of one new path."""
        del case
        beyond = next((c for c in entry.path if not c.isascii()), None)
        undecodable = any("\ud800" <= c <= "\udfff" for c in entry.path)
        if entry.added and beyond is not None and not undecodable:
            yield self.finding(
                path=entry.path, saw=f"{named(beyond)} in a path", want="ASCII characters"
            )
