# SPDX-License-Identifier: Apache-2.0
"""Tile sizes of the routed experts' kernels: data, chosen by measurement.

Per range of rows the candidates of each kernel, the one in use first;
`tests/bench/stock_experts.py` times them all. What limits the choice: a program's weight tile is
`rows` x `columns` / 2 bytes per stage, and about 32 KB per multiprocessor must be in flight to
fill HBM; 16 rows at least belong to one warp; up to 8 tokens take the narrowest MMA, more tokens
with four warps and 64 rows the warp-group MMA.
"""

from dataclasses import dataclass

LEAST_COLUMNS = 128
"""32 of each of the 4 nibble positions. With 16, one MMA deep, Triton 3.6 adds each product of the
narrow MMA twice: seen on an H200, and `tests/gpu` would show it again."""


@dataclass(frozen=True)
class Tile:
    """Sizes of one program.

    Attributes:
        rows: weight rows; for `gate_up` half of them are gate rows. A power of two, at least 16.
        columns: columns of one iteration, a power of two, at least `LEAST_COLUMNS`.
        warps: warps of a program.
        stages: iterations in flight.
    """

    rows: int
    columns: int
    warps: int
    stages: int

    def columns_for(self, depth: int) -> int:
        """Columns of one iteration over `depth`: `columns`, or less where that computes less."""
        sizes = [self.columns >> halvings for halvings in range(self.columns.bit_length())]
        usable = [size for size in sizes if size >= LEAST_COLUMNS]
        return min(usable, key=lambda size: (-(-depth // size) * size, -size))


@dataclass(frozen=True)
class Tiles:
    """Candidates for steps of at most `most_rows` rows, those in use first.

    Attributes:
        most_rows: the range's upper end.
        tokens: pairs of a block; both kernels and the plan share it.
        gate_up: tiles of `experts.gate_up`.
        down: tiles of `experts.down`.
    """

    most_rows: int
    tokens: int
    gate_up: tuple[Tile, ...]
    down: tuple[Tile, ...]


TABLE = (
    Tiles(
        most_rows=1,
        tokens=8,
        gate_up=(
            Tile(rows=32, columns=256, warps=2, stages=4),
            Tile(rows=16, columns=256, warps=1, stages=4),
            Tile(rows=32, columns=512, warps=2, stages=3),
            Tile(rows=64, columns=256, warps=4, stages=4),
            Tile(rows=16, columns=512, warps=1, stages=4),
            Tile(rows=32, columns=256, warps=2, stages=6),
            Tile(rows=16, columns=256, warps=1, stages=6),
            Tile(rows=64, columns=512, warps=4, stages=3),
        ),
        down=(
            Tile(rows=64, columns=128, warps=4, stages=3),
            Tile(rows=32, columns=128, warps=2, stages=3),
            Tile(rows=64, columns=128, warps=2, stages=3),
            Tile(rows=128, columns=128, warps=4, stages=3),
            Tile(rows=16, columns=128, warps=1, stages=3),
            Tile(rows=32, columns=128, warps=2, stages=4),
            Tile(rows=128, columns=128, warps=8, stages=3),
        ),
    ),
    Tiles(
        most_rows=16,
        tokens=8,
        gate_up=(
            Tile(rows=32, columns=256, warps=2, stages=4),
            Tile(rows=64, columns=256, warps=4, stages=4),
            Tile(rows=64, columns=256, warps=4, stages=3),
            Tile(rows=128, columns=128, warps=4, stages=4),
            Tile(rows=64, columns=256, warps=2, stages=4),
            Tile(rows=128, columns=256, warps=8, stages=3),
            Tile(rows=128, columns=256, warps=4, stages=3),
            Tile(rows=32, columns=512, warps=2, stages=3),
            Tile(rows=64, columns=512, warps=4, stages=3),
        ),
        down=(
            Tile(rows=64, columns=128, warps=4, stages=3),
            Tile(rows=64, columns=128, warps=2, stages=3),
            Tile(rows=128, columns=128, warps=4, stages=3),
            Tile(rows=128, columns=128, warps=8, stages=3),
            Tile(rows=32, columns=128, warps=2, stages=3),
            Tile(rows=256, columns=128, warps=8, stages=3),
            Tile(rows=128, columns=128, warps=4, stages=4),
        ),
    ),
    Tiles(
        most_rows=256,
        tokens=8,
        gate_up=(
            Tile(rows=64, columns=256, warps=4, stages=4),
            Tile(rows=32, columns=256, warps=2, stages=4),
            Tile(rows=64, columns=256, warps=4, stages=3),
            Tile(rows=128, columns=128, warps=4, stages=4),
            Tile(rows=64, columns=256, warps=2, stages=4),
            Tile(rows=128, columns=256, warps=8, stages=3),
            Tile(rows=128, columns=256, warps=4, stages=3),
            Tile(rows=32, columns=512, warps=2, stages=3),
            Tile(rows=64, columns=512, warps=4, stages=3),
        ),
        down=(
            Tile(rows=64, columns=128, warps=4, stages=3),
            Tile(rows=64, columns=128, warps=2, stages=3),
            Tile(rows=128, columns=128, warps=4, stages=3),
            Tile(rows=128, columns=128, warps=8, stages=3),
            Tile(rows=32, columns=128, warps=2, stages=3),
            Tile(rows=256, columns=128, warps=8, stages=3),
            Tile(rows=128, columns=128, warps=4, stages=4),
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


def tiles_for(rows: int) -> Tiles:
    """The candidates for a step of `rows` rows."""
    return next(tiles for tiles in TABLE if rows <= tiles.most_rows)
