# SPDX-License-Identifier: Apache-2.0
"""What a unit's evidence depends on: its files, its tests, and the boundary just outside the roots.

files     what the manifest gives to the unit, and what that imports inside the roots, transitively.
tests     its tests, the `conftest.py` files above them, and what those import of the policy's
          classes `tests` and `reference`, transitively: harness and oracle. Also a reference that
          the unit itself imports, as in a provider that runs it.
boundary  files elsewhere that one of the files imports directly. A change there is told, deeper
          ones are bounded by the age of evidence. The policy's `bind` makes some of them files.

Manifest and evidence are in none of them, so that raising a tier does not void the evidence that
earned it. Everything comes from git objects of one tree, never from a working tree.
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePosixPath

from fasttrack.case import Config, in_roots
from fasttrack.change.change import Change
from fasttrack.change.tree import Side, Tree, path_bytes
from fasttrack.config import needed
from fasttrack.errors import FactUnavailable, InputError
from fasttrack.evidence.boundary import Outside
from fasttrack.evidence.closure import Closure
from fasttrack.evidence.digest import InputFile, files_digest, require_regular
from fasttrack.globs import matches
from fasttrack.manifest.model import GATE_UNIT, PATH_UNIT, Manifest, Unit
from fasttrack.policy.model import PathClass

INPUT_LIMIT = 64 * 1024 * 1024
"""Bytes of the largest file that evidence can bind to; data files are larger than sources."""

JUDGES = frozenset({PathClass.TESTS, PathClass.REFERENCE})
"""Classes of the files that judge code: what tests import of them counts as tests."""

Reasons = dict[str, str]
"""Path to why it is in."""


@dataclass(frozen=True)
class UnitInputs:
    """The inputs of one unit, each list in byte order of the paths.

    Attributes:
        unit: id of the unit, `path` or `gate-files`.
        files: what its evidence is about.
        tests: what judges it.
        boundary: what it imports directly from outside the roots.
    """

    unit: str
    files: tuple[InputFile, ...]
    tests: tuple[InputFile, ...]
    boundary: tuple[InputFile, ...]

    @cached_property
    def digest(self) -> str:
        """`files/v1` of `files`."""
        return files_digest(self.files)

    @cached_property
    def tests_digest(self) -> str:
        """`files/v1` of `tests`."""
        return files_digest(self.tests)


class InputGraph:
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
        self._found_inputs: dict[str, UnitInputs] = {}
        self._sha256: dict[str, str] = {}
        self._matches: dict[str, tuple[str, ...]] = {}

    @property
    def units(self) -> tuple[str, ...]:
        """Every unit that evidence can speak about, the manifest's first."""
        return (*(unit.id for unit in self._manifest.units), PATH_UNIT, GATE_UNIT)

    def unit_inputs(self, unit: str) -> UnitInputs:
        """The inputs of one unit, found when they are first asked for.

        Raises:
            InputError: no such unit.
            FactUnavailable: a link in the roots or among the inputs, or a file that can not be
                read or is too large.
        """
        if unit not in self.units:
            raise InputError.one("UNIT", repr(unit), f"one of {', '.join(self.units)}")
        if unit not in self._found_inputs:
            self._found_inputs[unit] = self._find_inputs(unit)
        return self._found_inputs[unit]

    def required_inputs(self, unit: str) -> UnitInputs:
        """The same, where nothing can go on without: what can not be told is an InputError."""
        with needed(f"unit {unit}"):
            return self.unit_inputs(unit)

    def _find_inputs(self, unit: str) -> UnitInputs:
        # (1) Its own files, and what they import inside the roots.
        own = self._own_files(unit)
        files = own | self._roots.reasons(own)
        # (2) What they import elsewhere: references judge, bound files count, the rest is boundary.
        judges, boundary = self._elsewhere(files)
        bound = {path: why for path in boundary if (why := self._bound(path))}
        # (3) Its tests, what they import to judge, and what else of the roots they run.
        tests = self._judging.reasons(judges | self._own_tests(self.tested_with(unit)))
        tests = {path: why for path, why in tests.items() if path not in bound | files}
        return UnitInputs(
            unit,
            self._hashed(bound | files),
            self._hashed(tests),
            self._hashed({p: why for p, why in boundary.items() if p not in bound | files}),
        )

    def tested_with(self, unit: str) -> tuple[Unit, ...]:
        """The units whose tests judge it: of the gate those that have one of its files."""
        units = self._manifest.units
        if unit == PATH_UNIT:
            return units
        if unit == GATE_UNIT:
            gate = set(self._manifest.code.gate)
            return tuple(u for u in units if gate & self._matching(u.files, "").keys())
        return tuple(u for u in units if u.id == unit)

    def _own_files(self, unit: str) -> Reasons:
        if unit == GATE_UNIT:
            gate = self._manifest.code.gate
            return {path: "gate file" for path in gate if path in self._tree}
        if unit == PATH_UNIT:
            rest = [self._files_of(u) for u in self._manifest.units]
            everything = dict.fromkeys(self._root_paths, "in the roots")
            return _first(everything, *rest)
        return self._files_of(next(u for u in self._manifest.units if u.id == unit))

    def _files_of(self, unit: Unit) -> Reasons:
        table = self._found(unit.variants) if unit.variants else ()
        return _first(
            self._matching(unit.files, "matches files pattern"),
            dict.fromkeys(table, "variant table"),
            self._matching(unit.data, "data, matches"),
        )

    def _own_tests(self, units: Iterable[Unit]) -> Reasons:
        tests = _first(*(self._matching(unit.tests, "matches tests pattern") for unit in units))
        above = {path: f"above {test}" for test in tests for path in self._conftests(test)}
        return above | tests

    def _conftests(self, test: str) -> Iterator[str]:
        for parent in PurePosixPath(test).parents:
            path = (parent / "conftest.py").as_posix()
            if path in self._tree:
                yield path

    def _elsewhere(self, files: Iterable[str]) -> tuple[Reasons, Reasons]:
        """What files import directly outside the roots: what judges, and the boundary."""
        found: dict[str, tuple[str, list[str]]] = {}
        for path in sorted(set(files) & set(self._root_paths)):
            named = self._roots.named(path)
            for other, how in self._outside.named_by(path, named) if named else ():
                users = found.setdefault(other, (how, []))[1]
                if path not in users:
                    users.append(path)
        judges: Reasons = {}
        boundary: Reasons = {}
        for other, (how, users) in found.items():
            more = f" and {len(users) - 1} more" if len(users) > 1 else ""
            kind = judges if self._config.classes.of(other) in JUDGES else boundary
            kind[other] = f"{how} {users[0]}{more}"
        return judges, boundary

    def _bound(self, path: str) -> str:
        patterns = (p for p in self._config.policy.bind if matches(p, path))
        return next((f"bound by the policy ({pattern})" for pattern in patterns), "")

    def _matching(self, patterns: Iterable[str], why: str) -> Reasons:
        return _first(*(dict.fromkeys(self._found(p), f"{why} {p}") for p in patterns))

    def _found(self, pattern: str) -> tuple[str, ...]:
        if pattern not in self._matches:
            # Not `pattern in self._tree` alone: a file may be called `*`.
            plain = pattern in self._tree and not set("*?") & set(pattern)
            whole = (pattern,) if plain else self._tree
            self._matches[pattern] = tuple(path for path in whole if matches(pattern, path))
        return self._matches[pattern]

    @cached_property
    def _root_paths(self) -> tuple[str, ...]:
        return tuple(path for path in self._tree if in_roots(self._manifest, path))

    @cached_property
    def _roots(self) -> Closure:
        # All at once, and every one: a link in the roots may stand for what any of them imports.
        self._hash(self._root_paths)
        return Closure(self._root_paths, self._text)

    @cached_property
    def _outside(self) -> Outside:
        return Outside(self._tree, self._root_paths)

    @cached_property
    def _judging(self) -> Closure:
        """Everything that may judge a unit of the manifest, and the roots, which tests run."""
        tests = self._own_tests(self._manifest.units)
        judges = (path for path in self._tree if self._config.classes.of(path) in JUDGES)
        return Closure((*tests, *judges, *self._root_paths), self._text)

    def _text(self, path: str) -> str:
        return self._change.text(self._side(path))

    def _side(self, path: str) -> Side:
        side = self._tree.get(path)
        if side is None:
            raise FactUnavailable(f"{path} is not in the tree")
        require_regular(path, side.mode)
        return side

    def _hashed(self, reasons: Mapping[str, str]) -> tuple[InputFile, ...]:
        paths = sorted(reasons, key=path_bytes)
        self._hash(paths)
        sides = ((path, self._side(path)) for path in paths)
        return tuple(
            InputFile(path, side.mode, self._sha256[side.oid], reasons[path])
            for path, side in sides
        )

    def _hash(self, paths: Iterable[str]) -> None:
        """Learns the SHA-256 of many files in one go."""
        sides = {path: self._side(path) for path in paths}
        new = {path: side for path, side in sides.items() if side.oid not in self._sha256}
        contents = self._change.blobs(list(new.values()), INPUT_LIMIT)
        for path, side in new.items():
            try:
                self._sha256[side.oid] = hashlib.sha256(next(contents)).hexdigest()
            except FactUnavailable as reason:
                raise FactUnavailable(f"{path}: {reason}") from reason


def _first(*parts: Mapping[str, str]) -> Reasons:
    """All of them; of two reasons for one path, the one that comes first."""
    whole: Reasons = {}
    for part in reversed(parts):
        whole |= part
    return whole
