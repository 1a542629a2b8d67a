# SPDX-License-Identifier: Apache-2.0
"""Where a text changes something that has a name: assignments to more than a name, `del`, mutators.

What is looked for is the shape of the statement, on one line; whose object it changes is told
later. A target that no shape tells apart has an empty name, which may be anything.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from fasttrack.meaning import known
from fasttrack.meaning.lines import Lines

_ASSIGNED = r"[ \t]*(?:(?:[-+*/%@&|^]|//|\*\*|<<|>>)?=(?!=)|,[^\n=()]*=(?!=)|:[^\n=]*=(?!=))"
_TARGETS = (
    re.compile(rf"\.(?=\w++[ \t]*[-=,:+*/%@&|^<>])(?<!self\.)(?<!cls\.)\w+{_ASSIGNED}"),
    re.compile(rf"\]{_ASSIGNED}"),
    re.compile(r"\)[ \t]*(?:[-+*/%@&|^]|//|\*\*|<<|>>)?=(?!=)"),
)
_IN_PLACE = re.compile(r"[-+|&^*]=")
_NAME_BEFORE = re.compile(r"(?<![\w.)\]])([A-Za-z_]\w*)[ \t]*\Z")
_NUMBER = re.compile(r"[ \t]*-?[\d\"']")
_METHOD = re.compile(rf"\.(?:{'|'.join(sorted(known.MUTATORS, key=len, reverse=True))})\b")
_CHAIN = re.compile(
    r"(?<![\w.)\]])([A-Za-z_]\w*)((?:\.(?:setdefault|get)\([^()]*(?:\([^()]*\)[^()]*)*\)|\.\w+"
    r"|\[[^\[\]]*\])*)[ \t]*\Z"
)
_TYPED = re.compile(r":[ \t]*[\w.]*\Z")
_FIRST = re.compile(r"[ \t]*([A-Za-z_]\w*)([.\[])")
_ANNOTATED = re.compile(r"[ \t]*\**([A-Za-z_]\w*)((?:\.\w+)*)[ \t]*:")
_COMPOUND = re.compile(
    r"[ \t]*(?:if|elif|else|for|while|with|try|except|finally|case|match|async|def|class)\b"
)
_ODD_TARGETS = (
    re.compile(r"for[ \t]+(?:(?!\bin\b)[\w \t,()\[\]*])*[.\[][^\n:]*?[ \t]in\b"),
    re.compile(r" as[ \t]+[(\[]?\w*[.\[]"),
)
_DELETED = re.compile(r"del[ \t(]+([^\n]*)")
_OWN = frozenset({"self", "cls"})
_OPENING = (",", "(", "[", "{")
_LINES_OF_TARGETS = 20
"""Lines above a closing bracket on which the targets in it may stand."""


@dataclass(frozen=True, slots=True)
class Change:
    """One thing that a text changes.

    Attributes:
        name: the name that leads to it; empty when no shape tells.
        place: where what leads to it ends.
        behind: it is behind an attribute or element of what has the name.
        line: the line that it is on.
    """

    name: str
    place: int
    behind: bool
    line: int


def changes_in(lines: Lines) -> Iterator[Change]:
    """All changes of a text that one line shows; plain attributes of `self` are not among them."""
    text = lines.text
    for pattern in _TARGETS:
        for match in pattern.finditer(text):
            line = lines.line_of(match.start())
            for name, parts in _targets(lines, line, match):
                if parts or name not in _OWN:
                    yield Change(name, match.start() + 1, bool(parts), line)
    for match in _METHOD.finditer(text):
        line = lines.line_of(match.start())
        name, parts = _root(text, lines.starts[line], match.start())
        if parts or name not in _OWN:
            yield Change(name, match.start(), bool(parts), line)
    yield from _odd_targets(lines)
    for name, place in _in_place(text):
        yield Change(name, place, False, lines.line_of(place))


def _odd_targets(lines: Lines) -> Iterator[Change]:
    """Targets of `for`, `as` and `del` that are more than names."""
    text = lines.text
    for pattern in _ODD_TARGETS:
        for match in pattern.finditer(text):
            if _is_word(text, match.start()):
                yield Change("", match.end(), True, lines.line_of(match.start()))
    for match in _DELETED.finditer(text):
        if _is_word(text, match.start()) and ("." in match[1] or "[" in match[1]):
            first = _FIRST.match(match[1]) if "," not in match[1] else None
            name, parts = (first[1], first[2]) if first else ("", "")
            yield Change(name, match.end(), bool(parts), lines.line_of(match.start()))


def _is_word(text: str, place: int) -> bool:
    """Whether no longer word than a keyword starts before a place."""
    before = text[place - 1 : place]
    return not (before.isalnum() or before in {"_", "."})


def _targets(lines: Lines, line: int, match: re.Match[str]) -> Iterator[tuple[str, str]]:
    """Name and parts of the target before a sign of assignment."""
    text, start, place = lines.text, lines.starts[line], match.start()
    left = text[start:place]
    closing = text[place] == ")"
    if left.count("(") > left.count(")") + closing:
        return  # inside a call, an argument; inside brackets of targets, the last line has them all
    annotated = None if ";" in left else _ANNOTATED.match(left)
    if annotated is not None and not _COMPOUND.match(left):
        if annotated[2]:
            yield annotated[1], annotated[2][1:].rpartition(".")[0]
        return
    if text[place] == "." and _TYPED.search(left) and not (";" in left or _COMPOUND.match(left)):
        return  # the type of a parameter or of a variable
    if "," in match[0] and line and lines.rows[line - 1].rstrip().endswith(_OPENING):
        return  # arguments of a call that began above
    if closing:
        if _is_in_brackets(lines, line, left):
            yield "", ""
    elif text[place] == "]":
        yield from _element(lines, line, place)
    else:
        yield _root(text, start, place)


def _element(lines: Lines, line: int, place: int) -> Iterator[tuple[str, str]]:
    """The same of a target that ends in `]`, or in a type that does."""
    start, end = _opening(lines, line, place)
    above = start < lines.starts[line]
    annotated = _ANNOTATED.match(lines.text, start, end) if above else None
    if annotated is None:
        yield _root(lines.text, start, end, element=True)
    elif annotated[2]:
        yield annotated[1], annotated[2][1:].rpartition(".")[0]


def _opening(lines: Lines, line: int, place: int) -> tuple[int, int]:
    """Where a target starts whose last `]` stands at a place, and where what it is of ends."""
    start = lines.starts[line]
    if not lines.text[start:place].strip():
        for number in range(line - 1, max(0, line - _LINES_OF_TARGETS), -1):
            row = lines.rows[number].rstrip()
            if row.endswith("[") and len(row) - len(row.lstrip()) <= place - start:
                return lines.starts[number], lines.starts[number] + len(row) - 1
    return start, place + 1


def _is_in_brackets(lines: Lines, line: int, left: str) -> bool:
    """Whether more than names stand in the brackets that close after `left`."""
    above = lines.rows[max(0, line - _LINES_OF_TARGETS) : line]
    while left.count("(") <= left.count(")") and above:
        left = above.pop() + left
    return "." in left or "[" in left


def _root(text: str, start: int, end: int, *, element: bool = False) -> tuple[str, str]:
    """The name that leads to what stands before `end`, and the parts between."""
    chain = _CHAIN.search(text, max(start, end - 80), end)
    if chain is not None:
        parts = chain[2]
        return chain[1], parts.rpartition("[")[0] if element else parts
    left = text[max(start, text.rfind("=", start, end) + 1) : end]
    first = _FIRST.match(left)
    plain = first is not None and not ("(" in left or ";" in left or "," in left.split("[")[0])
    if first is None or not plain or _COMPOUND.match(left):
        return "", ""
    return first[1], first[2]


def _in_place(text: str) -> Iterator[tuple[str, int]]:
    """Plain names that an operator changes in place, as `+=` does a list."""
    for match in _IN_PLACE.finditer(text):
        place = match.start()
        name = _NAME_BEFORE.search(text, max(0, place - 80), place)
        if name is not None and not _NUMBER.match(text, place + 2):
            yield name[1], place
