# SPDX-License-Identifier: Apache-2.0
"""The axes along which the cells of a region differ, with their values in rising order."""

from collections.abc import Sequence

from fasttrack.manifest.cells import Value
from fasttrack.manifest.model import Manifest, Region, RegionDtypes, Requests, Unit
from fasttrack.manifest.region import SET_AXES, box_of
from fasttrack.manifest.steps import outer_drafts
from fasttrack.manifest.words import UnitAxis

Axes = dict[str, Sequence[Value]]

NARROWABLE = (*(axis for axis in SET_AXES if axis != "ranks"), "draft_tokens", "rows", "context")
"""Axes that can have more than one value; `rows` stands for requests and switch points."""

_STEP_AXES = frozenset({UnitAxis.REQUESTS, UnitAxis.ROWS})
_EVAL_AXES = (
    "hardware",
    "tensor_parallel",
    "decode_context_parallel",
    "draft_tokens",
    "kv_cache",
    "activations",
)
_REGION_FIELDS = {
    "hardware": "hardware",
    "tensor_parallel": "tensor_parallel",
    "decode_context_parallel": "decode_context_parallel",
    "draft_tokens": "draft_tokens",
    "graph_mode": "graph_modes",
}


def axes_of(region: Region) -> Axes:
    """Every axis but the steps; of the context both ends."""
    box = box_of(region)
    sets: Axes = dict(zip(SET_AXES, box.choices, strict=True))
    contexts = dict.fromkeys(box.contexts)
    return {**sets, "draft_tokens": tuple(box.drafts_in_use()), "context": tuple(contexts)}


def has_steps(unit: Unit) -> bool:
    """Whether rows change what the unit does."""
    return not _STEP_AXES.isdisjoint(unit.axes)


def effective_axes(unit: Unit) -> frozenset[UnitAxis]:
    """The axes of a unit with those that `rows` (or `requests`) stands for."""
    steps = {UnitAxis.ROWS, UnitAxis.REQUESTS, UnitAxis.DRAFT_TOKENS} if has_steps(unit) else set()
    return frozenset({*unit.axes, *steps})


def kernel_axes(every: Axes, unit: Unit) -> Axes:
    """The axes of a region that a unit pairs: all of its own but those that the steps visit."""
    visited = _STEP_AXES | {UnitAxis.DRAFT_TOKENS} if has_steps(unit) else _STEP_AXES
    return {axis.value: every[axis] for axis in UnitAxis if axis in set(unit.axes) - visited}


def eval_axes(region: Region) -> Axes:
    """The axes that model-level evidence pairs."""
    every: Axes = {**axes_of(region), "draft_tokens": outer_drafts(box_of(region))}
    return {name: every[name] for name in _EVAL_AXES}


def with_one_value(manifest: Manifest, axis: str, region_id: str | None = None) -> Manifest:
    """The manifest with one axis of `NARROWABLE` cut to its smallest value.

    Args:
        manifest: stays as it is.
        axis: the axis; `rows` also takes away the switch points of all units.
        region_id: the region that is cut; all of them when None.
    """
    scope = tuple(
        _narrowed(region, axis) if region_id in {None, region.id} else region
        for region in manifest.scope
    )
    units = manifest.units
    if axis == "rows":
        units = tuple(unit.model_copy(update={"switch_points": ()}) for unit in units)
    return manifest.model_copy(update={"scope": scope, "units": units})


def _narrowed(region: Region, axis: str) -> Region:
    if axis == "rows":
        least = region.requests.min
        return region.model_copy(update={"requests": Requests(min=least, max=least)})
    if axis == "context":
        return region.model_copy(update={"context_max": 1})
    if axis in RegionDtypes.model_fields:
        first = min(getattr(region.dtypes, axis))
        return region.model_copy(
            update={"dtypes": region.dtypes.model_copy(update={axis: (first,)})}
        )
    field = _REGION_FIELDS[axis]
    return region.model_copy(update={field: (min(getattr(region, field)),)})
