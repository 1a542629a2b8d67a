# SPDX-License-Identifier: Apache-2.0
"""Where a text has words that need a look: those of the tables, used as the tables mean them."""

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from keyword import iskeyword

from fasttrack.meaning.imports import Imported, statements_in
from fasttrack.meaning.lines import places
from fasttrack.meaning.words import (
    ALWAYS,
    ROOTS,
    TELLING,
    TEXT_RUN,
    is_known,
    is_registering,
    words_below,
)

_FOLLOWING = re.compile(r" ([a-z]+)\b(?!\()")
_CHAIN = re.compile(r"(?<![\w.)\]])([A-Za-z_]\w*)((?:\.\w+)*\.)\Z")
_WORD_LIMIT = 80
"""Characters of a name that people may have written."""
_ON_SELF = re.compile(r"(?:self|super\(\)|\w*module|layer|self\.\w+)\.register_\w+\Z")


class Telling:
    """The telling words of one masked text."""

    def __init__(
        self,
        text: str,
        imports: Sequence[Imported],
        words: frozenset[str],
        lent: frozenset[str],
        foreign: Callable[[], frozenset[str]],
    ) -> None:
        """Takes what is known of a text.

        Args:
            text: the text.
            imports: what it imports.
            words: its words.
            lent: names that other modules lend to it and that need a look.
            foreign: imported names that are neither of an own module nor of the standard library.
        """
        self._text = text
        self._imports = imports
        self._words = words
        self._lent = lent
        self._foreign = foreign

    def places(self) -> Iterator[int]:
        """Places of words that need a look, but for those of import statements."""
        found = list(self._named())
        if found:
            yield from (place for place in found if not self.is_imported(place))
        for word in self._words & TEXT_RUN:
            for place in places(self._text, word):
                if self._text[place - 1 : place] != "." and not self._is_prose(place + len(word)):
                    yield place

    def registrations(self) -> Iterator[int]:
        """Places of words that register something, by their name."""
        for word in [word for word in self._words if is_registering(word)]:
            for place in places(self._text, word):
                before = max(0, place - 60)
                on_self = len(word) <= _WORD_LIMIT and _ON_SELF.search(
                    self._text, before, place + len(word)
                )
                if not on_self and not self.is_imported(place):
                    yield place

    def _is_prose(self, after: int) -> bool:
        """Whether another word follows on a word, as in a message and nowhere in code."""
        following = _FOLLOWING.match(self._text, after)
        return following is not None and not iskeyword(following[1])

    @cached_property
    def _imports_at(self) -> tuple[tuple[int, int], ...]:
        return tuple(sorted(statements_in(self._text)))

    def is_imported(self, place: int) -> bool:
        """Whether a place is in an import statement."""
        before = bisect_right(self._imports_at, (place, len(self._text))) - 1
        return before >= 0 and place < self._imports_at[before][1]

    def _named(self) -> Iterator[int]:
        wanted = (ALWAYS | (self._lent - ROOTS.keys())) & self._words
        # A name that is taken from a module is used without a dot.
        wanted |= {
            name
            for module, _, member, name in self._imports
            if member in ROOTS.get(module.partition(".")[0], ()) or name in ROOTS.get(name, ())
        }
        for word in wanted:
            yield from places(self._text, word)
        roots = {
            root for root in ROOTS.keys() & (self._words | self._lent) if self._is_reached(root)
        }
        for word in words_below(roots) & self._words - wanted:
            for place in places(self._text, word):
                before = self._text[max(0, place - 8) : place].rstrip(" \t")
                if not before.endswith((".", '"', "'")) or before.endswith("self."):
                    continue
                if word in TELLING or not self._is_another(place, word):
                    yield place

    def _is_reached(self, root: str) -> bool:
        """Whether a module may be used: it is imported or lent, an attribute, or named in text."""
        if root in self._lent or root in self._tops:
            return True
        found = places(self._text, root)
        return any(self._text[place - 1 : place] in {".", '"', "'"} for place in found)

    @cached_property
    def _tops(self) -> frozenset[str]:
        """First parts of the modules that are imported."""
        return frozenset(module.partition(".")[0] for module, _, _, _ in self._imports) | {
            "builtins"
        }

    def _is_another(self, place: int, word: str) -> bool:
        """Whether a word is the last part of a dotted name that is in no table."""
        chain = _CHAIN.search(self._text, max(0, place - 80), place)
        if chain is None or chain[1] not in self._modules:
            return False
        return not is_known(f"{self._modules[chain[1]]}{chain[2]}{word}")

    @cached_property
    def _modules(self) -> dict[str, str]:
        """Imported names to the dotted names of what they stand for, outside of the repository."""
        bound = Counter(name for _, _, _, name in self._imports)
        return {
            name: f"{module}.{member}" if member else module
            for module, level, member, name in self._imports
            if bound[name] == 1 and name not in self._lent
            and (name in self._foreign() or (not level and module.partition(".")[0] in ROOTS))
        }  # fmt: skip
