# SPDX-License-Identifier: Apache-2.0
"""The kernels of `mla`: quantise the query, attend to runs of keys, merge the runs, gate."""

import triton
import triton.language as tl

from kimi_k3.stock.cuda import e4m3


@triton.jit
def _held(tokens, SIZE: tl.constexpr, RANK: tl.constexpr, INTERLEAVE: tl.constexpr):
    """How many of a request's first `tokens` tokens this rank holds."""
    rest = tokens % (INTERLEAVE * SIZE) - INTERLEAVE * RANK
    own = tl.minimum(tl.maximum(rest, 0), INTERLEAVE)
    return tokens // (INTERLEAVE * SIZE) * INTERLEAVE + own


@triton.jit
def _product(a, b, acc, COMPILED: tl.constexpr):
    # The interpreter multiplies the bits of BF16 numbers.
    return tl.dot(a, b, acc) if COMPILED else tl.dot(a.to(tl.float32), b.to(tl.float32), acc)


@triton.jit
def encode_kernel(query, out, q_scale, n, COMPILED: tl.constexpr):
    """The query as an FP8 cache has it, in FP16; 1024 values a program."""
    at = tl.program_id(0).to(tl.int64) * 1024 + tl.arange(0, 1024)
    x = tl.load(query + at, at < n, 0.0).to(tl.float32)
    value = e4m3.decode(e4m3.encode(x, q_scale, COMPILED), COMPILED)
    tl.store(out + at, value.to(tl.float16), at < n)


@triton.jit
def _keys(at, mask, FP8: tl.constexpr, COMPILED: tl.constexpr):
    return e4m3.decode(tl.load(at, mask, 0), COMPILED) if FP8 else tl.load(at, mask, 0.0)


@triton.jit
def core_kernel(
    query,
    pages,
    table,
    table_stride,
    lengths,
    z,
    lse,
    split_stride,
    scale_log2,
    k_scale,
    T: tl.constexpr,
    HEADS: tl.constexpr,
    C: tl.constexpr,
    R: tl.constexpr,
    C_PADDED: tl.constexpr,
    R_PADDED: tl.constexpr,
    PAGE: tl.constexpr,
    SPLITS: tl.constexpr,
    ROWS: tl.constexpr,
    KEYS: tl.constexpr,
    STAGES: tl.constexpr,
    SIZE: tl.constexpr,
    RANK: tl.constexpr,
    INTERLEAVE: tl.constexpr,
    FP8: tl.constexpr,
    COMPILED: tl.constexpr,
):
    """One run of a request's keys for ROWS packed pairs: see `mla`."""
    request = tl.program_id(2).to(tl.int64)
    length = tl.load(lengths + request)
    held = _held(length, SIZE, RANK, INTERLEAVE)
    run = tl.cdiv(tl.cdiv(held, SPLITS), KEYS) * KEYS
    begin = tl.program_id(1) * run
    end = tl.minimum(begin + run, held)

    pair = tl.program_id(0) * ROWS + tl.arange(0, ROWS)  # token * HEADS + head
    real = pair < T * HEADS
    row = request * (T * HEADS) + pair  # of [M h]
    seen = _held(length - T + pair // HEADS + 1, SIZE, RANK, INTERLEAVE)
    c = tl.arange(0, C_PADDED)
    r = tl.arange(0, R_PADDED)
    inside_c = c < C
    inside_r = r < R

    top = tl.full((ROWS,), -1.0e30, tl.float32)
    total = tl.zeros((ROWS,), tl.float32)
    acc = tl.zeros((ROWS, C_PADDED), tl.float32)
    if begin < end:
        own = (query + row * (C + R))[:, None]
        qc = tl.load(own + c[None, :], real[:, None] & inside_c[None, :], 0.0)
        qr = tl.load(own + C + r[None, :], real[:, None] & inside_r[None, :], 0.0)
        own_table = table + request * table_stride
        for start in tl.range(begin, end, KEYS, num_stages=STAGES):
            key = start + tl.arange(0, KEYS)
            there = key < end
            page = tl.load(own_table + key // PAGE, there, 0)
            at = (pages + (page.to(tl.int64) * PAGE + key % PAGE) * (C + R))[:, None]
            kc = _keys(at + c[None, :], there[:, None] & inside_c[None, :], FP8, COMPILED)
            kr = _keys(at + C + r[None, :], there[:, None] & inside_r[None, :], FP8, COMPILED)
            score = _product(qc, tl.trans(kc), tl.zeros((ROWS, KEYS), tl.float32), COMPILED)
            score = _product(qr, tl.trans(kr), score, COMPILED)
            visible = (key[None, :] < seen[:, None]) & there[None, :]
            score = tl.where(visible, score * scale_log2, -1.0e30)
            new_top = tl.maximum(top, tl.max(score, 1))
            p = tl.where(visible, tl.exp2(score - new_top[:, None]), 0.0)
            shrink = tl.exp2(top - new_top)
            total = total * shrink + tl.sum(p, 1)
            acc = _product(p.to(kc.dtype), kc, acc * shrink[:, None], COMPILED)
            top = new_top

    any_key = total > 0
    total = tl.where(any_key, total, 1.0)
    found = tl.where(any_key, top + tl.log2(total), -1.0e30)
    offset = tl.program_id(1).to(tl.int64) * split_stride
    tl.store(lse + offset + row, found, real)
    if (SPLITS == 1) | (begin < end):
        value = acc / total[:, None] * k_scale
        value = tl.where(any_key[:, None], value, 0.0)
        out = z + (offset + row)[:, None] * C + c[None, :]
        tl.store(out, value.to(z.dtype.element_ty), real[:, None] & inside_c[None, :])


@triton.jit
def merge_kernel(
    z_parts,
    lse_parts,
    z,
    lse,
    split_stride,
    C: tl.constexpr,
    SPLITS: tl.constexpr,
    SPLITS_PADDED: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """The runs of one row and BLOCK columns, weighted by their log-sum-exp."""
    row = tl.program_id(0).to(tl.int64)
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    split = tl.arange(0, SPLITS_PADDED)
    at = split.to(tl.int64) * split_stride + row
    part = tl.load(lse_parts + at, split < SPLITS, -1.0e30)
    has_keys = part > -1.0e29
    top = tl.max(part, 0)
    share = tl.where(has_keys, tl.exp2(part - top), 0.0)
    total = tl.sum(share, 0)
    divisor = tl.where(total > 0, total, 1.0)
    mask = has_keys[:, None] & (column < C)[None, :]
    values = tl.load(z_parts + at[:, None] * C + column[None, :], mask, 0.0)
    merged = tl.sum(values * share[:, None], 0) / divisor
    tl.store(z + row * C + column, merged.to(tl.bfloat16), column < C)
    if tl.program_id(1) == 0:
        tl.store(lse + row, tl.where(total > 0, top + tl.log2(divisor), -1.0e30))


@triton.jit
def gate_kernel(
    o,
    o_row,
    o_head,
    gate,
    gate_row,
    lengths,
    out,
    q,
    V: tl.constexpr,
    WIDTH: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """bf16(o * sigmoid(gate)) of one row and BLOCK columns."""
    row = tl.program_id(0).to(tl.int64)
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    alive = tl.load(lengths + row // q) > 0
    mask = (column < WIDTH) & alive
    x = tl.load(o + row * o_row + (column // V) * o_head + column % V, mask, 0.0).to(tl.float32)
    g = tl.load(gate + row * gate_row + column, mask, 0.0).to(tl.float32)
    gated = (x / (1.0 + tl.exp(-g))).to(tl.bfloat16)
    tl.store(out + row * WIDTH + column, gated, column < WIDTH)
