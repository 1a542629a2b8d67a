# SPDX-License-Identifier: Apache-2.0
"""Texts of Python files, each taken apart once for all that look through it.

The target's tree and the one after the merge have most files in common, and what is foreign in one
depends on its neighbours, which are the same, too.
"""

from functools import cached_property

from fasttrack.meaning.imports import Exports, Imported, exports_of, imports_in
from fasttrack.meaning.lines import Lines, masked
from fasttrack.meaning.words import words_of

KEPT_CHARACTERS = 8 * 1024 * 1024
"""Of texts that are kept; what is known of one takes four times that."""


class Text:
    """What one text tells without its neighbours; all of it is found out when it is asked for."""

    def __init__(self, source: str) -> None:
        """Takes the text of a Python file."""
        self.source = source

    @cached_property
    def lines(self) -> Lines:
        """Its lines without comments and long strings."""
        return Lines(masked(self.source))

    @cached_property
    def imports(self) -> tuple[Imported, ...]:
        """What it imports."""
        return tuple(imports_in(self.lines.text))

    @cached_property
    def words(self) -> frozenset[str]:
        """The words in it."""
        return words_of(self.lines.text)

    @cached_property
    def exports(self) -> Exports:
        """The names that it binds at its top."""
        return exports_of(self.source)


class Texts:
    """The texts of one case."""

    def __init__(self) -> None:
        """Knows none yet."""
        self._texts: dict[str, Text] = {}
        self._kept = 0

    def of(self, source: str) -> Text:
        """A text; the same each time, until too many are kept."""
        if source not in self._texts:
            if self._kept > KEPT_CHARACTERS:
                self._texts.clear()
                self._kept = 0
            self._texts[source] = Text(source)
            self._kept += len(source)
        return self._texts[source]
