# SPDX-License-Identifier: Apache-2.0
"""The kernels of both products of the routed experts, and the products of many rows.

**Weights are the left operand**: a block's few pairs fill the narrow side of the MMA, and its
expert's weights are read once. `expert_decode` makes operands of them; its order of columns is
imposed on the activations.

There are two forms of a product. Here weights and activations are staged through shared memory,
and a program's warps share its activations; `expert_direct`, for few rows, does without.
"""

import triton
import triton.language as tl

from kimi_k3.stock.cuda.early import let_next_start, wait_for_previous
from kimi_k3.stock.cuda.expert_copies import copied_product
from kimi_k3.stock.cuda.expert_decode import by_nibble, factors, multiply, pairs
from kimi_k3.stock.cuda.expert_direct import direct_product, direct_rows
from kimi_k3.stock.cuda.situ import tanh


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
    depth: tl.constexpr = 2 * words.shape[1]
    w = pairs(words, narrow, wide, NIBBLE, WIDE, COMPILED).reshape(words.shape[0], depth)
    return multiply(w, x.reshape(x.shape[0], depth).T, acc, COMPILED)


@triton.jit
def _staged_product(
    x_rows,
    x_live,
    word_rows,
    scale_rows,
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
    words_per_row: tl.constexpr = COLUMNS // 8
    word = tl.arange(0, words_per_row)
    group = tl.arange(0, COLUMNS // 32)
    column = tl.arange(0, COLUMNS)
    acc = tl.zeros((ROWS, TOKENS), tl.float32)
    for start in tl.range(0, DEPTH, COLUMNS, num_stages=STAGES):
        word_at = (word_rows + start // 8)[:, None] + word[None, :]
        scale_at = (scale_rows + start // 32)[:, None] + group[None, :]
        x_at = (x_rows + start)[:, None] + column[None, :]
        if DEPTH % COLUMNS == 0:
            words = tl.load(word_at)
            scale = tl.load(scale_at)
            x = tl.load(x_at, x_live[:, None], 0.0)
        else:  # what lies past the depth has weight +0 and activation 0
            words = tl.load(word_at, word[None, :] < (DEPTH - start) // 8, 0)
            scale = tl.load(scale_at, group[None, :] < (DEPTH - start) // 32, 127)
            x = tl.load(x_at, x_live[:, None] & (column[None, :] < DEPTH - start), 0.0)
        x = x.reshape(TOKENS, words_per_row, 2, 2, 2).permute(0, 1, 2, 4, 3)
        x0, x1, x2, x3 = by_nibble(x)
        narrow, wide = factors(scale, WIDE)
        narrow = _by_word(narrow, words_per_row)
        wide = _by_word(wide, words_per_row)
        acc = _add_nibble(acc, words, narrow, wide, x0, 0, WIDE, COMPILED)
        acc = _add_nibble(acc, words, narrow, wide, x1, 1, WIDE, COMPILED)
        acc = _add_nibble(acc, words, narrow, wide, x2, 2, WIDE, COMPILED)
        acc = _add_nibble(acc, words, narrow, wide, x3, 3, WIDE, COMPILED)
    return acc


@triton.jit
def _rows(ROWS: tl.constexpr, GROUPS: tl.constexpr, SLICES: tl.constexpr):
    """A program's rows in the shape in which `_product` wants pointers to them."""
    return tl.arange(0, ROWS) if SLICES == 0 else direct_rows(ROWS, GROUPS, SLICES)


@triton.jit
def _product(
    x_rows,
    x_live,
    word_rows,
    scale_rows,
    DEPTH: tl.constexpr,
    ROWS: tl.constexpr,
    TOKENS: tl.constexpr,
    COLUMNS: tl.constexpr,
    STAGES: tl.constexpr,
    GROUPS: tl.constexpr,
    SLICES: tl.constexpr,
    ONE_ROW: tl.constexpr,
    WIDE: tl.constexpr,
    COMPILED: tl.constexpr,
):
    """Weights times activations, FP32 [ROWS, TOKENS]: staged with 0 slices, else direct.

    With ONE_ROW, which needs slices, as `direct_product` has it.
    """
    if SLICES == 0:
        acc = _staged_product(
            x_rows,
            x_live,
            word_rows,
            scale_rows,
            DEPTH,
            ROWS,
            TOKENS,
            COLUMNS,
            STAGES,
            WIDE,
            COMPILED,
        )
    else:
        acc = direct_product(
            x_rows[:, None],
            word_rows,
            scale_rows,
            DEPTH,
            ROWS,
            COLUMNS,
            STAGES,
            GROUPS,
            SLICES,
            ONE_ROW,
            False,
            WIDE,
            COMPILED,
        )
    return acc


@triton.jit
def _situ(gate, up, BETA: tl.constexpr, LINEAR_BETA: tl.constexpr):
    """SiTU-GLU of spec 1.4 in FP32; a LINEAR_BETA of 0 leaves the up branch linear."""
    if LINEAR_BETA > 0:
        up = LINEAR_BETA * tanh(up / LINEAR_BETA)
    return BETA * tanh(gate / BETA) / (1.0 + tl.exp(-gate)) * up


@triton.jit
def _block(experts, counts, members, b, TOKENS: tl.constexpr, PLANNED: tl.constexpr):
    """Expert of block `b`, how many pairs it has, and which [TOKENS]; its last where none is."""
    token = tl.arange(0, TOKENS)
    expert = tl.load(experts + b).to(tl.int64)
    if PLANNED:
        count = tl.load(counts + b)
        pair = tl.load(members + b * TOKENS + tl.minimum(token, tl.maximum(count, 1) - 1))
    else:
        count = 1
        pair = token * 0 + b
    return expert, count, pair.to(tl.int64)


@triton.jit
def gate_up_kernel(
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
    GROUPS: tl.constexpr,
    SLICES: tl.constexpr,
    PLANNED: tl.constexpr,
    COPIES: tl.constexpr,
    WIDE: tl.constexpr,
    COMPILED: tl.constexpr,
):
    """Hidden columns `ROWS // 2` at a time of one block: see `experts.gate_up`.

    By pair (not PLANNED) a block is a slot, the second axis of the grid, of a row, the third.
    """
    by_pair: tl.constexpr = not PLANNED
    if by_pair:
        wait_for_previous(COMPILED)
        let_next_start(COMPILED)
    b = tl.program_id(1)
    if by_pair:
        b += tl.program_id(2) * tl.num_programs(1)
        z += tl.program_id(2) * LATENT
    expert, count, pair = _block(experts, counts, members, b, TOKENS, PLANNED)
    if count > 0:
        half: tl.constexpr = ROWS // 2  # that many gate rows, then their up rows
        row = _rows(ROWS, GROUPS, SLICES)
        unit = tl.minimum(tl.program_id(0) * half + row % half, LIVE - 1)
        row_at = expert * (2 * WIDTH) + (row // half) * WIDTH + unit
        here = tl.arange(0, TOKENS) < count
        if COPIES:
            flat = tl.arange(0, ROWS)
            flat_unit = tl.minimum(tl.program_id(0) * half + flat % half, LIVE - 1)
            flat_at = expert * (2 * WIDTH) + (flat // half) * WIDTH + flat_unit
            acc = copied_product(
                z,
                packed + row_at * (LATENT // 8),
                scale + flat_at * (LATENT // 32),
                LATENT,
                ROWS,
                TOKENS,
                COLUMNS,
                SLICES,
                WIDE,
            )
        else:
            acc = _product(
                z + (pair * 0 if by_pair else pair // k) * LATENT,
                here,
                packed + row_at * (LATENT // 8),
                scale + row_at * (LATENT // 32),
                LATENT,
                ROWS,
                TOKENS,
                COLUMNS,
                STAGES,
                GROUPS,
                SLICES,
                by_pair,
                WIDE,
                COMPILED,
            )
        rounded = acc.to(tl.bfloat16).to(tl.float32)
        unit = tl.program_id(0) * half + tl.arange(0, half)
        if by_pair:
            gate, up = tl.split(rounded.reshape(2, half).permute(1, 0))
            out = _situ(gate, up, BETA, LINEAR_BETA).to(tl.bfloat16)  # [half]
            tl.store(hidden + b * WIDTH + unit, out, unit < LIVE)
        else:
            gate, up = tl.split(rounded.reshape(2, half, TOKENS).permute(1, 2, 0))
            out = tl.trans(_situ(gate, up, BETA, LINEAR_BETA).to(tl.bfloat16))  # [TOKENS, half]
            at = hidden + pair[:, None] * WIDTH + unit[None, :]
            tl.store(at, out, here[:, None] & (unit < LIVE)[None, :])


@triton.jit
def down_kernel(
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
    GROUPS: tl.constexpr,
    SLICES: tl.constexpr,
    WIDE: tl.constexpr,
    COMPILED: tl.constexpr,
):
    """ROWS latent columns of one block: see `experts.down`."""
    expert, count, pair = _block(experts, counts, members, tl.program_id(1), TOKENS, True)
    if count > 0:
        row = tl.program_id(0) * ROWS + _rows(ROWS, GROUPS, SLICES)
        row_at = expert * LATENT + tl.minimum(row, LATENT - 1)
        here = tl.arange(0, TOKENS) < count
        acc = _product(
            hidden + pair * WIDTH,
            here,
            packed + row_at * (WIDTH // 8),
            scale + row_at * (WIDTH // 32),
            LIVE,
            ROWS,
            TOKENS,
            COLUMNS,
            STAGES,
            GROUPS,
            SLICES,
            False,
            WIDE,
            COMPILED,
        )
        row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
        out = tl.trans(acc.to(tl.bfloat16))  # [TOKENS, ROWS]
        at = rows + pair[:, None] * LATENT + row[None, :]
        tl.store(at, out, here[:, None] & (row < LATENT)[None, :])
