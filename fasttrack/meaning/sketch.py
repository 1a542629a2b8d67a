# SPDX-License-Identifier: Apache-2.0
"""The part of a source that can have an effect, found in its text before anything is parsed.

To read every file whole takes three times as long, and hardly any function of honest code reaches
outside. So the text is looked through for what every effect needs:
a word of the tables in `known`, or a form of assignment or mutation whose object may be foreign.
Without any, there is nothing to read. Otherwise the file is read without the bodies of functions
that have none and are not named by what is left.

The look is generous: what it finds costs time, and what it would miss nobody would see. Short
strings stay in, because `getattr(torch, "set_num_threads")` is a use of that name.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Set
from functools import cached_property

from fasttrack.meaning.around import Around
from fasttrack.meaning.changes import Change
from fasttrack.meaning.decorated import Head, head_at, sketched
from fasttrack.meaning.freshness import Changes
from fasttrack.meaning.keeping import Keeping, reduced
from fasttrack.meaning.lines import Block, places
from fasttrack.meaning.pieces import PIECES_LIMIT, Piece, Sketch, pieces_of
from fasttrack.meaning.reachable import Reachable
from fasttrack.meaning.telling import Telling
from fasttrack.meaning.texts import Text

_NAME = re.compile(r"[A-Za-z_]\w*")
_GETATTR = re.compile(r"getattr[ \t]*\([ \t]*([A-Za-z_]\w*)")
_PLAIN_OBJECTS = frozenset({"self", "cls"})
_FREE_METHOD = re.compile(r"\n(?:async[ \t]+)?def[ \t]+\w+[ \t]*\([ \t\n]*(?:self|cls)\b")
_SPECIAL = re.compile(
    r"__(?:[ir]?(?:add|sub|mul|matmul|truediv|floordiv|mod|pow|lshift|rshift|and|or|xor)"
    r"|getitem|setitem|delitem|setattr|set|contains|eq|ne|lt|gt|le|ge|missing|class_getitem"
    r"|prepare|mro_entries|set_name|instancecheck|subclasscheck)__"
)
"""Methods that an operator hands something to."""
_ENUM = re.compile(
    r"\n[ \t]*+class[ \t]++\w++\((?:enum\.)?(?:Int|Str)?Enum\):[ \t]*+"
    r"(?:\n(?=\s|\Z)[ \t]*+(?:(?:\w++[ \t]*+=[ \t]*+)?"
    r"(?:[\"'][^\"'\n]*+[\"']|-?[\d.]++|(?:enum\.)?auto\(\)))?[ \t]*+)*(?=\n[^ \t\n]|\Z)"
)
"""An enumeration of numbers and texts, and of nothing that is called."""
_TYPES = frozenset(
    "list dict set deque OrderedDict defaultdict bytearray object type super Counter".split()  # noqa: SIM905
)
SHORT_LINES = 16
"""Lines of a function that is followed even if it can only hand something on."""
_STATEMENT_LIMIT = 2_000
"""Characters of a statement that are looked through for what it changes."""


class Look:
    """One look through a text.

    Attributes:
        source: the text.
        imports: what the file imports.
        words: the words in it.
    """

    def __init__(self, given: Text, around: Around) -> None:
        """Looks through the text of a Python file."""
        self.source = given.source
        self._around = around
        self._lines = given.lines
        self._text = text = given.lines.text
        self.imports = given.imports
        self._stirred: frozenset[str] = frozenset()
        self.words = words = given.words
        lent = frozenset(around.lent(self.imports, words))
        self._telling = Telling(text, self.imports, words, lent, lambda: self._makers)
        self._changes = Changes(self._lines, lambda: self._makers)
        self._heads: dict[int, Head] = {}
        self._word_hits = self._word_lines()

    @cached_property
    def hits(self) -> set[int]:
        """Numbers of the lines that need a look, from 0; nothing can have an effect without."""
        hits = self._word_hits | set(self._changed())
        hits.update(self._forms())
        self._spread(hits)
        return hits | self._heads.keys()

    @cached_property
    def _reachable(self) -> Reachable:
        found = self._around.foreign(self.imports)
        return Reachable(self._lines, self.words, found, self._makers)

    @cached_property
    def _makers(self) -> frozenset[str]:
        return self._around.makers(self.imports)

    @cached_property
    def whole(self) -> bool:
        """Whether an operator may hand something foreign to a method of this file."""
        if not self.imports:
            return False
        if ".setter" in self._text or ("Enum)" in self._text and self._has_open_enum()):
            return True
        special = [word for word in self.words if word[-2:] == "__" and _SPECIAL.fullmatch(word)]
        return any(re.search(rf"def[ \t]+{word}\b", self._text) for word in special)

    def _has_open_enum(self) -> bool:
        """Whether a member of an enumeration may be more than a number or a text."""
        closed = sum(1 for _ in _ENUM.finditer(f"\n{self._text}"))
        return closed != self._text.count("Enum)")

    @property
    def hands(self) -> bool:
        """Whether anything foreign is handed on."""
        return bool(self._reachable.carrying)

    def handed(self, names: Iterable[str]) -> set[str]:
        """Those of some names that a statement has which hands on something foreign."""
        left = set(names) & self.words
        if not left:
            return left
        named = [self._named(line) for line in self._reachable.carrying]
        return left.intersection(frozenset[str]().union(*named))

    def _named(self, line: int) -> list[str]:
        return _NAME.findall(self._statement(line))

    def take(self, stirring: Set[str]) -> None:
        """Adds functions of other modules that change what they are given."""
        if not stirring <= self._stirred:
            self._stirred |= stirring
            lines = self._reachable.carrying
            named = {x for x in lines if not stirring.isdisjoint(self._named(x))} - self.hits
            if named:
                self.hits.update(named)
                self._spread(self.hits)

    def _word_lines(self) -> set[int]:
        """Lines with words that need a look, and with names that stand for them."""
        hits = {self._lines.line_of(place) for place in self._telling.places()}
        for line in {self._lines.line_of(place) for place in self._telling.registrations()}:
            head = head_at(self._lines, line) if self._lines.rows[line][:1] == "@" else None
            if head is None or not hits.isdisjoint(range(head.start, head.end + 1)):
                hits.add(line)
            else:
                self._heads[line] = head
        seen: set[str] = set()
        while fresh := set(self._bound_on(hits)) - seen:
            seen |= fresh
            hits |= {
                self._lines.line_of(place) for name in fresh for place in places(self._text, name)
            }
        return hits

    def _bound_on(self, numbers: Iterable[int]) -> Iterator[str]:
        """Names that are bound on some lines outside of functions."""
        for number in numbers:
            row = self._lines.rows[number]
            if "=" not in row or (row.lstrip()[:1] == "@" and ":=" not in row):
                continue
            if self._lines.position_of(number) < 0:
                for target in row.split("=")[:-1]:
                    yield from _TARGETS.findall(target.partition(":")[0])

    def _changed(self) -> Iterator[int]:
        """Lines that change what may be foreign."""
        for change in self._changes.foreign:
            if self._may_matter(change):
                yield change.line

    def _may_matter(self, change: Change) -> bool:
        line, text, reachable = change.line, self._text, self._reachable
        if change.name in _TYPES:
            return reachable.leads(self._statement(line), line)
        start = self._lines.starts[self._lines.statement_of(line)[0]]
        if change.place - start > _STATEMENT_LIMIT:
            return True
        left = text[start : change.place]
        return "lambda" in left or reachable.leads(left, line, behind=change.behind)

    def _statement(self, line: int) -> str:
        first, last = self._lines.statement_of(line)
        return "\n".join(self._lines.rows[first:last])

    def _forms(self) -> Iterator[int]:
        """Lines that may change something by the shape of a call."""
        for found in _GETATTR.finditer(self._text) if "getattr" in self.words else ():
            if found[1] in _PLAIN_OBJECTS:
                continue
            line = self._lines.line_of(found.start())
            if self._reachable.is_foreign(found[1], line):
                yield line
        yield from self._free_methods()

    def _free_methods(self) -> Iterator[int]:
        """Functions at the left margin that have `self`: they are put on a class later."""
        for found in _FREE_METHOD.finditer(self._text):
            yield self._lines.line_of(found.start() + 1)

    def _spread(self, hits: set[int]) -> None:
        """Adds the calls that hand something foreign to a function with lines that need a look."""
        if not hits:
            return
        hits |= self._reachable.unclear
        fresh = {self._lines.position_of(hit) for hit in hits}
        seen: set[int] = set()
        while fresh:
            seen |= fresh
            sites = {s for f in fresh for s in self._reachable.sites.get(f, ())} - hits
            hits |= sites
            fresh = {self._lines.position_of(site) for site in sites} - seen

    @cached_property
    def lent(self) -> Mapping[str, int]:
        """Names of the module that may be foreign, and attributes with a dot; see `Around`."""
        return self._reachable.lent

    def lends(self, name: str) -> bool:
        """Whether something foreign may be kept under a name of the module, or returned."""
        return name in self.lent or name in self._reachable.owners

    @cached_property
    def _stirring_blocks(self) -> frozenset[int]:
        """Functions that change something that they have not made, and those that name these."""
        lines = self._lines
        found = {lines.position_of(hit) for hit in (*self._word_hits, *self._free_methods())}
        found |= {lines.position_of(change.line) for change in self._changes.foreign}
        found.discard(-1)
        names = self._names_of(found)
        seen: set[str] = set()
        while names:
            seen |= names
            places_of = (place for name in names for place in places(self._text, name))
            more = {lines.position_of(lines.line_of(place)) for place in places_of} - found - {-1}
            found |= more
            names = self._names_of(more) - seen
        return frozenset(found)

    def _names_of(self, positions: Iterable[int]) -> set[str]:
        blocks = [self._lines.blocks[position] for position in positions]
        return {b.owner if b.name in _HOOKS else b.name for b in blocks} - {""}

    @cached_property
    def stirring(self) -> frozenset[str]:
        """Names of functions that change what they may be given, and of their classes."""
        blocks = [self._lines.blocks[position] for position in self._stirring_blocks]
        return frozenset(name for b in blocks for name in (b.name, b.owner) if name)

    def touches(self, first: int, last: int) -> bool:
        """Whether what is on some lines, from 1, can change something, or what it is given."""
        if any(first <= hit + 1 <= last for hit in self.hits):
            return True
        blocks = (self._lines.blocks[position] for position in self._stirring_blocks)
        return any(block.start < last and first <= block.end for block in blocks)

    def _is_worth(self, block: Block) -> bool:
        """Whether the reader follows calls of a function; see `touches`."""
        first, last = block.start + 1, self._lines.last_of(block) + 1
        return last - first < SHORT_LINES or self.touches(first, last)

    def _is_made_with_foreign(self, name: str) -> bool:
        """Whether a class is called with something foreign."""
        return name in self._made

    @cached_property
    def _made(self) -> frozenset[str]:
        return frozenset(self._lines.blocks[p].owner for p in self._reachable.sites)

    def reduced(self, *, lending: bool = False) -> Sketch:
        """The parts of the source that matter to what needs a look.

        Args:
            lending: keep also what others may import and that holds something foreign.
        """
        if not (lending or self.whole) and self.hits == self._heads.keys():
            plain = self._around.plain(self.imports)
            imports = [found for found in self.imports if found[3] not in plain]
            left = sketched(self.source, self._lines, tuple(self._heads.values()), imports)
            if left is not None:
                return Sketch(left, whole=False, hits=frozenset(self.hits))
        if self.whole or len(self._pieces) > PIECES_LIMIT or self._reachable.all:
            return Sketch(self.source, whole=True, hits=frozenset(self.hits))
        lent = self._lending_names() if lending else None
        keeping = Keeping(self._lines, self.hits, self._is_made_with_foreign, self._is_worth, lent)
        return reduced(self.source, self._lines, self._pieces, keeping)

    @cached_property
    def _pieces(self) -> tuple[Piece, ...]:
        return tuple(pieces_of(self._lines))

    def _lending_names(self) -> frozenset[str]:
        plain = (name for name in self.lent if name[0] != ".")
        return self.stirring.union(plain, self._reachable.owners)


_HOOKS = frozenset(["__init__", "__call__", "__new__", "__init_subclass__", "__post_init__"])
_TARGETS = re.compile(r"(?<![\w.])[A-Za-z_]\w*(?![\w.(\[])")
