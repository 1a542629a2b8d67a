# SPDX-License-Identifier: Apache-2.0
"""Everything between MLA's input projection and its query projection, in one kernel.

Spec 2.5, rounding of the stock column of spec 2.8:

    qa        <- bf16(RMSNorm(qa))
    cache row <- bf16(RMSNorm(c)) | kr          at the token's position; FP8: fp8(row / k_scale)

Under decode context parallelism consecutive runs of `interleave` tokens go to the ranks in turn,
and a rank writes only what it holds.
"""

from dataclasses import dataclass

import torch
import triton
import triton.language as tl

from kimi_k3.stock.cuda import e4m3


@dataclass(frozen=True)
class Shard:
    """Which of a request's tokens this rank's cache holds.

    Attributes:
        size: ranks that share the tokens.
        rank: this one.
        interleave: consecutive tokens of one rank before the next rank's turn.
    """

    size: int = 1
    rank: int = 0
    interleave: int = 1


WHOLE = Shard()


@triton.jit
def _rms(x, N: tl.constexpr, EPS: tl.constexpr):
    """The factor of the RMS norm of a row that is zero past its N columns."""
    return tl.rsqrt(tl.sum(x * x, 0) / N + EPS)


@triton.jit
def _insert_kernel(
    projected,
    projected_stride,
    qa_norm,
    c_norm,
    qa,
    pages,
    table,
    table_stride,
    lengths,
    q,
    k_scale,
    EPS: tl.constexpr,
    Q: tl.constexpr,
    C: tl.constexpr,
    R: tl.constexpr,
    Q_PADDED: tl.constexpr,
    C_PADDED: tl.constexpr,
    R_PADDED: tl.constexpr,
    PAGE: tl.constexpr,
    SIZE: tl.constexpr,
    RANK: tl.constexpr,
    INTERLEAVE: tl.constexpr,
    FP8: tl.constexpr,
    COMPILED: tl.constexpr,
):
    row = tl.program_id(0)
    own = projected + row.to(tl.int64) * projected_stride
    if tl.program_id(1) == 0:
        column = tl.arange(0, Q_PADDED)
        x = tl.load(own + column, column < Q, 0.0).to(tl.float32)
        weight = tl.load(qa_norm + column, column < Q, 0.0).to(tl.float32)
        normed = (x * _rms(x, Q, EPS) * weight).to(tl.bfloat16)
        tl.store(qa + row.to(tl.int64) * Q + column, normed, column < Q)
    else:
        request = row // q
        length = tl.load(lengths + request)
        position = length - q + row % q
        turn = position // INTERLEAVE
        if (length > 0) & (turn % SIZE == RANK):
            index = turn // SIZE * INTERLEAVE + position % INTERLEAVE
            page = tl.load(table + request.to(tl.int64) * table_stride + index // PAGE)
            at = pages + (page.to(tl.int64) * PAGE + index % PAGE) * (C + R)
            column = tl.arange(0, C_PADDED)
            x = tl.load(own + Q + column, column < C, 0.0).to(tl.float32)
            weight = tl.load(c_norm + column, column < C, 0.0).to(tl.float32)
            c = (x * _rms(x, C, EPS) * weight).to(tl.bfloat16)
            extra = tl.arange(0, R_PADDED)
            kr = tl.load(own + Q + C + extra, extra < R, 0.0)
            if FP8:
                c = e4m3.encode(c.to(tl.float32), k_scale, COMPILED)
                kr = e4m3.encode(kr.to(tl.float32), k_scale, COMPILED)
            tl.store(at + column, c, column < C)
            tl.store(at + C + extra, kr, extra < R)


def insert(
    projected: torch.Tensor,
    qa_norm: torch.Tensor,
    c_norm: torch.Tensor,
    qa: torch.Tensor,
    pages: torch.Tensor,
    block_table: torch.Tensor,
    lengths: torch.Tensor,
    q: int,
    *,
    eps: float,
    k_scale: float = 1.0,
    shard: Shard = WHOLE,
) -> None:
    """Norms the query latents and appends the cache rows of a step.

    Padding (length 0) writes no cache row; its `qa` row is written and means nothing.
    Moves per row 2 (Q + C + R) bytes in, 2 Q and the cache row out.

    Args:
        projected: [M, >= Q + C + R] BF16, columns qa, c, kr first; rows may be strided.
        qa_norm: [Q] BF16.
        c_norm: [C] BF16.
        qa: [M, Q] BF16, contiguous, written.
        pages: [pages, page_size, C + R] BF16 or float8_e4m3fn, contiguous, written.
        block_table: [R, P] int32, rows may be strided.
        lengths: [R] int32 tokens including the q new ones, 0 for padding.
        q: rows per request, M = R q.
        eps: of both norms.
        k_scale: of an FP8 cache.
        shard: which tokens are this rank's.

    Raises:
        ValueError: sizes that do not fit.
    """
    (m, width), latent = qa.shape, len(c_norm)
    extra, page = pages.shape[2] - latent, pages.shape[1]
    if len(projected) != m or len(lengths) * q != m or extra < 1:
        raise ValueError(
            f"{len(projected)} projected rows, {len(lengths)} requests of {q} rows, "
            f"{pages.shape[2]} cached columns; want {m} rows and more than {latent} columns"
        )
    fp8 = pages.dtype == torch.float8_e4m3fn
    _insert_kernel[(m, 2)](
        projected,
        projected.stride(0),
        qa_norm,
        c_norm,
        qa,
        pages.view(torch.uint8) if fp8 else pages,
        block_table,
        block_table.stride(0),
        lengths,
        q,
        k_scale,
        EPS=eps,
        Q=width,
        C=latent,
        R=extra,
        Q_PADDED=triton.next_power_of_2(width),
        C_PADDED=triton.next_power_of_2(latent),
        R_PADDED=triton.next_power_of_2(extra),
        PAGE=page,
        SIZE=shard.size,
        RANK=shard.rank,
        INTERLEAVE=shard.interleave,
        FP8=fp8,
        COMPILED=pages.is_cuda,
        num_warps=4,
    )
