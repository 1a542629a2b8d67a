# SPDX-License-Identifier: Apache-2.0
"""FT113: the change holds code that people wrote, not what a tool printed."""

import re
from collections.abc import Iterator

from fasttrack.case import Case
from fasttrack.change.tree import Entry
from fasttrack.finding import Finding, Level
from fasttrack.policy.model import PathClass
from fasttrack.rules.base import EntryRule
from fasttrack.rules.confinement.listed_paths import what_happened
from fasttrack.rules.confinement.programs import is_program
from fasttrack.rules.confinement.readable import added_text, changed_file, text_of

MARKER_LINES = 20
"""Lines at the top of a file where generators leave their notice."""
LONG_LINE = 1000
"""Characters; formatters stop near 100, and what is above 1000 is data or minified code."""
_GENERATED, _HANDS_OFF = r"\bgenerated\b", r"\b(?:do not|don't) (?:edit|modify|change)\b"
_MARKER = re.compile(
    rf"@generated\b|{_GENERATED}.{{0,60}}{_HANDS_OFF}|{_HANDS_OFF}.{{0,60}}{_GENERATED}"
)
"""Both halves of the notice within a sentence of each other."""
_NO_WORD = re.compile(r"[^\w@']+")


class Generated(EntryRule):
    """Generated files, and lines that no person writes."""

    id = "FT113"
    slug = "generated"
    title = "no generated or minified code"
    level = Level.ROUTE
    refuses = (
        "A change to a path of class `generated`; in the roots, a file whose first 20 lines say "
        "that it is generated and not to be edited; in any program, added lines of more than 1000 "
        "characters."
    )
    why = (
        "What is generated is reviewed where it is generated from. Here, an edit hides among "
        "thousands of lines that nobody reads."
    )
    blind = "Generated code without a notice and with short lines."
    fix = "commit the generator and its input, and generate at build time"

    def check_entry(self, case: Case, entry: Entry) -> Iterator[Finding]:
        """Looks at one path's class, and at one file's first and longest lines."""
        if case.path_class(entry.path) is PathClass.GENERATED:
            yield self._found(entry, f"a path of class `generated`, {what_happened(entry)}")
        if not changed_file(entry):
            return
        if case.governing(entry.path) is not None:
            top = (text_of(case, entry.new) or "").split("\n", MARKER_LINES)[:MARKER_LINES]
            if _MARKER.search(_NO_WORD.sub(" ", "\n".join(top).lower())):
                yield self._found(entry, "a notice that the file is generated and not to be edited")
        long = [line for line in added_text(case, entry) if len(line.text) > LONG_LINE]
        if long and is_program(case, entry):
            saw = f"{len(long)} added lines of more than {LONG_LINE} characters"
            yield self._found(entry, saw, long[0].number)

    def _found(self, entry: Entry, saw: str, line: int = 0) -> Finding:
        content = f"{entry.old.oid} {entry.new.oid}"
        return self.finding(
            path=entry.path, line=line, saw=saw, want="code that people wrote", content=content
        )
