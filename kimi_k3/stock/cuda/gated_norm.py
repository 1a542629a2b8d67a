# SPDX-License-Identifier: Apache-2.0
"""The end of Kimi delta attention: per-head RMS norm, then the sigmoid gate (spec 2.3)."""

import torch
import triton
import triton.language as tl

HEADS = 4
"""Heads of one program: a warp norms a head without a barrier."""


def gated_norm(
    out: torch.Tensor,
    o: torch.Tensor,
    gate: torch.Tensor,
    weight: torch.Tensor,
    lengths: torch.Tensor,
    *,
    rows: int,
    eps: float,
) -> None:
    """Norms each head and gates it.

        out = bf16(o * rsqrt(mean(o^2) + eps) * weight * sigmoid(gate))

    FP32 until that one rounding (`attn_out`). Rows of a padding request are zero whatever they
    hold, NaN included. Moves 2 h d BF16 values in and h d out per row. No host read, no
    allocation.

    Args:
        out: [M, h d] BF16, contiguous, written.
        o: [M, h, d] BF16, contiguous.
        gate: [M, h d] BF16; may be columns of wider rows.
        weight: [d] FP32.
        lengths: [R] int32, 0 for padding.
        rows: of each request: row m belongs to request m // rows.
        eps: added to the mean of squares.

    Raises:
        ValueError: shapes that do not fit.
    """
    m, heads, d = o.shape
    fits = out.shape == gate.shape == (m, heads * d) and m == len(lengths) * rows
    if not (fits and out.is_contiguous() and o.is_contiguous() and gate.stride(1) == 1):
        raise ValueError(
            f"out {tuple(out.shape)}, o {tuple(o.shape)}, gate {tuple(gate.shape)}, "
            f"{len(lengths)} requests of {rows} rows"
        )
    _gated_norm[(m, triton.cdiv(heads, HEADS))](
        out,
        o,
        gate,
        weight,
        lengths,
        rows,
        eps,
        gate.stride(0),
        heads=heads,
        d=d,
        block=triton.next_power_of_2(d),
        group=HEADS,
        num_warps=HEADS,
    )


@triton.jit
def _gated_norm(
    out,
    o,
    gate,
    weight,
    lengths,
    rows,
    eps,
    gate_stride,
    heads: tl.constexpr,
    d: tl.constexpr,
    block: tl.constexpr,
    group: tl.constexpr,
):
    row = tl.program_id(0)
    alive = tl.load(lengths + row // rows) > 0
    head = tl.program_id(1) * group + tl.arange(0, group)[:, None]
    channel = tl.arange(0, block)[None, :]
    live = (head < heads) & (channel < d) & alive
    place = head * d + channel
    own = row.to(tl.int64) * heads * d + place
    x = tl.load(o + own, live, other=0.0).to(tl.float32)
    g = tl.load(gate + row.to(tl.int64) * gate_stride + place, live, other=0.0).to(tl.float32)
    w = tl.load(weight + channel + 0 * head, live, other=0.0)  # in the layout of x
    rms = tl.rsqrt(tl.sum(x * x, 1) / d + eps)[:, None]
    value = tl.where(live, x * rms * w * tl.sigmoid(g), 0.0)
    tl.store(out + own, value.to(tl.bfloat16), (head < heads) & (channel < d))
