# SPDX-License-Identifier: Apache-2.0
"""The routed experts of the stock path: grouped W4A16 products over MXFP4 weights.

Spec 2.6 and 1.3, rounding of the stock column of spec 2.8:

    hidden[p]  = bf16( situ( bf16(W1_e z[row]), bf16(W3_e z[row]) ) )     `gate_up`
    rows[p]    = bf16( W2_e hidden[p] )                                   `down`
    partial[m] = bf16( sum_j weights[m, j] rows[m k + j] )                `weighted_sum`

for each pair p = row * k + slot with expert e; sums in FP32, the last one in slot order.

| tensor | shape | dtype |
|---|---|---|
| z | [M, L] | BF16 |
| w13, its scales | [E, 2 I, L/2], [E, 2 I, L/32]: gate rows, then up rows | u8 |
| w2, its scales | [E, L, I/2], [E, L, I/32] | u8 |
| hidden, rows, partial | [M k, I], [M k, L], [M, L] | BF16 |

**Weights are the left operand**: a block's few pairs fill the narrow side of the MMA, and its
expert's weights are read once. A 32-bit word holds the codes of 8 columns. Its nibbles i and
i + 4, shifted to `s<<15 | eem<<6` of both halves, are two BF16 numbers 2^-126 times their values,
and one packed multiplication by 2^126 times the scale makes them exact weights. So a word gives
four operand registers, each for columns 8 w + i and 8 w + i + 4, and the activations' columns are
permuted alike. About 7 instructions decode one byte.

**Scales.** 2^126 times the scale is itself a BF16 number up to scale byte 128. `has_wide_scales`
tells once, when weights are loaded, whether a tensor has larger bytes or 255 (NaN); only then the
kernels spend a second multiplication. Products from 2^128 on are infinite, as in `mxfp4`.

`COMPILED` is false only under Triton's interpreter, which has no inline assembly; the two ways of
writing a product give the same bits.

Rows of padding requests are never read (the plan has no block for them) and `weighted_sum` selects
zero for them. At TP16 only the `live` columns of an expert are computed and read.
"""

import torch
import triton
import triton.language as tl

from kimi_k3.stock.cuda.expert_plan import ExpertPlan
from kimi_k3.stock.cuda.expert_tiles import Tile
from kimi_k3.weights import ExpertWeights

LARGEST_NARROW_SCALE = 128
"""2^126 times the scale of this byte is 2^127, the largest power of two in BF16."""


def has_wide_scales(scale: torch.Tensor) -> bool:
    """Whether scale bytes need the kernels' `wide` form. Reads the device; call it at load."""
    return bool((scale > LARGEST_NARROW_SCALE).any())


@triton.jit
def _times(words, factors, COMPILED: tl.constexpr):
    """Both BF16 halves of `words` times both of `factors`; all int32 of one shape."""
    if COMPILED:
        product = tl.inline_asm_elementwise(
            "mul.rn.bf16x2 $0, $1, $2;", "=r,r,r", [words, factors], tl.int32, is_pure=True, pack=1
        )
    else:  # the interpreter has no inline assembly; widening to FP32 is shifting to the top half
        low = (words << 16).to(tl.float32, bitcast=True) * (factors << 16).to(
            tl.float32, bitcast=True
        )
        high = (words & -65536).to(tl.float32, bitcast=True) * (factors & -65536).to(
            tl.float32, bitcast=True
        )
        product = ((low.to(tl.int32, bitcast=True) >> 16) & 0xFFFF) | (
            high.to(tl.int32, bitcast=True) & -65536
        )
    return product


@triton.jit
def _both_halves(exponent, scale):
    """BF16 2^(exponent - 127) in both halves; NaN where the scale byte is 255."""
    return tl.where(scale == 255, 0x7FC07FC0, exponent * 0x00800080)


@triton.jit
def _weights(words, narrow, wide, NIBBLE: tl.constexpr, WIDE: tl.constexpr, COMPILED: tl.constexpr):
    """BF16 [N, 2 W] weights of columns 8 w + NIBBLE, 8 w + NIBBLE + 4 of `words` [N, W]."""
    if NIBBLE == 0:
        code = ((words << 6) & 0x01C001C0) | ((words << 12) & -2147450880)
    elif NIBBLE == 1:
        code = ((words << 2) & 0x01C001C0) | ((words << 8) & -2147450880)
    elif NIBBLE == 2:
        code = ((words >> 2) & 0x01C001C0) | ((words << 4) & -2147450880)
    else:
        code = ((words >> 6) & 0x01C001C0) | (words & -2147450880)
    value = _times(code, narrow, COMPILED)
    if WIDE:
        value = _times(value, wide, COMPILED)
    pair = tl.join(value.to(tl.int16), (value >> 16).to(tl.int16))  # [N, W, 2]
    return pair.reshape(words.shape[0], 2 * words.shape[1]).to(tl.bfloat16, bitcast=True)


@triton.jit
def _by_word(per_group, WORDS: tl.constexpr):
    """[N, G] values of 32 columns as [N, WORDS] of 8 columns."""
    rows: tl.constexpr = per_group.shape[0]
    wider = tl.broadcast_to(per_group[:, :, None], (rows, per_group.shape[1], 4))
    return wider.reshape(rows, WORDS)


@triton.jit
def _add_nibble(
    acc,
    words,
    narrow,
    wide,
    x,
    NIBBLE: tl.constexpr,
    WIDE: tl.constexpr,
    COMPILED: tl.constexpr,
):
    """`acc` plus the product over the columns of one nibble; `x` is [TOKENS, W, 2]."""
    w = _weights(words, narrow, wide, NIBBLE, WIDE, COMPILED)
    x = x.reshape(x.shape[0], 2 * x.shape[1]).T
    if COMPILED:
        acc = tl.dot(w, x, acc)
    else:  # the interpreter multiplies the bits of BF16 numbers, and widens small ones wrongly
        exact = w.to(tl.int16, bitcast=True).to(tl.int32) << 16
        acc = tl.dot(exact.to(tl.float32, bitcast=True), x.to(tl.float32), acc)
    return acc


@triton.jit
def _product(
    x_rows,
    x_live,
    word_rows,
    scale_rows,
    row_live,
    DEPTH: tl.constexpr,
    ROWS: tl.constexpr,
    TOKENS: tl.constexpr,
    COLUMNS: tl.constexpr,
    STAGES: tl.constexpr,
    WIDE: tl.constexpr,
    COMPILED: tl.constexpr,
):
    """Weights times activations, FP32 [ROWS, TOKENS], over DEPTH columns.

    Pointers to the first column: `x_rows` [TOKENS], `word_rows` and `scale_rows` [ROWS].
    """
    WORDS: tl.constexpr = COLUMNS // 8
    word = tl.arange(0, WORDS)
    group = tl.arange(0, COLUMNS // 32)
    column = tl.arange(0, COLUMNS)
    acc = tl.zeros((ROWS, TOKENS), tl.float32)
    for start in tl.range(0, DEPTH, COLUMNS, num_stages=STAGES):
        if DEPTH % COLUMNS == 0:
            words = tl.load((word_rows + start // 8)[:, None] + word[None, :], row_live[:, None], 0)
            scale = tl.load(
                (scale_rows + start // 32)[:, None] + group[None, :], row_live[:, None], 127
            )
            x = tl.load((x_rows + start)[:, None] + column[None, :], x_live[:, None], 0.0)
        else:  # what lies past the depth has weight +0 and activation 0
            inside = row_live[:, None] & (word[None, :] < (DEPTH - start) // 8)
            words = tl.load((word_rows + start // 8)[:, None] + word[None, :], inside, 0)
            inside = row_live[:, None] & (group[None, :] < (DEPTH - start) // 32)
            scale = tl.load((scale_rows + start // 32)[:, None] + group[None, :], inside, 127)
            inside = x_live[:, None] & (column[None, :] < DEPTH - start)
            x = tl.load((x_rows + start)[:, None] + column[None, :], inside, 0.0)
        # Column 8 w + 4 half + 2 upper + lower belongs to nibble 2 upper + lower.
        low, high = tl.split(x.reshape(TOKENS, WORDS, 2, 2, 2).permute(0, 1, 2, 4, 3))
        x0, x1 = tl.split(low)
        x2, x3 = tl.split(high)
        scale = scale.to(tl.int32)
        if WIDE:
            narrow = _by_word(_both_halves(tl.minimum(scale, 128) + 126, scale), WORDS)
            wide = _by_word(_both_halves(tl.maximum(scale, 128) - 1, scale), WORDS)
        else:
            narrow = _by_word((scale + 126) * 0x00800080, WORDS)
            wide = narrow
        acc = _add_nibble(acc, words, narrow, wide, x0, 0, WIDE, COMPILED)
        acc = _add_nibble(acc, words, narrow, wide, x1, 1, WIDE, COMPILED)
        acc = _add_nibble(acc, words, narrow, wide, x2, 2, WIDE, COMPILED)
        acc = _add_nibble(acc, words, narrow, wide, x3, 3, WIDE, COMPILED)
    return acc


@triton.jit
def _tanh(x):
    """To about 5e-7 relative: a series where the quotient would cancel."""
    square = x * x
    series = x * (1.0 - square * (1 / 3 - square * (2 / 15 - square * (17 / 315))))
    return tl.where(tl.abs(x) < 0.25, series, 1.0 - 2.0 / (1.0 + tl.exp(2.0 * x)))


@triton.jit
def _situ(gate, up, BETA: tl.constexpr, LINEAR_BETA: tl.constexpr):
    """SiTU-GLU of spec 1.4 in FP32; a LINEAR_BETA of 0 leaves the up branch linear."""
    if LINEAR_BETA > 0:
        up = LINEAR_BETA * _tanh(up / LINEAR_BETA)
    return BETA * _tanh(gate / BETA) / (1.0 + tl.exp(-gate)) * up


@triton.jit
def _block(experts, counts, members, b, TOKENS: tl.constexpr, PLANNED: tl.constexpr):
    """Expert of block `b`, how many pairs it has, and which [TOKENS]; 0 where there is none."""
    token = tl.arange(0, TOKENS)
    expert = tl.load(experts + b).to(tl.int64)
    if PLANNED:
        count = tl.load(counts + b)
        pair = tl.load(members + b * TOKENS + token, token < count, 0)
    else:
        count = 1
        pair = token * 0 + b
    return expert, count, pair.to(tl.int64)


@triton.jit
def _gate_up_kernel(
    z,
    packed,
    scale,
    experts,
    counts,
    members,
    hidden,
    k,
    LATENT: tl.constexpr,
    WIDTH: tl.constexpr,
    LIVE: tl.constexpr,
    BETA: tl.constexpr,
    LINEAR_BETA: tl.constexpr,
    ROWS: tl.constexpr,
    TOKENS: tl.constexpr,
    COLUMNS: tl.constexpr,
    STAGES: tl.constexpr,
    PLANNED: tl.constexpr,
    WIDE: tl.constexpr,
    COMPILED: tl.constexpr,
):
    expert, count, pair = _block(experts, counts, members, tl.program_id(1), TOKENS, PLANNED)
    if count > 0:
        HALF: tl.constexpr = ROWS // 2  # that many gate rows, then their up rows
        row = tl.arange(0, ROWS)
        unit = tl.program_id(0) * HALF + row % HALF
        row_at = expert * (2 * WIDTH) + (row // HALF) * WIDTH + unit
        here = tl.arange(0, TOKENS) < count
        acc = _product(
            z + (pair // k) * LATENT,
            here,
            packed + row_at * (LATENT // 8),
            scale + row_at * (LATENT // 32),
            unit < LIVE,
            LATENT,
            ROWS,
            TOKENS,
            COLUMNS,
            STAGES,
            WIDE,
            COMPILED,
        )
        rounded = acc.to(tl.bfloat16).to(tl.float32)
        gate, up = tl.split(rounded.reshape(2, HALF, TOKENS).permute(1, 2, 0))
        out = tl.trans(_situ(gate, up, BETA, LINEAR_BETA).to(tl.bfloat16))  # [TOKENS, HALF]
        unit = tl.program_id(0) * HALF + tl.arange(0, HALF)
        at = hidden + pair[:, None] * WIDTH + unit[None, :]
        tl.store(at, out, here[:, None] & (unit < LIVE)[None, :])


@triton.jit
def _down_kernel(
    hidden,
    packed,
    scale,
    experts,
    counts,
    members,
    rows,
    LATENT: tl.constexpr,
    WIDTH: tl.constexpr,
    LIVE: tl.constexpr,
    ROWS: tl.constexpr,
    TOKENS: tl.constexpr,
    COLUMNS: tl.constexpr,
    STAGES: tl.constexpr,
    PLANNED: tl.constexpr,
    WIDE: tl.constexpr,
    COMPILED: tl.constexpr,
):
    expert, count, pair = _block(experts, counts, members, tl.program_id(1), TOKENS, PLANNED)
    if count > 0:
        row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
        row_at = expert * LATENT + row
        here = tl.arange(0, TOKENS) < count
        acc = _product(
            hidden + pair * WIDTH,
            here,
            packed + row_at * (WIDTH // 8),
            scale + row_at * (WIDTH // 32),
            row < LATENT,
            LIVE,
            ROWS,
            TOKENS,
            COLUMNS,
            STAGES,
            WIDE,
            COMPILED,
        )
        out = tl.trans(acc.to(tl.bfloat16))  # [TOKENS, ROWS]
        at = rows + pair[:, None] * LATENT + row[None, :]
        tl.store(at, out, here[:, None] & (row < LATENT)[None, :])


@triton.jit
def _weighted_sum_kernel(
    weights,
    rows,
    lengths,
    partial,
    q,
    LATENT: tl.constexpr,
    SLOTS: tl.constexpr,
    BLOCK: tl.constexpr,
):
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
    (times `live / (rows / 2)`, out of L2) and 2 `live` bytes out.

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
    """
    pairs, width = hidden.shape
    blocks = len(plan.experts)
    _gate_up_kernel[(triton.cdiv(live, tile.rows // 2), blocks)](
        z,
        _as_words(w.w13_packed),
        w.w13_scale,
        plan.experts,
        plan.counts,
        plan.members,
        hidden,
        pairs // len(z),
        LATENT=z.shape[1],
        WIDTH=width,
        LIVE=live,
        BETA=beta,
        LINEAR_BETA=linear_beta or 0.0,
        ROWS=tile.rows,
        TOKENS=plan.tokens,
        COLUMNS=tile.columns_for(z.shape[1]),
        STAGES=tile.stages,
        PLANNED=plan.counts is not None,
        WIDE=wide,
        COMPILED=z.is_cuda,
        num_warps=tile.warps,
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
        plan: the one that `gate_up` had.
        rows: [M k, L] BF16, contiguous.
        tile: sizes of one program.
        live: columns of an expert that are not padding, a multiple of 32.
        wide: `has_wide_scales(w.w2_scale)`, or True.
    """
    latent = rows.shape[1]
    blocks = len(plan.experts)
    _down_kernel[(triton.cdiv(latent, tile.rows), blocks)](
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
        PLANNED=plan.counts is not None,
        WIDE=wide,
        COMPILED=hidden.is_cuda,
        num_warps=tile.warps,
    )


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
    _weighted_sum_kernel[(m, triton.cdiv(latent, block))](
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
