# SPDX-License-Identifier: Apache-2.0
"""How alike two tests are by their words, and the tests that a change adds, to be found by them."""

import ast
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from fasttrack.testmodel.collected import Test
from fasttrack.testmodel.frames import ast_words

ALIKE = 0.6
"""Share of words that a rewritten test must keep to be the same test."""
GROWN = 0.85
"""Share of the words of a test that another one in its file must have to be it with more in it."""
PART = 0.4
"""The same for a test that also keeps every set of parameters."""


@dataclass(frozen=True)
class Added:
    """Tests that a change adds: all, and by name, file and body."""

    tests: Sequence[Test]
    names: Mapping[str, Sequence[Test]]
    files: Mapping[str, Sequence[Test]]
    bodies: Mapping[str, Sequence[Test]]

    @classmethod
    def of(cls, tests: Sequence[Test]) -> "Added":
        """Sorts some tests."""
        names: dict[str, list[Test]] = {}
        files: dict[str, list[Test]] = {}
        bodies: dict[str, list[Test]] = {}
        for test in tests:
            names.setdefault(test.name, []).append(test)
            files.setdefault(test.path, []).append(test)
            bodies.setdefault(body_of(test), []).append(test)
        return cls(tests, names, files, bodies)


def body_of(test: Test) -> str:
    """The statements of a test without its docstring, marks and name."""
    if not test.body:
        node = test.function.node
        body = node.body if isinstance(node.body, list) else []
        match body:
            case [ast.Expr(value=ast.Constant(value=str())), *rest]:
                body = rest
        test.body = " ".join(chain.from_iterable(map(ast_words, body)))
    return test.body


def likeness(one: Test, other: Test) -> float:
    """Share of the words of the larger of two tests that both have."""
    left, right = _counted(one), _counted(other)
    smaller, larger = sorted((left.total(), right.total()))
    if smaller < PART * larger:
        return smaller / larger  # what they share is at most that, too little for whoever asks
    return (left & right).total() / larger if larger else 1.0


def _counted(test: Test) -> Counter[str]:
    """How often a test says each word."""
    if test.counted is None:
        test.counted = Counter(body_of(test).split())
    return test.counted


def alike(one: Test, other: Test) -> bool:
    """Whether two tests share most of their words."""
    return likeness(one, other) >= ALIKE


def is_part(one: Test, other: Test) -> bool:
    """Whether a test runs for the very sets of parameters of another and shares words with it."""
    if likeness(one, other) < PART:
        return False
    cells = one.cells()
    return cells is not None and len(cells) > 1 and cells == other.cells()


def has_grown(one: Test, other: Test) -> bool:
    """Whether a test of the same file says nearly all that another said, and more."""
    if one.path != other.path:
        return False
    left = _counted(one)
    return (left & _counted(other)).total() >= GROWN * left.total() > 0
