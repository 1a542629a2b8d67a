# SPDX-License-Identifier: Apache-2.0
"""The second factor of KDA's decay (spec 2.3): a product too small for a launch of its own."""

from dataclasses import dataclass

import torch
import triton
import triton.language as tl


@dataclass(frozen=True)
class Decay:
    """Operands of raw = bf16(f weight^T), FP32 sums.

    Attributes:
        raw: [M, W] BF16, contiguous, written; zero for padding.
        f: [M, D] BF16; may be columns of wider rows.
        weight: [W, D] BF16, contiguous.

    Raises:
        ValueError: shapes or strides that do not fit.
    """

    raw: torch.Tensor
    f: torch.Tensor
    weight: torch.Tensor

    def __post_init__(self) -> None:
        rows, width = self.raw.shape
        fits = self.weight.shape == (width, self.f.shape[1]) and len(self.f) == rows
        dense = self.raw.is_contiguous() and self.weight.is_contiguous()
        if not (fits and dense and self.f.stride(1) == 1):
            shown = {name: tuple(tensor.shape) for name, tensor in vars(self).items()}
            raise ValueError(f"shapes or strides of a decay that do not fit: {shown}")


@triton.jit
def raw_decay(
    raw,
    f,
    weight,
    f_stride,
    channel,
    inside,
    alive,
    rows: tl.constexpr,
    w: tl.constexpr,
    rank: tl.constexpr,
    rank_block: tl.constexpr,
):
    """One request's `rows` rows of the channels [block]; the weights are loaded once for all."""
    column = tl.arange(0, rank_block)
    known = column < rank
    tile = channel[:, None] * rank + column[None, :]
    mask = (inside & alive)[:, None] & known[None, :]
    factor = tl.load(weight + tile, mask, other=0.0).to(tl.float32)  # [block, D]
    for t in tl.static_range(rows):
        x = tl.load(f + t * f_stride + column, known & alive, other=0.0).to(tl.float32)  # [D]
        value = tl.sum(factor * x[None, :], 1)  # [block]
        tl.store(raw + t * w + channel, value.to(tl.bfloat16), inside)
