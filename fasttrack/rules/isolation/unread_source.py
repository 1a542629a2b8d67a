# SPDX-License-Identifier: Apache-2.0
"""FT219: every Python source in the roots can be read."""

from collections.abc import Iterator

from fasttrack.case import Case
from fasttrack.change.imports import imports_of
from fasttrack.change.tree import Entry, Side
from fasttrack.config import judged_or_head
from fasttrack.errors import FactUnavailable
from fasttrack.finding import Finding, Level
from fasttrack.meaning.effects import reading_of
from fasttrack.meaning.source import is_python, is_regular, source_of
from fasttrack.rules.base import EntryRule
from fasttrack.rules.confinement.new_import import NewImport


class UnreadSource(EntryRule):
    """Python files of which the other rules of this family could not tell what they do."""

    id = "FT219"
    slug = "unread-source"
    title = "Python sources in the roots can be read"
    level = Level.ROUTE
    refuses = (
        "A changed Python file in the roots that is no UTF-8 text, is too large to be parsed or "
        "not in this clone, does not parse, or is nested too deeply to be followed. No other rule "
        "of this family says anything about it; where FT124 has the same to say, it is said once."
    )
    why = "What can not be read can do anything."
    blind = (
        "Python in a file that is not named `.py`, `.pyi` or `.pyw`. FT124 parses all of every "
        "file; this rule does so only where FT124 is off, and else parses what the family needs. "
        "What a declared encoding makes of the text: FT127 routes every other than UTF-8."
    )
    fix = "write it in the syntax of the Python that checks, in smaller pieces, as UTF-8"

    def entries(self, case: Case) -> Iterator[Entry]:
        """The changed Python files in the roots."""
        yield from (entry for entry in case.governed_entries() if is_python(entry.path))

    def check_entry(self, case: Case, entry: Entry) -> Iterator[Finding]:
        """Asks for the file as it will be; what is wrong with it is raised, and is all there is."""
        side = judged_or_head(case.change).get(entry.path)
        if side is not None and is_regular(side) and side != entry.old:
            _read(case, entry.path, side)
        return iter(())


def _read(case: Case, path: str, side: Side) -> None:
    if case.policy.rules.get(NewImport.id) == "off":
        imports_of(source_of(case, side))
    if fault := reading_of(case, path, side).fault:
        raise FactUnavailable(fault)
