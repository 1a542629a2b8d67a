# SPDX-License-Identifier: Apache-2.0
"""The short convolution of Kimi delta attention and its window, for decode, verify and prefill.

A program owns channels of a request: it reads the old window before it writes the new one, and no
other program touches either. q, k and v come out as three contiguous tensors, as the recurrence
wants them, and with them a contiguous copy of the logits of beta.
"""

from dataclasses import dataclass

import torch
import triton
import triton.language as tl

from kimi_k3.stock.cuda.decay import Decay, raw_decay

CHANNELS = 128
"""Channels of one program."""
TOKENS = 32
"""Tokens of one program of a prefill; at least as many as the window keeps."""


@dataclass(frozen=True)
class Convolution:
    """Operands for R requests that bring M / R new tokens each, their rows one after another.

    Attributes:
        out: [3, M, W] BF16, contiguous, written: q, k, v.
        beta: [M, N] BF16, contiguous, written: a copy of `beta_logits`.
        qkv: [M, 3 W] BF16 raw q, k, v; may be columns of wider rows.
        beta_logits: [M, N] BF16; may be columns of wider rows.
        weight: [3 W, width] FP32, contiguous, the newest input last.
        state: [slots, 3 W, width - 1 + draft] BF16 windows, oldest input first; advanced.
        slots: [R] int32 where each request's window is, 0 for padding; may be a column of a table.
        accepted: [R] int32 tokens of the previous window that survived, 1 after a plain step.
        lengths: [R] int32 tokens including the new ones, 0 for padding.

    Raises:
        ValueError: shapes or strides that do not fit.
    """

    out: torch.Tensor
    beta: torch.Tensor
    qkv: torch.Tensor
    beta_logits: torch.Tensor
    weight: torch.Tensor
    state: torch.Tensor
    slots: torch.Tensor
    accepted: torch.Tensor
    lengths: torch.Tensor

    def __post_init__(self) -> None:
        _, m, w = self.out.shape
        width, count = self.weight.shape[1], len(self.lengths)
        fits = (
            self.out.shape[0] == 3
            and self.qkv.shape == (m, 3 * w)
            and self.beta.shape == self.beta_logits.shape
            and len(self.beta) == m
            and self.weight.shape[0] == self.state.shape[1] == 3 * w
            and self.state.shape[2] >= width - 1
            and self.slots.shape == self.accepted.shape == (count,)
            and m % count == 0
            and self.out.is_contiguous()
            and self.beta.is_contiguous()
            and self.weight.is_contiguous()
            and self.qkv.stride(1) == self.beta_logits.stride(1) == 1
            and self.state.stride()[1:] == (self.state.shape[2], 1)
        )
        if not fits:
            shown = {name: tuple(tensor.shape) for name, tensor in vars(self).items()}
            raise ValueError(f"shapes or strides of a convolution that do not fit: {shown}")

    @property
    def rows(self) -> int:
        """New tokens of each request."""
        return self.out.shape[1] // len(self.lengths)


def conv_window(t: Convolution, decay: Decay) -> None:
    """The convolution and SiLU of windows, which advances the state (spec 2.4), and the decay.

        seen  = state[slot, :, accepted - 1 : accepted + width - 2], then the new inputs
        out_i = bf16(silu(sum_j weight_j seen[i + j]))         FP32, first to last
        state[slot, :, : width - 2 + q] = seen[1:]             q = t.rows
        raw   = bf16(f W_fb^T)                                 see `Decay`

    Rounded are `conv_out` and `raw_decay`. The decay shares the launch because it is as small: its
    programs run beside those of the convolution. Padding gives zeros whatever its rows hold, and
    its window stays. Moves 2 x 3 W BF16 values per row and (2 width - 3 + q) 3 W of state per
    request, and the weights of the decay once per request. No host read, no allocation. Compiled
    for each q.

    Args:
        t: the operands.
        decay: operands of the decay for the same rows.

    Raises:
        ValueError: the state has no room for the window, or the decay is of other rows.
    """
    width, kept = t.weight.shape[1], t.state.shape[2]
    if width - 2 + t.rows > kept:
        raise ValueError(f"a window of {t.rows} rows in a state of {kept} inputs per channel")
    if decay.raw.shape != t.out.shape[1:]:
        raise ValueError(f"a decay of {tuple(decay.raw.shape)}; want {tuple(t.out.shape[1:])}")
    rank = decay.weight.shape[1]
    _launch(
        _conv_window,
        t,
        len(t.lengths),
        parts=4,
        raw=decay.raw,
        f=decay.f,
        f_weight=decay.weight,
        f_stride=decay.f.stride(0),
        rank=rank,
        rank_block=triton.next_power_of_2(rank),
    )


def conv_prefill(t: Convolution) -> None:
    """The convolution and SiLU of prefills; advances the state.

    As `conv_window`, but the window keeps the newest width - 1 inputs alone, and a request whose
    length is `t.rows` starts from nothing, whatever its window holds. Compiled once.

    Args:
        t: the operands.
    """
    tiles = len(t.lengths) * triton.cdiv(t.rows, TOKENS)
    _launch(_conv_prefill, t, tiles, parts=3, tokens=TOKENS)


def _launch(
    kernel: "triton.JITFunction",
    t: Convolution,
    tiles: int,
    *,
    parts: int,
    **more: int | torch.Tensor,
) -> None:
    w, betas = t.out.shape[2], t.beta.shape[1]
    block = min(CHANNELS, triton.next_power_of_2(w))
    kernel[(tiles, parts * triton.cdiv(w, block))](
        t.out,
        t.beta,
        t.qkv,
        t.beta_logits,
        t.weight,
        t.state,
        t.slots,
        t.accepted,
        t.lengths,
        t.out.shape[1],
        t.rows,
        t.qkv.stride(0),
        t.beta_logits.stride(0),
        t.state.stride(0),
        t.slots.stride(0),
        kept=t.state.shape[2],
        w=w,
        width=t.weight.shape[1],
        betas=betas,
        beta_block=triton.next_power_of_2(betas),
        block=block,
        num_warps=max(block // 32, 1),
        **more,
    )


@triton.jit
def _conv_window(
    out,
    beta,
    qkv,
    beta_logits,
    weight,
    state,
    slots,
    accepted,
    lengths,
    m,
    rows: tl.constexpr,
    qkv_stride,
    beta_stride,
    slot_stride,
    slots_stride,
    kept: tl.constexpr,
    w: tl.constexpr,
    width: tl.constexpr,
    betas: tl.constexpr,
    beta_block: tl.constexpr,
    block: tl.constexpr,
    raw,
    f,
    f_weight,
    f_stride,
    rank: tl.constexpr,
    rank_block: tl.constexpr,
):
    request = tl.program_id(0).to(tl.int64)
    slot = tl.load(slots + request * slots_stride).to(tl.int64)
    alive = (slot > 0) & (tl.load(lengths + request) > 0)
    part, channel, inside = _channels(w, block)
    if part == 3:  # behind q, k and v
        first = request * rows
        raw_decay(
            raw + first * w, f + first * f_stride, f_weight, f_stride, channel, inside, alive,
            rows, w, rank, rank_block,
        )  # fmt: skip
        return
    start = tl.load(accepted + request, alive, other=1) - 1
    live = inside & alive
    column = part * w + channel
    line = state + slot * slot_stride + column * kept

    seen = _load_each(line + start, 1, live, width - 1)
    seen += _load_each(qkv + request * rows * qkv_stride + column, qkv_stride, live, rows)
    c = _load_each(weight + column * width, 1, inside, width)
    target = out + (part * m + request * rows) * w + channel
    for t in tl.static_range(rows):
        tl.store(target + t * w, _silu_of_sum(seen, t, c), inside)
    if tl.program_id(1) == 0:
        first = request * rows
        _copy_beta(
            beta + first * betas,
            beta_logits + first * beta_stride,
            beta_stride,
            rows,
            triton.next_power_of_2(rows),
            betas,
            beta_block,
            alive,
        )
    tl.debug_barrier()  # no thread of this program may still read what another one overwrites
    for i in tl.static_range(width - 2 + rows):
        tl.store(line + i, seen[1 + i], live)


@triton.jit
def _conv_prefill(
    out,
    beta,
    qkv,
    beta_logits,
    weight,
    state,
    slots,
    accepted,
    lengths,
    m,
    rows,
    qkv_stride,
    beta_stride,
    slot_stride,
    slots_stride,
    kept: tl.constexpr,
    w: tl.constexpr,
    width: tl.constexpr,
    betas: tl.constexpr,
    beta_block: tl.constexpr,
    block: tl.constexpr,
    tokens: tl.constexpr,
):
    tiles = tl.cdiv(rows, tokens)
    request = (tl.program_id(0) // tiles).to(tl.int64)
    tile = tl.program_id(0) % tiles
    slot = tl.load(slots + request * slots_stride).to(tl.int64)
    length = tl.load(lengths + request)
    alive = (slot > 0) & (length > 0)
    start = tl.load(accepted + request, alive, other=1) - 1
    part, channel, inside = _channels(w, block)
    column = part * w + channel
    line = state + slot * slot_stride + column * kept
    old = line + start + (width - 1)  # the input of the token at -1 is one before
    new = qkv + request * rows * qkv_stride + column
    live = inside & alive
    continued = live & (length > rows)

    token = tile * tokens + tl.arange(0, tokens)[:, None]  # [tokens, 1]
    total = tl.zeros((tokens, block), tl.float32)
    for j in tl.static_range(width):
        at = token - (width - 1) + j
        x = _new_input(new[None, :], qkv_stride, at, rows, live)
        if tile == 0:
            x = tl.where(at < 0, _old_input(old[None, :], at, continued), x)
        total += tl.load(weight + column * width + j, inside, other=0.0)[None, :] * x
    target = out + (part * m + request * rows + token) * w + channel[None, :]
    tl.store(target, (total * tl.sigmoid(total)).to(tl.bfloat16), (token < rows) & inside[None, :])
    if tl.program_id(1) == 0:
        first = request * rows + tile * tokens
        _copy_beta(
            beta + first * betas,
            beta_logits + first * beta_stride,
            beta_stride,
            rows - tile * tokens,
            tokens,
            betas,
            beta_block,
            alive,
        )
    if tile == 0:  # the one program that reads the old window of these channels
        newest = _newest_inputs(old, new, qkv_stride, rows, live, continued, width - 1)
        tl.debug_barrier()  # no thread may still read what another one overwrites
        for j in tl.static_range(width - 1):
            tl.store(line + j, newest[j], live)


@triton.jit
def _channels(w, block):
    """Which of q, k, v a program computes, its channels [block], and which of them exist."""
    blocks = tl.cdiv(w, block)
    channel = (tl.program_id(1) % blocks) * block + tl.arange(0, block)
    return tl.program_id(1) // blocks, channel, channel < w


@triton.jit
def _load_each(first, stride, mask, count):
    """`count` tensors, `stride` apart, with zeros where `mask` is false."""
    loaded = ()
    for i in tl.static_range(count):
        loaded += (tl.load(first + i * stride, mask, other=0.0),)
    return loaded


@triton.jit
def _silu_of_sum(seen, t, c):
    """Token `t`: the taps `seen[t:]` weighted by `c`, first to last, then SiLU, BF16."""
    total = c[0] * seen[t].to(tl.float32)
    for j in tl.static_range(1, len(c)):
        total += c[j] * seen[t + j].to(tl.float32)
    return (total * tl.sigmoid(total)).to(tl.bfloat16)


@triton.jit
def _new_input(new, stride, at, rows, live):
    """The raw input of the prefill's token `at`; zero where it is none of its tokens."""
    return tl.load(new + at * stride, live & (at >= 0) & (at < rows), other=0.0)


@triton.jit
def _old_input(old, at, continued):
    """The old window's input `-at` before the prefill; zero where that is not before it."""
    return tl.load(old + at, continued & (at < 0), other=0.0)


@triton.jit
def _newest_inputs(old, new, stride, rows, live, continued, count):
    """The last `count` raw inputs of a prefill of `rows` tokens, those before it included."""
    newest = ()
    for j in tl.static_range(count):
        at = rows - count + j
        x = _new_input(new, stride, at, rows, live)
        newest += (tl.where(at < 0, _old_input(old, at, continued), x),)
    return newest


@triton.jit
def _copy_beta(beta, logits, stride, count, block, betas, beta_block, alive):
    """The first `count` rows, at most `block`; zeros for padding."""
    token = tl.arange(0, block)[:, None]
    column = tl.arange(0, beta_block)[None, :]
    inside = (token < count) & (column < betas)
    value = tl.load(logits + token * stride + column, inside & alive, other=0.0)
    tl.store(beta + token * betas + column, value, inside)
