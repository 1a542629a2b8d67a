# SPDX-License-Identifier: Apache-2.0
"""One rank that stands for all: the stand-in for collectives where only one GPU is there.

The rank stores its own partial into the slot of every rank of its own mailbox, reads all slots
back and adds them in rank order. So the local bytes of a one-shot all-reduce move, and nothing
crosses an interconnect: times with it are of one rank's share, never of communication, and the
values are `size` times the own partial, not a model's.
"""

from dataclasses import dataclass, field

import torch
import triton
import triton.language as tl

LEAST_ROWS = 64
"""Steps up to here share a mailbox."""


@triton.jit
def _all_reduce(x, mailbox, out, width, slot_stride, SIZE: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = column < width
    at = row * width + column
    value = tl.load(x + at, mask=inside)
    for rank in tl.static_range(SIZE):
        tl.store(mailbox + rank * slot_stride + at, value, mask=inside)
    total = tl.zeros([BLOCK], tl.float32)
    for rank in tl.static_range(SIZE):
        part = tl.load(mailbox + rank * slot_stride + at, mask=inside, volatile=True)
        total += part.to(tl.float32)
    tl.store(out + at, total.to(out.dtype.element_ty), mask=inside)


@triton.jit
def _all_reduce_norm(
    x, mailbox, weight, out, width, slot_stride, eps, SIZE: tl.constexpr, BLOCK: tl.constexpr
):
    row = tl.program_id(0).to(tl.int64)
    column = tl.arange(0, BLOCK)
    inside = column < width
    at = row * width + column
    value = tl.load(x + at, mask=inside)
    for rank in tl.static_range(SIZE):
        tl.store(mailbox + rank * slot_stride + at, value, mask=inside)
    total = tl.zeros([BLOCK], tl.float32)
    for rank in tl.static_range(SIZE):
        part = tl.load(mailbox + rank * slot_stride + at, mask=inside, other=0.0, volatile=True)
        total += part.to(tl.float32)
    total = total.to(tl.bfloat16).to(tl.float32)
    scale = tl.rsqrt(tl.sum(total * total) / width + eps)
    norm = tl.load(weight + column, mask=inside).to(tl.float32)
    tl.store(out + at, (total * scale * norm).to(out.dtype.element_ty), mask=inside)


@dataclass(frozen=True)
class Loopback:
    """A communicator of `size` ranks of which only this one exists.

    Attributes:
        size: ranks that it stands for.
        rank: which of them this one is.
    """

    size: int
    rank: int = 0
    _mailboxes: dict[tuple[int, int], torch.Tensor] = field(default_factory=dict)

    def all_reduce(self, x: torch.Tensor) -> torch.Tensor:
        """`size` times `x` [M, W], added in FP32 and rounded once; one GPU operation."""
        rows, width = x.shape
        mailbox, out = self._mailbox(x), torch.empty_like(x)
        grid = (rows, triton.cdiv(width, 1024))
        _all_reduce[grid](x, mailbox, out, width, mailbox.stride(0), self.size, 1024, num_warps=4)
        return out

    def all_reduce_norm(self, x: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
        """RMSNorm of `all_reduce(x)` [M, W] with weight [W]; one GPU operation."""
        rows, width = x.shape
        mailbox, out = self._mailbox(x), torch.empty_like(x)
        block = triton.next_power_of_2(width)
        _all_reduce_norm[(rows,)](
            x, mailbox, weight, out, width, mailbox.stride(0), eps, self.size, block, num_warps=8
        )
        return out

    def all_gather(self, x: torch.Tensor, dim: int) -> torch.Tensor:
        """`size` copies of `x` side by side."""
        return torch.cat([x] * self.size, dim=dim)

    def reduce_scatter(self, x: torch.Tensor, dim: int) -> torch.Tensor:
        """The own slice of `all_reduce(x)`."""
        return self.all_reduce(x).chunk(self.size, dim=dim)[self.rank].contiguous()

    def _mailbox(self, x: torch.Tensor) -> torch.Tensor:
        """Memory [size, rows, width] that is kept, as a server's is: captured graphs hold it."""
        rows, width = x.shape
        key = (max(rows, LEAST_ROWS), width)
        if key not in self._mailboxes:
            size = (self.size, *key)
            self._mailboxes[key] = torch.empty(size, dtype=x.dtype, device=x.device)
        return self._mailboxes[key]
