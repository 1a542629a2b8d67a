# SPDX-License-Identifier: Apache-2.0
"""Added lines and line counts of changed files, from their blobs, bounded for the whole change.

A line ends at LF. As in git's own counts, two lines that differ only in their end are different:
`a` + CR LF against `a` + LF, or a last line with and without its LF. A CR elsewhere ends no line
and is part of the text.
"""

from collections.abc import Iterator, Sequence, Sized
from contextlib import suppress
from functools import cached_property
from io import BytesIO
from itertools import islice
from typing import NamedTuple

from fasttrack.change.linediff import EFFORT, kept_lines
from fasttrack.change.objects import GitStopped, Objects
from fasttrack.change.tree import Entry, Side
from fasttrack.errors import FactUnavailable

BLOB_LIMIT = 4 * 1024 * 1024
"""Bytes of a file whose content is looked at; no source file that people review is larger."""

CHANGE_BYTES_LIMIT = 96 * 1024 * 1024
"""Bytes of all blobs on both sides of a change whose lines are compared."""

CHANGE_LINES_LIMIT = 2_000_000
"""Lines of the same blobs."""

LARGE_CHANGE_LINES = 200_000
"""Lines above which less effort is spent on finding a small difference."""

_CACHED_LINES = 200_000


class AddedLine(NamedTuple):
    """One line of a new file that the old file does not have at that place.

    Attributes:
        number: 1-based line number in the new file.
        text: the line without LF or CR LF at its end.
    """

    number: int
    text: str


class LineDiffs:
    """The line differences of one change.

    Every answer is a FactUnavailable when the change as a whole is too large, so that it does not
    depend on which file was asked about first.
    """

    def __init__(self, objects: Objects, entries: Sequence[Entry]) -> None:
        self._objects = objects
        self._entries = entries
        self._added: dict[Entry, tuple[AddedLine, ...]] = {}
        self._counts: dict[Entry, tuple[int, int]] = {}
        self._cached_lines = 0

    def added_lines(self, entry: Entry) -> tuple[AddedLine, ...]:
        """The added lines of one entry.

        Raises:
            FactUnavailable: not UTF-8 text, a submodule, a blob or a change beyond the limits.
        """
        if entry in self._added:
            return self._added[entry]
        old, new = self._both(entry)
        decode(new, entry.path)
        new_lines = _lines(new)
        old_lines = _lines(old)
        kept = kept_lines(old_lines, new_lines, self._effort)
        self._count(entry, old_lines, new_lines, kept)
        added = tuple(
            AddedLine(number, _text(line))
            for number, (line, same) in enumerate(zip(new_lines, kept, strict=True), 1)
            if not same
        )
        if self._cached_lines + len(added) <= _CACHED_LINES:
            self._cached_lines += len(added)
            self._added[entry] = added
        return added

    def line_counts(self, entry: Entry) -> tuple[int, int]:
        """Added and removed lines of one entry, of any bytes; raises as `added_lines` does."""
        if entry not in self._counts:
            old, new = (_lines(content) for content in self._both(entry))
            self._count(entry, old, new, kept_lines(old, new, self._effort))
        return self._counts[entry]

    def _count(self, entry: Entry, old: Sized, new: Sized, kept: bytearray) -> None:
        self._counts[entry] = (len(new) - sum(kept), len(old) - sum(kept))

    def size(self, side: Side) -> int:
        """Bytes of one side's blob, learnt together with all others of the change."""
        _require_blob(side)
        self._order  # noqa: B018  (asks for all sizes in one round trip)
        return self._objects.size(side.oid)

    def blob(self, side: Side, limit: int) -> bytes:
        """The bytes of one side, read together with its neighbours in the change."""
        _require_blob(side)
        return self._objects.read(side.oid, limit, self._following(side.oid))

    def blobs(self, sides: Sequence[Side], limit: int) -> Iterator[bytes]:
        """The bytes of many sides, whether or not the change has them."""
        for side in sides:
            _require_blob(side)
        oids = [side.oid for side in sides]
        self._objects.load_sizes(oids)
        for position, oid in enumerate(oids, 1):
            yield self._objects.read(oid, limit, islice(oids, position, position + 1024))

    @cached_property
    def _effort(self) -> int:
        """Steps per line for the diff, by the size of the whole change; raises when too large."""
        oids = list(self._order)
        total = sum(self._objects.size(oid) for oid in oids if self._readable(oid))
        if total > CHANGE_BYTES_LIMIT:
            raise FactUnavailable(
                f"the change has {total:,} bytes of text; at most {CHANGE_BYTES_LIMIT:,} are read"
            )
        lines = 0
        for oid in oids:
            # One that is damaged is missing only where it is asked for, and hides no other.
            with suppress(GitStopped):
                if self._readable(oid):
                    content = self._objects.read(oid, BLOB_LIMIT, self._following(oid))
                    lines += content.count(b"\n") + 1
        if lines > CHANGE_LINES_LIMIT:
            raise FactUnavailable(
                f"the change has {lines:,} lines; at most {CHANGE_LINES_LIMIT:,} are compared"
            )
        return EFFORT if lines <= LARGE_CHANGE_LINES else EFFORT // 16

    @cached_property
    def _order(self) -> dict[str, int]:
        """Blobs of the change in the order of its paths, with their positions."""
        oids = dict.fromkeys(
            side.oid
            for entry in self._entries
            for side in (entry.old, entry.new)
            if side.present and not side.is_gitlink
        )
        self._objects.load_sizes(oids)
        return {oid: position for position, oid in enumerate(oids)}

    @cached_property
    def _oids(self) -> tuple[str, ...]:
        return tuple(self._order)

    def _following(self, oid: str) -> Iterator[str]:
        """Neighbours that will be asked for next; costs nothing until they are looked at."""
        position = self._order.get(oid)
        return iter(()) if position is None else islice(self._oids, position + 1, position + 1025)

    def _readable(self, oid: str) -> bool:
        return self._objects.has(oid) and self._objects.size(oid) <= BLOB_LIMIT

    def _both(self, entry: Entry) -> tuple[bytes, bytes]:
        """Old and new bytes; empty for an absent side, or an old one of another kind of file."""
        if entry.old.oid == entry.new.oid:
            return b"", b""
        self._effort  # noqa: B018  (raises when the whole change is too large)
        old = b""
        if entry.old.present and not entry.old.is_gitlink:
            old = self.blob(entry.old, BLOB_LIMIT)
        new = self.blob(entry.new, BLOB_LIMIT) if entry.new.present else b""
        return old, new


def _require_blob(side: Side) -> None:
    if not side.present:
        raise FactUnavailable("there is no file on this side of the change")
    if side.is_gitlink:
        raise FactUnavailable("a submodule commit has no content here")


def decode(content: bytes, what: str) -> str:
    """UTF-8 text without NUL; FactUnavailable for anything else."""
    if b"\0" in content:
        raise FactUnavailable(f"{what} is not text: it holds a NUL byte")
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise FactUnavailable(f"{what} is not UTF-8 text: byte {error.start}") from error


def _lines(content: bytes) -> list[bytes]:
    return BytesIO(content).readlines()


def _text(line: bytes) -> str:
    return line.removesuffix(b"\n").removesuffix(b"\r").decode("utf-8")
