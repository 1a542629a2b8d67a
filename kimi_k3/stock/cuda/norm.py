# SPDX-License-Identifier: Apache-2.0
"""RMS norm of rows: the reduced latent, and the hidden rows before the head."""

import torch
import triton
import triton.language as tl


def rms_norm(out: torch.Tensor, x: torch.Tensor, weight: torch.Tensor, eps: float) -> None:
    """Norms each row.

        out = bf16(x * rsqrt(mean(x^2) + eps) * weight)

    FP32 until that one rounding. One program a row. Moves N BF16 values in and out per row, and
    the weight. No host read, no allocation.

    Args:
        out: [M, N] BF16, written; may be `x` itself.
        x: [M, N] BF16; both may be columns of wider rows.
        weight: [N] BF16.
        eps: added to the mean of squares.

    Raises:
        ValueError: shapes that differ, or columns that are not contiguous.
    """
    rows, width = x.shape
    if out.shape != x.shape or weight.shape != (width,) or x.stride(1) != 1 or out.stride(1) != 1:
        raise ValueError(f"out {tuple(out.shape)}, x {tuple(x.shape)}, {tuple(weight.shape)} norm")
    block = triton.next_power_of_2(width)
    warps = min(max(block // 512, 1), 16)  # two 16-byte loads a thread
    _rms_norm[(rows,)](
        out, x, weight, eps, out.stride(0), x.stride(0), width=width, block=block, num_warps=warps
    )


@triton.jit
def _rms_norm(
    out,
    x,
    weight,
    eps,
    out_stride,
    x_stride,
    width: tl.constexpr,
    block: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, block)
    live = cols < width
    value = tl.load(x + row * x_stride + cols, live, other=0.0)
    g = tl.load(weight + cols, live, other=0.0)
    wide = value.to(tl.float32)
    rms = tl.rsqrt(tl.sum(wide * wide, 0) / width + eps)
    tl.store(out + row * out_stride + cols, (wide * rms * g.to(tl.float32)).to(tl.bfloat16), live)
