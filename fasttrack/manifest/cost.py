# SPDX-License-Identifier: Apache-2.0
"""How many cells a manifest may ask for, found out before any is listed."""

from collections.abc import Mapping

from fasttrack.errors import FasttrackError
from fasttrack.manifest.axes import (
    NARROWABLE,
    Axes,
    axes_of,
    eval_axes,
    has_steps,
    kernel_axes,
    with_one_value,
)
from fasttrack.manifest.model import Manifest, Region, Unit
from fasttrack.manifest.pairwise import size_estimate
from fasttrack.manifest.variants import VariantTable
from fasttrack.vocabulary import Kind

MAX_CELLS = 10_000
"""Cells of one kind that a manifest may need; far above every policy's cap per region."""

Tables = Mapping[str, VariantTable]


class TooManyPoints(FasttrackError):  # noqa: N818  (named as what there is, like FactUnavailable)
    """A manifest asks for more cells than can be listed.

    Attributes:
        estimate: about how many cells of this kind.
        worst_axis: the axis with which most of them would go if it had one value.
    """

    def __init__(self, estimate: int, worst_axis: str) -> None:
        self.estimate = estimate
        self.worst_axis = worst_axis
        super().__init__(f"about {estimate} points, most of them for the axis {worst_axis}")


def check_cost(manifest: Manifest, kind: Kind, tables: Tables) -> None:
    """Estimates the cells of one kind.

    Raises:
        TooManyPoints: there may be more than `MAX_CELLS`.
    """
    estimate = _estimate(manifest, kind, tables)
    if estimate > MAX_CELLS:
        worst = min(
            NARROWABLE, key=lambda axis: _estimate(with_one_value(manifest, axis), kind, tables)
        )
        raise TooManyPoints(estimate, worst)


def _estimate(manifest: Manifest, kind: Kind, tables: Tables) -> int:
    if kind is Kind.PERFORMANCE:
        return len(manifest.claims)
    if kind is Kind.REFUSAL:
        return sum(_bounds(region) for region in manifest.scope)
    if kind is Kind.MODEL_EVAL:
        sizes = ([len(v) for v in eval_axes(region).values()] for region in manifest.scope)
        return sum(map(size_estimate, sizes))
    return sum(
        _per_unit(every, unit, kind, tables)
        for every in map(axes_of, manifest.scope)
        for unit in manifest.units
    )


def _per_unit(every: Axes, unit: Unit, kind: Kind, tables: Tables) -> int:
    table = tables.get(unit.variants) if unit.variants is not None else None
    if kind is Kind.SYNC_AUDIT:
        return len(table.variants) if table is not None else len(unit.archs)
    if kind is Kind.KERNEL_TEST:
        per_gpu = _kernel_tests(every, unit)
    else:
        # A variant is for one architecture, so a GPU meets its share of the table alone.
        share = -(-len(table.variants) // len(table.archs)) if table is not None else 0
        per_gpu = 2 * len(every["tensor_parallel"]) + share
    return len(every["hardware"]) * per_gpu


def _bounds(region: Region) -> int:
    """At most two values beside each one, and both ends of the intervals."""
    return 3 + 2 * sum(len(values) for values in axes_of(region).values())


def _kernel_tests(every: Axes, unit: Unit) -> int:
    """Kernel tests of one unit on one GPU."""
    axes = kernel_axes(every, unit)
    steps = 0
    if has_steps(unit):
        steps = len(every["draft_tokens"]) + 2 * (2 + 2 * len(unit.switch_points))
    crossed = steps * len(axes.get("tensor_parallel", (None,)))
    return crossed + size_estimate([len(values) for values in axes.values()])
