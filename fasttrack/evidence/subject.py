# SPDX-License-Identifier: Apache-2.0
"""What a cell's evidence is about: whose files, and which machine. Known without any statement."""

from fasttrack.manifest.cells import Cell
from fasttrack.manifest.model import GATE_UNIT, PATH_UNIT
from fasttrack.vocabulary import Kind

ANYWHERE = ""
"""Stands for the hardware of cells that any machine can show."""


def unit_of(cell: Cell) -> str:
    """The unit whose files a cell's evidence speaks about."""
    return GATE_UNIT if cell.kind is Kind.REFUSAL else str(cell.values.get("unit", PATH_UNIT))


def hardware_of(cell: Cell) -> str:
    """The hardware that a cell is measured on; `ANYWHERE` when any machine can show it.

    Machine code is audited, and the gate is asked, where there is no GPU.
    """
    if cell.kind in {Kind.SYNC_AUDIT, Kind.REFUSAL}:
        return ANYWHERE
    name = "ours.hardware" if cell.kind is Kind.PERFORMANCE else "hardware"
    return str(cell.values.get(name, ANYWHERE))
