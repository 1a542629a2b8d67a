# SPDX-License-Identifier: Apache-2.0
"""What a unit's evidence depends on, by digest; `fasttrack.evidence.unit_paths` finds the files.

Of the manifest only what decides what runs is in a digest (`fasttrack.evidence.shape`), so that
raising a tier does not void the evidence that earned it. Everything comes from git objects of one
tree, never from a working tree.
"""

import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from fasttrack.case import Config
from fasttrack.change.change import Change
from fasttrack.change.tree import Tree, path_bytes
from fasttrack.config import needed
from fasttrack.errors import FactUnavailable, InputError
from fasttrack.evidence.digest import InputFile, files_digest
from fasttrack.evidence.shape import judging_digest
from fasttrack.evidence.unit_paths import PathGraph
from fasttrack.manifest.model import Manifest

INPUT_LIMIT = 64 * 1024 * 1024
"""Bytes of the largest file that evidence can bind to; data files are larger than sources."""


@dataclass(frozen=True)
class UnitInputs:
    """The inputs of one unit, each list in byte order of the paths.

    Attributes:
        unit: id of the unit, `path` or `gate-files`.
        files: what its evidence is about.
        tests: what judges it.
        boundary: what its files and its tests import directly from elsewhere.
        roots: the manifest's roots.
        runs: the test files that run, among `tests`.
        unbound: files and folders (ending in `/`) that may be read although no digest has them.
        wired: files elsewhere in which the manifest's path is wired up.
        has_tests: whether pytest surely finds a test in one of `runs`.
    """

    unit: str
    files: tuple[InputFile, ...]
    tests: tuple[InputFile, ...]
    boundary: tuple[InputFile, ...]
    roots: tuple[str, ...] = ()
    runs: tuple[str, ...] = ()
    unbound: tuple[str, ...] = ()
    wired: tuple[str, ...] = ()
    has_tests: Callable[[str], bool] = field(default=lambda _: False, compare=False)

    @cached_property
    def digest(self) -> str:
        """`files/v1` of `files`."""
        return files_digest(self.files)

    @cached_property
    def tests_digest(self) -> str:
        """`judging/v1` of `tests`, `roots` and `runs`."""
        return judging_digest(self.tests, self.roots, self.runs)

    @cached_property
    def bound(self) -> frozenset[str]:
        """Paths of the files that these digests hold."""
        return frozenset(file.path for file in (*self.files, *self.tests))


class InputGraph:
    """The inputs of the units of one manifest, in one tree; every file is read at most once.

    Attributes:
        paths: the same by path alone, without digests.
    """

    def __init__(self, change: Change, tree: Tree, manifest: Manifest, config: Config) -> None:
        """Reads nothing yet; see `PathGraph` for the arguments."""
        self.paths = PathGraph(change, tree, manifest, config)
        self._change = change
        self._wired = tuple(one.path for one in manifest.code.wiring)
        self._found_inputs: dict[str, UnitInputs] = {}
        self._sha256: dict[str, str] = {}

    @property
    def units(self) -> tuple[str, ...]:
        """Every unit that evidence can speak about, the manifest's first."""
        return self.paths.units

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
            found = self.paths.of(unit)
            self._found_inputs[unit] = UnitInputs(
                unit,
                self._hashed(found.files),
                self._hashed(found.tests),
                self._hashed(found.boundary),
                self.paths.root_words,
                found.runs,
                self.paths.unbound,
                self._wired,
                self.paths.has_tests,
            )
        return self._found_inputs[unit]

    def required_inputs(self, unit: str) -> UnitInputs:
        """The same, where nothing can go on without: what can not be told is an InputError."""
        with needed(f"unit {unit}"):
            return self.unit_inputs(unit)

    def _hashed(self, reasons: Mapping[str, str]) -> tuple[InputFile, ...]:
        paths = sorted(reasons, key=path_bytes)
        self._hash(paths)
        sides = ((path, self.paths.side(path)) for path in paths)
        return tuple(
            InputFile(path, side.mode, self._sha256[side.oid], reasons[path])
            for path, side in sides
        )

    def _hash(self, paths: Iterable[str]) -> None:
        """Learns the SHA-256 of many files in one go."""
        sides = {path: self.paths.side(path) for path in paths}
        new = {path: side for path, side in sides.items() if side.oid not in self._sha256}
        contents = self._change.blobs(list(new.values()), INPUT_LIMIT)
        for path, side in new.items():
            try:
                self._sha256[side.oid] = hashlib.sha256(next(contents)).hexdigest()
            except FactUnavailable as reason:
                raise FactUnavailable(f"{path}: {reason}") from reason
