# SPDX-License-Identifier: Apache-2.0
"""Witness points: the cells that evidence owes, per kind, chosen the same way on every machine.

    sync-audit    every variant of every unit, on the regions whose hardware has its arch
    kernel-test   per unit, hardware and (if it is an axis of the unit) tensor parallelism: the
                  steps of `steps.kernel_steps`; all pairs of the unit's other axes
    stress        per unit, hardware and tensor parallelism: a step of every variant, and the
                  steps with the fewest and the most rows
    refusal       the next point past each bound (`past_bounds`)
    model-eval    all pairs of hardware, parallelism, outer drafts, cache and activations
    performance   one per claim that is a controlled comparison

Hardware and tensor parallelism are crossed with the steps and not only paired: variant tables
choose by architecture, tensor parallelism and rows, so a switch point is a place per both.
Counts are estimated before anything is enumerated.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Protocol

from fasttrack.errors import FactUnavailable
from fasttrack.manifest.axes import (
    NARROWABLE,
    axes_of,
    eval_axes,
    has_steps,
    kernel_axes,
    with_one_value,
)
from fasttrack.manifest.cells import Cell, Value, cell
from fasttrack.manifest.cost import Tables, TooManyPoints, check_cost
from fasttrack.manifest.model import Manifest, Region, Unit
from fasttrack.manifest.pairwise import covering
from fasttrack.manifest.past_bounds import points_past_bounds
from fasttrack.manifest.region import Budget, box_of
from fasttrack.manifest.steps import Step, first_in, kernel_steps, largest, smallest
from fasttrack.manifest.variants import WHOLE_UNIT, VariantTable
from fasttrack.vocabulary import Kind

__all__ = ["Cell", "TooManyPoints", "cost_by_axis", "counts_by_region", "witness_points"]


class Hardware(Protocol):
    """What a record of the policy's hardware vocabulary must know."""

    @property
    def arch(self) -> str:
        """GPU architecture, such as `sm_90a`."""


Vocabulary = Mapping[str, Hardware]


def witness_points(
    manifest: Manifest, kind: Kind, vocabulary: Vocabulary, variant_tables: Tables
) -> tuple[Cell, ...]:
    """The cells of one kind, for all regions whatever their tier, each once, in a fixed order.

    Args:
        manifest: a loaded manifest.
        kind: the kind of evidence.
        vocabulary: the policy's hardware by id.
        variant_tables: the units' variant tables by path; for sync-audit and stress.

    Raises:
        TooManyPoints: more than `MAX_CELLS` could be needed; found out without listing them.
        FactUnavailable: a hardware id or variant table is not given.
    """
    check_cost(manifest, kind, variant_tables)
    cells = _GENERATORS[kind](manifest, vocabulary, variant_tables)
    return tuple(dict.fromkeys(cells))


def counts_by_region(cells: Sequence[Cell]) -> Mapping[str, int]:
    """Region id (empty for the manifest) to its number of cells."""
    return Counter(c.region for c in cells)


def cost_by_axis(
    manifest: Manifest, region_id: str, kind: Kind, vocabulary: Vocabulary, variant_tables: Tables
) -> Mapping[str, int]:
    """Per axis of a region, how many cells would go if it kept one value; the largest first.

    Axes that cost nothing are left out. `rows` stands for requests and switch points.

    Raises:
        TooManyPoints, FactUnavailable: as `witness_points`.
    """

    def count(narrowed: Manifest) -> int:
        cells = witness_points(narrowed, kind, vocabulary, variant_tables)
        return counts_by_region(cells)[region_id]

    now = count(manifest)
    saved = {axis: now - count(with_one_value(manifest, axis, region_id)) for axis in NARROWABLE}
    costly = [(axis, saving) for axis, saving in saved.items() if saving > 0]
    return dict(sorted(costly, key=lambda item: (-item[1], item[0])))


def _sync_audit(manifest: Manifest, vocabulary: Vocabulary, tables: Tables) -> Iterator[Cell]:
    regions = [(r.id, {_arch(h, vocabulary) for h in r.hardware}) for r in manifest.scope]
    for unit in manifest.units:
        table = _table(unit, tables)
        variants = (
            [(v.arch, v.id) for v in table.variants]
            if table is not None
            else [(arch, WHOLE_UNIT) for arch in unit.archs]
        )
        for arch, variant in variants:
            # What is built but in no region is shipped all the same: the manifest owes it.
            owners = [region for region, archs in regions if arch in archs] or [""]
            for owner in owners:
                values = {"unit": unit.id, "arch": arch, "variant": variant}
                yield cell(Kind.SYNC_AUDIT, owner, values)


def _kernel_test(manifest: Manifest, _: Vocabulary, __: Tables) -> Iterator[Cell]:
    for region in manifest.scope:
        for unit in manifest.units:
            for hardware in sorted(region.hardware):
                yield from _kernel_cells(region, unit, hardware)


def _kernel_cells(region: Region, unit: Unit, hardware: str) -> Iterator[Cell]:
    axes = kernel_axes(axes_of(region), unit)
    steps = kernel_steps(box_of(region), unit.switch_points) if has_steps(unit) else ()
    crossed: Sequence[dict[str, Value]] = [
        {"tensor_parallel": tp} for tp in axes.get("tensor_parallel", ())
    ] or [{}]
    visits = [(tp, step) for tp in crossed for step in steps]
    for i, chosen in enumerate(covering(axes, [tp for tp, _ in visits])):
        values = {"unit": unit.id, "hardware": hardware} | chosen
        if steps:
            # Combinations beyond the visits only complete pairs: any step will do.
            values |= (visits[i][1] if i < len(visits) else steps[0]).values()
        yield cell(Kind.KERNEL_TEST, region.id, values)


def _stress(manifest: Manifest, vocabulary: Vocabulary, tables: Tables) -> Iterator[Cell]:
    for region in manifest.scope:
        for unit in manifest.units:
            table = _table(unit, tables)
            for hardware in sorted(region.hardware):
                arch = _arch(hardware, vocabulary)
                for tp in sorted(region.tensor_parallel):
                    for variant, step in _stress_visits(region, table, arch, tp):
                        values: dict[str, Value] = {
                            "unit": unit.id,
                            "hardware": hardware,
                            "ranks": region.ranks,
                            "tensor_parallel": tp,
                            "variant": variant,
                        }
                        yield cell(Kind.STRESS, region.id, values | step.values())


def _stress_visits(
    region: Region, table: VariantTable | None, arch: str, tp: int
) -> Iterator[tuple[str, Step]]:
    box = box_of(region)
    yield WHOLE_UNIT, smallest(box)
    yield WHOLE_UNIT, largest(box)
    for variant in table.variants if table is not None else ():
        if (variant.arch, variant.tp) == (arch, tp):
            step = first_in(box, *variant.rows)
            if step is not None:
                yield variant.id, step


def _refusal(manifest: Manifest, vocabulary: Vocabulary, _: Tables) -> Iterator[Cell]:
    budget = Budget()
    for region in manifest.scope:
        for bound, point in points_past_bounds(manifest, region, tuple(vocabulary), budget):
            values = {"region": region.id, "bound": bound} | point.values()
            yield cell(Kind.REFUSAL, region.id, values)


def _model_eval(manifest: Manifest, _: Vocabulary, __: Tables) -> Iterator[Cell]:
    for region in manifest.scope:
        for chosen in covering(eval_axes(region), ()):
            yield cell(Kind.MODEL_EVAL, region.id, {"ranks": region.ranks} | chosen)


def _performance(manifest: Manifest, _: Vocabulary, __: Tables) -> Iterator[Cell]:
    for claim in manifest.claims:
        if claim.uncontrolled:
            # Not a comparison: no measurement could confirm it.
            continue
        values: dict[str, Value] = {"metric": claim.metric}
        if claim.of is not None:
            values["unit" if claim.of in {u.id for u in manifest.units} else "layer"] = claim.of
        values |= claim.workload.conditions()
        for name, side in (("ours", claim.ours), ("baseline", claim.baseline)):
            values |= {f"{name}.{k}": v for k, v in side.model_dump().items()}
        yield cell(Kind.PERFORMANCE, "", values)


_GENERATORS: Mapping[Kind, Callable[[Manifest, Vocabulary, Tables], Iterator[Cell]]] = {
    Kind.SYNC_AUDIT: _sync_audit,
    Kind.KERNEL_TEST: _kernel_test,
    Kind.STRESS: _stress,
    Kind.REFUSAL: _refusal,
    Kind.MODEL_EVAL: _model_eval,
    Kind.PERFORMANCE: _performance,
}


def _arch(hardware: str, vocabulary: Vocabulary) -> str:
    record = vocabulary.get(hardware)
    if record is None:
        raise FactUnavailable(f"the policy's vocabulary has no hardware '{hardware}'")
    return record.arch


def _table(unit: Unit, tables: Tables) -> VariantTable | None:
    if unit.variants is None:
        return None
    if unit.variants not in tables:
        raise FactUnavailable(f"no variant table '{unit.variants}' of the unit '{unit.id}'")
    return tables[unit.variants]
