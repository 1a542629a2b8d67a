# SPDX-License-Identifier: Apache-2.0
"""Products of few rows: each warp loads its weights straight into operand registers.

With few rows a step waits: for the weights, for barriers between the warps that share a tile in
shared memory, and for MMAs that add to one another. Here every warp works alone, and several share
one weight row's columns (*slices*), whose sums are added at the end in a fixed order.

A product is a batch of [R, K] x [K, TOKENS], a batch entry per warp: entry `group * SLICES + slice`
has the R rows of its group, and of every COLUMNS columns the slice's part. A tile of 128 columns
of 16 rows is one operand of four pairs of MMAs, and no register moves between lanes if lane
4 g + t of a warp

* loads 4 consecutive words, one group of 32 columns with one scale, of rows g and g + 8, and
* of token g the same columns' activations, 16 bytes at a time.

Triton spreads a load over lanes, then warps, then registers, in the order of the tile's axes after
the contiguous one; so the axes here are written fastest first, and a permutation of them, which
costs nothing, makes the operand. K's order is what the MMA's lanes hold then: of the words 4 t +
2 u + v of a tile, u slowest, then t, then v. Groups are counted downwards (t is group 3 - t), for
a scale must not look contiguous over lanes: it would be loaded 4 at a time by one of them.
"""

import triton
import triton.language as tl

from kimi_k3.stock.cuda.expert_decode import by_nibble, factors, multiply, pairs


@triton.jit
def direct_rows(ROWS: tl.constexpr, GROUPS: tl.constexpr, SLICES: tl.constexpr):
    """Which of a program's rows the weight tile [.., g, batch, h, ..] holds, [1, 8, B, R / 8, 1]."""
    own: tl.constexpr = ROWS // GROUPS
    g = tl.arange(0, 8)[None, :, None, None, None]
    batch = tl.arange(0, GROUPS * SLICES)[None, None, :, None, None]
    h = tl.arange(0, own // 8)[None, None, None, :, None]
    return (batch // SLICES) * own + h * 8 + g


@triton.jit
def _tile_weights(
    word_rows,
    scale_rows,
    start,
    DEPTH: tl.constexpr,
    COLUMNS: tl.constexpr,
    SLICES: tl.constexpr,
):
    """Words [16, 8, B, R / 8, C] and scales [4, 8, B, R / 8, C] of the columns from `start` on."""
    tiles: tl.constexpr = COLUMNS // SLICES // 128
    batch = tl.arange(0, word_rows.shape[2])[None, None, :, None, None]
    tile = (batch % SLICES) * tiles + tl.arange(0, tiles)[None, None, None, None, :]
    word = tl.arange(0, 16)[:, None, None, None, None]
    group = 3 - word // 4
    scale_group = 3 - tl.arange(0, 4)[:, None, None, None, None]
    word_at = word_rows + start // 8 + tile * 16 + group * 4 + word % 4
    scale_at = scale_rows + start // 32 + tile * 4 + scale_group
    if DEPTH % COLUMNS == 0:
        words = tl.load(word_at, start < DEPTH, 0)
        scale = tl.load(scale_at, start < DEPTH, 127)
    else:  # what lies past the depth has weight +0
        left = (DEPTH - start) // 32
        words = tl.load(word_at, tile * 4 + group < left, 0)
        scale = tl.load(scale_at, tile * 4 + scale_group < left, 127)
    return words, scale


@triton.jit
def _tile_activations(
    x_rows,
    start,
    DEPTH: tl.constexpr,
    COLUMNS: tl.constexpr,
    BATCH: tl.constexpr,
    SLICES: tl.constexpr,
):
    """BF16 [8, 4, TOKENS, B, 4, C]: column in its word, t, token, batch, word of the lane, tile."""
    tiles: tl.constexpr = COLUMNS // SLICES // 128
    column = tl.arange(0, 8)[:, None, None, None, None, None]
    group = 3 - tl.arange(0, 4)[None, :, None, None, None, None]
    batch = tl.arange(0, BATCH)[None, None, None, :, None, None]
    word = tl.arange(0, 4)[None, None, None, None, :, None]
    tile = (batch % SLICES) * tiles + tl.arange(0, tiles)[None, None, None, None, None, :]
    at = x_rows[None, None, :, None, None, None] + start + tile * 128
    at += group * 32 + word * 8 + column
    if DEPTH % COLUMNS == 0:
        x = tl.load(at)
    else:
        x = tl.load(at, tile * 4 + group < (DEPTH - start) // 32, 0.0)
    return x


@triton.jit
def _add_nibble(
    acc, words, narrow, wide, x, NIBBLE: tl.constexpr, WIDE: tl.constexpr, COMPILED: tl.constexpr
):
    """`acc` plus the product over one nibble: `words` [B, R, W], `x` [B, TOKENS, .., 2]."""
    batch: tl.constexpr = words.shape[0]
    depth: tl.constexpr = 2 * words.shape[2]
    w = pairs(words, narrow, wide, NIBBLE, WIDE, COMPILED).reshape(batch, words.shape[1], depth)
    x = x.reshape(batch, x.shape[1], depth).permute(0, 2, 1)
    return multiply(w, x, acc, COMPILED)


@triton.jit
def _by_word(per_group, ROWS: tl.constexpr, WORDS: tl.constexpr):
    """[4, 8, B, H, C] values of groups as [B, ROWS, WORDS], in the words' order."""
    v = per_group.permute(2, 3, 1, 4, 0)[:, :, :, :, None, :, None]  # [B, H, 8, C, 1, 4, 1]
    v = tl.broadcast_to(v, (v.shape[0], v.shape[1], 8, v.shape[3], 2, 4, 2))
    return v.reshape(v.shape[0], ROWS, WORDS)


@triton.jit
def direct_product(
    x_rows,
    word_rows,
    scale_rows,
    DEPTH: tl.constexpr,
    ROWS: tl.constexpr,
    TOKENS: tl.constexpr,
    COLUMNS: tl.constexpr,
    STAGES: tl.constexpr,
    GROUPS: tl.constexpr,
    SLICES: tl.constexpr,
    WIDE: tl.constexpr,
    COMPILED: tl.constexpr,
):
    """Weights times activations, FP32 [ROWS, TOKENS], over DEPTH columns, a multiple of 32.

    Pointers to the first column: `x_rows` [TOKENS], which are read whether live or not, and
    `word_rows` and `scale_rows` in the shape of `direct_rows`. STAGES is 2 or 3.
    """
    batch: tl.constexpr = GROUPS * SLICES
    own: tl.constexpr = ROWS // GROUPS
    tiles: tl.constexpr = COLUMNS // SLICES // 128
    # Two sums, so that an MMA need not wait for the one before it.
    even = tl.zeros((batch, own, TOKENS), tl.float32)
    odd = tl.zeros((batch, own, TOKENS), tl.float32)
    words, scale = _tile_weights(word_rows, scale_rows, 0, DEPTH, COLUMNS, SLICES)
    if STAGES == 3:
        next_words, next_scale = _tile_weights(
            word_rows, scale_rows, COLUMNS, DEPTH, COLUMNS, SLICES
        )
    for start in tl.range(0, DEPTH, COLUMNS, num_stages=1):
        x = _tile_activations(x_rows, start, DEPTH, COLUMNS, batch, SLICES)
        last_words, last_scale = _tile_weights(
            word_rows, scale_rows, start + (STAGES - 1) * COLUMNS, DEPTH, COLUMNS, SLICES
        )
        # [half, upper, lower, t, TOKENS, B, u, v, C] to [B, TOKENS, C, u, t, v, half, lower, upper]
        x = x.reshape(2, 2, 2, 4, TOKENS, batch, 2, 2, tiles).permute(5, 4, 8, 6, 3, 7, 0, 2, 1)
        x0, x1, x2, x3 = by_nibble(x)
        # [t, u, v, 8, B, R / 8, C] to [B, R / 8, 8, C, u, t, v]
        own_words = words.reshape(4, 2, 2, 8, batch, own // 8, tiles).permute(4, 5, 3, 6, 1, 0, 2)
        own_words = own_words.reshape(batch, own, tiles * 16)
        narrow, wide = factors(scale, WIDE)
        narrow = _by_word(narrow, own, tiles * 16)
        wide = _by_word(wide, own, tiles * 16)
        even = _add_nibble(even, own_words, narrow, wide, x0, 0, WIDE, COMPILED)
        odd = _add_nibble(odd, own_words, narrow, wide, x1, 1, WIDE, COMPILED)
        even = _add_nibble(even, own_words, narrow, wide, x2, 2, WIDE, COMPILED)
        odd = _add_nibble(odd, own_words, narrow, wide, x3, 3, WIDE, COMPILED)
        if STAGES == 3:
            words, scale = next_words, next_scale
            next_words, next_scale = last_words, last_scale
        else:
            words, scale = last_words, last_scale
    total = (even + odd).reshape(GROUPS, SLICES, own, TOKENS)
    return tl.sum(total, 1).reshape(ROWS, TOKENS)
