# SPDX-License-Identifier: Apache-2.0
"""A pair's product with its operands in shared memory, brought there by asynchronous copies.

Loads into registers share six scoreboards, most of them one, so that a warp's first product waits
for its last weight; and activations out of the first-level cache seem to queue behind the weights
that their multiprocessor asked for before: weights copied alone gained nothing, activations too a
microsecond. Copies are counted in groups, here one for each iteration, and what they brought is
read past that queue.

Each lane copies exactly the words that it will read, so that waiting for its own copies is enough;
scales and activations are everybody's, and one barrier after the first group makes them so. That a
lane's words are its own is Triton's choice of layouts, which it promises to nobody: copies are made
only where the layouts of the compiled kernels were compared (`COMPARED`). A barrier for each
iteration would make it so anywhere, and takes the chain of TP 16 2.3 % longer.

The buffer is static shared memory of the inline assembly: Triton lays out none that a program may
address by itself.
"""

from functools import cache

import torch
import triton
import triton.language as tl

from kimi_k3.stock.cuda.expert_direct import add_split_tiles

COPIED_ROWS = 16
COPIED_DEPTH = 3584
COPIED_COLUMNS = 512
"""Columns of an iteration: four slices of a tile, and 16 bytes of a row's scales."""
COPIED_BYTES = tl.constexpr(37888)
"""16 rows of words and scales, and activations, of `COPIED_DEPTH` columns; and 256 more, so that
six programs are more than a multiprocessor has memory for. With room for six a chain took 1.0 us
longer: the driver then leaves next to nothing for the first-level cache. Of a plain number Triton's
cache would not notice a change."""
COPY_BYTES = 16
"""Of one copy, and what both of its addresses are multiples of."""

COMPARED = frozenset({("3.6.0", (9, 0))})
"""Version of Triton and compute capability for which `tests/gpu/test_copy_layouts.py` has passed.
Another pair is added when it passes there."""


@cache
def lanes_read_their_copies(device: torch.device) -> bool:
    """Whether every lane is known to read only what it copied itself, on this device."""
    return (
        device.type == "cuda"
        and (triton.__version__, torch.cuda.get_device_capability(device)) in COMPARED
    )


def can_copy(rows: int, depth: int, columns: int, slices: int) -> bool:
    """Whether `copied_product` has memory and a layout for such a product."""
    return (
        (rows, columns, slices) == (COPIED_ROWS, COPIED_COLUMNS, 4)
        and depth % columns == 0
        and depth <= COPIED_DEPTH
    )


@triton.constexpr_function
def _wait_text(groups: int) -> str:
    return f"cp.async.wait_group {groups}; mov.b32 $0, 0;"


@triton.constexpr_function
def _buffer_text() -> str:
    return f"{{ .shared .align 16 .b8 copies[{COPIED_BYTES.value}]; mov.b32 $0, copies; }}"


@triton.jit
def _buffer():
    """Address of the buffer."""
    return tl.inline_asm_elementwise(
        _buffer_text(),
        "=r",
        [],
        tl.int32,
        is_pure=False,
        pack=1,
    )


@triton.jit
def _copy(source, target):
    """Starts a copy of 16 bytes for each of both, past the first-level cache."""
    tl.inline_asm_elementwise(
        "cp.async.cg.shared.global [$2], [$1], 16; mov.b32 $0, 0;",
        "=r,l,r",
        [source, target],
        tl.int32,
        is_pure=False,
        pack=1,
    )


@triton.jit
def _end_group():
    """The copies that this thread started and that are in no group become one."""
    tl.inline_asm_elementwise(
        "cp.async.commit_group; mov.b32 $0, 0;", "=r", [], tl.int32, is_pure=False, pack=1
    )


@triton.jit
def _wait_for_groups(LEFT: tl.constexpr):
    """Returns when all but the last LEFT groups of this thread are there."""
    tl.inline_asm_elementwise(_wait_text(LEFT), "=r", [], tl.int32, is_pure=False, pack=1)


@triton.jit
def _read_words(at):
    """Four int32 of the shape of `at`, 16 bytes from each address."""
    return tl.inline_asm_elementwise(
        "ld.shared.v4.b32 {$0, $1, $2, $3}, [$4];",
        "=r,=r,=r,=r,r",
        [at],
        (tl.int32, tl.int32, tl.int32, tl.int32),
        is_pure=False,
        pack=1,
    )


@triton.jit
def _weights(at):
    """Words [t, u, v, 8, B, H, 1] out of addresses [H, B, 8, t]."""
    w0, w1, w2, w3 = _read_words(at)
    words = tl.join(tl.join(w0, w1), tl.join(w2, w3))  # [H, B, 8, t, v, u]
    words = words.permute(3, 5, 4, 2, 1, 0)
    return words.reshape(4, 2, 2, 8, at.shape[1], at.shape[0], 1)


@triton.jit
def _scales(at):
    """Scale bytes [t, 8, B, H, 1], as int32, out of addresses [H, B, 8, t]."""
    scale = tl.inline_asm_elementwise(
        "ld.shared.u8 $0, [$1];", "=r,r", [at], tl.int32, is_pure=False, pack=1
    )
    return scale.permute(3, 2, 1, 0).reshape(4, 8, at.shape[1], at.shape[0], 1)


@triton.jit
def _both(word):
    """The halves of int32 [...] as int16 [..., 2]."""
    return tl.join(word.to(tl.int16), (word >> 16).to(tl.int16))


@triton.jit
def _activations(at):
    """BF16 [half, upper, lower, t, TOKENS, B, u, v, 1] out of addresses [u v, B, TOKENS, t]."""
    p0, p1, p2, p3 = _read_words(at)  # two columns each, half 0 first
    x = tl.join(tl.join(_both(p0), _both(p1)), tl.join(_both(p2), _both(p3)))
    batch: tl.constexpr = at.shape[1]
    tokens: tl.constexpr = at.shape[2]
    x = x.permute(6, 5, 4, 3, 2, 1, 0).reshape(2, 2, 2, 4, tokens, batch, 2, 2, 1)
    return x.to(tl.bfloat16, bitcast=True)


@triton.jit
def copied_product(
    x_row,
    word_rows,
    scale_rows,
    DEPTH: tl.constexpr,
    ROWS: tl.constexpr,
    TOKENS: tl.constexpr,
    COLUMNS: tl.constexpr,
    SLICES: tl.constexpr,
    WIDE: tl.constexpr,
):
    """Weights times the activations of one row, FP32 [ROWS], as `direct_product` has it.

    Pointers to the first column: `x_row` one, `word_rows` in the shape of `direct_rows` with one
    group, and `scale_rows` [ROWS]; sizes are those that `can_copy` allows.
    """
    h: tl.constexpr = ROWS // 8
    groups: tl.constexpr = DEPTH // 32
    words_at = _buffer()
    scales_at = words_at + ROWS * DEPTH // 2
    x_at = scales_at + ROWS * groups
    piece = tl.minimum(tl.arange(0, triton.next_power_of_2(DEPTH // 8)), DEPTH // 8 - 1)
    _copy(x_row + piece * 8, x_at + piece * 16)
    piece = tl.minimum(tl.arange(0, triton.next_power_of_2(groups // 16)), groups // 16 - 1) * 16
    row = tl.arange(0, ROWS)[:, None]
    _copy(scale_rows[:, None] + piece[None, :], scales_at + row * groups + piece[None, :])

    high = tl.arange(0, h)[:, None, None, None]
    slot = tl.arange(0, SLICES)[None, :, None, None]
    g = tl.arange(0, 8)[None, None, :, None]
    lane = tl.arange(0, 4)[None, None, None, :]
    t = 3 - lane
    source = word_rows.permute(3, 2, 1, 0, 4).reshape(h, SLICES, 8, 1) + slot * 16 + t * 4
    own = words_at + (((high * SLICES + slot) * 8 + g) * 4 + lane) * 16
    iteration: tl.constexpr = ROWS * COLUMNS // 2
    for i in tl.static_range(DEPTH // COLUMNS):
        _copy(source + i * (COLUMNS // 8), own + i * iteration)
        _end_group()
    scale_at = scales_at + (high * 8 + g) * groups + slot * 4 + t
    word = tl.arange(0, 4)[:, None, None, None]
    token = tl.arange(0, TOKENS)[None, None, :, None]
    x_at += slot * 256 + t * 64 + word * 16 + token * 0

    even = tl.zeros((SLICES, ROWS, TOKENS), tl.float32)
    odd = tl.zeros((SLICES, ROWS, TOKENS), tl.float32)
    for i in tl.static_range(DEPTH // COLUMNS):
        _wait_for_groups(DEPTH // COLUMNS - 1 - i)
        if i == 0:
            tl.debug_barrier()
        words, scale = _weights(own + i * iteration), _scales(scale_at + i * (COLUMNS // 32))
        x = _activations(x_at + i * (COLUMNS * 2))
        even, odd = add_split_tiles(even, odd, words, scale, x, False, WIDE, True)
    return tl.sum(tl.max(even + odd, 2), 0)
