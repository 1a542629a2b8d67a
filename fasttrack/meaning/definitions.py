# SPDX-License-Identifier: Apache-2.0
"""What a text defines that can be called: functions, classes, and names that are bound to these."""

import re
from functools import cached_property

from fasttrack.meaning.heads import Parameters, parameters_in
from fasttrack.meaning.lines import Lines

_ALIAS = re.compile(r"=[ \t]*([A-Za-z_]\w*)(?=[ \t]*(?:[,)\n;]|if\b|or\b))")
_LAST_NAME = re.compile(r"\w*[A-Za-z_]")
_OUTER = ("global ", "nonlocal ", "global\t", "nonlocal\t")
_GLOBAL = re.compile(r"\b(?:global|nonlocal)[ \t]+([\w, \t]+)")
_PLAIN = re.compile(r"[A-Za-z_]\w*")


class Definitions:
    """What one text defines."""

    def __init__(self, lines: Lines, foreign: frozenset[str]) -> None:
        """Takes the lines of a text, and names whose calls give something foreign."""
        self._lines = lines
        self._foreign = foreign

    @cached_property
    def _plain(self) -> frozenset[str]:
        return frozenset(block.name for block in self._lines.blocks)

    @cached_property
    def functions(self) -> dict[str, list[int]]:
        """Functions by name; a class stands for the methods that its call runs."""
        found: dict[str, list[int]] = {}
        for position, block in enumerate(self._lines.blocks):
            found.setdefault(block.name, []).append(position)
            if block.owner and block.name.startswith("__"):
                found.setdefault(block.owner, []).append(position)
        return found

    @cached_property
    def initialised(self) -> frozenset[str]:
        """Classes with an own `__init__`."""
        owners = [b for b in self._lines.blocks if b.name == "__init__"]
        return frozenset(b.owner for b in owners if b.owner)

    @cached_property
    def class_names(self) -> frozenset[str]:
        """Names that are bound to a class of this file."""
        names = set(self._lines.classes)
        grown = -1
        while grown != len(names):
            grown = len(names)
            names.update(left for left, right in self._aliases if right in names)
        return frozenset(names)

    @cached_property
    def callables(self) -> frozenset[str]:
        """Names that are bound to a lambda, or to a function or class of this file."""
        names: set[str] = set(self._foreign)
        if "lambda" in self._lines.text or "partial" in self._lines.text:
            for row in self._lines.rows:
                if "lambda" in row or "partial" in row:
                    names.update(_PLAIN.findall(row.partition("lambda")[0]))
        grown = -1
        while grown != len(names):
            grown = len(names)
            for left, right in self._aliases:
                if right in names or right in self._plain:
                    names.add(left)
        return frozenset(names)

    @cached_property
    def _aliases(self) -> list[tuple[str, str]]:
        """What is bound to a plain name, or given by that name, and it."""
        text, found = self._lines.text, []
        for alias in _ALIAS.finditer(text):
            start = alias.start()
            left = text[max(text.rfind("\n", 0, start) + 1, start - 80) : start].rstrip()
            if ":" in left:
                first = _PLAIN.search(left)
                found += [(first[0], alias[1])] if first else []
                left = left.partition(":")[0].rstrip()
            name = _LAST_NAME.match(left[::-1])
            if name is not None:
                found.append((name[0][::-1], alias[1]))
        return found

    @cached_property
    def outer(self) -> frozenset[str]:
        """Names that a function binds outside of itself."""
        found = (
            _GLOBAL.findall(self._lines.text)
            if any(word in self._lines.text for word in _OUTER)
            else ()
        )
        return frozenset(name for names in found for name in _PLAIN.findall(names))

    @cached_property
    def heads(self) -> "_Heads":
        """The parameters of each function, by its place among them."""
        return _Heads(self._lines)


class _Heads(dict[int, Parameters]):
    """The parameters of functions by the place of these among all of a file, each read once."""

    def __init__(self, lines: Lines) -> None:
        super().__init__()
        self._lines = lines

    def __missing__(self, position: int) -> Parameters:
        first, last = self._lines.statement_of(self._lines.blocks[position].start)
        self[position] = found = parameters_in("\n".join(self._lines.rows[first:last]))
        return found
