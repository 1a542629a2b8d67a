# SPDX-License-Identifier: Apache-2.0
"""What a cell's evidence is about: whose files, and which machine. Known without any statement."""

from fasttrack.globs import matches
from fasttrack.manifest.cells import Cell
from fasttrack.manifest.model import GATE_UNIT, PATH_UNIT, Manifest, Unit
from fasttrack.vocabulary import Kind

ANYWHERE = ""
"""Stands for the hardware of cells that any machine can show."""


def unit_of(cell: Cell) -> str:
    """The unit whose files a cell's evidence speaks about."""
    return GATE_UNIT if cell.kind is Kind.REFUSAL else str(cell.values.get("unit", PATH_UNIT))


def tested_with(manifest: Manifest, unit: str) -> tuple[Unit, ...]:
    """The units whose tests judge a unit: of the gate those that have one of its files."""
    if unit == PATH_UNIT:
        return manifest.units
    if unit == GATE_UNIT:
        gate = manifest.code.gate
        return tuple(
            u for u in manifest.units if any(matches(p, path) for p in u.files for path in gate)
        )
    return tuple(u for u in manifest.units if u.id == unit)


def hardware_of(cell: Cell) -> str:
    """The hardware that a cell is measured on; `ANYWHERE` when any machine can show it.

    Machine code is audited, and the gate is asked, where there is no GPU.
    """
    if cell.kind in {Kind.SYNC_AUDIT, Kind.REFUSAL}:
        return ANYWHERE
    name = "ours.hardware" if cell.kind is Kind.PERFORMANCE else "hardware"
    return str(cell.values.get(name, ANYWHERE))
