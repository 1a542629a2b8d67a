# SPDX-License-Identifier: Apache-2.0
"""What rules on content read: the text of one side, and which lines are new in it."""

from collections.abc import Sequence

from fasttrack.case import Case
from fasttrack.change.added import AddedLine
from fasttrack.change.tree import Entry, Side
from fasttrack.policy.classes import fold

PYTHON_SUFFIXES = (".py", ".pyi", ".pyw")


def is_regular(side: Side) -> bool:
    """Whether a side is a file, and neither a link, a submodule nor absent."""
    return side.present and not side.is_symlink and not side.is_gitlink


def changed_file(entry: Entry) -> bool:
    """Whether the head has a regular file there whose bytes the change brought."""
    return is_regular(entry.new) and entry.new.oid != entry.old.oid


def is_text(content: bytes) -> bool:
    """Whether bytes are UTF-8 without NUL."""
    if b"\0" in content:
        return False
    try:
        content.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def text_of(case: Case, side: Side) -> str | None:
    """The text of a regular file; None when it is something else or holds no text.

    What holds no text is the matter of FT112, so that one rule says it and not each.

    Raises:
        FactUnavailable: too large to be read, or not in this clone.
    """
    if not is_regular(side):
        return None
    content = case.change.blob(side)
    return content.decode("utf-8") if is_text(content) else None


def added_text(case: Case, entry: Entry) -> Sequence[AddedLine]:
    """The added lines of a text file; none for anything else.

    Raises:
        FactUnavailable: as `text_of` does, or beyond the bounds of the comparison.
    """
    if not changed_file(entry) or text_of(case, entry.new) is None:
        return ()
    return case.change.added_lines(entry)


def reversed_entry(entry: Entry) -> Entry:
    """The entry of the opposite change: what it adds is what `entry` removes."""
    return Entry(entry.path, old=entry.new, new=entry.old)


def is_python(path: str) -> bool:
    """Whether a path's name says Python source."""
    return fold(path).endswith(PYTHON_SUFFIXES)


def counted(lines: int) -> str:
    """`1 added line`, `2 added lines`."""
    return f"{lines} added line" if lines == 1 else f"{lines} added lines"
