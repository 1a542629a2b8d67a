# SPDX-License-Identifier: Apache-2.0
"""FT218: nothing in the change runs when Python starts or is found by its entry points."""

import posixpath
import re
from collections.abc import Iterator

from fasttrack.case import Case
from fasttrack.change.tree import Entry
from fasttrack.finding import Finding, Level
from fasttrack.policy.classes import fold
from fasttrack.rules.base import EntryRule
from fasttrack.rules.confinement.readable import added_text, changed_file, text_of

_STARTUP = frozenset({"sitecustomize.py", "usercustomize.py", "sitecustomize", "usercustomize"})
_ENTRY_POINTS = re.compile(
    r"^\s*\[(?:project\.entry-points|tool\.poetry\.plugins|options\.entry_points)\b"
    r"|^\s*entry_points\s*=|^\s*\[project\.entry-points"
)
_DECLARING = frozenset({"pyproject.toml", "setup.py", "setup.cfg", "entry_points.txt"})


class StartupFiles(EntryRule):
    """Files that Python runs by their name, and entry points that others load."""

    id = "FT218"
    slug = "startup-files"
    title = "nothing runs when Python starts"
    level = Level.ROUTE
    refuses = (
        "An added or changed `.pth` file that is text, a module or package `sitecustomize` or "
        "`usercustomize`, and an added line that opens a section of entry points in "
        "`pyproject.toml`, `setup.cfg`, `setup.py` or `entry_points.txt`. Scripts "
        "(`[project.scripts]`) pass."
    )
    why = "Python runs these in every process, and plug-in loaders run entry points, unasked."
    blind = (
        "Such files that are written at run time (FT211), or are in a package that is installed."
    )
    fix = "wire the path where the policy allows it, and load it there"

    def check_entry(self, case: Case, entry: Entry) -> Iterator[Finding]:
        """Looks at names, and at added lines of the files that declare entry points."""
        if not changed_file(entry):
            return
        name = fold(posixpath.basename(entry.path))
        started = next((part for part in map(fold, entry.path.split("/")) if part in _STARTUP), "")
        if started:
            yield self._found(entry, 0, f"`{started}`, which Python imports when it starts")
        elif name.endswith(".pth") and text_of(case, entry.new) is not None:
            yield self._found(entry, 0, "a `.pth` file, whose lines Python runs when it starts")
        elif name in _DECLARING:
            for line in added_text(case, entry):
                if _ENTRY_POINTS.match(line.text) or name == "entry_points.txt":
                    yield self._found(entry, line.number, "entry points, which others load")
                    return

    def _found(self, entry: Entry, line: int, saw: str) -> Finding:
        return self.finding(
            path=entry.path, line=line, saw=saw, want="nothing that runs unasked",
            content=f"{saw} {entry.new.oid}",
        )  # fmt: skip
