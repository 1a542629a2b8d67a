# SPDX-License-Identifier: Apache-2.0
"""Which tests stand for a test of the target branch after the merge.

The one of its name; and where the change adds tests, those with its body, with its assertions, or
at least with most of its words: a test that was moved, renamed, or split in two is not lost.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from fasttrack.errors import FactUnavailable
from fasttrack.testmodel.collected import Test
from fasttrack.testmodel.dependants import Dependants
from fasttrack.testmodel.frames import module_of
from fasttrack.testmodel.likeness import Added, alike, body_of, has_grown, is_part, likeness
from fasttrack.testmodel.sides import Side
from fasttrack.testmodel.texts import tainted, text_of, words_of
from fasttrack.testmodel.values import Class, Scope

if TYPE_CHECKING:
    import ast

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
        own = self._tainted(path)
        old = self._text(self._base, base)
        if own is None or self._everywhere or old != self._text(self._head, head):
            return False
        names = self._meant(base.function.scope, path, old)
        if names is None or names & words_of(old) or not own.isdisjoint(base.parameters()):
            return False
        return base.owner is None or not self._is_touched_class(path, base, head, words_of(old))

    def _meant(self, scope: Scope, path: str, text: str) -> frozenset[str] | None:
        """Tainted names of the module of a text; with fixtures, also those of the tests' file."""
        home = module_of(scope).path
        own = self._tainted(path) or frozenset()
        if home == path:
            return own
        names = self._users.tainted(home)
        if names is None or "fixture" not in text:
            return names
        return names | own

    def _is_touched_class(self, path: str, base: Test, head: Test, used: frozenset[str]) -> bool:
        """Whether something in the class of a test, or its bases, differs that a test speaks of."""
        if base.owner is None or head.owner is None or base.name.count("::") > 1:
            return base.name.partition("::")[0] in (self._tainted(path) or ())
        key = (base.owner, head.owner)
        if key not in self._members:
            self._members[key] = self._tainted_members(path, *key)
        names = self._members[key]
        return names is None or bool(names & used)

    def _tainted_members(self, path: str, old: Class, new: Class) -> frozenset[str] | None:
        """Members of a class and its bases that may be something else; None when all may."""
        line = {holder.name for holder in old.line()}
        found: set[str] = set()
        for holder in old.line():
            outline = self._base.outline_of(holder)
            if outline is None:
                return None
            for name, text in (*outline.named.items(), *(("", text) for text in outline.others)):
                names = self._meant(holder.scope, path, text)
                if names is None or (not name and (names - line) & words_of(text)):
                    return None
                if (names - line) & words_of(text):
                    found.add(name)
        return tainted(self._base.class_outline(old), self._head.class_outline(new), found)

    def _tainted(self, path: str) -> frozenset[str] | None:
        """Names of a test file that may mean something else, tests themselves apart."""
        if path not in self._names:
            names = self._users.tainted(path)
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
                if alike(test, t) or has_grown(t, test)
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
                    if alike(test, t) or is_part(test, t) or has_grown(test, t)
                ),
                key=lambda t: (t.path != test.path, not is_part(test, t), -likeness(test, t)),
            )
        found = found or self._beside(test)
        return Pair(test, found[0] if found else None, tuple(found[1:]))

    def _beside(self, test: Test) -> list[Test]:
        """New tests of its class, or module, with its words or all of its assertions.

        So it is found where a helper brings both, in files that the change leaves alone, and where
        its body became a call.
        """
        before = self._read(self._base, test.path, fault=False)
        around = test.name.rpartition("::")[0]
        new = [
            other
            for name, other in self._read(self._head, test.path, fault=False).items()
            if name not in before and name.rpartition("::")[0] == around
        ]
        near = self._near(new)
        asserted = {check.text for check in self._base.trace(test).checks if not check.dead}
        return [t for t in near if alike(test, t)] or [
            t for t in near if asserted and asserted <= self._asserted(t)
        ]

    def _asserted(self, test: Test) -> set[str]:
        """Words of what a test asserts after the merge."""
        return {check.text for check in self._head.trace(test).checks if not check.dead}

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
