# SPDX-License-Identifier: Apache-2.0
"""What is parsed of a source: the top-level pieces that matter, without bodies that do not.

A piece is a statement at the left margin. Those with a line that needs a look stay, and those that
bind a name which is used by what stays; of their functions the same are kept, and of the others the
name. The rest is blank, so that line numbers stay.
"""

import ast
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass

from fasttrack.change.imports import parse
from fasttrack.errors import FactUnavailable
from fasttrack.meaning.lines import Block, Lines, masked

_WORD = re.compile(r"\w+")
_PIECE = re.compile(r"\n(?=[^\s#)\]}])")
_GOES_ON = re.compile(r"(?:else|elif|except|finally|case)\b")
_DEFINED = re.compile(r"^(?:async[ \t]+)?(?:def|class)[ \t]+(\w+)", re.MULTILINE)
_DEFINING = re.compile(r"@|(?:async[ \t]+)?def\b|class\b")
_IMPORTING = re.compile(r"import\b|from\b[^\n]*\bimport\b")
_COMPOUND = re.compile(r"(?:if|for|while|with|try|match|async)\b|[^\w]")
_LEFT = re.compile(r"[^=]*")
_CHAINED = re.compile(r"[^=()]*=[^=()]*=(?!=)")
PIECES_LIMIT = 2_000
"""Pieces of a source that are told apart; one of more is parsed whole."""


@dataclass(frozen=True)
class Sketch:
    """What is left of a source.

    Attributes:
        source: the text to parse: the whole, or one with the same lines and less on them.
        whole: nothing is left out.
        hits: numbers of the lines that need a look, from 0.
    """

    source: str
    whole: bool
    hits: frozenset[int]

    def needs(self, first: int, last: int) -> bool:
        """Whether one of some lines, from 1, needs a look."""
        return self.whole or any(first <= hit + 1 <= last for hit in self.hits)


@dataclass(frozen=True, eq=False)
class Piece:
    """One statement at the left margin.

    Attributes:
        start: number of its first line, from 0.
        end: number of the line after it.
        names: names that it binds or changes, or more; None for a star import.
        imports: it is an import statement.
        blocks: its functions, itself among them.
        body: number of the line after the head of a class; 0 for anything else.
    """

    start: int
    end: int
    names: frozenset[str] | None
    imports: bool
    blocks: tuple[Block, ...]
    body: int

    def outside(self, lines: Lines) -> Iterator[str]:
        """The lines, after the head of a class, that are in no function."""
        position = self.body or self.start
        for block in self.blocks:
            yield from lines.rows[position : block.start]
            position = block.end
        yield from lines.rows[position : self.end]


def tree_of(source: str, found: Sketch) -> ast.Module:
    """The tree of what is left of a source, or of all of it when that does not parse.

    Raises:
        FactUnavailable: neither parses.
    """
    if not found.whole:
        with suppress(FactUnavailable):
            return parse(found.source)
    return parse(source)


def outline(source: str, wanted: Callable[[str], bool]) -> Sketch:
    """A source in which functions and classes that are not wanted have no body.

    Args:
        source: the whole text.
        wanted: tells by the text of a function or class whether it is.
    """
    lines = Lines(masked(source))
    rows = source.split("\n")
    for piece in pieces_of(lines):
        if not (piece.names and _DEFINING.match(lines.rows[piece.start])):
            continue
        if not wanted("\n".join(rows[piece.start : piece.end])):
            stub = f"class {next(iter(piece.names))}: pass"
            rows[piece.start : piece.end] = [stub, *[""] * (piece.end - piece.start - 1)]
    return Sketch("\n".join(rows), whole=False, hits=frozenset())


def pieces_of(lines: Lines) -> Iterator[Piece]:
    """The pieces of a text, from top to bottom."""
    text = lines.text
    starts = [] if text[:1] in " \t\n#)]}" else [0]
    starts += [match.end() for match in _PIECE.finditer(text)]
    joined: list[int] = []
    decorated = False
    for start in starts:
        if not decorated and not _GOES_ON.match(text, start):
            joined.append(start)
        decorated = text.startswith("@", start)
    numbers = [*map(lines.line_of, joined), len(lines.rows)]
    blocks = iter(lines.blocks)
    block = next(blocks, None)
    for place, start, end in zip(joined, numbers, numbers[1:], strict=False):
        held: list[Block] = []
        while block is not None and block.start < end:
            held.append(block)
            block = next(blocks, None)
        last = lines.starts[end] if end < len(lines.starts) else len(text)
        imports = _IMPORTING.match(text, place) is not None
        body = _body_of_class(lines, start, end)
        yield Piece(start, end, _names(text, place, last), imports, tuple(held), body)


def _body_of_class(lines: Lines, start: int, end: int) -> int:
    """The line after the head of a class, decorators and bases; 0 where there is none."""
    inside = False
    if lines.rows[start].startswith(("class ", "@")):
        for number in range(start, end - 1):
            row = lines.rows[number]
            inside = inside or row.startswith("class ")
            if row.startswith(("def ", "async ")):
                break
            if inside and row.rstrip().endswith(":"):
                return number + 1
    return 0


def _names(text: str, place: int, last: int) -> frozenset[str] | None:
    """What a piece binds or changes, or more."""
    if _DEFINING.match(text, place):
        found = _DEFINED.search(text, place, last)
        return frozenset([found[1]] if found else ())
    if imported := _IMPORTING.match(text, place):
        names = text[imported.end() : last]
        return None if "*" in names else frozenset(_WORD.findall(names))
    if _COMPOUND.match(text, place) or _CHAINED.match(text, place, last):
        return frozenset(_WORD.findall(text, place, last))
    left = _LEFT.match(text, place, last)
    return frozenset(_WORD.findall(left[0] if left else ""))
