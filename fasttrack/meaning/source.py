# SPDX-License-Identifier: Apache-2.0
"""Python sources as trees, each parsed once for all rules of a case.

`parsed` raises FactUnavailable for what can not be read or parsed, with the same words every time
it is asked. FT219 reports that; a rule that only wants what there is to see skips such a file.
"""

import ast
from collections import OrderedDict

from fasttrack.case import Case
from fasttrack.change.imports import check_size, parse
from fasttrack.change.tree import Side
from fasttrack.errors import FactUnavailable
from fasttrack.policy.classes import fold

PYTHON_SUFFIXES = (".py", ".pyi", ".pyw")
TREES_LIMIT = 400_000
"""Characters of the sources whose trees are kept, about 10,000 lines: a tree takes a hundred times
the memory of its text."""


def is_python(path: str) -> bool:
    """Whether a path's name says Python source."""
    return fold(path).endswith(PYTHON_SUFFIXES)


def is_regular(side: Side) -> bool:
    """Whether a side is a file, and neither a link, a submodule nor absent."""
    return side.present and not side.is_symlink and not side.is_gitlink


def source_of(case: Case, side: Side) -> str:
    """The text of a Python file with the line ends that Python sees, without a byte order mark.

    A carriage return alone ends a line for Python and for few other readers; FT117 reports it.

    Raises:
        FactUnavailable: it is no file or no UTF-8 text, or is too large or not in this clone.
    """
    if not is_regular(side):
        raise FactUnavailable("there is no file on this side of the change")
    text = case.change.text(side).removeprefix("\ufeff")
    check_size(text)
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def parsed(case: Case, side: Side) -> ast.Module:
    """The syntax tree of a Python file; shared, so nobody may write into it.

    Raises:
        FactUnavailable: as `source_of` does, or it does not parse within bounds.
    """
    return case.once(_Trees).of(side)


class _Trees:
    """The trees of one case by blob, those asked for last, and what was wrong with the others."""

    def __init__(self, case: Case) -> None:
        self._case = case
        self._trees: OrderedDict[str, tuple[ast.Module, int]] = OrderedDict()
        self._faults: dict[str, str] = {}
        self._held = 0

    def of(self, side: Side) -> ast.Module:
        """The tree of a side."""
        if side.oid in self._faults:
            raise FactUnavailable(self._faults[side.oid])
        if side.oid in self._trees:
            self._trees.move_to_end(side.oid)
            return self._trees[side.oid][0]
        try:
            text = source_of(self._case, side)
            tree = parse(text)
        except FactUnavailable as reason:
            self._faults[side.oid] = str(reason)
            raise
        self._keep(side.oid, tree, len(text))
        return tree

    def _keep(self, oid: str, tree: ast.Module, size: int) -> None:
        self._trees[oid] = (tree, size)
        self._held += size
        while self._held > TREES_LIMIT and len(self._trees) > 1:
            _, (_, dropped) = self._trees.popitem(last=False)
            self._held -= dropped
