# SPDX-License-Identifier: Apache-2.0
"""Which lines of a Python file belong to a function, class or assignment."""

import ast
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from fasttrack.change.imports import imports_of
from fasttrack.errors import FactUnavailable

_Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


@dataclass(frozen=True)
class SymbolLines:
    """Where one symbol stands.

    Attributes:
        definitions: how many statements define it; 0 when it is not there.
        lines: 1-based numbers of the lines that hold nothing but those statements.
    """

    definitions: int
    lines: frozenset[int]


def symbol_lines(source: str, symbol: str) -> SymbolLines:
    """The lines of a symbol, decorators included.

    A line that a definition shares with other code (`a = 1; b()`) is not one of its lines.

    Args:
        source: a Python file.
        symbol: dotted name, such as `Model.forward`; names of functions and classes lead to what
            they contain, whatever `if` or `try` stands around it.

    Raises:
        FactUnavailable: the file does not parse, or its lines can not be counted.
    """
    source = source.removeprefix("\ufeff")
    tree = _parse(source)
    rows = source.split("\n")
    spans = [_span(node, rows) for node in _defining(tree.body, symbol.split("."))]
    return SymbolLines(len(spans), frozenset(line for span in spans for line in span))


def _parse(source: str) -> ast.Module:
    if "\r" in source.replace("\r\n", "\n"):
        raise FactUnavailable("a carriage return without a line feed: its lines are ambiguous")
    imports_of(source)  # refuses what can not be parsed within bounds
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(source)


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
            elif not rest and first in _assigned(node):
                yield node
            stack += [(block, [first, *rest]) for block in _blocks(node)]


def _assigned(node: ast.stmt) -> frozenset[str]:
    match node:
        case ast.Assign(targets=targets):
            found = targets
        case ast.AnnAssign(target=target) | ast.AugAssign(target=target):
            found = [target]
        case _:
            return frozenset()
    return frozenset(target.id for target in found if isinstance(target, ast.Name))


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
