# SPDX-License-Identifier: Apache-2.0
"""Attention residuals in one launch: prefix sum, scores, softmax mix, output norm, block write.

One program owns a row. Every load is issued before the first one is used, so that a row costs one
trip to memory; the mix reads the blocks a second time, from the L1 cache. The two sums of each
source go across the warps together, in one reduction.
"""

from collections.abc import Sequence

import torch
import triton
import triton.language as tl

from kimi_k3.stock.cuda.stacking import stack, unstack

VECTOR = 8
"""BF16 values of one 16-byte load."""
LANES = 32
MAX_WARPS = 8
"""A thread of the full model loads 32 values of each source. With more warps there would be more
shuffles, and too few registers to have all loads in flight."""
MAX_SOURCES = 16
"""Two sums of each source make the 32 values that one reduction carries."""


def mix(
    x: torch.Tensor,
    prefix: torch.Tensor,
    pending: Sequence[torch.Tensor],
    blocks: torch.Tensor,
    saved: int,
    *,
    score: torch.Tensor,
    norm: torch.Tensor | None,
    eps: float,
    prefix_out: torch.Tensor | None = None,
    write: bool = False,
) -> None:
    """Adds what is pending to the prefix and mixes all sources (spec 2.2).

        delta   = pending[0], or bf16(pending[0] + pending[1])
        p       = bf16(prefix + delta), or prefix when nothing is pending
        logit_j = (s_j . score) * rsqrt(mean(s_j^2) + eps)     s = blocks[:, :saved], then p
        m       = sum_j softmax(logit)_j s_j                   FP32
        x       = bf16(m * rsqrt(mean(m^2) + eps) * norm), or bf16(m) without `norm`

    Rounded are `ffn_out` (delta), `prefix_add` (p) and `mixed` (x); all else is FP32. Moves
    (saved + 1 + len(pending)) H BF16 values in and one out, one more for each of `prefix_out` and
    `write`, per row. No host read, no allocation.

    Args:
        x: [M, H] BF16, written.
        prefix: [M, H] BF16.
        pending: none, one or two [M, H] BF16.
        blocks: [M, blocks, H] BF16.
        saved: how many blocks are valid.
        score: [H] FP32.
        norm: [H] BF16, or None.
        eps: of both norms.
        prefix_out: [M, H] BF16 that receives p; may be `prefix` itself.
        write: also store p as `blocks[:, saved]`.

    Raises:
        ValueError: more addends or blocks than there is room for, or rows that are not contiguous.
    """
    rows, hidden = x.shape
    room = blocks.shape[1] - write
    if len(pending) > 2 or not 0 <= saved <= min(room, MAX_SOURCES - 1):
        raise ValueError(f"{len(pending)} addends and {saved} of {blocks.shape[1]} blocks")
    first, second = (*pending, None, None)[:2]
    whole = [t for t in (x, prefix, first, second, prefix_out) if t is not None]
    if any(t.shape != x.shape or t.stride(1) != 1 for t in whole) or blocks.stride(2) != 1:
        raise ValueError(f"rows of {hidden} values must be contiguous and equally many")
    warps, chunks = _tiling(hidden)
    _mix[(rows,)](
        x,
        prefix,
        first,
        second,
        blocks,
        score,
        norm,
        prefix_out,
        eps,
        x.stride(0),
        prefix.stride(0),
        0 if first is None else first.stride(0),
        0 if second is None else second.stride(0),
        0 if prefix_out is None else prefix_out.stride(0),
        blocks.stride(0),
        blocks.stride(1),
        hidden=hidden,
        saved=saved,
        write=write,
        warps=warps,
        chunks=chunks,
        num_warps=warps,
    )


def _tiling(hidden: int) -> tuple[int, int]:
    """Warps of a program, and vectors that each of its threads holds of a source."""
    vectors = triton.next_power_of_2(triton.cdiv(hidden, VECTOR * LANES))
    warps = min(vectors, MAX_WARPS)
    return warps, vectors // warps


@triton.jit
def _mix(
    x,
    prefix,
    first,
    second,
    blocks,
    score,
    norm,
    prefix_out,
    eps,
    x_stride,
    prefix_stride,
    first_stride,
    second_stride,
    out_stride,
    row_stride,
    block_stride,
    hidden: tl.constexpr,
    saved: tl.constexpr,
    write: tl.constexpr,
    warps: tl.constexpr,
    chunks: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    cols = _columns(warps, chunks)  # [lane, warp, chunk, vector]
    live = cols < hidden

    own = tl.load(prefix + row * prefix_stride + cols, live, other=0.0)
    if first is not None:
        delta = tl.load(first + row * first_stride + cols, live, other=0.0)
    if second is not None:
        more = tl.load(second + row * second_stride + cols, live, other=0.0)
    block = blocks + row * row_stride + cols
    sources = _load_blocks(block, block_stride, saved, live)
    w = tl.load(score + cols, live, other=0.0)
    if norm is not None:
        g = tl.load(norm + cols, live, other=0.0)

    if second is not None:
        delta = (delta.to(tl.float32) + more.to(tl.float32)).to(tl.bfloat16)
    if first is not None:
        own = (own.to(tl.float32) + delta.to(tl.float32)).to(tl.bfloat16)
    if prefix_out is not None:
        tl.store(prefix_out + row * out_stride + cols, own, live)
    if write:
        tl.store(block + saved * block_stride, own, live)
    alpha = _softmax(_logits(sources + (own,), w, eps, hidden))  # noqa: RUF005
    mixed = alpha[saved] * own.to(tl.float32)
    tl.debug_barrier()  # or the compiler keeps both conversions of all blocks, and spills
    again = _load_blocks(block, block_stride, saved, live)
    for j in tl.static_range(saved):
        mixed += alpha[j] * again[j].to(tl.float32)
    if norm is not None:
        square = tl.sum(_per_warp(mixed * mixed), 0)
        mixed = mixed * tl.rsqrt(square / hidden + eps) * g.to(tl.float32)
    tl.store(x + row * x_stride + cols, mixed.to(tl.bfloat16), live)


@triton.jit
def _columns(warps, chunks):
    """[32, warps, chunks, 8] columns of a row: a thread's are those of its lane and its warp."""
    lane = tl.arange(0, 32)[:, None, None, None]
    warp = tl.arange(0, warps)[None, :, None, None]
    chunk = tl.arange(0, chunks)[None, None, :, None]
    element = tl.arange(0, 8)[None, None, None, :]
    return ((chunk * warps + warp) * 32 + lane) * 8 + element


@triton.jit
def _load_blocks(first, block_stride, saved, live):
    """The row's saved blocks, each in the layout of `first`, pointers into block 0."""
    sources = ()
    for j in tl.static_range(saved):
        sources += (tl.load(first + j * block_stride, live, other=0.0),)
    return sources


@triton.jit
def _logits(sources, w, eps, hidden):
    """The sources' scores, scalars."""
    sums = ()
    for j in tl.static_range(len(sources)):
        s = sources[j].to(tl.float32)
        sums += (_per_warp(s * w), _per_warp(s * s))
    for _ in tl.static_range(triton.next_power_of_2(len(sums)) - len(sums)):
        sums += (tl.zeros_like(sums[0]),)
    total = unstack(tl.sum(stack(sums), 0))
    logits = ()
    for j in tl.static_range(len(sources)):
        logits += (total[2 * j] * tl.rsqrt(total[2 * j + 1] / hidden + eps),)
    return logits


@triton.jit
def _per_warp(values):
    """[32, warps, chunks, 8] summed to [warps]: in threads first, then between lanes."""
    return tl.sum(tl.sum(tl.sum(values, 3), 2), 0)


@triton.jit
def _softmax(logits):
    """Softmax of a tuple of scalars."""
    top = logits[0]
    for j in tl.static_range(1, len(logits)):
        top = tl.maximum(top, logits[j])
    weights = ()
    total = 0.0
    for j in tl.static_range(len(logits)):
        weights += (tl.exp(logits[j] - top),)
        total += weights[j]
    alpha = ()
    for j in tl.static_range(len(logits)):
        alpha += (weights[j] / total,)
    return alpha
