# SPDX-License-Identifier: Apache-2.0
"""FT116: no added line of a program shows its characters in another order than it holds them."""

from collections.abc import Iterator

from fasttrack.case import Case
from fasttrack.change.tree import Entry
from fasttrack.finding import Finding, Level
from fasttrack.rules.base import EntryRule
from fasttrack.rules.confinement.characters import BIDI, named
from fasttrack.rules.confinement.programs import is_program
from fasttrack.rules.confinement.readable import added_text, counted


class Bidi(EntryRule):
    """Bidirectional controls in programs."""

    id = "FT116"
    slug = "bidi"
    title = "added lines of programs read as they run"
    level = Level.BLOCK
    refuses = (
        "A bidirectional embedding, override or isolate (U+202A to U+202E, U+2066 to U+2069) in "
        "an added line of a program: any file in the roots, a file with the suffix of a language "
        "or of settings, or one that starts with `#!`. Other files are FT117's."
    )
    why = (
        "The line that a reviewer sees is not the line that runs: a comment can swallow a "
        "condition, a string can end elsewhere."
    )
    blind = "The same characters written as escapes (`\\u202e`), which are harmless to readers."
    fix = "write the character as an escape, such as `\\u202e`"
    waivable = False

    def check_entry(self, case: Case, entry: Entry) -> Iterator[Finding]:
        """Searches the added lines of one program."""
        lines = [line for line in added_text(case, entry) if BIDI.search(line.text)]
        if not lines or not is_program(case, entry):
            return
        first = BIDI.findall(lines[0].text)[0]
        yield self.finding(
            path=entry.path,
            line=lines[0].number,
            saw=f"{named(first)} in {counted(len(lines))}",
            want="no bidirectional controls",
            content="\n".join(line.text for line in lines),
        )
