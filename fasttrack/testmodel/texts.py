# SPDX-License-Identifier: Apache-2.0
"""What differs between two texts of a module, by top-level name, before anything is followed.

A name is tainted when its definition differs, or speaks of a tainted name. What has no name of its
own (calls, loops, automatic fixtures, hooks, `pytestmark`) concerns everything in the module.
"""

import ast
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

_WORD = re.compile(r"\w+")
_FOR_ALL = re.compile(
    r"^pytest_|^collect_ignore|^pytestmark|^(?:async)?setup|^(?:async)?teardown|^__", re.I
)
_LISTED = "__all__"
_Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
_Binding = _Definition | ast.Import | ast.ImportFrom | ast.Assign | ast.AnnAssign | ast.Pass


@dataclass(frozen=True)
class Outline:
    """The top-level statements of a module as text.

    Attributes:
        named: name to its definitions.
        others: statements that concern everything.
    """

    named: dict[str, str]
    others: tuple[str, ...]


def outline(node: ast.Module | ast.ClassDef, rows: Sequence[str]) -> Outline:
    """The outline of a module or class, whose file has these lines."""
    named: dict[str, str] = {}
    others: list[str] = []
    for statement in node.body:
        for name, text in _parts(statement, rows):
            if not name or _concerns_all(statement, name, text):
                others.append(text)
            if name:
                named[name] = f"{named.get(name, '')}{text}"
    return Outline(named, tuple(others))


def _concerns_all(node: ast.stmt, name: str, text: str) -> bool:
    if isinstance(node, ast.ClassDef):
        return False  # whatever it does automatically, it does for its own tests
    return "autouse" in text or (name != _LISTED and bool(_FOR_ALL.search(name)))


def joined(outlines: Sequence[Outline], others: Iterable[str]) -> Outline:
    """The outline of a class from its own, those of its bases, and more that concerns all of it."""
    named: dict[str, str] = {}
    for each in outlines:
        for name, text in each.named.items():
            named[name] = f"{named.get(name, '')}{text}"
    return Outline(named, (*others, *(text for each in outlines for text in each.others)))


def _parts(node: ast.stmt, rows: Sequence[str]) -> Iterator[tuple[str, str]]:
    """What a statement binds, each with its text; an empty name for what it does besides."""
    match node:
        case ast.Import() | ast.ImportFrom():
            yield from _imported(node)
        case ast.If(test=test, body=body, orelse=orelse) if _only_binds(node):
            condition = "\n".join(rows[node.lineno - 1 : test.end_lineno])
            for prefix, block in ((condition, body), (f"not {condition}", orelse)):
                for statement in block:
                    for name, text in _parts(statement, rows):
                        yield name, f"{prefix}\n{text}"
        case ast.FunctionDef(name="pytest_configure" as name):
            yield name, _without_markers(node, rows)
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            yield name, text_of(node, rows)
        case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
            yield name, text_of(node, rows)
        case ast.Expr(value=ast.Constant()) | ast.Pass():
            pass
        case _:
            yield "", text_of(node, rows)


def _without_markers(node: ast.FunctionDef, rows: Sequence[str]) -> str:
    """The lines of a function but for those that name a marker to pytest: no test loses by them."""
    gone: set[int] = set()
    for statement in node.body:
        match statement:
            case ast.Expr(
                value=ast.Call(
                    func=ast.Attribute(value=ast.Name(), attr="addinivalue_line"),
                    args=[ast.Constant(value="markers"), ast.Constant()],
                    keywords=[],
                )
            ) if _stands_alone(statement, rows):
                gone.update(range(statement.lineno, (statement.end_lineno or 0) + 1))
    text = text_of(node, rows)
    shown = enumerate(text.split("\n"), (node.end_lineno or 0) - text.count("\n"))
    return "\n".join(row for number, row in shown if number not in gone)


def _stands_alone(node: ast.stmt, rows: Sequence[str]) -> bool:
    """Whether nothing else is on the lines of a statement."""
    before = rows[node.lineno - 1].encode()[: node.col_offset]
    after = rows[(node.end_lineno or 0) - 1].encode()[node.end_col_offset :]
    return not before.strip() and not after.strip()


def _only_binds(node: ast.If) -> bool:
    """Whether all that a condition decides is what some names stand for."""
    return all(
        isinstance(inner, _Binding) or (isinstance(inner, ast.If) and _only_binds(inner))
        for inner in (*node.body, *node.orelse)
    )


def _imported(node: ast.Import | ast.ImportFrom) -> Iterator[tuple[str, str]]:
    """Each name that an import binds, with an import of that name alone; `*` is such a name."""
    whence = f"{'.' * node.level}{node.module or ''}" if isinstance(node, ast.ImportFrom) else ""
    for alias in node.names:
        name = alias.asname or (alias.name if whence else alias.name.partition(".")[0])
        yield name, f"from {whence} import {alias.name} as {name}\n"


def text_of(node: ast.stmt | ast.Lambda, rows: Sequence[str]) -> str:
    """The lines of a statement, its decorators included."""
    decorators = node.decorator_list if isinstance(node, _Definition) else []
    first = min([node.lineno, *(d.lineno for d in decorators)])
    return "\n".join(rows[first - 1 : node.end_lineno])


def tainted(
    old: Outline | None, new: Outline | None, known: Iterable[str] = ()
) -> frozenset[str] | None:
    """Names that may mean something else from now on; None when all may.

    Args:
        old: the module at the target branch.
        new: the module after the merge; None when it is gone.
        known: names that are tainted already where they come from.
    """
    if old is None:
        return None
    after = new or Outline({}, ())
    if old.others != after.others:
        return None
    found = set(known)
    found |= {name for name, text in old.named.items() if after.named.get(name) != text}
    found |= after.named.keys() - old.named.keys()  # it may stand before one that comes from afar
    if _LISTED in found:  # what `*` takes from here
        found |= words_of(old.named.get(_LISTED, "")) ^ words_of(after.named.get(_LISTED, ""))
    words = {name: words_of(text) for name, text in old.named.items()}
    grown = True
    while grown:
        more = {name for name, used in words.items() if name not in found and used & found}
        found |= more
        grown = bool(more)
    if "*" in found or any(found & words_of(text) for text in old.others):
        return None
    return frozenset(found)


@lru_cache(maxsize=8192)
def words_of(text: str) -> frozenset[str]:
    """The words of a text."""
    return frozenset(_WORD.findall(text))
