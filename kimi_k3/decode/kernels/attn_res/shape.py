# SPDX-License-Identifier: Apache-2.0
"""How the residual mix is launched: a cluster for each row, a range of its columns per block."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from kimi_k3.decode.kernels.shapes import LaunchShape, Operand, Role
from kimi_k3.decode.kernels.wait import wait_operands

VECTOR = 8
"""BF16 values of one 16-byte load."""
LANES = 32
MOST_SOURCES = 16
"""Two sums of each source make the 32 values that one reduction carries."""
MOST_ROWS = 64
EARLY_TRIGGER = (
    "The next launch touches what any launch writes only after its own wait, which is for this "
    "grid to have ended, and this grid does not end before every thread of it has waited. Until "
    "then the next launch reads weights."
)


@dataclass(frozen=True)
class Form:
    """What a variant computes.

    Attributes:
        most: saved blocks that it can mix; 0 for none at all, and then nothing is mixed.
        room: blocks of a row in memory.
        arrives: what a mailbox brings: `prefix`, `delta`, or None for nothing.
        delta: whether something is added to the prefix.
        kept: whether the new prefix is stored.
        block: whether it is stored as a block.
        normed: whether the mix is normed.
    """

    most: int
    room: int
    arrives: str | None
    delta: bool
    kept: bool
    block: bool
    normed: bool

    @classmethod
    def of(cls, parameters: Mapping[str, Any]) -> "Form":
        """The form that a variant was compiled for."""
        return cls(**{name: parameters[name] for name in cls.__dataclass_fields__})

    def require(self) -> None:
        """Refuses what the kernel can not compute.

        Raises:
            ValueError: too many sources, or a mailbox for what the form does not read.
        """
        if not self.most < MOST_SOURCES or self.most > self.room:
            raise ValueError(f"{self.most} blocks of {self.room}; at most {MOST_SOURCES - 1}")
        if self.arrives not in {None, "prefix", "delta" if self.delta else None}:
            raise ValueError(f"a mailbox brings {self.arrives}, which is not read")


@dataclass(frozen=True)
class Tiling:
    """How a row is divided.

    Attributes:
        hidden: columns of a row.
        cluster: blocks that share a row.
        vectors: 16-byte vectors of each source that a thread holds.
    """

    hidden: int
    cluster: int
    vectors: int

    @property
    def threads(self) -> int:
        """Of a block."""
        return self.hidden // (self.cluster * self.vectors * VECTOR)

    @property
    def warps(self) -> int:
        """Of a block."""
        return self.threads // LANES

    @property
    def senders(self) -> int:
        """Warps of a row, each of which sends its sums to every block."""
        return self.cluster * self.warps

    def require(self) -> None:
        """Refuses what the kernel can not divide.

        Raises:
            ValueError: columns that do not go round, or more warps than a reduction carries.
        """
        if self.hidden % (self.cluster * self.vectors * VECTOR * LANES):
            raise ValueError(f"{self.hidden} columns over {self.cluster} blocks of whole warps")
        if self.senders > LANES:
            raise ValueError(f"{self.senders} warps of a row; at most {LANES}")


def tiling(parameters: Mapping[str, Any]) -> Tiling:
    """The division that a variant was compiled for."""
    return Tiling(parameters["hidden"], parameters["cluster"], parameters["vectors"])


def launch_shape(parameters: Mapping[str, Any]) -> LaunchShape:
    """One cluster along x for each row along y."""
    tiles = tiling(parameters)
    sums = 4 * LANES * tiles.senders + 4 * LANES  # of sources, and of the mix
    barriers = 16
    return LaunchShape(
        grid=(tiles.cluster, "rows", 1),
        block=tiles.threads,
        cluster=tiles.cluster,
        shared_bytes=sums + barriers,
    )


def operands(parameters: Mapping[str, Any]) -> tuple[Operand, ...]:
    """The parameters of a variant's code, in order."""
    return tuple(_operands(Form.of(parameters), parameters["hidden"]))


def _operands(form: Form, hidden: int) -> Iterator[Operand]:
    def rows(name: str, role: Role, row_stride: int | None = None) -> Operand:
        return Operand(name, "bf16", (MOST_ROWS, hidden), role, row_stride)

    if form.arrives != "prefix":
        yield rows("prefix", Role.IN)
    if form.delta and form.arrives != "delta":
        yield rows("delta", Role.IN)
    if form.arrives is not None:
        yield from wait_operands(MOST_ROWS, hidden)
    if form.most:
        yield Operand("blocks", "bf16", (MOST_ROWS, form.room, hidden), Role.IN)
        yield Operand("saved", "int32", (), Role.SCALAR, low=1, high=form.most)
        yield Operand("score", "fp32", (hidden,), Role.STATIC)
    if form.normed:
        yield Operand("norm", "bf16", (hidden,), Role.STATIC)
    yield rows("out", Role.OUT)
    if form.kept:
        yield rows("prefix_out", Role.OUT)
    if form.block:
        yield rows("block_out", Role.OUT, row_stride=form.room * hidden)
