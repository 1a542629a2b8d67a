# SPDX-License-Identifier: Apache-2.0
"""What following needs at every step: how statements end, where a scope is, what a text says."""

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import Enum
from itertools import islice
from typing import Protocol

from fasttrack.testmodel.values import Module, Namespace, Scope, Value


class Exhausted(Exception):  # noqa: N818  (it is no error)
    """A bound on steps, depth or events was met; what was being followed is not decided."""


class Ended(Exception):  # noqa: N818  (it is no error)
    """A call ends what calls it: it fails or skips the test."""

    def __init__(self, flow: "Flow") -> None:
        super().__init__(flow.value)
        self.flow = flow


class Flow(Enum):
    """How following a statement ends."""

    NORMAL = "goes on"
    RETURN = "after a return"
    BREAK = "after a break"
    CONTINUE = "after a continue"
    RAISE = "after an exception"
    SKIP = "after a skip"


class World(Protocol):
    """The files that names lead to, as `fasttrack.testmodel.modules` gives them.

    Attributes:
        depth: how deep all that is being followed is; it shares one stack.
        steps: how many nodes may still be followed, over all tests of a side.
    """

    depth: int
    steps: int

    def imported(self, importer: str, module: str, level: int) -> Value:
        """The module that an import in a file means."""

    def is_followed(self, path: str, name: str) -> bool:
        """Whether calls of a function in a file are followed into its text."""

    def before_write(self, attributes: Namespace) -> None:
        """Keeps what is attached to a function, before a test attaches more."""


@dataclass
class Frame:
    """A function that is being followed.

    Attributes:
        node: its definition.
        returned: what it returns, each under the conditions of that return.
        produced: what it yields, where nobody waits for a first value.
        resume: what runs at its first `yield`.
    """

    node: ast.AST | None = None
    returned: list[tuple[str, Value]] = field(default_factory=list)
    produced: list[Value] = field(default_factory=list)
    resume: Callable[[Value], None] | None = None


def module_of(scope: Scope) -> Module:
    """The module that a scope belongs to."""
    inner: Scope | None = scope
    while inner is not None:
        if inner.module is not None:
            return inner.module
        inner = inner.around
    return Module("")


def ast_words(node: ast.AST) -> Iterator[str]:
    """The words of a piece of syntax, without layout."""
    for inner in ast.walk(node):
        match inner:
            case ast.Name(id=text) | ast.Attribute(attr=text) | ast.keyword(arg=str(text)):
                yield text
            case ast.Constant(value=value):
                yield repr(value)[:40]
            case _:
                yield type(inner).__name__


def ast_text(node: ast.AST) -> str:
    """A piece of syntax in words, bounded; made once, for it is asked for each time it is met."""
    known: str | None = getattr(node, "in_words", None)
    if known is None:
        known = node.in_words = " ".join(islice(ast_words(node), 60))  # type: ignore[attr-defined]
    return known


def source_text(node: ast.AST) -> str:
    """A piece of syntax as people write it, on one line and bounded."""
    try:
        text = " ".join(ast.unparse(node).split())
    except RecursionError:
        text = ast_text(node)
    return text if len(text) <= 100 else f"{text[:97]}..."
