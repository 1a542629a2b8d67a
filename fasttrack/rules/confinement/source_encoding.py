# SPDX-License-Identifier: Apache-2.0
"""FT127: Python reads a source file with the same encoding as its readers do."""

import re
from collections.abc import Iterator

from fasttrack.case import Case
from fasttrack.change.tree import Entry
from fasttrack.finding import Finding, Level
from fasttrack.rules.base import EntryRule
from fasttrack.rules.confinement.readable import changed_file, is_python, text_of

_LINE_ENDS = re.compile("\r\n|\r|\n")
_DECLARED = re.compile(r"[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)")
_BLANK = re.compile(r"[ \t\f]*(?:#.*)?\Z")
NAME_SHOWN = 40
"""Characters of the declared name that the finding repeats."""
READ_ALIKE = frozenset({"utf-8", "utf8", "utf-8-sig", "ascii", "us-ascii"})


class SourceEncoding(EntryRule):
    """Python files that declare an encoding other than UTF-8."""

    id = "FT127"
    slug = "source-encoding"
    title = "Python sources are UTF-8 and say nothing else"
    level = Level.ROUTE
    refuses = (
        "An added or changed Python file whose first two lines declare an encoding other than "
        "UTF-8 or ASCII."
    )
    why = (
        "Under `coding: utf-7` a harmless comment is code when Python reads it. Reviewers, and "
        "every rule here, read UTF-8."
    )
    blind = "Python that is not in a file named `.py`, `.pyi` or `.pyw`."
    fix = "save the file as UTF-8 and delete the declaration"

    def check_entry(self, case: Case, entry: Entry) -> Iterator[Finding]:
        """Reads the declaration as Python does: line one, or two after a blank or a comment."""
        if not is_python(entry.path) or not changed_file(entry):
            return
        text = (text_of(case, entry.new) or "").removeprefix("\ufeff")
        for number, line in enumerate(_LINE_ENDS.split(text, maxsplit=2)[:2], 1):
            declared = _DECLARED.match(line)
            if declared is not None:
                name = declared[1].lower().replace("_", "-")
                if name not in READ_ALIKE:
                    yield self._found(entry, number, name)
                return
            if not _BLANK.match(line):
                return

    def _found(self, entry: Entry, number: int, name: str) -> Finding:
        saw = f"a Python file that declares the encoding `{name[:NAME_SHOWN]}`"
        return self.finding(path=entry.path, line=number, saw=saw, want="UTF-8", content=name)
