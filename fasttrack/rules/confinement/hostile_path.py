# SPDX-License-Identifier: Apache-2.0
"""FT109: no new path is built to be misread by a tool or to land in git's own folder."""

import unicodedata
from collections.abc import Iterator

from fasttrack.case import Case
from fasttrack.change.tree import Entry
from fasttrack.finding import Finding, Level
from fasttrack.policy.classes import fold
from fasttrack.rules.base import EntryRule

IGNORED_BY_HFS = dict.fromkeys(
    [*range(0x200C, 0x2010), *range(0x202A, 0x202F), *range(0x206A, 0x2070), 0xFEFF]
)
"""Characters that HFS+ leaves out when it compares names."""
GIT_FOLDER = frozenset({".git", "git~1"})
"""The repository itself, and its short name on NTFS."""
GIT_FILES = frozenset({".gitmodules", ".gitattributes", "gitmod~1", "gitatt~1"})
"""Files that git obeys, and their short names on NTFS."""


class HostilePath(EntryRule):
    """Paths that no honest file has."""

    id = "FT109"
    slug = "hostile-path"
    title = "no path is built to deceive"
    level = Level.BLOCK
    refuses = (
        "A new path with a control character, a backslash, bytes that are not UTF-8, an empty, "
        "`.` or `..` segment; with a segment that some file system takes for `.git` (`.GIT`, "
        "`git~1`, `.git.`, `.git:x`, `.g` + U+200C + `it`); or one that takes the place of "
        "`.gitmodules` or `.gitattributes` in such a disguise."
    )
    why = (
        "Such a path writes outside the folder, into git's own configuration and hooks, or reads "
        "differently in every tool that shows it."
    )
    blind = "Paths that were there before; they can still be mended and deleted."
    fix = "git mv the file to a plain name"
    waivable = False

    def check_entry(self, case: Case, entry: Entry) -> Iterator[Finding]:
        """Reports the first fault of one new path."""
        del case
        fault = next(_faults(entry.path), None) if entry.added else None
        if fault is not None:
            yield self.finding(path=entry.path, saw=fault, want="a path of plain names")


def _faults(path: str) -> Iterator[str]:
    for character in path:
        if unicodedata.category(character) == "Cc":
            yield f"the control character U+{ord(character):04X} in a path"
        if character == "\\":
            yield "a backslash in a path, which Windows takes for a separator"
        if "\ud800" <= character <= "\udfff":
            yield "bytes in a path that are not UTF-8"
    for segment in path.split("/"):
        if segment in {"", ".", ".."}:
            yield f"the path segment `{segment}`"
        plain = _as_file_systems_read(segment)
        if plain in GIT_FOLDER:
            yield "a path segment that file systems take for `.git`"
        disguised = plain != fold(segment) or "~" in plain
        if plain in GIT_FILES and disguised:
            yield "a disguised spelling of a file that git obeys"


def _as_file_systems_read(segment: str) -> str:
    """The name after what HFS+ and NTFS leave out: ignorable characters, streams, final dots."""
    name = segment.translate(IGNORED_BY_HFS).partition(":")[0]
    return fold(name.rstrip(". "))
