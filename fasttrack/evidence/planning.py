# SPDX-License-Identifier: Apache-2.0
"""Making a plan: the cells that the scope at a commit owes, and of which bytes they would speak.

Everything is read from git objects. Cells that evidence covers already are left out; whoever asks
says which these are.
"""

import secrets
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from fasttrack.case import Config, text_digest
from fasttrack.change.change import Change
from fasttrack.config import needed, read_base_manifests
from fasttrack.errors import FactUnavailable, InputError, Problem
from fasttrack.evidence.choice import Choice
from fasttrack.evidence.coverage import Covered
from fasttrack.evidence.derived import derived
from fasttrack.evidence.digest import InputFile
from fasttrack.evidence.floors import floors_in_force
from fasttrack.evidence.inputs import InputGraph, UnitInputs
from fasttrack.evidence.owed import kinds_owed
from fasttrack.evidence.plan import MAX_BYTES, MAX_SEEDS, SEEDED, Plan, parse_plan, text_of
from fasttrack.evidence.subject import unit_of
from fasttrack.manifest.cost import MAX_CELLS
from fasttrack.manifest.model import Manifest
from fasttrack.manifest.points import Cell, TooManyPoints, cost_by_axis, witness_points
from fasttrack.manifest.variants import VariantTable, load_variant_table
from fasttrack.vocabulary import Kind


@dataclass(frozen=True)
class Planned:
    """A plan and what it leaves out.

    Attributes:
        plan: the cells without evidence.
        covered: cells of the choice that have evidence, by unit and kind.
    """

    plan: Plan
    covered: Counter[tuple[str, Kind]]


class Planner:
    """What one manifest at one commit owes under a policy."""

    def __init__(self, revision: Change, config: Config, name: str | None) -> None:
        """Reads the manifest and its variant tables.

        Args:
            revision: one revision alone, see `read_revision`.
            config: the policy in force, which need not be the revision's.
            name: which manifest; None for the only one.

        Raises:
            InputError: no such manifest, or a manifest or table with problems.
        """
        manifests = read_base_manifests(revision, config)
        self.manifest = manifests.named(name)
        self._path = next(p for p, m in manifests.valid.items() if m is self.manifest)
        self._revision = revision
        self._config = config
        self._floors = floors_in_force(config.policy, self.manifest)
        self._graph = InputGraph(revision, revision.base, self.manifest, config)
        self._derived = derived(revision.base, self.manifest, self._graph)
        self._tables = {path: self._table(path) for path in _table_paths(self.manifest)}

    def owed(self, choice: Choice) -> tuple[Cell, ...]:
        """The chosen cells that the scope owes, in a fixed order.

        Two regions may owe cells of one kind and key; the first stands for both.

        Raises:
            InputError: the choice names what is not there, or there are too many cells.
        """
        regions = [region.id for region in self.manifest.scope]
        choice.require_known(self._graph.units, regions, self._config.policy.hardware)
        owing = kinds_owed(self._config.policy, self.manifest, choice.tier)
        found: dict[object, Cell] = {}
        for kind in Kind:
            if kind in owing[""]:
                for cell in self._witnesses(kind):
                    if kind in owing[cell.region] and choice.admits(cell):
                        found.setdefault(cell.id, cell)
        return tuple(found.values())

    def make(self, owed: Sequence[Cell], covered: Covered, created: datetime) -> Planned:
        """The plan of the cells that are owed and not covered, with an id and seeds of now.

        Args:
            owed: which cells, as `owed` lists them.
            covered: tells what has evidence.
            created: UTC, whole seconds.

        Raises:
            InputError: a unit whose inputs can not be told, or without files or tests; a plan that
                would be too large.
        """
        inputs = self._inputs(owed)
        missing, done = [], Counter[tuple[str, Kind]]()
        for cell in owed:
            unit = unit_of(cell)
            if covered(cell, inputs[unit]):
                done[unit, cell.kind] += 1
            else:
                missing.append(cell)
        data = self._head(created) | {
            "units": [self._unit(inputs[unit]) for unit in _units(missing)],
            "cells": self._cells(missing, inputs),
        }
        raw = text_of(data)
        if len(raw) > MAX_BYTES:
            raise self._too_large(missing, f"a plan of {len(raw):,} bytes")
        # Read as it will be read: what does not fit the format fails here, not where it is run.
        return Planned(parse_plan(raw, "the plan"), done)

    def inputs_of(self, unit: str) -> UnitInputs:
        """The inputs of a unit at the revision.

        Raises:
            FactUnavailable: they can not be told.
        """
        return self._graph.unit_inputs(unit)

    def _witnesses(self, kind: Kind) -> tuple[Cell, ...]:
        try:
            with needed(self._path):
                hardware = self._config.policy.hardware
                return witness_points(self.manifest, kind, hardware, self._tables)
        except TooManyPoints as error:
            saw = f"about {error.estimate:,} {kind.value} cells"
            fix = f"narrow the scope; {error.worst_axis} costs most"
            raise InputError.one(self._path, saw, f"at most {MAX_CELLS:,}", fix) from error

    def _inputs(self, cells: Sequence[Cell]) -> Mapping[str, UnitInputs]:
        """Inputs of every unit that occurs; problems of all of them at once."""
        found: dict[str, UnitInputs] = {}
        problems: list[Problem] = []
        for unit in _units(cells):
            where = f"unit {unit} of {self._path}"
            try:
                found[unit] = self._graph.unit_inputs(unit)
            except FactUnavailable as reason:
                problems.append(Problem(where, str(reason), "inputs that can be told"))
                continue
            if not found[unit].files:
                problems.append(Problem(where, "no files", "at least one file"))
            if not found[unit].runs:
                fix = "add a test, or correct its `tests` patterns"
                problems.append(Problem(where, "no tests", "tests that measure it", fix))
        if problems:
            raise InputError(problems)
        return found

    def _unit(self, inputs: UnitInputs) -> dict[str, Any]:
        return {
            "unit": inputs.unit,
            "digest": inputs.digest,
            "tests_digest": inputs.tests_digest,
            "files": [_file(file) for file in inputs.files],
            "tests": [_file(file) for file in inputs.tests],
            "boundary": [{"path": f.path, "sha256": f.sha256} for f in inputs.boundary],
            "patterns": list(self._derived.patterns_of(inputs.unit)),
            "variants": self._derived.variants_of(inputs.unit),
        }

    def _cells(
        self, cells: Sequence[Cell], inputs: Mapping[str, UnitInputs]
    ) -> list[dict[str, Any]]:
        tests = {unit: list(found.runs) for unit, found in inputs.items()}
        # More than a plan can hold: its own model says so, without drawing them.
        seeds = min(self._floors.kernel_seeds, MAX_SEEDS)
        return [
            {
                "kind": cell.kind.value,
                "region": cell.region,
                "values": dict(cell.values),
                "unit": unit_of(cell),
                "tests": tests[unit_of(cell)],
                "seeds": _seeds(seeds) if cell.kind in SEEDED else [],
            }
            for cell in cells
        ]

    def _head(self, created: datetime) -> dict[str, Any]:
        policy = self._config.policy
        named = {*policy.toolchain.exact, *policy.toolchain.ranges, *self.manifest.toolchain}
        return {
            "plan": 1,
            "id": secrets.token_hex(16),
            "created": created.isoformat(),
            "commit": self._revision.head,
            "tree": self._revision.head_tree,
            "manifest": {
                "name": self.manifest.name,
                "path": self._path,
                "sha256": text_digest(self._blob(self._path)),
            },
            "floors": self._floors.model_dump(mode="json"),
            "archs": {name: hardware.arch for name, hardware in policy.hardware.items()},
            "packages": sorted({name.lower() for name in named} - {"cuda", "driver"}),
            "roots": list(self._derived.roots),
            "unbound": list(self._derived.unbound),
            "beside": list(self._derived.beside),
        }

    def _too_large(self, cells: Sequence[Cell], saw: str) -> InputError:
        """Tells which axis of which region to narrow."""
        (kind, region), count = Counter((c.kind, c.region) for c in cells).most_common(1)[0]
        axes = cost_by_axis(self.manifest, region, kind, self._config.policy.hardware, self._tables)
        most = f", of which {next(iter(axes))} costs most" if axes else ""
        where = f"region {region}" if region else "no region"
        fix = f"plan less at once by --unit, --kind or --region; {count:,} cells are {kind.value}"
        return InputError.one(
            self._path, saw, f"at most {MAX_BYTES:,} bytes", f"{fix} of {where}{most}"
        )

    def _table(self, path: str) -> VariantTable:
        return load_variant_table(self._blob(path), path)

    def _blob(self, path: str) -> bytes:
        with needed(path):
            side = self._revision.base.get(path)
            if side is None:
                raise FactUnavailable("no such file")
            return self._revision.blob(side)


def _table_paths(manifest: Manifest) -> list[str]:
    return sorted({unit.variants for unit in manifest.units if unit.variants is not None})


def _units(cells: Sequence[Cell]) -> Iterator[str]:
    return iter(dict.fromkeys(unit_of(cell) for cell in cells))


def _file(file: InputFile) -> dict[str, str]:
    return {"path": file.path, "mode": file.mode, "sha256": file.sha256}


def _seeds(count: int) -> list[int]:
    """Different seeds, chosen now by the system's generator and by nobody who measures."""
    chosen: dict[int, None] = {}
    while len(chosen) < count:
        chosen[secrets.randbits(63)] = None
    return list(chosen)
