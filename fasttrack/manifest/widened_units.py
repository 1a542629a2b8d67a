# SPDX-License-Identifier: Apache-2.0
"""Widenings of units: less that goes into digests, or less that evidence has to visit."""

from collections.abc import Iterator, Sequence

from fasttrack.manifest.axes import effective_axes
from fasttrack.manifest.model import Unit
from fasttrack.manifest.widened import Widening, WideningKind


def unit_widenings(
    base: Sequence[Unit], head: Sequence[Unit], *, measured: bool
) -> Iterator[Widening]:
    """Units that are gone or new, and what is gone from those that stay.

    A new unit says which axes and tests do for its files; where the units that were there have
    more axes or architectures, people judge whether the rest does not matter.

    Args:
        base: the units of the target branch.
        head: those of the change.
        measured: some region of the target branch claims more than `declared`; before, a new unit
            takes its cells away from nothing that is admitted.
    """
    now = {unit.id: unit for unit in head}
    for old in base:
        if old.id not in now:
            yield Widening(WideningKind.UNIT, f"no unit '{old.id}'", "all old units")
        else:
            yield from _inputs(old, now[old.id])
            yield from _visits(old, now[old.id])
    for unit in head if measured else ():
        if unit.id not in {old.id for old in base}:
            yield from _asks_less(unit, base)


def _asks_less(new: Unit, base: Sequence[Unit]) -> Iterator[Widening]:
    axes = {axis for old in base for axis in effective_axes(old)} - effective_axes(new)
    archs = {arch for old in base for arch in old.archs} - set(new.archs)
    for kind, what, lost in (
        (WideningKind.UNIT_AXIS, "axes", sorted(axes)),
        (WideningKind.ARCH, "architectures", sorted(archs)),
    ):
        if lost:
            saw = f"the new unit '{new.id}' without the {what} {', '.join(lost)}"
            yield Widening(kind, saw, f"all {what} that other units have")


def _inputs(old: Unit, new: Unit) -> Iterator[Widening]:
    fields = (
        ("files", WideningKind.UNIT_INPUTS),
        ("data", WideningKind.UNIT_INPUTS),
        ("tests", WideningKind.TESTS),
    )
    for field, kind in fields:
        kept = getattr(new, field)
        for pattern in getattr(old, field):
            if not any(_holds_pattern(other, pattern) for other in kept):
                yield Widening(kind, f"unit '{old.id}' without {field} '{pattern}'", "the pattern")


def _visits(old: Unit, new: Unit) -> Iterator[Widening]:
    for axis in old.axes:
        if axis not in effective_axes(new):
            saw = f"unit '{old.id}' without the axis '{axis}'"
            yield Widening(WideningKind.UNIT_AXIS, saw, "the axis")
    for arch in old.archs:
        if arch not in new.archs:
            saw = f"unit '{old.id}' without the architecture '{arch}'"
            yield Widening(WideningKind.ARCH, saw, "the architecture")
    if old.variants not in {None, new.variants}:
        other = f"the variant table '{new.variants}'" if new.variants else "its variant table"
        saw = f"unit '{old.id}' {'with' if new.variants else 'without'} {other}"
        yield Widening(WideningKind.UNIT_INPUTS, saw, f"'{old.variants}'")
    if new.variants is None or new.variants != old.variants:  # else a rule compares with the table
        for rows in old.switch_points:
            if rows not in new.switch_points:
                saw = f"unit '{old.id}' without the switch point {rows}"
                yield Widening(WideningKind.SWITCH_POINT, saw, "the switch point")


def _holds_pattern(kept: str, pattern: str) -> bool:
    """Whether everything that `pattern` matches, `kept` matches too; False when not sure."""
    if kept == pattern:
        return True
    folder = kept.removesuffix("**")
    below = folder.endswith("/") and not any(c in folder for c in "*?")
    return below and pattern.startswith(folder) and pattern != folder
