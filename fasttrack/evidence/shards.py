# SPDX-License-Identifier: Apache-2.0
"""Divides the cells of a plan among machines, the same way everywhere.

A shard holds cells of one kind of machine, as long as there are at least as many shards as kinds.
What any machine can show goes to one without a GPU, so that no GPU waits for it: with the cells of
such a machine, if the plan has some. Shards of one kind of machine have about as many cells of each
unit and kind of evidence, because what a cell costs depends on these most.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from fasttrack.errors import InputError
from fasttrack.evidence.machine import GPU_ARCH
from fasttrack.evidence.plan import Plan, PlannedCell
from fasttrack.evidence.subject import ANYWHERE, hardware_of

MAX_SHARDS = 1024
_SHARD = re.compile(r"([0-9]{1,4})/([0-9]{1,4})", re.ASCII)


@dataclass(frozen=True)
class Shard:
    """One share of several.

    Attributes:
        number: which one, from 1.
        count: how many there are.
    """

    number: int
    count: int

    @classmethod
    def parse(cls, text: str) -> "Shard":
        """The shard that `i/n` names.

        Raises:
            InputError: not of this form, or not 1 <= i <= n <= `MAX_SHARDS`.
        """
        match = _SHARD.fullmatch(text)
        if match is not None:
            shard = cls(int(match[1]), int(match[2]))
            if 1 <= shard.number <= shard.count <= MAX_SHARDS:
                return shard
        want = f"i/n such as 1/4, where i is at most n and n at most {MAX_SHARDS}"
        raise InputError.one("--shard", repr(text), want)

    def __str__(self) -> str:
        return f"{self.number}/{self.count}"

    def of(self, plan: Plan) -> tuple[PlannedCell, ...]:
        """Its cells, in the order in which they should run."""
        return divided(plan.cells, plan.archs, self.count)[self.number - 1]


def by_machine(
    cells: Sequence[PlannedCell], archs: Mapping[str, str]
) -> Mapping[str, list[PlannedCell]]:
    """Hardware to the cells that are measured on it, sorted by its id.

    What any machine can show is with a machine without a GPU, or under `ANYWHERE` if there is none.

    Args:
        cells: in the order of the plan.
        archs: hardware to its architecture, the plan's.
    """
    anywhere = without_gpu(_named(cells), archs) or ANYWHERE
    found: dict[str, list[PlannedCell]] = defaultdict(list)
    for cell in cells:
        found[hardware_of(cell.cell()) or anywhere].append(cell)
    return {name: found[name] for name in sorted(found)}


def machine_of(
    shard: Sequence[PlannedCell], cells: Sequence[PlannedCell], archs: Mapping[str, str]
) -> str:
    """The hardware that measures a shard of one kind of machine.

    What any machine can show goes to one of the plan, and only where that needs none goes to
    another that the policy has: if possible one without a GPU.

    Args:
        shard: its cells, at least one.
        cells: all cells of the plan.
        archs: as for `by_machine`.
    """
    if named := _named(shard):
        return min(named)
    return without_gpu(_named(cells), archs) or without_gpu(archs, archs) or min(archs)


def without_gpu(hardware: Iterable[str], archs: Mapping[str, str]) -> str | None:
    """The first of some hardware, by its id, that is known to have no GPU."""
    known = sorted(name for name in hardware if name in archs)
    return next((name for name in known if not archs[name].startswith(GPU_ARCH)), None)


def _named(cells: Iterable[PlannedCell]) -> frozenset[str]:
    return frozenset(hardware_of(cell.cell()) for cell in cells) - {ANYWHERE}


def divided(
    cells: Sequence[PlannedCell], archs: Mapping[str, str], count: int
) -> tuple[tuple[PlannedCell, ...], ...]:
    """The cells in `count` shards; each cell is in one of them, and some may be empty.

    Args:
        cells: in the order of the plan.
        archs: as for `by_machine`.
        count: from 1; below the kinds of machine that there are, shards hold several.
    """
    pools = [*by_machine(cells, archs).values()]
    if not 0 < len(pools) <= count:
        pools = [list(cells)]
    dealt: list[tuple[PlannedCell, ...]] = []
    for pool, share in zip(pools, _shares([len(pool) for pool in pools], count), strict=True):
        pool.sort(key=lambda cell: (cell.unit, cell.kind))
        dealt += (tuple(pool[start::share]) for start in range(share))
    return tuple(dealt)


def _shares(sizes: Sequence[int], count: int) -> list[int]:
    """How many shards each pool gets, at least one, so that the largest shard is small."""
    shares = [1] * len(sizes)
    for _ in range(count - len(sizes)):
        fullest = max(range(len(sizes)), key=lambda i: sizes[i] / shares[i])
        shares[fullest] += 1
    return shares
