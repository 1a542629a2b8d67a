# SPDX-License-Identifier: Apache-2.0
"""Witness points for people and programs."""

import json
from collections.abc import Iterator, Mapping, Sequence

from fasttrack.manifest.model import Manifest
from fasttrack.manifest.points import counts_by_region, witness_points
from fasttrack.manifest.variants import VariantTable
from fasttrack.policy.model import Policy
from fasttrack.vocabulary import Kind

Tables = Mapping[str, VariantTable]


def points_text(manifest: Manifest, kinds: Sequence[Kind], policy: Policy, tables: Tables) -> str:
    """One line per cell: kind, region, and its axes."""
    lines = [
        f"{kind.value}  {cell.region or '-'}  "
        + " ".join(f"{axis}={value}" for axis, value in cell.values.items())
        for kind in kinds
        for cell in witness_points(manifest, kind, policy.hardware, tables)
    ]
    return "\n".join(lines) + "\n" if lines else "no points\n"


def points_json(manifest: Manifest, kinds: Sequence[Kind], policy: Policy, tables: Tables) -> str:
    """The cells as a JSON list."""
    cells = [
        {"kind": kind.value, "region": cell.region, "key": json.loads(cell.key)}
        for kind in kinds
        for cell in witness_points(manifest, kind, policy.hardware, tables)
    ]
    return json.dumps(cells, indent=2, sort_keys=True) + "\n"


def count_table(manifest: Manifest, kinds: Sequence[Kind], policy: Policy, tables: Tables) -> str:
    """Cells per kind and region, and which of them the region's tier owes."""
    counts = {
        kind: counts_by_region(witness_points(manifest, kind, policy.hardware, tables))
        for kind in kinds
    }
    return "\n".join(_rows(manifest, counts, policy)) + "\n"


def _rows(
    manifest: Manifest, counts: Mapping[Kind, Mapping[str, int]], policy: Policy
) -> Iterator[str]:
    regions = [r.id for r in manifest.scope]
    if any("" in count for count in counts.values()):
        regions.append("")
    width = max(len(name) for name in (*regions, "region", "whole path"))
    yield f"{'region':<{width}}  " + "  ".join(kind.value for kind in counts)
    for region in regions:
        numbers = [f"{count.get(region, 0):>{len(kind.value)}}" for kind, count in counts.items()]
        yield f"{region or 'whole path':<{width}}  " + "  ".join(numbers)
    yield ""
    for found in manifest.scope:
        kinds = policy.tiers.get(found.tier, ())
        owed = sum(counts[kind].get(found.id, 0) for kind in kinds if kind in counts)
        yield f"{found.id} claims {found.tier.value} and owes {owed} of these"
    yield f"limit per region: {policy.budgets.points_per_region}"
