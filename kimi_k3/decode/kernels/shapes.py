# SPDX-License-Identifier: Apache-2.0
"""What a launch of a variant looks like: everything that its code was compiled for.

Known without a compiler and without torch, so that whoever launches, checks or lists variants needs
neither.
"""

from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any, Literal

Extent = int | Literal["rows"]
"""Blocks along an axis of the grid; `rows` stands for the rows of the launch."""

ITEM_BYTES = {"bf16": 2, "fp32": 4, "int32": 4, "int64": 8}
"""Number formats of operands, with the bytes of one number."""


class Role(StrEnum):
    """What a launch does with an operand."""

    STATIC = "static"
    """Reads it at any time, as nobody writes it while the model is loaded."""
    IN = "in"
    """Reads what earlier launches wrote."""
    OUT = "out"
    """Writes it, every element of every row of the launch."""
    INOUT = "inout"
    """Reads and writes it."""
    MAILBOX = "mailbox"
    """Reads what peers write meanwhile, and arms it again."""
    WORKSPACE = "workspace"
    """Uses it for itself."""
    SCALAR = "scalar"
    """A number that goes along with the launch."""


@dataclass(frozen=True)
class Operand:
    """One parameter of a kernel.

    Attributes:
        name: as the kernel's description has it.
        dtype: a key of `ITEM_BYTES`.
        shape: as it was compiled, rows first at the most that a launch may have; () for a scalar.
        role: what a launch does with it.
        row_stride: elements from one row to the next; None where rows are compact.
        low: least value of a scalar.
        high: largest value of a scalar.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    role: Role
    row_stride: int | None = None
    low: int = 0
    high: int = 0

    @property
    def strides(self) -> tuple[int, ...]:
        """Of each axis, in elements."""
        inner, found = 1, []
        for extent in reversed(self.shape):
            found.append(inner)
            inner *= extent
        if self.row_stride is not None:
            found[-1] = self.row_stride
        return tuple(reversed(found))


@dataclass(frozen=True)
class LaunchShape:
    """Grid, block and attributes of a launch.

    Attributes:
        grid: blocks along x, y and z.
        block: threads of a block, along x.
        cluster: blocks of a cluster, along x; 1 for none.
        shared_bytes: dynamic shared memory of a block.
        cooperative: whether all blocks must be resident at once.
    """

    grid: tuple[Extent, Extent, Extent]
    block: int
    cluster: int = 1
    shared_bytes: int = 0
    cooperative: bool = False

    def grid_of(self, rows: int) -> tuple[int, int, int]:
        """The grid of a launch of some rows."""
        x, y, z = (rows if extent == "rows" else extent for extent in self.grid)
        return x, y, z

    def to_dict(self) -> dict[str, Any]:
        """As it stands in a build's record."""
        return asdict(self)
