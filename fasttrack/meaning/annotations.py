# SPDX-License-Identifier: Apache-2.0
"""Annotations that call something: written out, or in a text that others evaluate later.

`typing.get_type_hints`, `functools.singledispatch` and models of data evaluate an annotation that
is a text, so a call in it runs as any other does.
"""

import ast
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fasttrack.meaning.reader import Reader

_TEXT_LIMIT = 1_000
"""Characters of an annotation that is looked into."""


def evaluate(reader: "Reader", annotation: ast.expr | None) -> None:
    """Evaluates an annotation in which something is called; of any other nothing is to be told."""
    match annotation:
        case None | ast.Name() | ast.Attribute():
            return
        case ast.Constant(value=str(source)):
            expression = _parsed(annotation, source)
        case _:
            expression = annotation
    if expression is not None and any(isinstance(n, ast.Call) for n in ast.walk(expression)):
        reader.value(expression)


def _parsed(place: ast.Constant, source: str) -> ast.expr | None:
    """The expression in a text, put where the text stands."""
    if "(" not in source or len(source) > _TEXT_LIMIT:
        return None
    with suppress(SyntaxError, ValueError, RecursionError, MemoryError):
        expression = ast.parse(source.strip(), mode="eval").body
        for node in ast.walk(expression):
            ast.copy_location(node, place)
        return expression
    return None
