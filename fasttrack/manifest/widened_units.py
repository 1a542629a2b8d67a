# SPDX-License-Identifier: Apache-2.0
"""Widenings of units: less that goes into digests, or less that evidence has to visit."""

from collections.abc import Iterator, Sequence

from fasttrack.manifest.axes import has_steps
from fasttrack.manifest.model import Unit
from fasttrack.manifest.widened import Widening, WideningKind
from fasttrack.manifest.words import UnitAxis


def unit_widenings(base: Sequence[Unit], head: Sequence[Unit]) -> Iterator[Widening]:
    """Units that are gone, and what is gone from those that stay."""
    now = {unit.id: unit for unit in head}
    for old in base:
        if old.id not in now:
            yield Widening(WideningKind.UNIT, f"no unit '{old.id}'", "all old units")
        else:
            yield from _inputs(old, now[old.id])
            yield from _visits(old, now[old.id])


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
        if axis not in _effective_axes(new):
            saw = f"unit '{old.id}' without the axis '{axis}'"
            yield Widening(WideningKind.UNIT_AXIS, saw, "the axis")
    for arch in old.archs:
        if arch not in new.archs:
            saw = f"unit '{old.id}' without the architecture '{arch}'"
            yield Widening(WideningKind.ARCH, saw, "the architecture")
    if old.variants is not None and new.variants is None:
        saw = f"unit '{old.id}' without its variant table"
        yield Widening(WideningKind.UNIT_INPUTS, saw, f"'{old.variants}'")
    if new.variants is None:  # with a table, a rule compares the two
        for rows in old.switch_points:
            if rows not in new.switch_points:
                saw = f"unit '{old.id}' without the switch point {rows}"
                yield Widening(WideningKind.SWITCH_POINT, saw, "the switch point")


def _effective_axes(unit: Unit) -> frozenset[UnitAxis]:
    """The axes of a unit with those that `rows` (or `requests`) stands for."""
    steps = {UnitAxis.ROWS, UnitAxis.REQUESTS, UnitAxis.DRAFT_TOKENS} if has_steps(unit) else set()
    return frozenset({*unit.axes, *steps})


def _holds_pattern(kept: str, pattern: str) -> bool:
    """Whether everything that `pattern` matches, `kept` matches too; False when not sure."""
    if kept == pattern:
        return True
    folder = kept.removesuffix("**")
    below = folder.endswith("/") and not any(c in folder for c in "*?")
    return below and pattern.startswith(folder) and pattern != folder
