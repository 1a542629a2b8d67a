# SPDX-License-Identifier: Apache-2.0
"""FT128: new paths can be checked out on every system."""

from collections.abc import Iterator

from fasttrack.case import Case
from fasttrack.change.tree import Entry
from fasttrack.finding import Finding, Level
from fasttrack.policy.classes import fold
from fasttrack.rules.base import EntryRule

SEGMENT_BYTES = 255
"""Longest name that Linux file systems, NTFS and APFS store."""
_NOT_ON_WINDOWS = frozenset('<>:"|?*')
_DEVICES = frozenset(
    ["con", "prn", "aux", "nul", "conin$", "conout$"]
    + [f"{port}{number}" for port in ("com", "lpt") for number in range(1, 10)]
)


class UnportablePath(EntryRule):
    """Names that some system can not store, or stores as another one."""

    id = "FT128"
    slug = "unportable-path"
    title = "new paths can be checked out everywhere"
    level = Level.ROUTE
    refuses = (
        "A new path with a name of more than 255 bytes, a name that ends in a dot or a space, a "
        'character of `<>:"|?*`, or the name of a Windows device, with or without a suffix.'
    )
    why = (
        "Windows drops the final dot, writes to the device, or fails: the files of a checkout are "
        "not those that were reviewed."
    )
    blind = "Limits on the length of a whole path, which depend on where the clone is."
    fix = "git mv the file to a plain name"

    def check_entry(self, case: Case, entry: Entry) -> Iterator[Finding]:
        """Reports the first such name of one new path."""
        del case
        fault = next(_faults(entry.path), None) if entry.added else None
        if fault is not None:
            yield self.finding(path=entry.path, saw=fault, want="names that every system stores")


def _faults(path: str) -> Iterator[str]:
    for name in path.split("/"):
        size = len(name.encode("utf-8", "surrogateescape"))
        if size > SEGMENT_BYTES:
            yield f"a name of {size} bytes"
        if name.endswith((".", " ")) and name not in {".", ".."}:
            yield "a name that ends in a dot or a space"
        if not _NOT_ON_WINDOWS.isdisjoint(name):
            yield "a character that Windows does not allow in names"
        if fold(name).partition(".")[0].rstrip() in _DEVICES:
            yield f"the Windows device `{name}`"
