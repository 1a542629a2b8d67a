# SPDX-License-Identifier: Apache-2.0
"""Which evidence a change owes.

A change is held only by cells that it made stale (it touches a byte to which evidence of their unit
binds) or new (its scope admits points, or claims a tier, that the target branch's scope did not).
Narrowing owes nothing. What evidence says of an owed cell is for `fasttrack.evidence.coverage`.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import chain

from fasttrack.case import Case
from fasttrack.change.change import Change
from fasttrack.change.tree import Tree
from fasttrack.config import judged_or_head
from fasttrack.errors import FactUnavailable, InputError
from fasttrack.evidence.graphs import input_graphs
from fasttrack.evidence.status import MISSING, Answer
from fasttrack.evidence.subject import unit_of
from fasttrack.evidence.touched import touched_units
from fasttrack.manifest.model import Manifest, Region
from fasttrack.manifest.points import Cell, TooManyPoints, witness_points
from fasttrack.manifest.region import covered_by
from fasttrack.manifest.variants import VariantTable, load_variant_table
from fasttrack.policy.model import Policy
from fasttrack.vocabulary import Kind, Tier


@dataclass(frozen=True)
class Owed:
    """One cell that needs evidence.

    Attributes:
        manifest: name of the manifest that asks for it.
        cell: kind, region and key.
        reason: why the change owes it.
        answer: what evidence says of it.
    """

    manifest: str
    cell: Cell
    reason: str
    answer: Answer = MISSING


@dataclass(frozen=True)
class Coverage:
    """Owed cells and what evidence says of them.

    Attributes:
        owed: the cells that the change owes, as far as they could be told.
        unknown: why some could not be told, one sentence each; never a pass.
    """

    owed: tuple[Owed, ...]
    unknown: tuple[str, ...] = ()

    @cached_property
    def missing(self) -> tuple[Owed, ...]:
        """Those without evidence that covers them."""
        return tuple(owed for owed in self.owed if not owed.answer.covers)

    @classmethod
    def nothing(cls) -> "Coverage":
        """The coverage of a change that owes nothing."""
        return cls(())


def judge_coverage(case: Case) -> Coverage:
    """The owed cells of a change with their evidence, by manifest, kind, region and key."""
    unknown: dict[str, None] = {}
    owed = {path: [*_owed(case, path, unknown)] for path in case.head.valid}
    found = [one for mine in owed.values() for one in mine]
    if found and _may_have_evidence(case):
        # What reads and judges statements is slow to import.
        from fasttrack.evidence.answered import answered  # noqa: PLC0415

        found = [*answered(case, owed, unknown)]
    found.sort(key=lambda one: (one.manifest, one.cell))
    return Coverage(tuple(found), tuple(unknown))


def _may_have_evidence(case: Case) -> bool:
    """Whether evidence was handed in, or a file of its class is in the target or the change."""
    if case.evidence is not None:
        return True
    brought = (entry.path for entry in case.change.entries)
    return case.config.holds_evidence(chain(brought, case.change.base))


def kinds_owed(
    policy: Policy, manifest: Manifest, tier: Tier | None = None
) -> Mapping[str, frozenset[Kind]]:
    """Region to the kinds that it owes; what no region has, such as claims, owes them all.

    Args:
        policy: says what a tier owes.
        manifest: whose regions.
        tier: the tier to reach; None for the one that each region claims.
    """
    owing = {r.id: frozenset(policy.tiers.get(tier or r.tier, ())) for r in manifest.scope}
    return {**owing, "": frozenset().union(*owing.values())}


def variant_tables(change: Change, manifest: Manifest, tree: Tree) -> Mapping[str, VariantTable]:
    """Path to table, for the variant tables that are there and parse; FT309 reports others."""
    tables = {}
    for path in {unit.variants for unit in manifest.units if unit.variants is not None}:
        side = tree.get(path)
        if side is None or side.is_gitlink:
            continue
        try:
            tables[path] = load_variant_table(change.blob(side), path)
        except (InputError, FactUnavailable):
            continue
    return tables


def _owed(case: Case, path: str, unknown: dict[str, None]) -> Iterator[Owed]:
    manifest, base = case.head.valid[path], case.base.valid.get(path)
    if not any(case.policy.tiers.get(region.tier) for region in manifest.scope):
        return  # without looking at what depends on what
    units = touched_units(case, manifest, base, case.once(input_graphs)[path].paths)
    fresh = {r.id for r in manifest.scope if _is_wider(r, base)}
    if not units and manifest == base:
        return
    # Cells of the target branch that can not be listed excuse none of the change's.
    known = _cells(case, base, case.change.base, {}) if base else ()
    before = {cell.id for cell in known}
    missed: dict[str, None] = {}
    for cell in _cells(case, manifest, judged_or_head(case.change), missed):
        if (unit := unit_of(cell)) in units:
            yield Owed(manifest.name, cell, units[unit])
        # Cells of no region, such as a claim's, belong to whatever the manifest now asks for.
        elif cell.region in {*fresh, ""} and cell.id not in before:
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
    owing = kinds_owed(case.policy, manifest)
    tables = variant_tables(case.change, manifest, tree)
    for kind in Kind:
        if kind not in owing[""]:
            continue
        try:
            cells = witness_points(manifest, kind, case.policy.hardware, tables)
        except (TooManyPoints, FactUnavailable) as reason:
            missed[f"{kind.value}: {reason}"] = None
            continue
        yield from (c for c in cells if kind in owing[c.region])
