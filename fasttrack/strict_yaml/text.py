# SPDX-License-Identifier: Apache-2.0
"""Bytes to text of which every character means the same to every reader."""

import re

from fasttrack.errors import Problem
from fasttrack.strict_yaml.document import Mark, where

MAX_BYTES = 1 << 20
"""Largest text, in bytes of UTF-8."""
MAX_PROBLEMS = 100
"""Problems reported at once; a hostile text has one per byte."""

REFUSED_CHARACTER = re.compile(
    "\r(?!\n)|[^\n\r\x20-\x7e\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]"
)


class UnreadableError(Exception):
    """Nothing more can be read; the reason is among the problems."""


class Problems:
    """Problems of one text, at most `MAX_PROBLEMS`."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.found: list[Problem] = []

    def add(self, mark: Mark, saw: str, want: str, fix: str = "") -> None:
        """Notes a problem; the last one that is reported ends the reading."""
        self.found.append(Problem(where(self.source, mark), saw, want, fix))
        if len(self.found) == MAX_PROBLEMS:
            raise UnreadableError

    def stop(self, mark: Mark, saw: str, want: str, fix: str = "") -> UnreadableError:
        """Notes a problem after which nothing can be read; the caller raises the result."""
        self.found.append(Problem(where(self.source, mark), saw, want, fix))
        return UnreadableError()


def checked_text(text: str | bytes, problems: Problems) -> str:
    """The text, when all its characters mean the same to every reader.

    Raises:
        UnreadableError: when it is too long, not UTF-8, or has a character that it must not have.
    """
    raw = text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass")
    if len(raw) > MAX_BYTES:
        raise problems.stop((1, 1), f"{len(raw)} bytes", f"at most {MAX_BYTES} bytes")
    try:
        decoded = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        before = raw[: error.start].decode("utf-8", "replace")
        saw = f"the byte 0x{raw[error.start]:02x}, which is not UTF-8"
        raise problems.stop(_mark_after(before), saw, "text in UTF-8") from None
    for match in REFUSED_CHARACTER.finditer(decoded):
        saw, fix = f"the character U+{ord(match[0]):04X}", "remove it"
        if match[0] == "\t":
            saw, fix = "a tab", "use spaces, or `\\t` inside double quotes"
        problems.add(_mark_after(decoded[: match.start()]), saw, "printable text", fix)
    if problems.found:
        raise UnreadableError
    return decoded


def _mark_after(before: str) -> Mark:
    return before.count("\n") + 1, len(before) - before.rfind("\n")
