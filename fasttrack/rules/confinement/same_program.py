# SPDX-License-Identifier: Apache-2.0
"""Whether an edit of a Python file changes nothing but comments, docstrings and layout.

Such an edit is documentation. It is not when something may read it: a docstring with a doctest,
one that switches pytest's assertions off, a module that names `__doc__`, or a comment that a tool
obeys.
"""

import ast
import re
from collections.abc import Iterator
from itertools import zip_longest

from fasttrack.rules.confinement.symbol_lines import parsed

_Documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
_READ_AT_RUN_TIME = re.compile(r"__doc__|getdoc|docopt|getsource|getcomments")
_EXECUTED = (">>>", "PYTEST_DONT_REWRITE")
_DIRECTIVE = re.compile(
    r"#!|#.*\b(?:coding|type|noqa|pragma|fmt|isort|ruff|mypy|pyright|pylint|nosec|cython|distutils)\b"
)


def is_same_program(old: str, new: str) -> bool:
    """Whether both texts run alike, whoever reads their comments and docstrings.

    Raises:
        FactUnavailable: one of them does not parse, or its lines can not be counted.
    """
    if _READ_AT_RUN_TIME.search(old) or _directives(old) != _directives(new):
        return False
    rows = zip_longest(_shape(parsed(old)), _shape(parsed(new)))
    return all(before == after for before, after in rows)


def _directives(source: str) -> list[str]:
    return [match[0] for match in _DIRECTIVE.finditer(source)]


def _shape(tree: ast.Module) -> Iterator[object]:
    """All nodes in one fixed order, with a queue: a tree may be deeper than Python's stack."""
    for node in ast.walk(tree):
        if isinstance(node, _Documented):
            _undocument(node)
    for node in ast.walk(tree):
        yield type(node)
        for name, value in ast.iter_fields(node):
            if isinstance(value, list):
                yield name, [ast.AST if isinstance(item, ast.AST) else item for item in value]
            elif not isinstance(value, ast.AST):
                yield name, type(value), repr(value)


def _undocument(node: ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> None:
    """Takes away a docstring that nothing executes."""
    match node.body:
        case [ast.Expr(value=ast.Constant(value=str(text))), *_]:
            if not any(mark in text for mark in _EXECUTED):
                node.body[0] = ast.Pass()
