# SPDX-License-Identifier: Apache-2.0
"""Which pieces of a source stay: what needs a look, what that names, and what calls it."""

import re
from collections.abc import Callable, Sequence

from fasttrack.meaning.lines import Block, Lines, places
from fasttrack.meaning.pieces import Piece, Sketch

_WORD = re.compile(r"\w+")
_GLOBAL = re.compile(r"\bglobal[ \t]+([^\n]*)")
_BINDING = re.compile(r"[ \t]*(?:if|for|while|with|try|match|async|import|from|class)\b")
_ROUNDS = 30
"""How often the pieces are gone through before all of them are parsed."""
_SILENT = frozenset({"__repr__", "__str__", "__len__", "__hash__", "__eq__", "__post_init__"})
"""Methods that Python calls and that rarely do more than answer."""


def reduced(source: str, lines: Lines, pieces: Sequence[Piece], keeping: "Keeping") -> Sketch:
    """What is left of a source.

    Args:
        source: the whole text.
        lines: its masked lines.
        pieces: the pieces of these.
        keeping: tells which of them stay.
    """
    if "\t" in lines.text:  # of what is indented by tabs nobody knows how far
        return Sketch(source, whole=True, hits=frozenset(keeping.hits))
    found = keeping.of(pieces)
    if found is None:
        return Sketch(source, whole=True, hits=frozenset(keeping.hits))
    kept, bodies = found
    rows = source.split("\n")
    for piece in pieces:
        if piece not in kept:
            rows[piece.start : piece.end] = [""] * (piece.end - piece.start)
            continue
        if piece not in keeping.full:
            rows[piece.body : piece.end] = [" pass", *[""] * (piece.end - piece.body - 1)]
            continue
        for block in piece.blocks:
            if block not in bodies:
                stub = f"{' ' * block.indent}def {block.name}(*_, **__): pass"
                rows[block.start : block.end] = [stub, *[""] * (block.end - block.start - 1)]
    return Sketch("\n".join(rows), whole=False, hits=frozenset(keeping.hits))


class Keeping:
    """Which pieces and which functions stay.

    Attributes:
        hits: numbers of the lines that need a look.
        full: the pieces that stay with more than their head.
    """

    def __init__(
        self,
        lines: Lines,
        hits: set[int],
        made_with_foreign: Callable[[str], bool],
        is_worth: Callable[[Block], bool],
        lending: frozenset[str] | None,
    ) -> None:
        """Takes what is known of a source.

        Args:
            lines: its masked lines.
            hits: numbers of the lines that need a look.
            made_with_foreign: whether a class, by its name, is called with something foreign.
            is_worth: whether the reader follows calls of a function.
            lending: of a module that others import from, the names that may hold, return or change
                something foreign; they stay, and so does what is imported. None for any other.
        """
        self._lines = lines
        self.hits = hits
        self._is_made_with_foreign = made_with_foreign
        self._is_worth = is_worth
        self._lending = lending or frozenset()
        self._is_lending = lending is not None
        self._named: set[str] = set()
        self._acting: set[str] = set()
        self._naming: set[Block] = set()
        self._naming_lines: set[int] = set()
        self._hit_blocks = {b for hit in hits if (b := lines.block_of(hit))}
        self._has_globals = "global " in lines.text
        self.full: set[Piece] = set()

    def of(self, pieces: Sequence[Piece]) -> tuple[set[Piece], set[Block]] | None:
        """Pieces, and functions whose bodies stay; pieces that are not `full` stay with their head.

        What stays is read for the names that it uses, until no more comes. None when that takes
        too long: one name leads to the next.
        """
        kept: set[Piece] = set()
        bodies: set[Block] = set()
        grown = True
        for _ in range(_ROUNDS):
            if not grown:
                return kept, bodies
            while names := {b.owner or b.name for b in self._lines.blocks if self._acts(b)}:
                if names <= self._acting:
                    break
                self._act(names - self._acting)
            fresh = [piece for piece in pieces if piece not in kept and self._stays(piece)]
            kept.update(fresh)
            for piece in fresh:
                if piece.body:
                    self._read(piece.start, piece.body)
            more = [b for p in kept for b in p.blocks if b not in bodies and self._has_body(b)]
            bodies.update(more)
            for block in more:
                self._read(block.start, block.end)
            filled = [p for p in kept if p not in self.full and self._is_full(p, bodies)]
            self.full.update(filled)
            for piece in filled:
                self._read_outside(piece)
            grown = bool(fresh or more or filled)
        return None

    def _act(self, names: set[str]) -> None:
        """Adds names of functions that act, and notes what speaks of them."""
        self._acting |= names
        for name in names:
            for place in places(self._lines.text, name):
                line = self._lines.line_of(place)
                block = self._lines.block_of(line)
                if block is None:
                    self._naming_lines.add(line)
                else:
                    self._naming.add(block)

    def _stays(self, piece: Piece) -> bool:
        if piece.names is None or (piece.imports and self._is_lending):
            return True
        if not (piece.names.isdisjoint(self._named) and piece.names.isdisjoint(self._lending)):
            return True
        if not piece.imports and any(piece.start <= x < piece.end for x in self._naming_lines):
            return True
        return any(piece.start <= hit < piece.end for hit in self.hits)

    def _acts(self, block: Block) -> bool:
        """Whether a function has a line that needs a look, or calls one that has."""
        if block in self._hit_blocks or self._sets_named(block):
            return True
        if not self._acting or (block.owner or block.name) in self._acting:
            return False
        return block in self._naming

    def _sets_named(self, block: Block) -> bool:
        """Whether a function sets names of the module that are used."""
        if not self._has_globals:
            return False
        found = _GLOBAL.findall(self._lines.text_of(block))
        return any(not self._named.isdisjoint(_WORD.findall(names)) for names in found)

    def _is_full(self, piece: Piece, bodies: set[Block]) -> bool:
        """Whether more than the head of a class is needed."""
        if not (piece.body and piece.names and piece.names.isdisjoint(self._lending)):
            return True
        if any(piece.body <= hit < piece.end for hit in self.hits):
            return True
        if not bodies.isdisjoint(piece.blocks):
            return True
        if any(map(self._is_made_with_foreign, piece.names or ())):
            return True
        return any(map(self._binds_named, piece.outside(self._lines)))

    def _binds_named(self, row: str) -> bool:
        """Whether a line of a class binds a name that is used, or may bind any."""
        if _BINDING.match(row):
            return True
        left = min(row.find(sign) % len(row) for sign in ":=") if row.strip() else 0
        return not self._named.isdisjoint(_WORD.findall(row[:left]))

    def _read_outside(self, piece: Piece) -> None:
        if not piece.imports:
            self._named.update(_WORD.findall("\n".join(piece.outside(self._lines))))

    def _read(self, start: int, end: int) -> None:
        self._named.update(_WORD.findall("\n".join(self._lines.rows[start:end])))

    def _has_body(self, block: Block) -> bool:
        """Whether a function is named by what is kept; hooks of a class are named by nobody."""
        if block.name in self._lending or self._acts(block):
            return True
        if not self._is_worth(block):
            return False
        if block.name in {"__init__", "__call__"}:
            return self._is_made_with_foreign(block.owner)
        named = block.name in self._named
        return named or (block.name.startswith("__") and block.name not in _SILENT)
