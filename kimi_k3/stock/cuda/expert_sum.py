# SPDX-License-Identifier: Apache-2.0
"""The weighted sum of what a row's experts say, the routed experts' last operation.

    partial[m] = bf16( sum_j weights[m, j] rows[m k + j] )

in FP32. `weighted_sum` adds the rows that `experts.down` wrote, slot by slot; `down_sum` computes
those of few rows itself, in the same launch, and adds them pair by pair.
"""

import torch
import triton
import triton.language as tl

from kimi_k3.stock.cuda.early import let_next_start
from kimi_k3.stock.cuda.expert_direct import direct_product, direct_rows
from kimi_k3.stock.cuda.expert_tiles import PAIR_TOKENS, Tile
from kimi_k3.weights import ExpertWeights


def weighted_sum(
    weights: torch.Tensor,
    rows: torch.Tensor,
    lengths: torch.Tensor,
    q: int,
    partial: torch.Tensor,
) -> None:
    """This rank's share of the latent: FP32 in slot order, rounded once; zero for padding.

    Moves 2 M k L bytes in and 2 M L out.

    Args:
        weights: [M, k] FP32, contiguous.
        rows: [M k, L] BF16, contiguous; not read for padding.
        lengths: [R] int32, 0 for padding; request of a row: row // q.
        q: rows per request, M = R q.
        partial: [M, L] BF16, contiguous.
    """
    m, slots = weights.shape
    latent = rows.shape[1]
    block = min(256, triton.next_power_of_2(latent))
    _weighted_sum[(m, triton.cdiv(latent, block))](
        weights,
        rows,
        lengths,
        partial,
        q,
        LATENT=latent,
        SLOTS=slots,
        BLOCK=block,
        num_warps=1,
    )


def down_sum(
    weights: torch.Tensor,
    hidden: torch.Tensor,
    w: ExpertWeights,
    ids: torch.Tensor,
    lengths: torch.Tensor,
    partial: torch.Tensor,
    tile: Tile,
    *,
    live: int,
    wide: bool,
) -> None:
    """`down` and `weighted_sum` of few rows, each expert's product rounded to BF16 as there.

    Starts early (see `early`), and reads `ids`, `weights` and `lengths` before it waits. So the
    launch before it, `gate_up`, must let it start only after its own wait, or be a normal launch.

    Moves, per pair, `L (live/2 + live/32)` bytes of weights and 2 `live` bytes (times `L / rows`,
    out of L2) in, and per row 2 L bytes out.

    Args:
        weights: [M, k] FP32, contiguous; like `ids` and `lengths` not written by the launch before
            this one, which is `gate_up`.
        hidden: [M k, I] BF16, contiguous, as `gate_up` wrote it with `ExpertPlan.by_pair`.
        w: the experts.
        ids: [M, k] int32, contiguous.
        lengths: [M] int32 of each row, 0 for padding.
        partial: [M, L] BF16, contiguous; zero for padding.
        tile: sizes of one program, one slice: `rows` of every expert, `columns` of one product.
        live: columns of an expert that are not padding, a multiple of 32.
        wide: `has_wide_scales(w.w2_scale)`, or True.
    """
    rows, slots = ids.shape
    latent = partial.shape[1]
    _down_sum[(triton.cdiv(latent, tile.rows), rows)](
        hidden,
        w.w2_packed.view(torch.int32),
        w.w2_scale,
        ids,
        weights,
        lengths,
        partial,
        LATENT=latent,
        WIDTH=hidden.shape[1],
        LIVE=live,
        SLOTS=slots,
        GROUPS=triton.next_power_of_2(slots),
        ROWS=tile.rows,
        TOKENS=PAIR_TOKENS,
        COLUMNS=tile.columns_for(live),
        STAGES=tile.stages,
        WIDE=wide,
        COMPILED=hidden.is_cuda,
        num_warps=tile.warps,
        maxnreg=tile.registers,
        launch_pdl=True,
    )


@triton.jit
def _weighted_sum(
    weights,
    rows,
    lengths,
    partial,
    q,
    LATENT: tl.constexpr,
    SLOTS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """BLOCK columns of one row: see `weighted_sum`."""
    m = tl.program_id(0)
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = column < LATENT
    alive = tl.load(lengths + m // q) > 0
    pair = m.to(tl.int64) * SLOTS
    total = tl.zeros((BLOCK,), tl.float32)
    for slot in tl.static_range(SLOTS):
        row = tl.load(rows + (pair + slot) * LATENT + column, inside & alive, 0.0)
        total += tl.load(weights + pair + slot) * row.to(tl.float32)
    total = tl.where(alive, total, 0.0)
    tl.store(partial + m.to(tl.int64) * LATENT + column, total.to(tl.bfloat16), inside)


@triton.jit
def _down_sum(
    hidden,
    packed,
    scale,
    ids,
    weights,
    lengths,
    partial,
    LATENT: tl.constexpr,
    WIDTH: tl.constexpr,
    LIVE: tl.constexpr,
    SLOTS: tl.constexpr,
    GROUPS: tl.constexpr,
    ROWS: tl.constexpr,
    TOKENS: tl.constexpr,
    COLUMNS: tl.constexpr,
    STAGES: tl.constexpr,
    WIDE: tl.constexpr,
    COMPILED: tl.constexpr,
):
    """ROWS columns of one row's latent; GROUPS is SLOTS padded to a power of two."""
    m = tl.program_id(1)  # added to pointers once: inside each address it costs registers
    ids += m * SLOTS
    weights += m * SLOTS
    hidden += m * (SLOTS * WIDTH)
    row = direct_rows(GROUPS * ROWS, GROUPS, 1)
    expert = tl.load(ids + tl.minimum(row // ROWS, SLOTS - 1), cache_modifier=".cg").to(tl.int64)
    row_at = expert * LATENT + tl.minimum(tl.program_id(0) * ROWS + row % ROWS, LATENT - 1)
    alive = tl.load(lengths + m, cache_modifier=".cg") > 0
    group = tl.arange(0, GROUPS)
    weight = tl.load(weights + group, group < SLOTS, 0.0, cache_modifier=".cg")
    x_at = tl.minimum(group, SLOTS - 1) * WIDTH
    products = direct_product(
        hidden + tl.zeros((TOKENS, 1), tl.int32) + x_at[None, :],
        packed + row_at * (WIDTH // 8),
        scale + row_at * (WIDTH // 32),
        LIVE,
        GROUPS * ROWS,
        COLUMNS,
        STAGES,
        GROUPS,
        1,
        True,
        True,
        WIDE,
        COMPILED,
    )
    let_next_start(COMPILED)
    rounded = products.to(tl.bfloat16).to(tl.float32).reshape(GROUPS, ROWS)
    total = tl.sum(tl.where((group < SLOTS)[:, None], weight[:, None] * rounded, 0.0), 0)
    column = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    total = tl.where(alive, total, 0.0)
    tl.store(partial + m * LATENT + column, total.to(tl.bfloat16), column < LATENT)
