# SPDX-License-Identifier: Apache-2.0
"""Tile sizes of the routed experts' kernels: data, chosen by measurement.

Per range of rows the candidates of each kernel, the one in use first;
`tests/bench/stock_experts.py` times them all. What limits the choice: 16 rows at least belong to
one warp; up to 8 tokens take the narrowest MMA, more tokens with four warps and 64 rows the
warp-group MMA; about 32 KB of weights per multiprocessor must be in flight to fill HBM, in shared
memory (`rows` x `columns` / 2 bytes per stage of a program) or, without it, in registers.
"""

from dataclasses import dataclass

LEAST_COLUMNS = 128
"""32 of each of the 4 nibble positions, per slice. A lane's share of an operand is 8 consecutive
columns of 32; given 16, Triton 3.6 repeats them and adds each product of the narrow MMA twice: seen
on an H200, and `tests/gpu` would show it again. The last 64 columns of a direct product take two
nibble positions at a time for it."""


@dataclass(frozen=True)
class Tile:
    """Sizes of one program.

    Attributes:
        rows: weight rows; for `gate_up` half of them are gate rows. A power of two, at least 16,
            and if there are slices, at least 16 for each group.
        columns: columns of one iteration, of all slices, a power of two, at least `LEAST_COLUMNS`
            for each slice.
        warps: warps of a program.
        stages: iterations in flight, at least 2. If there are slices, a product of no more
            iterations has no loop, and one of more has at most 3 in flight.
        slices: how many warps share a row's columns, each loading its own weights straight into
            registers; divides `warps`. 0 stages weights through shared memory for all warps.
        registers: most registers of a thread, None for as many as the compiler likes.
        copied_registers: most registers of a thread where `gate_up` by pair copies its operands
            into shared memory, a group of copies for each iteration, as `expert_copies` can and
            may; None never copies.
    """

    rows: int
    columns: int
    warps: int
    stages: int
    slices: int = 0
    registers: int | None = None
    copied_registers: int | None = None

    @property
    def groups(self) -> int:
        """Warps that differ in rows, 1 where weights are staged."""
        return self.warps // self.slices if self.slices else 1

    def columns_for(self, depth: int) -> int:
        """Columns of one iteration over `depth`: `columns`, or less where that computes less.

        One slice of 128 columns ends with 64 where that is what is left.
        """
        sizes = [self.columns >> halvings for halvings in range(self.columns.bit_length())]
        usable = [size for size in sizes if size >= LEAST_COLUMNS * max(self.slices, 1)]

        def computed(size: int) -> int:
            left = depth % size
            halved = self.slices == 1 and size == LEAST_COLUMNS and left == LEAST_COLUMNS // 2
            return depth if halved else -(-depth // size) * size

        return min(usable, key=lambda size: (computed(size), -size))


@dataclass(frozen=True)
class Tiles:
    """Candidates for steps of at most `most_rows` rows, those in use first.

    Attributes:
        most_rows: the range's upper end.
        tokens: pairs of a block; both kernels and the plan share it.
        gate_up: tiles of `experts.gate_up`.
        down: tiles of `experts.down`, or, by pair, of `expert_sum.down_sum`.
        most_columns: columns of an expert up to which they are meant; None for any number.
        by_pair: whether every pair is a block of its own, `ExpertPlan.by_pair`.
    """

    most_rows: int
    tokens: int
    gate_up: tuple[Tile, ...]
    down: tuple[Tile, ...]
    most_columns: int | None = None
    by_pair: bool = False


PAIR_TOKENS = 8
"""The narrowest MMA's; by pair all of them are that pair's row."""

ONE_WAVE = Tiles(
    most_rows=1,
    tokens=PAIR_TOKENS,
    most_columns=192,
    by_pair=True,
    gate_up=(
        Tile(rows=16, columns=512, warps=4, stages=7, slices=4, registers=104, copied_registers=64),
        Tile(rows=16, columns=512, warps=4, stages=7, slices=4, registers=104),
        Tile(rows=16, columns=512, warps=4, stages=3, slices=4),
        Tile(rows=16, columns=1024, warps=8, stages=4, slices=8),
    ),
    down=(
        Tile(rows=16, columns=128, warps=16, stages=4, slices=1),
        Tile(rows=16, columns=128, warps=8, stages=4, slices=1),
    ),
)
"""One row at TP 16: all programs of `gate_up` fit the device at once, every weight in flight, and
leave room for one program of `down_sum` on each multiprocessor."""

TABLE = (
    ONE_WAVE,
    Tiles(
        most_rows=1,
        tokens=PAIR_TOKENS,
        by_pair=True,
        gate_up=(
            Tile(rows=16, columns=512, warps=4, stages=2, slices=4),
            Tile(rows=16, columns=512, warps=4, stages=3, slices=4),
            Tile(rows=16, columns=512, warps=4, stages=7, slices=4),
        ),
        down=(
            Tile(rows=16, columns=128, warps=8, stages=4, slices=1),
            Tile(rows=32, columns=128, warps=16, stages=4, slices=1),
        ),
    ),
    Tiles(
        most_rows=2,
        tokens=PAIR_TOKENS,
        most_columns=192,
        by_pair=True,
        gate_up=(
            Tile(rows=16, columns=512, warps=4, stages=2, slices=4),
            Tile(rows=16, columns=512, warps=4, stages=3, slices=4),
            Tile(rows=16, columns=512, warps=4, stages=7, slices=4, registers=104),
        ),
        down=(
            Tile(rows=16, columns=128, warps=8, stages=4, slices=1),
            Tile(rows=16, columns=128, warps=16, stages=4, slices=1),
        ),
    ),
    Tiles(
        most_rows=4,
        tokens=8,
        most_columns=192,
        gate_up=(
            Tile(rows=16, columns=512, warps=4, stages=7, slices=4),
            Tile(rows=16, columns=512, warps=4, stages=3, slices=4),
        ),
        down=(
            Tile(rows=64, columns=256, warps=2, stages=3, slices=1),
            Tile(rows=32, columns=128, warps=2, stages=4, slices=1),
        ),
    ),
    Tiles(
        most_rows=256,
        tokens=8,
        most_columns=192,
        gate_up=(
            Tile(rows=128, columns=256, warps=4, stages=3),
            Tile(rows=64, columns=256, warps=4, stages=3, slices=2),
        ),
        down=(
            Tile(rows=64, columns=256, warps=2, stages=3, slices=1),
            Tile(rows=64, columns=256, warps=4, stages=3, slices=1),
            Tile(rows=128, columns=128, warps=4, stages=3),
        ),
    ),
    Tiles(
        most_rows=2,
        tokens=8,
        gate_up=(
            Tile(rows=16, columns=512, warps=4, stages=7, slices=4),
            Tile(rows=64, columns=256, warps=4, stages=3, slices=2),
        ),
        down=(
            Tile(rows=64, columns=256, warps=4, stages=3, slices=1),
            Tile(rows=64, columns=256, warps=2, stages=3, slices=1),
        ),
    ),
    Tiles(
        most_rows=256,
        tokens=8,
        gate_up=(
            Tile(rows=128, columns=256, warps=4, stages=3),
            Tile(rows=64, columns=256, warps=4, stages=3, slices=2),
            Tile(rows=64, columns=256, warps=4, stages=4),
        ),
        down=(
            Tile(rows=64, columns=256, warps=4, stages=3, slices=1),
            Tile(rows=64, columns=256, warps=2, stages=3, slices=1),
            Tile(rows=128, columns=128, warps=4, stages=3),
        ),
    ),
    Tiles(
        most_rows=1 << 20,
        tokens=64,
        gate_up=(
            Tile(rows=128, columns=128, warps=4, stages=3),
            Tile(rows=128, columns=128, warps=8, stages=3),
            Tile(rows=64, columns=128, warps=4, stages=3),
        ),
        down=(
            Tile(rows=128, columns=128, warps=4, stages=3),
            Tile(rows=128, columns=128, warps=8, stages=3),
            Tile(rows=64, columns=128, warps=4, stages=3),
        ),
    ),
)


def tiles_for(rows: int, columns: int) -> Tiles:
    """The candidates for a step of `rows` rows and experts of `columns` live columns."""
    return next(
        tiles
        for tiles in TABLE
        if rows <= tiles.most_rows and (tiles.most_columns is None or columns <= tiles.most_columns)
    )
