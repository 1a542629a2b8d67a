# SPDX-License-Identifier: Apache-2.0
"""The tests of one side of a change, each followed once."""

import ast
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial

from fasttrack.change.tree import ABSENT, Tree
from fasttrack.errors import FactUnavailable
from fasttrack.meaning.source import source_of
from fasttrack.testmodel.collected import Axis, Test, tests_of
from fasttrack.testmodel.events import Trace
from fasttrack.testmodel.fixtures import Fixtures, axes_of
from fasttrack.testmodel.frames import module_of
from fasttrack.testmodel.generated import generated_axes
from fasttrack.testmodel.hooks import Outcome, after_hooks, deciding_hooks
from fasttrack.testmodel.modules import Files, says
from fasttrack.testmodel.reach import PACKAGE, Reach
from fasttrack.testmodel.running import followed
from fasttrack.testmodel.settings import INI_FILES, INI_LIMIT, RERUNS, Settings, settings_of
from fasttrack.testmodel.texts import Outline, joined, outline
from fasttrack.testmodel.values import Class, Module
from fasttrack.testmodel.weakening import Kind, Weakening

_COMPUTED = re.compile(
    r"[gs]etattr\(\s*(?:self|cls)\s*,(?!\s*[\"'])|(?:dir|vars)\(\s*(?:self|cls|type)\b|\.__dict__\b"
)


class Side:
    """One side of a change.

    Attributes:
        tree: its files.
        faults: folders whose settings can not be parsed, with the reason.
        files: its modules.
    """

    def __init__(self, reach: Reach, tree: Tree) -> None:
        self.tree = tree
        self.files = Files(tree, reach.parsed, partial(says, reach.case), reach.is_tests)
        self._reach = reach
        self.faults: dict[str, str] = {}
        self._rows: dict[str, Sequence[str]] = {}
        self._tests: dict[str, dict[str, Test]] = {}
        self._traces: dict[Test, Trace] = {}
        self._settings: dict[str, Settings] = {}
        self._packages: dict[str, list[Module]] = {}
        self._outlines: dict[Class, Outline | None] = {}
        self._hooks: dict[tuple[str, ...], dict[str, str]] = {}

    def close(self) -> None:
        """Lets go of all modules and tests, which refer to each other in circles."""
        self.files.close()
        self._packages.clear()
        self._outlines.clear()
        self._tests.clear()
        self._traces.clear()

    def tests(self, path: str) -> dict[str, Test]:
        """The tests of a file by name; none where there is no such test file.

        Raises:
            FactUnavailable: the file can not be read or parsed.
        """
        if path not in self._tests:
            found: dict[str, Test] = {}
            if path in self.tree and self.settings(path).is_file(path):
                self.packages(path)
                module = self.files.module(path)
                for test in tests_of(module, self.settings(path)):
                    test.make_axes = self._axes
                    found[test.name] = test
            self._tests[path] = found
        return self._tests[path]

    def _axes(self, test: Test) -> Sequence[Axis]:
        conftests = self.conftests(test.path)
        fixtures = Fixtures(test, conftests, self.files.shelves)
        own = axes_of(test, fixtures)
        return [*own, *generated_axes(test, fixtures, self.files, conftests, own)]

    def rows(self, path: str) -> Sequence[str]:
        """The lines of a file."""
        if path not in self._rows:
            side = self.tree.get(path) or ABSENT
            self._rows[path] = source_of(self._reach.case, side).split("\n")
        return self._rows[path]

    def class_outline(self, owner: Class) -> Outline | None:
        """The outline of a class and its bases; None where a text can not be read.

        A member that computes which name it looks up speaks of all.
        """
        found = [self.outline_of(holder) for holder in owner.line()]
        if None in found:
            return None
        others = [f"class of {len(holder.node.bases)}" for holder in owner.line()]
        whole = joined([each for each in found if each is not None], others)
        members = " ".join(whole.named)
        for name, text in whole.named.items():
            if _COMPUTED.search(text):
                whole.named[name] = f"{text}\n{members}"
        return whole

    def outline_of(self, holder: Class) -> Outline | None:
        """The outline of a class alone, with what stands around its body; None if not readable."""
        if holder not in self._outlines:
            try:
                rows = self.rows(module_of(holder.scope).path)
                found = outline(holder.node, rows)
                others = (*found.others, *map(ast.unparse, _around(holder)))
                self._outlines[holder] = replace(found, others=others)
            except FactUnavailable:
                self._outlines[holder] = None
        return self._outlines[holder]

    def trace(self, test: Test) -> Trace:
        """What a test meets when it is followed."""
        if test not in self._traces:
            path = test.path
            imported = self.packages(path)
            self._traces[test] = followed(test, self.files, self.conftests(path), imported)
        return self._traces[test]

    def conftests(self, path: str) -> list[Module]:
        """The `conftest.py` files above a path, nearest first; those that can be read."""
        found: list[Module] = []
        folder = path
        while folder:
            folder = folder.rpartition("/")[0]
            place = f"{folder}/conftest.py" if folder else "conftest.py"
            if place in self.tree and place != path:
                try:
                    found.append(self.files.module(place))
                except FactUnavailable:
                    continue
        return found

    def packages(self, path: str) -> list[Module]:
        """The `__init__.py` files that are imported before a path, the outermost first."""
        if (folder := path.rpartition("/")[0]) not in self._packages:
            found: list[Module] = []
            place = folder
            while place and f"{place}/{PACKAGE}" in self.tree:
                with suppress(FactUnavailable):
                    found.insert(0, self.files.module(f"{place}/{PACKAGE}"))
                place = place.rpartition("/")[0]
            self._packages[folder] = found
        return self._packages[folder]

    def settings(self, path: str) -> Settings:
        """The settings of pytest that hold for a file: of the nearest folder that has any."""
        folder = path
        while folder:
            folder = folder.rpartition("/")[0]
            found = self._settings_at(f"{folder}/" if folder else "")
            if found.path:
                return found
        return Settings()

    def _settings_at(self, folder: str) -> Settings:
        if folder not in self._settings:
            try:
                self._settings[folder] = settings_of(folder, self._text)
            except FactUnavailable as reason:
                self._settings[folder] = Settings()
                self.faults[folder] = str(reason)
        return self._settings[folder]

    def _text(self, path: str) -> str | None:
        side = self.tree.get(path)
        if side is None or self._reach.case.change.size(side) > INI_LIMIT:
            return None
        try:
            return self._reach.case.change.text(side)
        except FactUnavailable:
            return None  # FT112 says so

    def outcome(self, test: Test) -> Outcome:
        """What settings and hooks make of a test that is collected."""
        marks = [mark.name for mark in test.marks]
        option = self.settings(test.path).leaves_out(test.path, test.name, marks)
        if option:
            return Outcome(f"the option `{option}`", self.settings(test.path).path)
        return after_hooks(test, self.files, self.conftests(test.path))

    def named_tests(self) -> list[str]:
        """Test files that a manifest names, for a change of settings."""
        return [p for p in self.tree if self._reach.is_named(p) and self._reach.is_tests(p)]

    def hooks(self, path: str) -> dict[str, str]:
        """Hooks above a path that can drop or pass tests: name to what they say."""
        conftests = self.conftests(path)
        key = tuple(conftest.path for conftest in conftests)
        if key not in self._hooks:
            self._hooks[key] = deciding_hooks(conftests)
        return self._hooks[key]

    def settings_differ(self, head: "Side") -> bool:
        """Whether an edited ini file says something else about which tests run."""
        folders = {
            f"{entry.path.rpartition('/')[0]}/".lstrip("/")
            for entry in self._reach.entries
            if entry.path.rpartition("/")[2] in INI_FILES
        }
        return any(
            replace(self._settings_at(folder), path="")
            != replace(head._settings_at(folder), path="")
            or folder in head.faults
            for folder in folders
        )

    def settings_differences(self, head: "Side") -> Iterator[Weakening]:
        """Options that leave tests out from now on, beside what they do to single tests."""
        for entry in self._reach.entries:
            folder, _, name = entry.path.rpartition("/")
            if name not in INI_FILES:
                continue
            place = f"{folder}/" if folder else ""
            old, new = self._settings_at(place), head._settings_at(place)
            if place in head.faults and place not in self.faults:
                yield Weakening.untold(entry.path, head.faults[place])
            for option, value in new.left_out:
                if (option, value) not in old.left_out:
                    does = (
                        "runs failing tests again until they pass"
                        if option == RERUNS
                        else ("leaves tests out of every run")
                    )
                    saw = f"`{f'{option} {value}'.rstrip()}` {does} from now on"
                    want = "tests that all run"
                    yield Weakening(Kind.SKIPPED, new.path, 0, saw, want)
            for what, before, after in (
                ("python_files", old.files, new.files),
                ("python_functions", old.functions, new.functions),
                ("python_classes", old.classes, new.classes),
                ("testpaths", old.places, new.places),
            ):
                lost = [pattern for pattern in before if pattern not in after]
                if what == "testpaths":
                    lost = lost or [place for place in after if not before and place]
                    lost = lost if after else []
                if lost:
                    saw = f"{what}: {' '.join(before) or 'everywhere'} -> {' '.join(after)}"
                    want = "names that are tests stay tests"
                    yield Weakening(Kind.LOST, new.path or entry.path, 0, saw, want)


def _around(holder: Class) -> Iterator[ast.expr]:
    """Decorators, keywords and unknown bases of a class; known bases are looked at themselves."""
    yield from holder.node.decorator_list
    yield from (keyword.value for keyword in holder.node.keywords)
    for base, value in zip(holder.node.bases, holder.bases, strict=False):
        if not isinstance(value, Class):
            yield base
