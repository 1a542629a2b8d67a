# SPDX-License-Identifier: Apache-2.0
"""The threads of a block, sets of them as bit masks, and numbers that differ between them."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

WORD = 0xFFFF_FFFF
Vector = NDArray[np.uint64]


@dataclass(frozen=True, slots=True, eq=False)
class Lanes:
    """Numbers that differ between threads; `known` says for which threads there is one."""

    values: Vector
    known: NDArray[np.bool_]


Number = int | Lanes | None


@dataclass(frozen=True)
class Threads:
    """The threads that are looked at together: those of a block, or of all blocks of a cluster.

    Attributes:
        block: threads of a block in x, y and z.
        blocks: how many blocks.
    """

    block: tuple[int, int, int]
    blocks: int = 1

    @cached_property
    def size(self) -> int:
        """Threads of one block."""
        x, y, z = self.block
        return x * y * z

    @cached_property
    def count(self) -> int:
        """Threads of all blocks."""
        return self.size * self.blocks

    @cached_property
    def everyone(self) -> int:
        """A mask with all of them."""
        return (1 << self.count) - 1

    @cached_property
    def index(self) -> Vector:
        """Of each thread, its number in its block."""
        return np.arange(self.count, dtype=np.uint64) % np.uint64(self.size)

    @cached_property
    def rank(self) -> Vector:
        """Of each thread, the number of its block in the cluster."""
        return np.arange(self.count, dtype=np.uint64) // np.uint64(self.size)

    def groups(self, width: int) -> tuple[int, ...]:
        """Masks of consecutive threads of a block, `width` at a time."""
        masks = []
        for first in range(0, self.count, self.size):
            for start in range(0, self.size, width):
                stop = min(start + width, self.size)
                masks.append(((1 << (stop - start)) - 1) << (first + start))
        return tuple(masks)

    @cached_property
    def warps(self) -> tuple[int, ...]:
        """Masks of the warps."""
        return self.groups(32)

    def whole_warps(self, mask: int) -> int:
        """The warps of which the mask has some thread."""
        return union(one for one in self.warps if one & mask)

    @cached_property
    def by_block(self) -> tuple[int, ...]:
        """Masks of the blocks."""
        return self.groups(self.size)


def mask_of(truth: NDArray[np.bool_]) -> int:
    """A mask with the threads for which it is true."""
    return int.from_bytes(np.packbits(truth, bitorder="little").tobytes(), "little")


def truth_of(mask: int, count: int) -> NDArray[np.bool_]:
    """For each thread, whether the mask has it."""
    raw = np.frombuffer(mask.to_bytes((count + 7) // 8, "little"), dtype=np.uint8)
    return np.unpackbits(raw, count=count, bitorder="little").astype(np.bool_)


def lanes(number: int | Lanes, count: int) -> Lanes:
    """The number of each thread."""
    if isinstance(number, Lanes):
        return number
    return Lanes(np.full(count, number, np.uint64), np.ones(count, np.bool_))


def decided(number: Number, mask: int, count: int) -> tuple[int, int, int]:
    """Threads of the mask for which a predicate is true, is false, and is not known."""
    if number is None:
        return 0, 0, mask
    if isinstance(number, int):
        return (mask, 0, 0) if number else (0, mask, 0)
    known = mask_of(number.known) & mask
    true = mask_of(number.values != 0) & known
    return true, known & ~true, mask & ~known


def same_number(left: Number, right: Number) -> bool:
    """Whether two numbers are the same in every thread, and known in the same threads."""
    if left is right:
        return True
    if isinstance(left, Lanes) and isinstance(right, Lanes):
        return bool(
            (left.known == right.known).all()
            and (left.values[left.known] == right.values[right.known]).all()
        )
    return isinstance(left, int) and isinstance(right, int) and left == right


def join_numbers(left: Number, first: int, right: Number, second: int, count: int) -> Number:
    """A number of threads that come from either side; a thread keeps what all its sides say."""
    if same_number(left, right):
        return left
    one = lanes(left, count) if left is not None else None
    two = lanes(right, count) if right is not None else None
    here, there = truth_of(first, count), truth_of(second, count)
    left_known = one.known & here if one is not None else np.zeros(count, np.bool_)
    right_known = two.known & there if two is not None else np.zeros(count, np.bool_)
    values = np.zeros(count, np.uint64)
    if one is not None:
        values[left_known] = one.values[left_known]
    known = left_known & ~there
    if two is not None:
        both = left_known & right_known
        agree = both & (values == two.values)
        only = right_known & ~here
        values[only] = two.values[only]
        known = known | agree | only
    return _tidy(Lanes(values, known), first | second, count)


def _tidy(number: Lanes, mask: int, count: int) -> Number:
    if not number.known.any():
        return None
    if (mask & ~mask_of(number.known)) == 0 and mask:
        some = number.values[truth_of(mask, count)]
        if (some == some[0]).all():
            return int(some[0])
    return number


def union(masks: Iterable[int]) -> int:
    """Threads of any of the masks."""
    whole = 0
    for mask in masks:
        whole |= mask
    return whole


def members(mask: int) -> Iterable[int]:
    """The numbers of the bits that are set, from the lowest on."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low
