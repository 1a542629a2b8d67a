# SPDX-License-Identifier: Apache-2.0
"""Which evidence a change owes.

A change is held only by cells that it made stale (it touches a byte that their unit depends on)
or new (its scope admits points, or claims a tier, that the target branch's scope did not).
Narrowing owes nothing.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from fasttrack.case import Case
from fasttrack.change.tree import Tree
from fasttrack.config import judged_or_head
from fasttrack.errors import FactUnavailable, InputError
from fasttrack.evidence.touched import touched_units
from fasttrack.manifest.model import GATE_UNIT, PATH_UNIT, Manifest, Region
from fasttrack.manifest.points import Cell, TooManyPoints, witness_points
from fasttrack.manifest.region import covered_by
from fasttrack.manifest.variants import VariantTable, load_variant_table
from fasttrack.vocabulary import Kind, Tier


@dataclass(frozen=True)
class Owed:
    """One cell that needs evidence.

    Attributes:
        manifest: name of the manifest that asks for it.
        cell: kind, region and key.
        reason: why the change owes it.
    """

    manifest: str
    cell: Cell
    reason: str


@dataclass(frozen=True)
class Coverage:
    """Owed cells, and those among them without evidence.

    Attributes:
        owed: the cells that the change owes, as far as they could be told.
        missing: those without evidence.
        unknown: why some could not be told, one sentence each; never a pass.
    """

    owed: tuple[Owed, ...]
    missing: tuple[Owed, ...]
    unknown: tuple[str, ...] = ()

    @classmethod
    def nothing(cls) -> "Coverage":
        """The coverage of a change that owes nothing."""
        return cls((), ())


def judge_coverage(case: Case) -> Coverage:
    """Owed and missing cells of a change, sorted by manifest, kind, region and key.

    No evidence is read yet, so every owed cell is missing.
    """
    owed: list[Owed] = []
    unknown: dict[str, None] = {}
    for path, manifest in case.head.valid.items():
        owed += _owed(case, path, manifest, unknown)
    owed.sort(key=lambda o: (o.manifest, o.cell))
    return Coverage(tuple(owed), tuple(owed), tuple(unknown))


def variant_tables(case: Case, manifest: Manifest, tree: Tree) -> Mapping[str, VariantTable]:
    """Path to table, for the variant tables that are there and parse; FT309 reports others."""
    tables = {}
    for path in {unit.variants for unit in manifest.units if unit.variants is not None}:
        side = tree.get(path)
        if side is None or side.is_gitlink:
            continue
        try:
            tables[path] = load_variant_table(case.change.blob(side), path)
        except (InputError, FactUnavailable):
            continue
    return tables


def _owed(case: Case, path: str, manifest: Manifest, unknown: dict[str, None]) -> Iterator[Owed]:
    if not any(case.policy.tiers.get(region.tier) for region in manifest.scope):
        return  # without looking at what depends on what
    base = case.base.valid.get(path)
    try:
        units = touched_units(case, manifest)
    except FactUnavailable as reason:
        unknown[f"{path}: {reason}"] = None
        return
    fresh = {r.id for r in manifest.scope if _is_wider(r, base)}
    if not units and manifest == base:
        return
    # Cells of the target branch that can not be listed excuse none of the change's.
    known = _cells(case, base, case.change.base, {}) if base else ()
    before = {(c.kind, c.key) for c in known}
    missed: dict[str, None] = {}
    for cell in _cells(case, manifest, judged_or_head(case.change), missed):
        unit = GATE_UNIT if cell.kind is Kind.REFUSAL else str(cell.values.get("unit", PATH_UNIT))
        if unit in units:
            yield Owed(manifest.name, cell, units[unit])
        # Cells of no region, such as a claim's, belong to whatever the manifest now asks for.
        elif cell.region in {*fresh, ""} and (cell.kind, cell.key) not in before:
            yield Owed(manifest.name, cell, f"{path} widens the scope")
    unknown |= {f"{path}: {reason}": None for reason in missed}


def _is_wider(region: Region, base: Manifest | None) -> bool:
    """Whether the region admits a point, or claims a tier, that the target's scope does not."""
    if region.tier is Tier.DECLARED:
        return False
    known = [r for r in base.scope if r.tier.rank >= region.tier.rank] if base else []
    try:
        return covered_by(region, known) is not None
    except FactUnavailable:
        return True


def _cells(case: Case, manifest: Manifest, tree: Tree, missed: dict[str, None]) -> Iterator[Cell]:
    """Witness cells of the kinds that each region's tier owes; `missed` gets what hides others."""
    owing = {r.id: set(case.policy.tiers.get(r.tier, ())) for r in manifest.scope}
    owing[""] = set().union(*owing.values())
    tables = variant_tables(case, manifest, tree)
    for kind in Kind:
        if kind not in owing[""]:
            continue
        try:
            cells = witness_points(manifest, kind, case.policy.hardware, tables)
        except (TooManyPoints, FactUnavailable) as reason:
            missed[f"{kind.value}: {reason}"] = None
            continue
        yield from (c for c in cells if kind in owing[c.region])
