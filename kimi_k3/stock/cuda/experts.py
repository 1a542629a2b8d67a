# SPDX-License-Identifier: Apache-2.0
"""The routed experts' products of the stock path: grouped W4A16 over MXFP4 weights.

Spec 2.6 and 1.3, rounding of the stock column of spec 2.8:

    hidden[p]  = bf16( situ( bf16(W1_e z[row]), bf16(W3_e z[row]) ) )     `gate_up`
    rows[p]    = bf16( W2_e hidden[p] )                                   `down`

for each pair p = row * k + slot with expert e; sums in FP32. `expert_sum` adds the rows up, and has
another form of `down` for a plan by pair.

| tensor | shape | dtype |
|---|---|---|
| z | [M, L] | BF16 |
| w13, its scales | [E, 2 I, L/2], [E, 2 I, L/32]: gate rows, then up rows | u8 |
| w2, its scales | [E, L, I/2], [E, L, I/32] | u8 |
| hidden, rows | [M k, I], [M k, L] | BF16 |

`expert_decode` says how weights are decoded, `expert_kernels` and `expert_direct` how they are
multiplied. `has_wide_scales` tells once, when weights are loaded, whether they need the slower form
of decoding.

Rows of padding requests are never read where the plan has no block for them. At TP16 only the
`live` columns of an expert are computed and read.
"""

import torch
import triton

from kimi_k3.stock.cuda.expert_copies import COPY_BYTES, can_copy, lanes_read_their_copies
from kimi_k3.stock.cuda.expert_kernels import down_kernel, gate_up_kernel
from kimi_k3.stock.cuda.expert_plan import ExpertPlan
from kimi_k3.stock.cuda.expert_tiles import Tile
from kimi_k3.weights import ExpertWeights

LARGEST_NARROW_SCALE = 128
"""2^126 times the scale of this byte is 2^127, the largest power of two in BF16."""


def has_wide_scales(scale: torch.Tensor) -> bool:
    """Whether scale bytes need the kernels' `wide` form. Reads the device; call it at load."""
    return bool((scale > LARGEST_NARROW_SCALE).any())


def _as_words(packed: torch.Tensor) -> torch.Tensor:
    """The same memory as 32-bit words."""
    return packed.view(torch.int32)


def gate_up(
    z: torch.Tensor,
    w: ExpertWeights,
    plan: ExpertPlan,
    hidden: torch.Tensor,
    tile: Tile,
    *,
    live: int,
    beta: float,
    linear_beta: float | None,
    wide: bool,
) -> None:
    """The hidden rows of every pair that the plan holds; other rows are not written.

    Moves, per distinct expert, `2 live (L/2 + L/32)` bytes of weights, and per pair 2 L bytes in
    (times `live / (rows / 2)`, out of L2) and 2 `live` bytes out. With a plan by pair, each pair
    counts for an expert, and it starts early: see `early`.

    Args:
        z: [M, L] BF16, contiguous.
        w: the experts.
        plan: blocks of the pairs of z's rows.
        hidden: [M k, I] BF16, contiguous; columns from `live` on are not written.
        tile: sizes of one program; `tile.rows` counts gate and up rows together.
        live: columns of an expert that are not padding, a multiple of 32.
        beta: of SiTU.
        linear_beta: of SiTU; None leaves the up branch linear.
        wide: `has_wide_scales(w.w13_scale)`, or True.

    Raises:
        ValueError: a tile without slices for a plan by pair.
    """
    pairs, width = hidden.shape
    by_pair = plan.counts is None
    if by_pair and not tile.slices:
        raise ValueError(f"{tile} stages weights; a single pair's product has slices")
    blocks, rows = len(plan.experts), len(z) if by_pair else 1
    latent, columns = z.shape[1], tile.columns_for(z.shape[1])
    copies = (
        tile.copied_registers is not None
        and by_pair
        and can_copy(tile.rows, latent, columns, tile.slices)
        and lanes_read_their_copies(z.device)
        and all(t.data_ptr() % COPY_BYTES == 0 for t in (z, w.w13_packed, w.w13_scale))
    )
    gate_up_kernel[(triton.cdiv(live, tile.rows // 2), blocks // rows, rows)](
        z,
        _as_words(w.w13_packed),
        w.w13_scale,
        plan.experts,
        plan.counts,
        plan.members,
        hidden,
        pairs // len(z),
        LATENT=latent,
        WIDTH=width,
        LIVE=live,
        BETA=beta,
        LINEAR_BETA=linear_beta or 0.0,
        ROWS=tile.rows,
        TOKENS=plan.tokens,
        COLUMNS=columns,
        STAGES=tile.stages,
        GROUPS=tile.groups,
        SLICES=tile.slices,
        PLANNED=not by_pair,
        COPIES=copies,
        WIDE=wide,
        COMPILED=z.is_cuda,
        num_warps=tile.warps,
        maxnreg=tile.copied_registers if copies else tile.registers,
        launch_pdl=by_pair,
    )


def down(
    hidden: torch.Tensor,
    w: ExpertWeights,
    plan: ExpertPlan,
    rows: torch.Tensor,
    tile: Tile,
    *,
    live: int,
    wide: bool,
) -> None:
    """The row r_e of every pair that the plan holds; other rows are not written.

    Moves, per distinct expert, `L (live/2 + live/32)` bytes of weights, and per pair 2 `live` bytes
    in (times `L / rows`, out of L2) and 2 L bytes out.

    Args:
        hidden: [M k, I] BF16, contiguous; columns from `live` on are not read.
        w: the experts.
        plan: the one that `gate_up` had, not by pair.
        rows: [M k, L] BF16, contiguous.
        tile: sizes of one program.
        live: columns of an expert that are not padding, a multiple of 32.
        wide: `has_wide_scales(w.w2_scale)`, or True.

    Raises:
        ValueError: a plan by pair, which `expert_sum.down_sum` is for.
    """
    if plan.counts is None:
        raise ValueError("a plan by pair; its products and their sum are one launch")
    latent = rows.shape[1]
    blocks = len(plan.experts)
    down_kernel[(triton.cdiv(latent, tile.rows), blocks)](
        hidden,
        _as_words(w.w2_packed),
        w.w2_scale,
        plan.experts,
        plan.counts,
        plan.members,
        rows,
        LATENT=latent,
        WIDTH=hidden.shape[1],
        LIVE=live,
        ROWS=tile.rows,
        TOKENS=plan.tokens,
        COLUMNS=tile.columns_for(live),
        STAGES=tile.stages,
        GROUPS=tile.groups,
        SLICES=tile.slices,
        WIDE=wide,
        COMPILED=hidden.is_cuda,
        num_warps=tile.warps,
        maxnreg=tile.registers,
    )
