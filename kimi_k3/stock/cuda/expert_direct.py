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
costs nothing, makes the operand. K's order must be the one in which the compiler's operands lie in
lanes: of the words 4 t + 2 u + v of a tile u slowest, then t, then v; but t slowest where the
compiler sees the scale's 8-bit load from the MMA, which is where no loop is between them (FLAT).
Another order would be as right and slower. Groups are counted downwards (t is group 3 - t), for a
scale must not look contiguous over lanes: it would be loaded 4 at a time by one of them.
"""

import triton
import triton.language as tl

from kimi_k3.stock.cuda.early import wait_for_previous
from kimi_k3.stock.cuda.expert_decode import by_nibble, factors, multiply, pairs


@triton.jit
def direct_rows(ROWS: tl.constexpr, GROUPS: tl.constexpr, SLICES: tl.constexpr):
    """Which of a program's rows a tile of weights holds, [1, 8, B, R / 8, 1]."""
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
        words = tl.load(word_at, start < DEPTH, 0, eviction_policy="evict_first")
        scale = tl.load(scale_at, start < DEPTH, 127, eviction_policy="evict_first")
    else:  # what lies past the depth has weight +0
        left = (DEPTH - start) // 32
        words = tl.load(word_at, tile * 4 + group < left, 0, eviction_policy="evict_first")
        scale = tl.load(scale_at, tile * 4 + scale_group < left, 127, eviction_policy="evict_first")
    return words, scale


@triton.jit
def _all_weights(word_rows, scale_rows, depth, columns, slices):
    """Words and scales of all iterations over `depth` columns, two tuples."""
    words = ()
    scales = ()
    for start in tl.static_range(0, depth, columns):
        own_words, own_scale = _tile_weights(word_rows, scale_rows, start, depth, columns, slices)
        words += (own_words,)
        scales += (own_scale,)
    return words, scales


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
    at = x_rows[None, None, :, :, None, None] + start + tile * 128
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
def _by_word(per_group, ROWS: tl.constexpr, WORDS: tl.constexpr, FLAT: tl.constexpr):
    """[4, 8, B, H, C] values of groups as [B, ROWS, WORDS], in the words' order."""
    v = per_group.permute(2, 3, 1, 4, 0)  # [B, H, 8, C, 4]
    batch: tl.constexpr = v.shape[0]
    h: tl.constexpr = v.shape[1]
    tiles: tl.constexpr = v.shape[3]
    if FLAT:
        v = tl.broadcast_to(v[:, :, :, :, :, None, None], (batch, h, 8, tiles, 4, 2, 2))
    else:
        v = tl.broadcast_to(v[:, :, :, :, None, :, None], (batch, h, 8, tiles, 2, 4, 2))
    return v.reshape(batch, ROWS, WORDS)


@triton.jit
def _half_tile_weights(word_rows, scale_rows, START: tl.constexpr):
    """Words [8, 8, B, H, 1] and scales [4, 8, B, H, 1] of 64 columns.

    A lane has 2 words, t those of half a group.
    """
    word = tl.arange(0, 8)[:, None, None, None, None]
    lane = tl.arange(0, 4)[:, None, None, None, None]
    at = word_rows + START // 8 + (3 - word // 2) * 2 + word % 2
    words = tl.load(at, eviction_policy="evict_first")
    return words, tl.load(scale_rows + START // 32 + (3 - lane) // 2)


@triton.jit
def _half_tile_activations(x_rows, START: tl.constexpr, BATCH: tl.constexpr):
    """BF16 [8, 4, TOKENS, B, 2, 1] of those columns."""
    column = tl.arange(0, 8)[:, None, None, None, None, None]
    lane = tl.arange(0, 4)[None, :, None, None, None, None]
    batch = tl.arange(0, BATCH)[None, None, None, :, None, None]
    word = tl.arange(0, 2)[None, None, None, None, :, None]
    at = x_rows[None, None, :, :, None, None] + START + (3 - lane) * 16 + word * 8 + column
    return tl.load(at + batch * 0)


@triton.jit
def _add_two_nibbles(
    acc,
    words,
    narrow,
    wide,
    x,
    y,
    NIBBLE: tl.constexpr,
    WIDE: tl.constexpr,
    COMPILED: tl.constexpr,
):
    """`acc` plus the product of NIBBLE with `x` and the next one with `y`, one operand deep."""
    batch: tl.constexpr = words.shape[0]
    depth: tl.constexpr = 4 * words.shape[2]
    w = tl.join(
        pairs(words, narrow, wide, NIBBLE, WIDE, COMPILED),
        pairs(words, narrow, wide, NIBBLE + 1, WIDE, COMPILED),
    )  # [B, R, 8, 2, nibble]
    w = w.reshape(batch, words.shape[1], 4, 2, 2, 2).permute(0, 1, 2, 5, 3, 4)
    w = w.reshape(batch, words.shape[1], depth)  # t, nibble, 2, half
    both = tl.join(x, y).permute(0, 1, 2, 5, 3, 4)  # [B, TOKENS, t, nibble, 2, half]
    both = both.reshape(batch, x.shape[1], depth).permute(0, 2, 1)
    return multiply(w, both, acc, COMPILED)


@triton.jit
def _add_half_tile(even, odd, words, scale, x, WIDE: tl.constexpr, COMPILED: tl.constexpr):
    """Both sums plus the product over the 64 columns of `_half_tile`."""
    batch: tl.constexpr = words.shape[2]
    h: tl.constexpr = words.shape[3]
    x = x.reshape(2, 2, 2, 4, x.shape[2], batch, 2).permute(5, 4, 3, 6, 0, 2, 1)
    x0, x1, x2, x3 = by_nibble(x)
    words = words.reshape(4, 2, 8, batch, h).permute(3, 4, 2, 0, 1).reshape(batch, h * 8, 8)
    narrow, wide = factors(scale.reshape(4, 8, batch, h).permute(2, 3, 1, 0), WIDE)
    narrow = tl.broadcast_to(narrow[:, :, :, :, None], (batch, h, 8, 4, 2))
    narrow = narrow.reshape(batch, h * 8, 8)
    wide = tl.broadcast_to(wide[:, :, :, :, None], (batch, h, 8, 4, 2)).reshape(batch, h * 8, 8)
    even = _add_two_nibbles(even, words, narrow, wide, x0, x1, 0, WIDE, COMPILED)
    odd = _add_two_nibbles(odd, words, narrow, wide, x2, x3, 2, WIDE, COMPILED)
    return even, odd


@triton.jit
def _add_tiles(
    even, odd, words, scale, x, FLAT: tl.constexpr, WIDE: tl.constexpr, COMPILED: tl.constexpr
):
    """Both sums plus the product over one iteration's columns."""
    batch: tl.constexpr = words.shape[2]
    h: tl.constexpr = words.shape[3]
    tiles: tl.constexpr = words.shape[4]
    x = x.reshape(2, 2, 2, 4, x.shape[2], batch, 2, 2, tiles)
    words = words.reshape(4, 2, 2, 8, batch, h, tiles)
    return add_split_tiles(even, odd, words, scale, x, FLAT, WIDE, COMPILED)


@triton.jit
def add_split_tiles(
    even, odd, words, scale, x, FLAT: tl.constexpr, WIDE: tl.constexpr, COMPILED: tl.constexpr
):
    """The same with words [t, u, v, 8, B, R / 8, C] and the activations' axes apart, too.

    Activations [half, upper, lower, t, TOKENS, B, u, v, C]: see `by_nibble`.
    """
    batch: tl.constexpr = words.shape[4]
    h: tl.constexpr = words.shape[5]
    tiles: tl.constexpr = words.shape[6]
    if FLAT:
        x = x.permute(5, 4, 8, 3, 6, 7, 0, 2, 1)
        words = words.permute(4, 5, 3, 6, 0, 1, 2)
    else:
        x = x.permute(5, 4, 8, 6, 3, 7, 0, 2, 1)
        words = words.permute(4, 5, 3, 6, 1, 0, 2)
    x0, x1, x2, x3 = by_nibble(x)
    words = words.reshape(batch, h * 8, tiles * 16)
    narrow, wide = factors(scale, WIDE)
    narrow = _by_word(narrow, h * 8, tiles * 16, FLAT)
    wide = _by_word(wide, h * 8, tiles * 16, FLAT)
    even = _add_nibble(even, words, narrow, wide, x0, 0, WIDE, COMPILED)
    odd = _add_nibble(odd, words, narrow, wide, x1, 1, WIDE, COMPILED)
    even = _add_nibble(even, words, narrow, wide, x2, 2, WIDE, COMPILED)
    odd = _add_nibble(odd, words, narrow, wide, x3, 3, WIDE, COMPILED)
    return even, odd


@triton.jit
def _loop(
    even,
    odd,
    x_rows,
    word_rows,
    scale_rows,
    DEPTH: tl.constexpr,
    COLUMNS: tl.constexpr,
    STAGES: tl.constexpr,
    SLICES: tl.constexpr,
    WIDE: tl.constexpr,
    COMPILED: tl.constexpr,
):
    """Both sums plus the product over DEPTH columns, STAGES - 1 iterations loaded ahead."""
    batch: tl.constexpr = even.shape[0]
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
        even, odd = _add_tiles(even, odd, words, scale, x, False, WIDE, COMPILED)
        if STAGES == 3:
            words, scale = next_words, next_scale
            next_words, next_scale = last_words, last_scale
        else:
            words, scale = last_words, last_scale
    return even, odd


@triton.jit
def direct_product(
    x_rows,
    word_rows,
    scale_rows,
    DEPTH: tl.constexpr,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
    STAGES: tl.constexpr,
    GROUPS: tl.constexpr,
    SLICES: tl.constexpr,
    ONE_ROW: tl.constexpr,
    WAITS: tl.constexpr,
    WIDE: tl.constexpr,
    COMPILED: tl.constexpr,
):
    """Weights times activations, FP32 [ROWS, TOKENS], over DEPTH columns, a multiple of 32.

    Up to STAGES iterations are written out, and all of their weights are loaded first; a product of
    more is a loop that loads one or two iterations ahead. With ONE_ROW all tokens are one row,
    whose product [ROWS] is returned. With WAITS the activations are what the launch before this one
    writes: it is waited for after those loads.

    Pointers to the first column: `x_rows` [TOKENS, 1 or one for each batch entry], which are read
    whether live or not, and `word_rows` and `scale_rows` in the shape of `direct_rows`.
    """
    batch: tl.constexpr = GROUPS * SLICES
    own: tl.constexpr = ROWS // GROUPS
    half_tile: tl.constexpr = COLUMNS == 128 and DEPTH % 128 == 64
    full: tl.constexpr = DEPTH - 64 if half_tile else DEPTH
    # Two sums, so that an MMA need not wait for the one before it.
    even = tl.zeros((batch, own, x_rows.shape[0]), tl.float32)
    odd = tl.zeros((batch, own, x_rows.shape[0]), tl.float32)
    if half_tile:
        half_words, half_scale = _half_tile_weights(word_rows, scale_rows, full)
    if full <= STAGES * COLUMNS:
        words, scales = _all_weights(word_rows, scale_rows, full, COLUMNS, SLICES)
        if WAITS:
            wait_for_previous(COMPILED)
        elif ONE_ROW:  # no load moves behind it, to save registers
            tl.debug_barrier()
        for i in tl.static_range(len(words)):
            x = _tile_activations(x_rows, i * COLUMNS, full, COLUMNS, batch, SLICES)
            even, odd = _add_tiles(even, odd, words[i], scales[i], x, True, WIDE, COMPILED)
    else:
        if WAITS:
            wait_for_previous(COMPILED)
        even, odd = _loop(
            even,
            odd,
            x_rows,
            word_rows,
            scale_rows,
            full,
            COLUMNS,
            min(STAGES, 3),
            SLICES,
            WIDE,
            COMPILED,
        )
    if half_tile:
        x = _half_tile_activations(x_rows, full, batch)
        even, odd = _add_half_tile(even, odd, half_words, half_scale, x, WIDE, COMPILED)
    both = even + odd
    if ONE_ROW:  # all tokens are the same
        total = tl.sum(tl.max(both, 2).reshape(GROUPS, SLICES, own), 1).reshape(ROWS)
    else:
        total = tl.sum(both.reshape(GROUPS, SLICES, own, both.shape[2]), 1)
        total = total.reshape(ROWS, both.shape[2])
    return total
