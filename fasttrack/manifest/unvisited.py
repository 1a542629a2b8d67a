# SPDX-License-Identifier: Apache-2.0
"""New values of a scope on axes that no unit has: no kernel test would visit them.

The axes of a unit are a claim that all others do not matter to it. People accepted that claim for
the values that there were; a value on an axis that nobody tests makes it a new claim.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence

from fasttrack.manifest.axes import axes_of, effective_axes
from fasttrack.manifest.cells import Value
from fasttrack.manifest.model import Region, Unit
from fasttrack.manifest.words import UnitAxis

_ENDS: Mapping[UnitAxis, Callable[[Region], int]] = {
    UnitAxis.CONTEXT: lambda region: region.context_max,
    UnitAxis.REQUESTS: lambda region: region.requests.max,
    UnitAxis.ROWS: lambda region: region.rows_max,
}
"""Axes whose values are an interval, and its end; only a larger end is new."""


def unvisited_values(
    base: Sequence[Region], head: Sequence[Region], units: Sequence[Unit]
) -> Iterator[tuple[UnitAxis, tuple[Value, ...]]]:
    """Axis and new values, for axes that no unit has, in the order of the axes.

    Args:
        base: the regions of the target branch that owe kernel tests; none have no values yet.
        head: those of the change.
        units: the units of the change.
    """
    if not base:
        return
    named = {axis for unit in units for axis in effective_axes(unit)}
    for axis in UnitAxis:
        if axis not in named and (added := _added(axis, base, head)):
            yield axis, tuple(added)


def _added(axis: UnitAxis, base: Sequence[Region], head: Sequence[Region]) -> Sequence[Value]:
    if axis in _ENDS:
        end = _ENDS[axis]
        last = max(map(end, base))
        return sorted({end(region) for region in head if end(region) > last})
    old, new = ({v for r in regions for v in axes_of(r)[axis.value]} for regions in (base, head))
    return sorted(new - old)
