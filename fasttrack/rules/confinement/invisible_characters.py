# SPDX-License-Identifier: Apache-2.0
"""FT117: added lines hold no character that a reader can not see."""

import re
from collections.abc import Iterator, Sequence

from fasttrack.case import Case
from fasttrack.change.added import AddedLine
from fasttrack.change.tree import Entry
from fasttrack.finding import Finding, Level
from fasttrack.rules.base import EntryRule
from fasttrack.rules.confinement.characters import BIDI, hidden_characters, named
from fasttrack.rules.confinement.programs import is_program
from fasttrack.rules.confinement.readable import added_text, counted

BLANKS = 100
"""Columns: what stands behind more blanks is off the screen, and the line looks finished."""
_RUNS = re.compile(r"[ \t]{12,}(?=[^ \t])")


class InvisibleCharacters(EntryRule):
    """Zero-width, filler, tag and control characters."""

    id = "FT117"
    slug = "invisible-characters"
    title = "added lines hold no invisible characters"
    level = Level.ROUTE
    refuses = (
        "In an added line of any text: zero-width characters, soft hyphens, fillers, tag "
        "characters, variation selectors and joiners outside emoji, a byte order mark that is "
        "not at the file's start, line and paragraph separators, controls other than tab and line "
        "ends, a form feed behind text, a carriage return without a line feed; and bidirectional "
        "controls where FT116 does not block them. In a program, also text behind more than 100 "
        "columns of blanks, except a backslash between lines that end in one in the same column."
    )
    why = (
        "They hide text from reviewers that tools and language models still read, and make two "
        "names differ that look the same."
    )
    blind = "Letters that look alike, and what escapes such as `\\u200b` make at run time."
    fix = "remove the character, or write it as an escape"

    def check_entry(self, case: Case, entry: Entry) -> Iterator[Finding]:
        """Searches the added lines of one file."""
        added = added_text(case, entry)
        found = [(line, hidden) for line in added if (hidden := _hidden(line))]
        if any(BIDI.match(c) for _, hidden in found for c in hidden) and is_program(case, entry):
            # FT116 blocks those; what remains is ours.
            kept = [(line, [c for c in hidden if not BIDI.match(c)]) for line, hidden in found]
            found = [(line, hidden) for line, hidden in kept if hidden]
        if found:
            _, hidden = found[0]
            saw = f"{named(hidden[0])} in {counted(len(found))}"
            yield self._found(entry, [line for line, _ in found], saw)
        pushed = [line for line in added if _blanks(line.text) > BLANKS]
        if pushed:
            rows = case.change.text(entry.new).split("\n")
            pushed = [line for line in pushed if not _is_aligned_continuation(line, rows)]
        if pushed and is_program(case, entry):
            saw = f"text behind more than {BLANKS} columns of blanks in {counted(len(pushed))}"
            yield self._found(entry, pushed, saw)

    def _found(self, entry: Entry, lines: Sequence[AddedLine], saw: str) -> Finding:
        return self.finding(
            path=entry.path,
            line=lines[0].number,
            saw=saw,
            want="only characters that can be seen",
            content="\n".join(line.text for line in lines),
        )


def _hidden(line: AddedLine) -> list[str]:
    text = line.text
    if line.number == 1:
        text = text.removeprefix("\ufeff")
    found = list(hidden_characters(text))
    if "\f" in text.strip(" \t\f"):  # editors break the line there, and no language does
        found.append("\f")
    return found


def _blanks(text: str) -> int:
    """Columns of the widest run of blanks before something visible, a tab being eight."""
    return max((len(run.expandtabs()) for run in _RUNS.findall(text)), default=0)


def _is_aligned_continuation(line: AddedLine, rows: Sequence[str]) -> bool:
    """Whether only a backslash stands behind the blanks, inside a macro that formatters align.

    The last one of a macro draws in the line after it, and one behind `//` comments it out; both
    change what is read, so they are reported.
    """
    text = line.text
    if not text.endswith("\\") or "//" in text or _blanks(text[:-1].rstrip()) > BLANKS:
        return False
    around = [row.removesuffix("\r") for row in rows[max(line.number - 2, 0) : line.number + 1]]
    columns = {len(row.expandtabs()) for row in around if row.endswith("\\")}
    return len(around) == 3 and all(row.endswith("\\") for row in around) and len(columns) == 1
