# SPDX-License-Identifier: Apache-2.0
"""Which of the cells that a scope owes are asked for."""

from collections.abc import Iterable
from dataclasses import dataclass

from fasttrack.errors import InputError, Problem
from fasttrack.evidence.plan import unit_of
from fasttrack.evidence.shards import ANYWHERE, hardware_of
from fasttrack.manifest.cells import Cell
from fasttrack.vocabulary import Kind, Tier


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
