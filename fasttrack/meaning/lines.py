# SPDX-License-Identifier: Apache-2.0
"""The lines of a source without comments and long strings, and the functions and classes on them.

Everything here is found by a few patterns over the whole text, and most of it only when it is asked
for: most files need nothing else.
"""

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from operator import add

_TOKEN = re.compile(
    r"#[^\n]*"
    r'|"""[^"\\]*+(?:(?:\\.|"(?!""))[^"\\]*+)*"""'
    r"|'''[^'\\]*+(?:(?:\\.|'(?!''))[^'\\]*+)*'''"
    r'|"[^"\\\n]*+(?:\\.[^"\\\n]*+)*"'
    r"|'[^'\\\n]*+(?:\\.[^'\\\n]*+)*'",
    re.DOTALL,
)
_CONTINUED = re.compile(r"(?:[^\n]*\\\n)+[^\n]*")
_STRING_KEPT = 80
"""Characters of a string that may name something; no identifier of people is longer."""
_NO_BRACKETS = str.maketrans("()[]{}", "      ")
_NO_SIGNS = str.maketrans("()[]{}\\\"'", "         ")
_FORMATTED = re.compile(r"\b(?:[fFtT][rR]?|[rR][fFtT])\Z")


def masked(source: str) -> str:
    """A source with the same lines, without comments and long strings.

    Formatted strings stay: there is code in them. Where one seems to end inside a replacement field
    (newer Pythons let it hold its own quotes) nobody knows which quotes belong together, and all
    stays. Lines that a backslash joins are one, and blank ones; identifiers are spelled as Python
    reads them.
    """
    unclear = False

    def shortened(found: re.Match[str]) -> str:
        nonlocal unclear
        text = found[0]
        if text[0] == "#":
            return ""
        if "{" in text or "}" in text:
            start = found.start()
            if _FORMATTED.search(source, max(0, start - 3), start):
                unclear = unclear or text.count("{") != text.count("}")
                return _formatted(text)
        lines = text.count("\n")
        if lines:
            return '""' + "\n" * lines
        if len(text) > _STRING_KEPT or " " in text:
            return '""'
        return text if text[1:-1].isalnum() else f'"{text[1:-1].translate(_NO_SIGNS)}"'

    text = _TOKEN.sub(shortened, source)
    if unclear:
        text = source
    if "\\\n" in text:
        text = _CONTINUED.sub(_on_one_line, text)
    return text if text.isascii() else unicodedata.normalize("NFKC", text)


def _formatted(text: str) -> str:
    """A formatted string without what makes brackets and quotes uneven."""
    if "\\" in text:
        text = text.replace('\\"', "  ").replace("\\'", "  ")
    other = "'" if text[0] == '"' else '"'
    if text.count(other) % 2:
        text = text.replace(other, " ")
    closed = all(text.count(a) == text.count(b) for a, b in ("()", "[]"))
    return text if closed else text.translate(_NO_BRACKETS)


def _on_one_line(found: re.Match[str]) -> str:
    """Lines that a backslash joins, on the first of them."""
    return found[0].replace("\\\n", " ") + "\n" * found[0].count("\n")


@dataclass(frozen=True, slots=True)
class Block:
    """A function from `def` to its last line; those inside it belong to it.

    Attributes:
        name: its name.
        owner: the class that it is a method of; empty for none.
        indent: columns before `def`.
        start: number of its first line, from 0.
        end: number of the line after it.
    """

    name: str
    owner: str
    indent: int
    start: int
    end: int


class Lines:
    """A masked text and its lines, counted from 0."""

    def __init__(self, text: str) -> None:
        """Takes a masked text."""
        self.text = text
        self.rows = text.split("\n")

    @cached_property
    def starts(self) -> list[int]:
        """Where each line starts."""
        ends = accumulate(map(len, self.rows), initial=0)
        return list(map(add, ends, range(len(self.rows))))

    def line_of(self, place: int) -> int:
        """The number of the line that a place is on."""
        return bisect_right(self.starts, place) - 1

    def statement_of(self, line: int) -> tuple[int, int]:
        """The first line of the statement that a line is in, and the line after its last."""
        position = bisect_right(self._statements, line)
        last = self._statements[position] if position < len(self._statements) else len(self.rows)
        return self._statements[max(0, position - 1)], last

    @cached_property
    def _statements(self) -> list[int]:
        """The lines that begin a statement: no bracket is open there."""
        brackets = self.text.encode("utf-8", "replace").translate(_ALIKE, _NO_BRACKET)
        for _ in range(_PAIRS):  # most brackets close on their line
            brackets = brackets.replace(b"()", b"")
        begun, depth, first, place = [0], 0, 0, 0
        for row in _LEFT_OVER.finditer(brackets):
            line = first + brackets.count(b"\n", place, row.start())
            if not depth:
                begun += range(first + 1, line + 1)
            depth = max(0, depth + 2 * row[0].count(b"(") - len(row[0]))
            if not depth:
                begun.append(line + 1)
            first, place = line + 1, row.end() + 1
        if not depth:
            begun += range(first + 1, len(self.rows) + 1)
        return begun

    def position_of(self, line: int) -> int:
        """Which of the functions a line is in, by its place among them; -1 for none."""
        position = bisect_right(self._block_starts, line) - 1
        if position >= 0 and line < self.blocks[position].end:
            return position
        return -1

    def text_of(self, block: Block) -> str:
        """The lines of a function."""
        return "\n".join(self.rows[block.start : block.end])

    def last_of(self, block: Block) -> int:
        """The number of the last line of a function that is not blank."""
        last = block.end - 1
        while last > block.start and not self.rows[last].strip():
            last -= 1
        return last

    @property
    def blocks(self) -> list[Block]:
        """Outermost functions and methods."""
        return self._defined[0]

    @property
    def classes(self) -> set[str]:
        """Names of classes."""
        return self._defined[1]

    def block_of(self, line: int) -> Block | None:
        """The function that a line is in."""
        position = bisect_right(self._block_starts, line) - 1
        if position >= 0 and line < self.blocks[position].end:
            return self.blocks[position]
        return None

    @cached_property
    def _block_starts(self) -> list[int]:
        return [block.start for block in self.blocks]

    @cached_property
    def outside(self) -> list[tuple[int, str]]:
        """The lines that are in no function, with their numbers."""
        found, position = [], 0
        numbered = list(enumerate(self.rows))
        for block in self.blocks:
            found += numbered[position : block.start]
            position = block.end
        return found + numbered[position:]

    @cached_property
    def _defined(self) -> tuple[list[Block], set[str]]:
        """Functions and classes, by where their lines are indented."""
        blocks: list[Block] = []
        names: set[str] = set()
        classes: list[tuple[int, str]] = []
        end = 0
        for line, kind, name, indent in self._definitions():
            if line < end:
                continue
            while classes and (indent <= classes[-1][0] or self._leaves(classes[-1][0], end, line)):
                classes.pop()
            if kind == "class":
                names.add(name)
                classes.append((indent, name))
                end = line + 1
            else:
                owner = classes[-1][1] if classes else ""
                blocks.append(Block(name, owner, indent, line, self._end_of(line, indent)))
                end = blocks[-1].end
        return blocks, names

    def _leaves(self, indent: int, first: int, last: int) -> bool:
        """Whether one of some lines is indented no further than a class."""
        for row in self.rows[first:last]:
            text = row.lstrip()
            if text and len(row) - len(text) <= indent and text[0] not in ")]}":
                return True
        return False

    def _definitions(self) -> Iterator[tuple[int, str, str, int]]:
        """Line, keyword, name and indentation of every `def` and `class` that begins a line."""
        for found in _DEFINED.finditer(f"\n{self.text}"):
            yield self.line_of(found.start()), found[2], found[3], len(found[1])

    def _end_of(self, line: int, indent: int) -> int:
        """The number of the line after what is defined on a line."""
        if line + 1 >= len(self.rows):
            return line + 1
        found = _at_most(indent).search(self.text, self.starts[line + 1] - 1)
        return len(self.rows) if found is None else self.line_of(found.start() + 1)


_NO_BRACKET = bytes(set(range(256)) - set(b"()[]{}\n"))
_ALIKE = bytes.maketrans(b"[]{}", b"()()")
_PAIRS = 3
"""Rounds in which brackets with nothing left in them are dropped."""
_LEFT_OVER = re.compile(rb"[()]+")
_DEFINED = re.compile(r"\n([ \t]*+)(?:async[ \t]++)?(def|class)[ \t]++(\w++)")
_ENDS: dict[int, re.Pattern[str]] = {}


def _at_most(indent: int) -> re.Pattern[str]:
    """The first line that is not indented further; a closing bracket ends nothing."""
    if indent not in _ENDS:
        _ENDS[indent] = re.compile(rf"\n[ \t]{{0,{indent}}}+(?![ \t\n)\]}}]|\Z)")
    return _ENDS[indent]


def places(text: str, word: str, start: int = 0, end: int | None = None) -> Iterator[int]:
    """Where a word stands by itself, between two places."""
    last, size = len(text) if end is None else end, len(word)
    place = text.find(word, start, last)
    while place >= 0:
        before, after = text[place - 1 : place], text[place + size : place + size + 1]
        if not (before.isalnum() or after.isalnum() or before == "_" or after == "_"):
            yield place
        place = text.find(word, place + size, last)
