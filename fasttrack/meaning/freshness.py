# SPDX-License-Identifier: Apache-2.0
"""Which changes of a text are of something that the same function has made: nobody else sees them.

A name is made when all that its function binds to it are new containers, numbers, texts, or what a
function gives that hands nothing through.
"""

import re
from collections.abc import Callable, Iterator
from functools import cached_property

from fasttrack.meaning.changes import Change, changes_in
from fasttrack.meaning.lines import Lines, places

_BOUND = re.compile(
    r"[ \t]*(?::[^=\n()]*)?=(?!=)[ \t]*(?:((?:[\[{]|\(\)|-?\d|[fFrRbB]?[\"']"
    r"|(?:set|dict|list|tuple|defaultdict|OrderedDict|int|len|float|str|sorted|range|sum)"
    r"(?:\[[^\n=]*\])?\("
    r"|(?:None|True|False)\b)(?![^\n]*[ \t)\]}](?:or|and|else)\b))|(\w+)(?:\.\w+)*\()?"
)
"""What stands behind a name that is bound; something new, or what a function gives."""
_BINDER = re.compile(
    r"\bfor\b(?:(?!\bin\b)[^\n])*\Z|\b(?:as|global|nonlocal|case|import|del)\b[^\n:]*\Z"
    r"|\blambda\b[^\n:]*\Z|\bdef\b"
)
"""What stands before a name on its line where it is bound without a sign."""
_CLOSING = re.compile(r"\n[ \t]*[)\]}]+[ \t]*([^\n]?)")
_AMONG_NAMES = re.compile(r"[ \t(\[*]*(?:\w+[ \t,*]+)*\Z")
_MORE_NAMES = re.compile(r"[ \t]*[,)\]][\w \t,*()\[\]]*=(?!=)")
_HEAD = re.compile(r"[ \t]*(?:async[ \t]+)?def[ \t]+\w+[ \t]*\((?:[^()]|\([^()]*\))*\)")


class Changes:
    """The changes of one text."""

    def __init__(self, lines: Lines, makers: Callable[[], frozenset[str]]) -> None:
        """Takes the lines of a text.

        Args:
            lines: the lines.
            makers: names of modules whose functions hand nothing through.
        """
        self._lines = lines
        self._makers = makers
        self._fresh: dict[tuple[int, str], bool] = {}
        self._heads: dict[int, int] = {}

    @cached_property
    def foreign(self) -> tuple[Change, ...]:
        """The changes of what is not made in the same function."""
        return tuple(change for change in self._all() if not self._is_fresh(change))

    def _all(self) -> Iterator[Change]:
        return changes_in(self._lines)

    def _is_fresh(self, change: Change) -> bool:
        """Whether what is changed is something new that the same function has made."""
        if change.behind or not change.name:
            return False
        position = self._lines.position_of(change.line)
        if position < 0:
            return False
        key = (position, change.name)
        if key not in self._fresh:
            self._fresh[key] = self._is_made_in(*key)
        return self._fresh[key]

    def _is_made_in(self, position: int, name: str) -> bool:
        lines, text = self._lines, self._lines.text
        block, starts = lines.blocks[position], lines.starts
        end = starts[block.end] if block.end < len(starts) else len(text)
        made, head = False, self._end_of_head(position)
        for place in places(text, name, starts[block.start], end):
            before = text[place - 1 : place]
            if before == ".":
                continue
            if place < head:
                made = text[place - 2 : place] == "**"
                if not made:
                    return False
                continue
            bound = _BOUND.match(text, place + len(name))
            if bound is not None:
                if not (bound[1] or bound[2] in self._makers()) or self._is_default(place):
                    return False
                made = True
            elif self._may_bind(place, place + len(name), end):
                return False
        return made

    def _end_of_head(self, position: int) -> int:
        """Where the parameters of a function end; behind all of it where nobody can tell."""
        if position not in self._heads:
            head = _HEAD.match(
                self._lines.text, self._lines.starts[self._lines.blocks[position].start]
            )
            self._heads[position] = head.end() if head else len(self._lines.text)
        return self._heads[position]

    def _is_default(self, place: int) -> bool:
        """Whether a line is the name, a value and a comma: perhaps a parameter of a function."""
        text = self._lines.text
        start, end = text.rfind("\n", 0, place) + 1, text.find("\n", place)
        row = text[place : end if end >= 0 else None].rstrip()
        return row.endswith(",") and not text[start:place].strip(" \t*")

    def _may_bind(self, place: int, after: int, limit: int) -> bool:
        """Whether a name may be bound where no `=` follows on it; reads up to the limit alone."""
        text = self._lines.text
        row = text[text.rfind("\n", 0, place) + 1 : place]
        if _BINDER.search(row):
            return True
        if not row.strip(" \t,*()"):
            end = text.find("\n", place, limit)
            if "," in text[place : end if end >= 0 else limit]:
                closing = _CLOSING.search(text, place, limit)
                if closing is not None:
                    return closing[1] in {"=", ":", "-"}
        target = row[max(row.rfind(":"), row.rfind(";")) + 1 :]
        return bool(_AMONG_NAMES.match(target)) and _MORE_NAMES.match(text, after) is not None
