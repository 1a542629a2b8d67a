# SPDX-License-Identifier: Apache-2.0
"""On which files a unit's evidence depends, by path and with the reason, in one tree.

files     what the manifest gives to the unit, and what that imports inside the roots, transitively.
tests     its tests, the `conftest.py` files above them, and what those import of the policy's
          classes `tests` and `reference`, transitively: harness and oracle. Also a reference that
          the unit itself imports, as in a provider that runs it.
boundary  files elsewhere that one of the files or of the tests imports directly: code that the
          unit calls, and code that its harness and its oracle trust. A change there is told, deeper
          ones are bounded by the age of evidence. The policy's `bind` moves some of them to who
          imports them.

Nothing is hashed here, and each part is found when it is asked for: whether a change touches a unit
is mostly known from its own files. What the bytes are is for `fasttrack.evidence.inputs`.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import cached_property

from fasttrack.case import Config, in_roots
from fasttrack.change.change import Change
from fasttrack.change.tree import Side, Tree, path_bytes
from fasttrack.errors import FactUnavailable
from fasttrack.evidence.boundary import Outside
from fasttrack.evidence.closure import Closure
from fasttrack.evidence.digest import require_regular
from fasttrack.evidence.named import folders_above, is_read
from fasttrack.evidence.shape import defines_tests, runs_of
from fasttrack.evidence.subject import tested_with
from fasttrack.globs import matches
from fasttrack.manifest.model import GATE_UNIT, PATH_UNIT, Manifest, Unit
from fasttrack.policy.model import PathClass

JUDGES = frozenset({PathClass.TESTS, PathClass.REFERENCE})
"""Classes of the files that judge code: what tests import of them counts as tests."""

_SETTINGS = ("pyproject.toml", "pytest.ini", "pytest.toml", "setup.cfg", "tox.ini")
"""Files that pytest reads for its own sake."""


def unbound_paths(folder: str) -> tuple[str, ...]:
    """What tests may read although no digest has it: a configuration folder, pytest's settings."""
    return (f"{folder}/", *_SETTINGS)


Reasons = dict[str, str]
"""Path to why it is in."""


class PathGraph:
    """What depends on what under one manifest, in one tree; every file is read at most once."""

    def __init__(self, change: Change, tree: Tree, manifest: Manifest, config: Config) -> None:
        """Reads nothing yet.

        Args:
            change: where contents are read; of one revision alone, see `read_revision`.
            tree: the files, such as those after the merge.
            manifest: names the units.
            config: path classes, and the patterns that bind.
        """
        self._change = change
        self._tree = tree
        self._manifest = manifest
        self._config = config
        self._units: dict[str, UnitPaths] = {}
        self._left: dict[str, tuple[tuple[str, str], ...]] = {}
        self._matches: dict[str, tuple[str, ...]] = {}
        self._tested: dict[str, bool] = {}

    @property
    def units(self) -> tuple[str, ...]:
        """Every unit that evidence can speak about, the manifest's first."""
        return (*(unit.id for unit in self._manifest.units), PATH_UNIT, GATE_UNIT)

    def of(self, unit: str) -> "UnitPaths":
        """The files of one of the units; looking into them may raise FactUnavailable.

        A link in the roots or among the files is a fact that lacks: it may stand for anything. So
        is a file that can not be read.
        """
        if unit not in self._units:
            self._units[unit] = UnitPaths(self, unit)
        return self._units[unit]

    def side(self, path: str) -> Side:
        """The regular file at a path; FactUnavailable when there is none."""
        side = self._tree.get(path)
        if side is None:
            raise FactUnavailable(f"{path} is not in the tree")
        require_regular(path, side.mode)
        return side

    @property
    def root_words(self) -> tuple[str, ...]:
        """The roots as the manifest has them."""
        return tuple(self._manifest.code.roots)

    @cached_property
    def unbound(self) -> tuple[str, ...]:
        """Files and folders that tests may read although no digest has them."""
        paths = unbound_paths(self._config.folder)
        return tuple(path for path in paths if path.endswith("/") or path in self._tree)

    def patterns_of(self, unit: str) -> tuple[str, ...]:
        """The patterns of a unit's tests."""
        tested = tested_with(self._manifest, unit)
        return tuple(dict.fromkeys(pattern for one in tested for pattern in one.tests))

    def has_tests(self, path: str) -> bool:
        """Whether pytest surely finds a test in a source; raises FactUnavailable as `side` does."""
        if path not in self._tested:
            self._tested[path] = defines_tests(self._text(path))
        return self._tested[path]

    def own_files(self, unit: str) -> Reasons:
        """What the manifest gives to a unit."""
        if unit == GATE_UNIT:
            gate = self._manifest.code.gate
            return {path: "gate file" for path in gate if path in self._tree}
        if unit == PATH_UNIT:
            rest = [self._files_of(u) for u in self._manifest.units]
            everything = dict.fromkeys(self.root_paths, "in the roots")
            return _first(everything, *rest)
        return self._files_of(next(u for u in self._manifest.units if u.id == unit))

    def own_tests(self, unit: str) -> Reasons:
        """The tests that the manifest gives to a unit, with the `conftest.py` files above them."""
        return self._tests_of(tested_with(self._manifest, unit))

    def elsewhere(self, files: Iterable[str]) -> tuple[Reasons, Reasons]:
        """What files import directly outside the roots: what judges, and the rest.

        Args:
            files: of the roots, or such as judge.
        """
        found: dict[str, tuple[str, list[str]]] = {}
        for path in sorted(files):
            for other, how in self._leaving(path):
                users = found.setdefault(other, (how, []))[1]
                if path not in users:
                    users.append(path)
        judges: Reasons = {}
        rest: Reasons = {}
        for other, (how, users) in found.items():
            more = f" and {len(users) - 1} more" if len(users) > 1 else ""
            kind = judges if self._config.classes.of(other) in JUDGES else rest
            kind[other] = f"{how} {users[0]}{more}"
        return judges, rest

    def _leaving(self, path: str) -> tuple[tuple[str, str], ...]:
        """What one file imports directly outside the roots, and how."""
        if path not in self._left:
            closure = self.roots if self.roots.holds(path) else self.judging
            named = closure.named(path)
            self._left[path] = tuple(self._outside.named_by(path, named)) if named else ()
        return self._left[path]

    def bound(self, files: Iterable[str]) -> Reasons:
        """What the policy binds to files that import it; looked for only where it binds anything.

        Args:
            files: as for `elsewhere`.
        """
        bind = self._config.policy.bind
        near = self.elsewhere(files)[1] if bind else {}
        return _first(
            *({p: f"bound by the policy ({b})" for p in near if matches(b, p)} for b in bind)
        )

    @cached_property
    def root_paths(self) -> tuple[str, ...]:
        """Every file in the roots."""
        return tuple(path for path in self._tree if in_roots(self._manifest, path))

    @cached_property
    def roots(self) -> Closure:
        """What files of the roots import there."""
        self.read_ahead(self.root_paths)
        return Closure(self.root_paths, self._text, self._tree)

    @cached_property
    def judging(self) -> Closure:
        """Everything that may judge a unit of the manifest, and the roots, which tests run."""
        tests = self._tests_of(self._manifest.units)
        judges = (path for path in self._tree if self._config.classes.of(path) in JUDGES)
        return Closure((*tests, *judges, *self.root_paths), self._text, self._tree)

    def read_ahead(self, paths: Iterable[str]) -> None:
        """Reads many sources in one go, which costs less than one by one.

        Raises:
            FactUnavailable: one of them, whatever it holds, is a link: it may stand for what any
                other imports.
        """
        sides = {path: self.side(path) for path in paths}
        with suppress(FactUnavailable):  # who needs a source that can not be read is told so
            deque(self._change.blobs([s for p, s in sides.items() if is_read(p)]), maxlen=0)

    @cached_property
    def _outside(self) -> Outside:
        return Outside(self._tree, self.root_paths)

    def _files_of(self, unit: Unit) -> Reasons:
        table = self._found(unit.variants) if unit.variants else ()
        return _first(
            self._matching(unit.files, "matches files pattern"),
            dict.fromkeys(table, "variant table"),
            self._matching(unit.data, "data, matches"),
        )

    def _tests_of(self, units: Iterable[Unit]) -> Reasons:
        tests = _first(*(self._matching(unit.tests, "matches tests pattern") for unit in units))
        above = {path: f"above {test}" for test in tests for path in self._conftests(test)}
        return above | tests

    def _conftests(self, test: str) -> Iterator[str]:
        above = (f"{folder}conftest.py" for folder in folders_above(test))
        return (path for path in above if path in self._tree)

    def _matching(self, patterns: Iterable[str], why: str) -> Reasons:
        return _first(*(dict.fromkeys(self._found(p), f"{why} {p}") for p in patterns))

    def _found(self, pattern: str) -> tuple[str, ...]:
        if pattern not in self._matches:
            # Not `pattern in self._tree` alone: a file may be called `*`.
            plain = pattern in self._tree and not set("*?") & set(pattern)
            whole = (pattern,) if plain else self._tree
            self._matches[pattern] = tuple(path for path in whole if matches(pattern, path))
        return self._matches[pattern]

    def _text(self, path: str) -> str:
        return self._change.text(self.side(path))


class UnitPaths:
    """The files of one unit; reading a part may raise FactUnavailable."""

    def __init__(self, graph: PathGraph, unit: str) -> None:
        """Finds nothing yet."""
        self._graph = graph
        self._unit = unit

    @cached_property
    def own(self) -> Reasons:
        """What the manifest gives to it; part of `files`."""
        return self._graph.own_files(self._unit)

    @cached_property
    def files(self) -> Reasons:
        """What its evidence is about."""
        return self._graph.bound(self._inside) | self.own | self._inside

    @cached_property
    def tests(self) -> Reasons:
        """What judges it."""
        found = self._graph.bound(self._judging) | self._judging
        return {path: why for path, why in found.items() if path not in self.files}

    @cached_property
    def runs(self) -> tuple[str, ...]:
        """The test files that run, in byte order."""
        paths = sorted(self.tests, key=path_bytes)
        return runs_of(paths, self._graph.patterns_of(self._unit))

    @property
    def root_words(self) -> frozenset[str]:
        """The roots as the manifest has them."""
        return frozenset(self._graph.root_words)

    @cached_property
    def boundary(self) -> Reasons:
        """What its files and its tests import directly from elsewhere."""
        near = self._graph.elsewhere(self._judging)[1] | self._graph.elsewhere(self._inside)[1]
        within = self.files.keys() | self.tests.keys()
        return {path: why for path, why in near.items() if path not in within}

    @cached_property
    def _inside(self) -> Reasons:
        """Its files in the roots, which lead on."""
        return self._graph.roots.reasons(self.own)

    @cached_property
    def _judging(self) -> Reasons:
        """Its tests, and what they lead to."""
        judges = self._graph.elsewhere(self._inside)[0] | self._graph.own_tests(self._unit)
        self._graph.read_ahead(judges)
        return self._graph.judging.reasons(judges)


def _first(*parts: Mapping[str, str]) -> Reasons:
    """All of them; of two reasons for one path, the one that comes first."""
    whole: Reasons = {}
    for part in reversed(parts):
        whole |= part
    return whole
