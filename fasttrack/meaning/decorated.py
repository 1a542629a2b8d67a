# SPDX-License-Identifier: Apache-2.0
"""Classes and functions that a decorator registers somewhere, and nothing more.

    @REGISTRY.register(Processor, info=Info)
    class Model: ...

Most files of models have one, and of such a file only the decorator is read, and the imports of the
names in it: what is defined can do nothing to anybody who only keeps it.
"""

import builtins
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from fasttrack.meaning.imports import Imported, statements_in
from fasttrack.meaning.lines import Lines, places

_DECORATOR = re.compile(
    r"@[A-Za-z_][\w.]*[ \t]*(?:\((?:[\w.\s,]|=(?!=)|\"\w*\"|'\w*')*\))?[ \t]*\n"
)
_DEFINED = re.compile(r"(?:async[ \t]+)?(def|class)[ \t]+(\w+)")
_USED = re.compile(r"(?<![\w.\"'])[A-Za-z_]\w*(?![\w\"'])(?![ \t]*=)")
_REBOUND = re.compile(r"[ \t]*(?::[^=\n()]*|,[^=\n()]*)?=(?!=)")
_KEYWORD = re.compile(r"\b(?:as|for|global|nonlocal|del|def|class|import|case)[ \t(]*\Z")
_BUILTINS = frozenset(dir(builtins))


@dataclass(frozen=True)
class Head:
    """Decorators, and the line of what they decorate.

    Attributes:
        start: number of the first line, from 0.
        end: number of the line of `class` or `def`.
        stub: what stands for the definition.
        names: the names that the decorators use.
    """

    start: int
    end: int
    stub: str
    names: frozenset[str]


def head_at(lines: Lines, line: int) -> Head | None:
    """The decorators from a line on; None where they are more than calls with names."""
    text, place = lines.text, lines.starts[line]
    start = place
    while found := _DECORATOR.match(text, place):
        place = found.end()
    defined = _DEFINED.match(text, place)
    if defined is None or place == start:
        return None
    is_class = defined[1] == "class"
    stub = f"class {defined[2]}: pass" if is_class else f"def {defined[2]}(*_, **__): pass"
    names = frozenset(_USED.findall(text, start, place))
    return Head(line, lines.line_of(place), stub, names - _BUILTINS)


def sketched(
    source: str, lines: Lines, heads: Sequence[Head], imports: Iterable[Imported]
) -> str | None:
    """A source with nothing but some decorators, and the imports of their names.

    Args:
        source: the whole text.
        lines: its masked lines.
        heads: the decorators.
        imports: what the file imports, without names that stand for plain classes and functions.

    Returns:
        None where a name may be anything else than what is imported or defined under it.
    """
    if "\\\n" in source:
        return None
    known = {found[3]: _import(*found) for found in imports}
    spans = tuple(sorted(statements_in(lines.text)))
    rows, whole = [""] * len(lines.rows), source.split("\n")
    for head in heads:
        rows[head.start : head.end] = whole[head.start : head.end]
        rows[head.end] = head.stub
    for name in frozenset[str]().union(*(head.names for head in heads)):
        found = {*_bindings(lines, spans, name)}
        if not found or None in found or (name in known and len(found) > 1):
            return None
        if name in known:
            line = found.pop() or 0
            rows[line] = f"{rows[line]}; {known[name]}" if rows[line] else known[name]
    return "\n".join(rows)


def _import(module: str, level: int, member: str, name: str) -> str:
    if not member:
        return f"import {module}" if module == name else f"import {module} as {name}"
    return f"from {'.' * level}{module} import {member} as {name}"


def _bindings(lines: Lines, spans: Sequence[tuple[int, int]], name: str) -> Iterator[int | None]:
    """The lines of what binds a name at the left margin; None for what may bind it elsewhere."""
    text = lines.text
    for place in places(text, name):
        if text[place - 1 : place] in {".", '"', "'"}:
            continue
        span = next((s for s in spans if s[0] <= place < s[1]), None)
        if span is not None:
            line = lines.line_of(span[0] + 1)
            is_plain = lines.rows[line][:1] not in {" ", "\t"} and ";" not in lines.rows[line]
            yield line if is_plain else None
            continue
        row = text[text.rfind("\n", 0, place) + 1 : place]
        if _DEFINED.fullmatch(row + name):
            yield lines.line_of(place)
        elif _KEYWORD.search(row) or (
            _REBOUND.match(text, place + len(name)) and row.count("(") <= row.count(")")
        ):
            yield None
