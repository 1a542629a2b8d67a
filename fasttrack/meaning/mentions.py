# SPDX-License-Identifier: Apache-2.0
"""Where a text mentions a name as a value: neither calls, compares, imports nor defines it."""

import re
from collections.abc import Iterator
from functools import cached_property

from fasttrack.meaning import known
from fasttrack.meaning.lines import Lines, places

_AFTER = re.compile(
    r"((?:\.\w+)*)[ \t]*(\(|=(?!=)|[=!<>]=|[<>]|(?://|[-*/%])[ \t]|(?:is|in|not in)\b)?"
)
_BEFORE = re.compile(r"(?:[=!<>]=|[<>]|[ \t](?://|[-*/%])|\bis|\bnot)[ \t]+\Z")
_DTYPES = frozenset(
    {
        "float16", "float32", "float64", "bfloat16", "half", "float", "double", "int8", "int16",
        "int32", "int64", "long", "uint8", "bool", "inf", "nan", "float8_e4m3fn", "newaxis",
    }
)  # fmt: skip
"""Last parts of names that are handed over everywhere and have nothing to change."""
_COPYING = frozenset({"copy", "keys", "__getattribute__"})
_HANDING = known.ELEMENTS | _COPYING
QUOTES = frozenset("\"'")
_NAMING = re.compile(r"attr|globals|locals|vars|__dict__")
_STRINGS = frozenset(["f", "r", "b", "u", "fr", "rf", "br", "rb", "F", "R", "B"])
"""What may stand before a text."""
_WITHOUT_VALUES = re.compile(
    r"\n[ \t]*+(?:(?:async[ \t]++)?def[ \t]++\w++[ \t]*+\([^()]*+(?:\([^()]*+\)[^()]*+)*\)"
    r"[^\n=]*:(?=[ \t]*+\n)"
    r"|class[ \t]++\w++[ \t]*+(?:\([^()=]*+\))?[ \t]*+:(?=[ \t]*+\n)"
    r"|class[ \t][^\n=]*:(?=[ \t]*\n)"
    r"|from[ \t]+[\w.]+[ \t]+import[ \t]*(?:\([^()]*\)|[^\n;(]*(?=\n))"
    r"|import[ \t][^\n;]*(?=\n)"
    r"|@[\w.]+[ \t]*(?=\n))"
)
_DEFAULT = re.compile(r"=[ \t]*+(?!(?:None|True|False|[\d.]++|\"\w*\"|'\w*')[ \t\n]*+[,)])[^,]*")
"""What stands for a parameter that is not given, but for plain numbers and texts."""
_NESTING = re.compile(r"[(\[{]|\blambda\b")


def _blank(found: re.Match[str]) -> str:
    """Spaces for a header; of default values, names stay, and with brackets in one everything."""
    text = found[0]
    if "=" not in text:
        return " " * len(text)
    rest, place = [], 0
    for value in _DEFAULT.finditer(text):
        if _NESTING.search(value[0]):
            return text
        rest += [" " * (value.start() - place), value[0]]
        place = value.end()
    return "".join((*rest, " " * (len(text) - place)))


_ROOT = re.compile(r"[\w.]*")
_ASKED = re.compile(r"(?<![\w.])(?:isinstance|issubclass)\([^()]*(?:,[ \t]*\([^()]*)?\Z")
"""What stands before a type that something is only compared with."""
_TYPED = re.compile(r"[ \t]*(?!(?:else|try|finally|lambda)\b)[A-Za-z_][\w.]*[ \t]*:[^=(){}\n]*\Z")
"""What stands before the type of a variable or parameter; `_GIVEN` is its value, behind."""
_GIVEN = re.compile(r"[^=(){}\n]{0,200}(?<![!<>])=(?!=)")
_ROW_LIMIT = 200
"""Characters before a mention that are looked at for what makes it a type."""

Key = tuple[int, str]
"""A name, or an attribute behind a dot, and the place of its function among all of a file."""


class Mentions:
    """The mentions of names in one text."""

    def __init__(self, lines: Lines, words: frozenset[str]) -> None:
        """Takes the lines of a text, and its words."""
        self._lines = lines
        self._words = words

    def places(self, key: Key) -> Iterator[int]:
        """Where a name may be mentioned."""
        position, name = key
        text, lines = self._text, self._lines
        if name[0] == ".":
            if name[1:] not in self._words:
                return
            for place in places(text, name[1:]):
                if text[place - 1 : place] in {".", '"', "'"}:
                    yield place
            return
        if name not in self._words:
            return
        start, end = 0, None
        if position >= 0:
            block = lines.blocks[position]
            start = lines.starts[block.start]
            end = lines.starts[block.end] if block.end < len(lines.starts) else len(text)
        for place in places(text, name, start, end):
            before = text[place - 1 : place]
            if before != "." and (before not in {'"', "'"} or position < 0):
                yield place

    @cached_property
    def _text(self) -> str:
        """The text without imports and without headers that bind nothing, as long as it was."""
        return _WITHOUT_VALUES.sub(_blank, self._lines.text)

    def is_idle(self, place: int) -> bool:
        """Whether a row tells that nothing comes of a mention: it is a type."""
        text = self._lines.text
        start = text.rfind("\n", max(0, place - _ROW_LIMIT), place) + 1
        if not start:  # the first row, or one of which the start is too far away
            return False
        before = text[start:place]
        if _ASKED.search(before):
            return True
        given = _GIVEN.match(text, place) if ":" in before and _TYPED.match(before) else None
        left = text[start : given.end()] if given else "["
        return left.count("[") == left.count("]")

    def is_mention(self, name: str, place: int, level: int) -> bool:
        """Whether a name stands at a place as a value, and not as what is called or compared."""
        text = self._lines.text
        after = _AFTER.match(text, place + len(name) - (name[0] == "."))
        if after is None:
            return True
        last = after[1].rpartition(".")[2]
        if last in _DTYPES or (after[2] and after[2] != "("):
            return False
        if name in _STRINGS and text[place + len(name) : place + len(name) + 1] in QUOTES:
            return False
        if after[2] == "(" and not level and (last not in _HANDING or name == last):
            return False
        start = place
        if name[0] == ".":
            start -= len(_ROOT.match(text[max(0, place - 60) : place][::-1])[0])  # type: ignore[index]
        if text[start - 1 : start] == " ":
            return _BEFORE.search(text, max(0, start - 8), start) is None
        return True

    @staticmethod
    def is_call(text: str, place: int) -> bool:
        """Whether a name that ends at a place of a text is called there, or a part of it."""
        after = _AFTER.match(text, place)
        return (
            after is not None and after[2] == "(" and (after[1].rpartition(".")[2] not in _HANDING)
        )

    def is_in_text(self, place: int) -> bool:
        """Whether a place is in a string; one over lines is not told apart."""
        text = self._lines.text
        row = text[text.rfind("\n", 0, place) + 1 : place]
        return bool(row.count('"') % 2 or row.count("'") % 2)

    def is_plain_text(self, place: int, statement: str) -> bool:
        """Whether a place is in a string that names nothing in its statement."""
        in_text = self._lines.text[place - 1 : place] in QUOTES and self.is_in_text(place)
        return in_text and _NAMING.search(statement) is None
