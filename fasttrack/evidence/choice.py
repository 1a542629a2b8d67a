# SPDX-License-Identifier: Apache-2.0
"""Which of the cells that a scope owes are asked for."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from fasttrack.errors import InputError, Problem
from fasttrack.evidence.subject import ANYWHERE, hardware_of, unit_of
from fasttrack.manifest.cells import Cell
from fasttrack.manifest.model import GATE_UNIT, PATH_UNIT, Manifest
from fasttrack.vocabulary import Kind, Tier

N = TypeVar("N", bound=str)
_ALL: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Choice:
    """A choice of cells; an empty set stands for all.

    Attributes:
        tier: what this tier owes, whatever the regions claim.
        units: only cells that speak of these units.
        kinds: only these kinds.
        regions: only cells that these regions owe.
        hardware: none that is measured on other hardware.
    """

    tier: Tier | None = None
    units: frozenset[str] = frozenset()
    kinds: frozenset[Kind] = frozenset()
    regions: frozenset[str] = frozenset()
    hardware: frozenset[str] = frozenset()

    @classmethod
    def narrowest(cls, cells: Sequence[Cell], manifest: Manifest) -> "Choice":
        """The choice that asks for these cells, and for as few others as its options can say.

        A set that would name everything that there is stays empty, which says the same.
        """
        units, kinds = {unit_of(c) for c in cells}, {c.kind for c in cells}
        regions, hardware = {c.region for c in cells}, {hardware_of(c) for c in cells}
        # Cells of no region, and such as any machine shows, are what a set can not name.
        return cls(
            units=_part(units, {*(u.id for u in manifest.units), PATH_UNIT, GATE_UNIT}),
            kinds=_part(kinds, set(Kind)),
            regions=_part(regions, {r.id for r in manifest.scope}) if "" not in regions else _ALL,
            hardware=_part(hardware - {ANYWHERE}, {h for r in manifest.scope for h in r.hardware}),
        )

    def options(self) -> tuple[str, ...]:
        """The options of `fasttrack evidence plan` that make this choice."""
        named = (
            ("--unit", self.units),
            ("--kind", self.kinds),
            ("--region", self.regions),
            ("--hardware", self.hardware),
        )
        tier = (f"--tier {self.tier}",) if self.tier else ()
        return (*tier, *(f"{option} {name}" for option, names in named for name in sorted(names)))

    def admits(self, cell: Cell) -> bool:
        """Whether a cell is asked for."""
        return (
            (not self.units or unit_of(cell) in self.units)
            and (not self.kinds or cell.kind in self.kinds)
            and (not self.regions or cell.region in self.regions)
            and (not self.hardware or hardware_of(cell) in {*self.hardware, ANYWHERE})
        )

    def require_known(
        self, units: Iterable[str], regions: Iterable[str], hardware: Iterable[str]
    ) -> None:
        """Raises InputError, with every name that is none of those that there are."""
        known = (
            ("--unit", self.units, units),
            ("--region", self.regions, regions),
            ("--hardware", self.hardware, hardware),
        )
        problems = [
            Problem(option, repr(name), f"one of {', '.join(names)}")
            for option, chosen, names in ((o, c, tuple(n)) for o, c, n in known)
            for name in sorted(chosen.difference(names))
        ]
        if problems:
            raise InputError(problems)


def _part(chosen: set[N], everything: set[N]) -> frozenset[N]:
    """What is chosen; empty when that is all that there is."""
    return frozenset(chosen) if everything - chosen else frozenset()
