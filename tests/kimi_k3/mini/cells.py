# SPDX-License-Identifier: Apache-2.0
"""The cells of the manifest, and those that an ordinary run tries."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from fasttrack.manifest.cells import Cell
from fasttrack.manifest.points import witness_points
from fasttrack.vocabulary import Kind
from fasttrack.workspace import open_workspace

ROOT = Path(__file__).resolve().parents[3]
REGION = "cpu"
"""The region that has evidence."""
TRIED = 5
"""Cells of a unit that an ordinary run tries at least; the collector runs each one."""
WORKSPACE = open_workspace(ROOT)
MANIFEST = WORKSPACE.manifest("kimi-k3-mini")


def owed(kind: Kind) -> list[Cell]:
    """All cells of one kind that the region owes."""
    hardware = WORKSPACE.config.policy.hardware
    return [cell for cell in witness_points(MANIFEST, kind, hardware, {}) if cell.region == REGION]


def of_unit(unit: str) -> list[Mapping[str, Any]]:
    """The kernel-test cells of one unit."""
    return [cell.values for cell in owed(Kind.KERNEL_TEST) if cell.values["unit"] == unit]


def tried(unit: str, least: int = TRIED) -> pytest.MarkDecorator:
    """Marks a test that measures a unit: some cells, the ones with the most rows among them."""
    cells = of_unit(unit)
    some = cells[:: max(1, len(cells) // least)]
    largest = max(cells, key=lambda values: values.get("rows", 0))
    chosen = some if largest in some else [*some, largest]
    return pytest.mark.fasttrack_cells(*chosen, ids=cell_name)


def cell_name(values: Mapping[str, Any]) -> str:
    """`8x1-tp4`: requests x rows of each, and what else the unit's cells differ in."""
    words = []
    if "requests" in values:
        words.append(f"{values['requests']}x{1 + int(values['draft_tokens'])}")
    if "tensor_parallel" in values:
        words.append(f"tp{values['tensor_parallel']}")
    if "kv_cache" in values:
        words.append(str(values["kv_cache"]))
    return "-".join(words)
