# SPDX-License-Identifier: Apache-2.0
"""What one statement does with a value that it mentions: bind it, keep it, hand it on.

More is said than is true: the statement is a text, and every name that it could bind counts.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from keyword import iskeyword, kwlist

from fasttrack.meaning import known

_SIGN = re.compile(r"(?<![=!<>])(?:[-+*/%@&|^]|//|\*\*|<<|>>)?=(?!=)")
_TARGET = re.compile(r"(\.?)(?<![\w\"'])([A-Za-z_]\w*)")
_WALRUS = re.compile(r"(\w+)[ \t]*:=")
_LOOPED = re.compile(r"\bfor\b(.*?)\bin\b", re.DOTALL)
_NAMED = re.compile(r"\bas\b[ \t]*(\([^()]*\)|[\w.]+)")
_METHOD = re.compile(r"([\w.\[\]\"'()]+)\.(\w+)[ \t]*\(")
_KEYWORD = re.compile(r"\s*([A-Za-z_]\w*)[ \t]*=(?!=)")
_ANNOTATED = re.compile(r"[ \t]*[A-Za-z_][\w.]*[ \t]*:(?!=)")
_PARAMETER = re.compile(r"[(,]\s*\**([A-Za-z_]\w*)")
_NEXT_PARAMETER = re.compile(r",\s*\**\w+\s*:|->")
_FIRST = re.compile(r"[ \t]*(@|\w+)")
_UNCALLED = re.compile(r"(?<![\w.])([A-Za-z_]\w*)(?=[ \t]*[,)\n\]}])")
_COMPOUND = frozenset(
    "if elif else for while with try except finally case match async def class return".split()  # noqa: SIM905
)
_METHODS = frozenset(f".{name}" for name in known.MUTATORS)
"""Methods of containers, which are no attributes that hold anything."""
_DROPPED = frozenset([*kwlist, "self", "cls", "super"])


@dataclass(frozen=True, slots=True)
class Keys:
    """Names, and attributes behind a dot, that a statement binds or fills.

    Attributes:
        bound: they may be the value, or hold it.
        held: they hold it and are not it.
    """

    bound: frozenset[str]
    held: frozenset[str]


class Statement:
    """The text of one statement.

    Attributes:
        text: the lines of it.
        word: its first word; empty for none.
    """

    def __init__(self, text: str) -> None:
        """Takes the lines of a statement."""
        self.text = text
        first = _FIRST.match(text)
        self.word = first[1] if first else ""
        if self.word == "async":
            self.word = text.split(None, 2)[1]

    def parameter_of(self, place: int) -> str:
        """The parameter whose default value a place is in."""
        before = self.text[: self.text.rfind("=", 0, place)]
        names = _PARAMETER.findall(before)
        return names[-1] if names else ""

    def is_value(self, place: int) -> bool:
        """Whether what is mentioned at a place is a value there, and no type."""
        if self.word in {"from", "import", "global", "nonlocal"}:
            return False
        before = self.text[:place]
        if self.word == "def":
            if before.rstrip().endswith((",", "(", "*")) and self._depth_of(place) < 2:
                return False
            sign = before.rfind("=")
            return sign >= 0 and _NEXT_PARAMETER.search(before, sign) is None
        if self.word == "class":
            return "=" in self.text[:place]
        if self.word not in _COMPOUND and _ANNOTATED.match(self.text):
            return 0 <= self.text.find("=") < place
        return True

    def _depth_of(self, place: int) -> int:
        return sum(start < place < end for start, end in self._brackets)

    @cached_property
    def keys(self) -> Keys:
        """What the statement binds, but for parameters of what it calls."""
        if self.word == "def":
            return Keys(frozenset(), frozenset())
        bound: set[str] = set()
        held: set[str] = set()
        if self.word != "class":
            for left in self._left:
                self._assigned(left, bound, held)
        for pattern in (_WALRUS, _LOOPED, _NAMED):
            for left in pattern.findall(self.text):
                bound.update("".join(found) for found in _TARGET.findall(left))
        if not self._left:
            for receiver, method in _METHOD.findall(self.text):
                if self._is_expression or method in known.MUTATORS:
                    held.update("".join(found) for found in _TARGET.findall(receiver))
            held.difference_update(_METHODS)
        drop = _DROPPED
        return Keys(frozenset(bound - drop), frozenset(held - bound - drop))

    @staticmethod
    def _assigned(left: str, bound: set[str], held: set[str]) -> None:
        """Adds the names that stand before one `=`."""
        names = ["".join(found) for found in _TARGET.findall(left)]
        bound.update(names[:1] if "." not in left and "[" not in left else names)
        if "," in left or "." in left:
            bound.update(names)
        if "[" in left or "." in left:
            held.update(names[:1])
            if "," not in left and (len(names) > 1 or "[" in left):
                bound.difference_update(names[:1])

    @cached_property
    def uncalled(self) -> tuple[str, ...]:
        """Names that it hands over or ends with, and does not call."""
        return tuple(dict.fromkeys(_UNCALLED.findall(self.text)))

    @property
    def fills(self) -> bool:
        """Whether it is nothing but a call, which may put something into what it is a method of."""
        return self._is_expression and not self._left

    @property
    def _is_expression(self) -> bool:
        return self.word not in _COMPOUND

    @cached_property
    def _left(self) -> list[str]:
        """What stands before each `=` that is not of an argument."""
        found, start = [], 0
        for sign in _SIGN.finditer(self.text):
            before = self.text[: sign.start()]
            if "(" in before and before.count("(") > before.count(")"):
                continue
            left = before[start:]
            if ";" in left:
                left = left[left.rfind(";") + 1 :]
            if self.word in _COMPOUND and ":" in left:
                left = left[left.rfind(":") + 1 :]
            elif _ANNOTATED.match(left):
                left = left.partition(":")[0]
            found.append(left)
            start = sign.end()
        return found

    def calls_around(self, place: int) -> Iterator["Call"]:
        """The calls that a place is among the arguments of, the innermost first."""
        for start, end in reversed(self._brackets):
            if not start < place < end:
                continue
            if self.text[start] != "(":
                continue
            callee = self._callee_before(start)
            if callee and not iskeyword(callee):
                yield self._call(callee, start, place)

    def _callee_before(self, start: int) -> str:
        """The dotted name before a bracket, with a closing bracket that it begins behind."""
        text = self.text
        end = start
        while end and text[end - 1] in " \t":
            end -= 1
        first = end
        while first and (text[first - 1].isalnum() or text[first - 1] in "_."):
            first -= 1
        if first and text[first - 1] in ")]" and (first < end or end == start):
            first -= 1
        return text[first:end]

    def _call(self, callee: str, start: int, place: int) -> "Call":
        """A call, and which of its arguments a place is in."""
        inside = [a for a, b in self._brackets if start < a < place < b]
        end, position, parts = min(inside, default=place), start + 1, []
        for opened, closed in self._brackets:
            if position <= opened and closed < end:
                parts.append(self.text[position:opened])
                position = closed + 1
        parts.append(self.text[position:end])
        before = "".join(parts)
        keyword = _KEYWORD.match(before, before.rfind(",") + 1)
        starred = "*" in before
        return Call(callee, keyword[1] if keyword else "", -1 if starred else before.count(","))

    @cached_property
    def _brackets(self) -> list[tuple[int, int]]:
        """Where brackets open and close, in the order of their opening."""
        found: list[tuple[int, int]] = []
        opened: list[int] = []
        for match in _BRACKET.finditer(self.text):
            if match[0] in "([{":
                opened.append(match.start())
            elif opened:
                found.append((opened.pop(), match.start()))
        found += [(start, len(self.text)) for start in opened]
        return sorted(found)


@dataclass(frozen=True, slots=True)
class Call:
    """A call that a value is an argument of.

    Attributes:
        callee: dotted name of what is called; it begins with a bracket or dot behind an expression.
        keyword: the keyword that the value is given by; empty for none.
        index: the number of the argument; -1 where nobody knows.
    """

    callee: str
    keyword: str
    index: int


_BRACKET = re.compile(r"[()\[\]{}]")
