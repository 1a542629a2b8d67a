# SPDX-License-Identifier: Apache-2.0
"""Which tests stand for a test of the target branch after the merge.

The one of its name; and where the change adds tests, those with its body, with its assertions, or
at least with most of its words: a test that was moved, renamed, or split in two is not lost.
"""

import ast
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain

from fasttrack.errors import FactUnavailable
from fasttrack.testmodel.collected import Test
from fasttrack.testmodel.dependants import Dependants
from fasttrack.testmodel.frames import ast_words, module_of
from fasttrack.testmodel.sides import Side
from fasttrack.testmodel.texts import tainted, text_of, words_of
from fasttrack.testmodel.values import Class

ALIKE = 0.6
"""Share of words that a rewritten test must keep to be the same test."""
GROWN = 0.85
"""Share of the words of a test that another one in its file must have to be it with more in it."""
PART = 0.4
"""The same for a test that also keeps every set of parameters."""


LIKENED_LIMIT = 6_000
"""Pairs of tests whose words are compared, about 0.2 s."""
COMPARED_HEIRS = 2
"""Unedited classes in which a test that they inherit is compared."""


@dataclass(frozen=True)
class Pair:
    """A test and what stands for it.

    Attributes:
        base: the test at the target branch.
        same: the test of its name, or that it was renamed to; None when there is none.
        others: new tests that hold a part of it.
    """

    base: Test
    same: Test | None
    others: tuple[Test, ...]


class Partners:
    """Pairs of all tests in some files.

    Attributes:
        faults: files that can not be read on one side, in words.
        last: the file that was looked at last.
    """

    def __init__(
        self, users: Dependants, base: Side, head: Side, paths: Sequence[str], *, everywhere: bool
    ) -> None:
        """Takes files; `everywhere` says that settings changed, which concern every test."""
        self._everywhere = everywhere
        self._users = users
        self._reach = users.reach
        self._base = base
        self._head = head
        self._paths = paths
        self.faults: dict[str, str] = {}
        self.last = ""
        self._likened = 0
        self._heirs: Counter[tuple[ast.AST, ast.AST]] = Counter()

    def pairs(self) -> Iterator[Pair]:
        """Every test at the base that the change may have touched, with its partners."""
        for path in self._paths:
            if self._base.files.spent or self._head.files.spent or self._reach.bounds.spent:
                return
            self.last = path
            before = self._read(self._base, path, fault=path in self._reach.edited)
            after = self._read(self._head, path, fault=True)
            if path in self.faults:
                continue
            for name, test in before.items():
                same = after.get(name)
                if same is not None and self._is_untouched(path, test, same):
                    continue
                if same is None or not self._is_stood_for(test, same):
                    yield self._pair(test, same)

    def _is_stood_for(self, base: Test, head: Test) -> bool:
        """Whether an inherited test was compared in other classes that are as they were."""
        if base.owner is None or head.owner is None or self._reach.is_named(base.path):
            return False
        if base.name.rpartition("::")[2] in base.owner.names:
            return False
        old = text_of(base.owner.node, self._base.rows(base.path))
        if old != text_of(head.owner.node, self._head.rows(head.path)):
            return False
        key = (base.function.node, head.function.node)
        self._heirs[key] += 1
        return self._heirs[key] > COMPARED_HEIRS

    def _read(self, side: Side, path: str, *, fault: bool) -> dict[str, Test]:
        reason = "it is too much to be followed to its end"
        try:
            found = side.tests(path)
            if path not in side.files.undecided:
                return found
        except FactUnavailable as error:
            reason = str(error)
        if fault and path in side.tree and not self._reach.bounds.spent:
            ended = side is self._head
            what = "could be read and no longer can" if ended else "can not be compared"
            self.faults[path] = f"tests that {what}: {reason}"
        return {}

    def _is_untouched(self, path: str, base: Test, head: Test) -> bool:
        """Whether neither a test nor anything that it speaks of differs."""
        names = self._tainted(path)
        if names is None or self._everywhere:
            return False
        old = self._text(self._base, base)
        if old != self._text(self._head, head) or names & words_of(old):
            return False
        return base.owner is None or not self._is_touched_class(path, base, head, words_of(old))

    def _is_touched_class(self, path: str, base: Test, head: Test, used: frozenset[str]) -> bool:
        """Whether something in the class of a test, or its bases, differs that a test speaks of."""
        if base.owner is None or head.owner is None or base.name.count("::") > 1:
            return base.name.partition("::")[0] in (self._tainted(path) or ())
        key = (base.owner, head.owner)
        if key not in self._members:
            old, new = self._base.class_outline(key[0]), self._head.class_outline(key[1])
            known = frozenset(self._tainted(path) or ()) - {c.name for c in base.owner.line()}
            self._members[key] = tainted(old, new, known)
        names = self._members[key]
        return names is None or bool(names & used)

    def _tainted(self, path: str) -> frozenset[str] | None:
        """Names of a test file that may mean something else, tests themselves apart."""
        if path not in self._names:
            known = self._users.tainted
            names = None if known is None else self._reach.tainted(path, known)
            if self._head.files.overrides.keys() - self._base.files.overrides.keys():
                names = None  # an import may put something in the place of what a test speaks of
            tests = self._base.tests(path)
            self._names[path] = None if names is None else names - tests.keys()
        return self._names[path]

    @cached_property
    def _members(self) -> dict[tuple[Class, Class], frozenset[str] | None]:
        return {}

    @cached_property
    def _names(self) -> dict[str, frozenset[str] | None]:
        return {}

    def _text(self, side: Side, test: Test) -> str:
        path = module_of(test.function.scope).path  # of another file, where it is inherited
        return text_of(test.function.node, side.rows(path))

    def _pair(self, test: Test, same: Test | None) -> Pair:
        body = body_of(test)
        if same is not None:
            others = [t for t in self._added.bodies.get(body, ()) if t is not same]
            others += [
                t
                for t in self._near(self._added.files.get(test.path, ()))
                if t is not same and t not in others
                if alike(test, t) or _has_grown(t, test)
            ]
            return Pair(test, same, tuple(others))
        moved = list(self._added.names.get(test.name, ())) or self._taken_in(test)
        moved.sort(key=lambda t: -likeness(test, t))
        equal = [t for t in self._added.bodies.get(body, ()) if t not in moved]
        found = [*moved, *equal] or self._in_renamed_class(test)
        if not found:
            found = sorted(
                (
                    t
                    for t in self._near(self._added.tests)
                    if alike(test, t) or _is_part(test, t) or _has_grown(test, t)
                ),
                key=lambda t: (t.path != test.path, not _is_part(test, t), -likeness(test, t)),
            )
        return Pair(test, found[0] if found else None, tuple(found[1:]))

    def _in_renamed_class(self, test: Test) -> list[Test]:
        """New tests of the same function's name in its file, whose class has another name."""
        name = test.name.rpartition("::")[2]
        found = [
            t
            for t in self._added.files.get(test.path, ())
            if "::" in t.name and t.name.rpartition("::")[2] == name
        ]
        return found if "::" in test.name else []

    def _taken_in(self, test: Test) -> list[Test]:
        """Edited tests of its name in other files, where its own is gone: two files became one."""
        if test.path in self._head.tree:
            return []
        found: list[Test] = []
        for path in self._reach.edited:
            old = self._read(self._base, path, fault=False).get(test.name)
            new = self._read(self._head, path, fault=False).get(test.name)
            if old and new and self._text(self._base, old) != self._text(self._head, new):
                found.append(new)
        return found

    def _near(self, tests: Sequence[Test]) -> Sequence[Test]:
        """Tests that one is compared with word by word; none once there were too many."""
        self._likened += len(tests)
        if self._likened <= LIKENED_LIMIT:
            return tests
        self._reach.bounds.left_out += 1
        return ()

    @cached_property
    def _added(self) -> "Added":
        """Tests after the merge that the target branch does not have by path and name."""
        found: list[Test] = []
        for path in dict.fromkeys([*self._reach.edited, *self._reach.added]):
            before = self._read(self._base, path, fault=False)
            after = self._read(self._head, path, fault=False)
            found += [test for name, test in after.items() if name not in before]
        return Added.of(found)


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


def _is_part(one: Test, other: Test) -> bool:
    """Whether a test runs for the very sets of parameters of another and shares words with it."""
    if likeness(one, other) < PART:
        return False
    cells = one.cells()
    return cells is not None and len(cells) > 1 and cells == other.cells()


def _has_grown(one: Test, other: Test) -> bool:
    """Whether a test of the same file says nearly all that another said, and more."""
    if one.path != other.path:
        return False
    left = _counted(one)
    return (left & _counted(other)).total() >= GROWN * left.total() > 0
