# SPDX-License-Identifier: Apache-2.0
"""FT108: no content moves across the border of a protected tree.

Git does not record renames, and a rename shows in a diff as a deletion here and an addition
there. Each half may look harmless; this rule puts them together again. It compares what the
change removes with what it adds: whole blobs by id, text by the lines they share.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from fasttrack.case import Case
from fasttrack.change.tree import Entry
from fasttrack.errors import FactUnavailable
from fasttrack.finding import Finding, Level
from fasttrack.rules.base import Rule
from fasttrack.rules.confinement.readable import (
    added_text,
    changed_file,
    is_regular,
    reversed_entry,
)

SAME_BYTES_MIN = 64
"""Bytes from which equal blobs count as moved: empty and one-line files are equal by chance."""
SHARED_LINES_MIN = 8
"""Distinct telling lines that two texts must share to count as moved."""
TELLING_LENGTH = 8
"""Characters of a line that is not just a bracket, `else:` or `return`."""
FILES_PER_LINE = 8
"""A line that more files remove than this is boilerplate and says nothing."""
LINES_LIMIT = 400_000
"""Removed plus added lines that are compared; it bounds the index to about 100 MB."""
_COMMENTS = ("#", "//", "/*", "*", '"""')


@dataclass(frozen=True)
class _Move:
    source: str
    target: Entry
    how: str


class ProtectedRename(Rule):
    """Content that leaves one tree and turns up in another."""

    id = "FT108"
    slug = "protected-rename"
    title = "no content moves into or out of a protected tree"
    level = Level.ROUTE
    refuses = (
        "Content that the change removes from one tree and adds to another, where a tree is a "
        "manifest's roots or a path class: equal files, or texts that share at least 8 telling "
        "lines and half of the smaller one's. Both paths are named."
    )
    why = (
        "An oracle that moves into the kernel's own folder is no oracle any more, and code that "
        "moves from the roots to a free folder leaves the evidence behind. As a deletion and an "
        "addition neither is visible."
    )
    blind = (
        "Text of fewer than 8 telling lines that is also edited, text that is rewritten line by "
        "line, and copies whose original stays."
    )
    fix = "leave the content in its tree, or send the move for ordinary review"

    def check(self, case: Case) -> Iterator[Finding]:
        """Reports one finding for each path that moved content arrives at."""
        if len({_tree(case, entry.path) for entry in case.entries}) < 2:
            return
        moves: dict[str, _Move] = {}
        for move in _equal_blobs(case):
            moves.setdefault(move.target.path, move)
        yield from (self._found(case, move) for move in moves.values())
        for move in _shared_lines(case):
            if move.target.path not in moves:
                yield self._found(case, move)

    def _found(self, case: Case, move: _Move) -> Finding:
        source = f"`{move.source}` ({_tree(case, move.source)})"
        return self.finding(
            path=move.target.path,
            saw=f"{move.how} of {source} moved to {_tree(case, move.target.path)}",
            want="content that stays in its tree",
            content=f"{move.source} {move.target.new.oid}",
        )


def _tree(case: Case, path: str) -> str:
    """The tree that a path belongs to: a manifest's roots, or its path class."""
    manifest = case.governing(path)
    return f"roots of {manifest.name}" if manifest else f"class {case.path_class(path).value}"


def _equal_blobs(case: Case) -> Iterator[_Move]:
    left = {
        entry.old.oid: entry.path
        for entry in case.entries
        if entry.old.oid != entry.new.oid
        and is_regular(entry.old)
        and case.change.size(entry.old) >= SAME_BYTES_MIN
    }
    for entry in case.entries:
        source = left.get(entry.new.oid)
        if source is None or not changed_file(entry):
            continue
        if _tree(case, source) != _tree(case, entry.path):
            yield _Move(source, entry, "the content")


def _shared_lines(case: Case) -> Iterator[_Move]:
    """Moves by shared lines: an index of removed lines, asked for the added ones of each file."""
    removed: dict[str, frozenset[str]] = {}
    added: dict[str, frozenset[str]] = {}
    total = 0
    for entry in case.entries:
        removed[entry.path] = _telling(added_text(case, reversed_entry(entry)))
        added[entry.path] = _telling(added_text(case, entry))
        total += len(removed[entry.path]) + len(added[entry.path])
        if total > LINES_LIMIT:
            raise FactUnavailable(f"more than {LINES_LIMIT:,} lines to look for moves in")
    removed = {path: lines for path, lines in removed.items() if len(lines) >= SHARED_LINES_MIN}
    index = _index(removed)
    for entry in case.entries:
        lines = added[entry.path]
        shared = Counter(path for line in lines for path in index.get(line, ()))
        for source, count in sorted(shared.items(), key=lambda item: (-item[1], item[0])):
            smaller = min(len(removed[source]), len(lines))
            if count < SHARED_LINES_MIN or 2 * count < smaller:
                continue
            if _tree(case, source) != _tree(case, entry.path):
                yield _Move(source, entry, f"{count} lines")
                break


def _index(removed: Mapping[str, frozenset[str]]) -> Mapping[str, tuple[str, ...]]:
    files: defaultdict[str, list[str]] = defaultdict(list)
    for path, lines in removed.items():
        for line in lines:
            files[line].append(path)
    return {line: tuple(paths) for line, paths in files.items() if len(paths) <= FILES_PER_LINE}


def _telling(lines: Iterable[tuple[int, str]]) -> frozenset[str]:
    """Distinct lines that say something, without indentation; comments (licences) do not."""
    stripped = (text.strip() for _, text in lines)
    return frozenset(
        t for t in stripped if len(t) >= TELLING_LENGTH and not t.startswith(_COMMENTS)
    )
