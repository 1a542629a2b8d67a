# SPDX-License-Identifier: Apache-2.0
"""The kernels of `experts`: MXFP4 weights from checkpoint order into the operands of an MMA.

**Weights are the left operand**: a block's few pairs fill the narrow side of the MMA, and its
expert's weights are read once. A 32-bit word holds the codes of 8 columns. Its nibbles i and
i + 4, shifted to `s<<15 | eem<<6` of both halves, are two BF16 numbers 2^-126 times their values,
and one packed multiplication by 2^126 times the scale makes them exact weights. So a word gives
four operand registers, each for columns 8 w + i and 8 w + i + 4, and the activations' columns are
permuted alike. About 7 instructions decode one byte.

**Scales.** 2^126 times the scale is itself a BF16 number up to scale byte 128. With larger bytes
or 255 (NaN), WIDE, there is a second multiplication. Products from 2^128 on are infinite, as in
`kimi_k3.mxfp4`.

`COMPILED` is false only under Triton's interpreter, which has no inline assembly; the two ways of
writing a product give the same bits.
"""

import triton
import triton.language as tl

from kimi_k3.stock.cuda.situ import tanh


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
    words_per_row: tl.constexpr = COLUMNS // 8
    word = tl.arange(0, words_per_row)
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
        low, high = tl.split(x.reshape(TOKENS, words_per_row, 2, 2, 2).permute(0, 1, 2, 4, 3))
        x0, x1 = tl.split(low)
        x2, x3 = tl.split(high)
        scale = scale.to(tl.int32)
        if WIDE:
            narrow = _by_word(_both_halves(tl.minimum(scale, 128) + 126, scale), words_per_row)
            wide = _by_word(_both_halves(tl.maximum(scale, 128) - 1, scale), words_per_row)
        else:
            narrow = _by_word((scale + 126) * 0x00800080, words_per_row)
            wide = narrow
        acc = _add_nibble(acc, words, narrow, wide, x0, 0, WIDE, COMPILED)
        acc = _add_nibble(acc, words, narrow, wide, x1, 1, WIDE, COMPILED)
        acc = _add_nibble(acc, words, narrow, wide, x2, 2, WIDE, COMPILED)
        acc = _add_nibble(acc, words, narrow, wide, x3, 3, WIDE, COMPILED)
    return acc


@triton.jit
def _situ(gate, up, BETA: tl.constexpr, LINEAR_BETA: tl.constexpr):
    """SiTU-GLU of spec 1.4 in FP32; a LINEAR_BETA of 0 leaves the up branch linear."""
    if LINEAR_BETA > 0:
        up = LINEAR_BETA * tanh(up / LINEAR_BETA)
    return BETA * tanh(gate / BETA) / (1.0 + tl.exp(-gate)) * up


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
    PLANNED: tl.constexpr,
    WIDE: tl.constexpr,
    COMPILED: tl.constexpr,
):
    """Hidden columns `ROWS // 2` at a time of one block: see `experts.gate_up`."""
    expert, count, pair = _block(experts, counts, members, tl.program_id(1), TOKENS, PLANNED)
    if count > 0:
        half: tl.constexpr = ROWS // 2  # that many gate rows, then their up rows
        row = tl.arange(0, ROWS)
        unit = tl.program_id(0) * half + row % half
        row_at = expert * (2 * WIDTH) + (row // half) * WIDTH + unit
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
        gate, up = tl.split(rounded.reshape(2, half, TOKENS).permute(1, 2, 0))
        out = tl.trans(_situ(gate, up, BETA, LINEAR_BETA).to(tl.bfloat16))  # [TOKENS, half]
        unit = tl.program_id(0) * half + tl.arange(0, half)
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
    PLANNED: tl.constexpr,
    WIDE: tl.constexpr,
    COMPILED: tl.constexpr,
):
    """ROWS latent columns of one block: see `experts.down`."""
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
def weighted_sum_kernel(
    weights,
    rows,
    lengths,
    partial,
    q,
    LATENT: tl.constexpr,
    SLOTS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """BLOCK columns of one row: see `experts.weighted_sum`."""
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
