# SPDX-License-Identifier: Apache-2.0
"""What a Python file holds beside some of its functions, classes and assignments."""

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from fasttrack.change.imports import parse
from fasttrack.errors import FactUnavailable

_Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


@dataclass(frozen=True)
class Row:
    """One line outside all symbols, or the place of one definition.

    Attributes:
        number: 1-based line; the first one of a definition.
        text: the line as UTF-8; for a definition NUL, its name and its indentation, which equals
            no line of a text.
        symbol: the definition's dotted name; empty for a line.
    """

    number: int
    text: bytes
    symbol: str = ""


@dataclass(frozen=True)
class Surroundings:
    """A file with each definition of some symbols taken out and a mark left in its place.

    Two files with equal texts of their rows differ in nothing but what those definitions hold: no
    line beside them was edited, moved, or swallowed by a string, bracket or continuation.

    Attributes:
        definitions: how many statements define each symbol; 0 when it is not there.
        rows: what is left, in order.
    """

    definitions: Mapping[str, int]
    rows: tuple[Row, ...]


def surroundings(source: str, symbols: Sequence[str]) -> Surroundings:
    """What surrounds some symbols; decorators belong to their symbol.

    A line that a definition shares with other code (`a = 1; b()`) is not one of its lines.

    Args:
        source: a Python file.
        symbols: dotted names, such as `Model.forward`; names of functions and classes lead to what
            they contain, whatever `if` or `try` stands around it.

    Raises:
        FactUnavailable: the file does not parse, or its lines can not be counted.
    """
    source = source.removeprefix("\ufeff")
    tree = parsed(source)
    rows = source.split("\n")
    found = {symbol: list(_defining(tree.body, symbol.split("."))) for symbol in symbols}
    marks: dict[int, Row] = {}
    inside: set[int] = set()
    spans = [(_span(node, rows), symbol, node) for symbol in symbols for node in found[symbol]]
    for span, symbol, node in sorted(spans, key=lambda item: (item[0].start, -item[0].stop)):
        if span and span.start not in inside:
            text = f"\0{symbol} {node.col_offset}".encode()
            marks[span.start] = Row(span.start, text, symbol)
        inside.update(span)
    left = [
        marks.get(number) or Row(number, row.encode())
        for number, row in enumerate(rows, 1)
        if number in marks or number not in inside
    ]
    return Surroundings({symbol: len(found[symbol]) for symbol in symbols}, tuple(left))


def parsed(source: str) -> ast.Module:
    """The syntax tree of a text whose lines are those that Python counts.

    Raises:
        FactUnavailable: it does not parse within bounds, or a line ends in CR alone.
    """
    if "\r" in source.replace("\r\n", "\n"):
        raise FactUnavailable("a carriage return without a line feed: its lines are ambiguous")
    return parse(source)


def _defining(body: Sequence[ast.stmt], names: Sequence[str]) -> Iterator[ast.stmt]:
    """Statements that bind the dotted name, found with an explicit stack."""
    stack = [(body, names)]
    while stack:
        statements, (first, *rest) = stack.pop()
        for node in statements:
            if isinstance(node, _Definition):
                if node.name == first and rest:
                    stack.append((node.body, rest))
                elif node.name == first:
                    yield node
            elif not rest and first == _assigned(node):
                yield node
            stack += [(block, [first, *rest]) for block in _blocks(node)]


def _assigned(node: ast.stmt) -> str:
    """The one name that an assignment binds; `a = b = 1` binds two, and belongs to neither."""
    match node:
        case (
            ast.Assign(targets=[ast.Name(id=name)])
            | ast.AnnAssign(target=ast.Name(id=name))
            | ast.AugAssign(target=ast.Name(id=name))
        ):
            return name
        case _:
            return ""


def _blocks(node: ast.stmt) -> Iterator[list[ast.stmt]]:
    """Statement lists of a compound statement that opens no namespace."""
    match node:
        case ast.If() | ast.For() | ast.AsyncFor() | ast.While():
            yield from (node.body, node.orelse)
        case ast.With() | ast.AsyncWith():
            yield node.body
        case ast.Try() | ast.TryStar():
            yield from (node.body, node.orelse, node.finalbody)
            yield from (handler.body for handler in node.handlers)
        case ast.Match():
            yield from (case.body for case in node.cases)


def _span(node: ast.stmt, rows: Sequence[str]) -> range:
    """The lines of a statement, without a first or last one that holds other code as well."""
    decorators = node.decorator_list if isinstance(node, _Definition) else []
    first = min([node.lineno, *(d.lineno for d in decorators)])
    last = node.end_lineno or node.lineno
    start = next((d for d in decorators if d.lineno == first), node)
    before = rows[first - 1].encode()[: start.col_offset].decode()
    after = rows[last - 1].encode()[node.end_col_offset :].decode().strip()
    if before.strip(" \t\f@"):
        first += 1
    if after and not after.startswith("#"):
        last -= 1
    return range(first, last + 1)
