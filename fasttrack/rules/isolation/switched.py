# SPDX-License-Identifier: Apache-2.0
"""Where functions of a file speak of a switch, of its value, and of its fallback."""

import ast
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TypeGuard

from fasttrack.case import Case
from fasttrack.change.tree import Side
from fasttrack.errors import FactUnavailable
from fasttrack.manifest.model import Switch
from fasttrack.meaning.source import is_regular, parsed
from fasttrack.rules.isolation.reachable import Constants, constants, reachable, truth
from fasttrack.rules.isolation.switch_files import spelled

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Words:
    """How code speaks of a switch.

    Attributes:
        option: name of the option.
        value: the value that selects the path.
        fallback: the value that selects what it falls back to.
    """

    option: str
    value: str
    fallback: str

    @classmethod
    def of(cls, switch: Switch) -> "Words":
        """The words of a manifest's switch."""
        return cls(*(spelled(word) for word in (switch.option, switch.value, switch.fallback)))

    def names_fallback(self, node: ast.AST) -> bool:
        """Whether a node is a name that stands for the fallback: it is one of its words."""
        return self.is_fallback(identifier(node))

    def is_fallback(self, name: str) -> bool:
        """Whether a name stands for the fallback."""
        return bool(name) and ("fallback" in name or has_word(name, self.fallback))

    def tests_switch(self, node: ast.AST) -> bool:
        """Whether a node is a name or a text that only a test on the switch would hold."""
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            return spelled(node.value) in {self.option, self.value, self.fallback}
        name = identifier(node)
        return name in {"switch", self.option} or has_word(name, self.value)


@dataclass(frozen=True)
class Code:
    """One side of a file.

    Attributes:
        functions: dotted name to function, methods and nested ones included.
        known: flags that the file binds to literals.
    """

    functions: Mapping[str, Function]
    known: Constants

    @cached_property
    def running(self) -> Mapping[str, tuple[ast.AST, ...]]:
        """Dotted name to the nodes that can run."""
        return {
            name: tuple(reachable(node.body, self.known)) for name, node in self.functions.items()
        }

    def fallbacks(self, words: Words) -> Counter[str]:
        """Dotted name to how often a function that runs speaks of the fallback."""
        found: Counter[str] = Counter()
        for name, nodes in self.running.items():
            found[name] = sum(words.names_fallback(node) for node in nodes)
        return found

    def branches(self, words: Words, name: str) -> Iterator[ast.If | ast.IfExp]:
        """The conditions on the switch in a function that do not always come out the same."""
        for node in self.running.get(name, ()):
            if not isinstance(node, ast.If | ast.IfExp) or truth(node.test, self.known) is not None:
                continue
            if any(map(words.tests_switch, ast.walk(node.test))):
                yield node

    def chooses(self, words: Words, name: str) -> bool:
        """Whether a function still chooses by the switch: by a comparison, a match or a table."""
        for node in self.running.get(name, ()):
            keys: list[ast.expr | None] = []
            match node:
                case ast.If(test=key) | ast.IfExp(test=key) if truth(key, self.known) is None:
                    keys = [key]
                case ast.Match(subject=key) | ast.Subscript(slice=key):
                    keys = [key]
                case ast.Compare():
                    keys = [node]
                case ast.Dict():
                    keys = node.keys
                case ast.Call(func=ast.Attribute(attr="get")):
                    keys = [*node.args]
            nodes = (inner for key in keys if key is not None for inner in ast.walk(key))
            if any(map(words.tests_switch, nodes)):
                return True
        return False


def code_of(case: Case, side: Side) -> Code | None:
    """One side of a file; None where there is none that can be read and parsed (FT219)."""
    if not is_regular(side):
        return None
    try:
        tree = parsed(case, side)
    except FactUnavailable:
        return None
    return Code(dict(_functions(tree)), constants(tree))


def identifier(node: ast.AST) -> str:
    """The name that a node reads; of an attribute the last part."""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return spelled(name)
        case _:
            return ""


def is_used(node: ast.AST) -> TypeGuard[ast.expr]:
    """Whether a node reads something that may stand for another thing."""
    if isinstance(node, ast.Name | ast.Attribute | ast.Subscript):
        return isinstance(node.ctx, ast.Load)
    return isinstance(node, ast.Call)


def has_word(name: str, word: str) -> bool:
    """Whether a name has the words of another one in it, as `auto_step` has `auto`."""
    return f"_{word}_" in f"_{name}_"


def _functions(tree: ast.Module) -> Iterator[tuple[str, Function]]:
    stack: list[tuple[ast.AST, str]] = [(tree, "")]
    while stack:
        node, above = stack.pop()
        for child in ast.iter_child_nodes(node):
            if isinstance(child, _FUNCTIONS):
                yield above + child.name, child
            if isinstance(child, (*_FUNCTIONS, ast.ClassDef)):
                stack.append((child, f"{above}{child.name}."))
            elif isinstance(child, ast.stmt | ast.ExceptHandler):
                stack.append((child, above))
