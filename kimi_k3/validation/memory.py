# SPDX-License-Identifier: Apache-2.0
"""Where operands lie in a candidate's memory, and what lies around them.

An image is the whole memory as the judge has it, bytes on the host. Every call has a new layout:
operands in a random order at random addresses, and random bytes wherever there is no operand, so
that a write beside one is seen and can not be undone by chance.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from kimi_k3.decode.kernels.layout import DTYPES
from kimi_k3.decode.kernels.shapes import ITEM_BYTES, Operand

RAW = {2: torch.int16, 4: torch.int32, 8: torch.int64}
"""Integers of a value's size, to compare values by their bits."""
ALIGN = 256
"""Addresses are multiples of it plus a random multiple of `STEP`, as kernels may rely on that."""
STEP = 16
PAGE = (1 << 16) - 15
"""Random bytes that an image is made of."""
RED = 512
"""Fewest bytes between two operands."""


@dataclass(frozen=True)
class Place:
    """An operand in memory.

    Attributes:
        operand: which.
        offset: its first byte.
    """

    operand: Operand
    offset: int

    def view(self, image: torch.Tensor) -> torch.Tensor:
        """The operand's values in an image."""
        return self._values(image, DTYPES[self.operand.dtype])

    def bits(self, image: torch.Tensor) -> torch.Tensor:
        """The operand's values as integers."""
        return self._values(image, RAW[ITEM_BYTES[self.operand.dtype]])

    def _values(self, image: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
        flat = image[self.offset : self.offset + extent(self.operand)].view(dtype)
        return flat.as_strided(self.operand.shape, self.operand.strides, flat.storage_offset())


Layout = dict[str, Place]
"""Operands of one call by name."""


def extent(operand: Operand) -> int:
    """Bytes from an operand's first value to its last."""
    last = sum((n - 1) * s for n, s in zip(operand.shape, operand.strides, strict=True))
    return ITEM_BYTES[operand.dtype] * (last + 1)


def room(operands: Sequence[Operand], calls: int = 1) -> int:
    """Bytes of a memory in which any layout of so many calls fits."""
    each = sum(extent(one) + RED + 2 * ALIGN for one in operands)
    return calls * each + each + RED


def layouts(
    operands: Sequence[Operand], size: int, rng: np.random.Generator, calls: int = 1
) -> list[Layout]:
    """Random places for the operands of some calls, none near another.

    Args:
        operands: of one call.
        size: bytes of the memory, at least `room`.
        rng: draws order and gaps.
        calls: how many calls have operands of their own.
    """
    todo = [(call, one) for call in range(calls) for one in operands]
    order = rng.permutation(len(todo))
    least = sum(extent(one) + RED + 2 * ALIGN for _, one in todo)
    spare = (size - RED - least) // max(1, len(todo))
    found: list[Layout] = [{} for _ in range(calls)]
    at = RED
    for i, gap in zip(order, rng.integers(0, max(1, spare), len(todo)), strict=True):
        call, operand = todo[i]
        at += int(gap)
        at += -at % ALIGN + STEP * int(rng.integers(ALIGN // STEP))
        found[call][operand.name] = Place(operand, at)
        at += extent(operand) + RED
    return found


def blank(size: int, rng: np.random.Generator, device: str = "cpu") -> torch.Tensor:
    """An image of random bytes, which repeat after a page that no address is a multiple of."""
    page = torch.frombuffer(bytearray(rng.bytes(PAGE)), dtype=torch.uint8).to(device)
    return page.repeat(-(-size // PAGE))[:size]


def between(before: torch.Tensor, after: torch.Tensor, places: Iterable[Place]) -> torch.Tensor:
    """The bytes of an image that changed and belong to no operand, as a mask.

    Args:
        before: the image that was written.
        after: the image that was read.
        places: operands of all calls that share the memory.
    """
    rest = after.clone()
    for place in places:
        place.bits(rest).copy_(place.bits(before))
    return rest != before
