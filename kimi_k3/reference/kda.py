# SPDX-License-Identifier: Apache-2.0
"""Kimi delta attention: linear attention whose state forgets per channel and learns by deltas.

Spec 2.3 and 2.4. Per token and head, with d channels:

    q~, k~, v~ = W_q x, W_k x, W_v x;  gate = W_g x;  f = W_fa x;  bh = W_b x
    q, k, v    = SiLU( sum_j c_j window[t-3+j] )            per channel
    q          = q * rsqrt(sum q^2 + 1e-6) * d^-1/2
    k          = k * rsqrt(sum k^2 + 1e-6)
    raw        = bf16(W_fb f)
    g          = lb * sigmoid( exp(A_log) * (raw + dt_bias) )       lb < 0: decay in (e^lb, 1)
                 or -exp(A_log) * softplus(raw + dt_bias)           without a lower bound
    beta       = sigmoid(bh)
    S          = S * exp(g)[None, :]                        decay first, along the key axis
    u          = beta * (v - S k)
    S          = S + u k^T
    o          = S q                                        with the updated state
    out        = W_o [ concat_h( o * rsqrt(mean o^2 + eps) * w_o * sigmoid(gate) ) ]

| symbol | shape (R requests, q rows each, M = R q, h this rank's heads) | dtype |
|---|---|---|
| x, out | [M, H] | BF16 values |
| q~ k~ v~, q k v | [R, q, 3 h d], then [R, q, h, d] | compute |
| S | [R, h, value, key] | FP32 |
| g, u, o | [R, q, h, d] | compute |

Rounding points: `projection`, `conv_out`, `raw_decay`, `kda_out`, `attn_out`, `o_partial`,
`reduced`. The state is not rounded between the tokens of a window.
"""

from dataclasses import dataclass

import torch

from kimi_k3.config import K3Config
from kimi_k3.reference.context import Context
from kimi_k3.reference.functions import exp, ordered_sum, sigmoid, silu, softplus
from kimi_k3.reference.linear import linear
from kimi_k3.reference.norm import l2_norm, rms_norm
from kimi_k3.reference.state import KdaState, SlotWindow
from kimi_k3.rounding import Rounding
from kimi_k3.weights import KdaWeights


@dataclass(frozen=True)
class Inputs:
    """What the recurrence reads, one row per token."""

    q: torch.Tensor  # [R, q, h, key]    normalised, scaled by d^-1/2
    k: torch.Tensor  # [R, q, h, key]    normalised
    v: torch.Tensor  # [R, q, h, value]
    g: torch.Tensor  # [R, q, h, key]    log of the decay
    beta: torch.Tensor  # [R, q, h]


def conv_silu(taps: torch.Tensor, fresh: torch.Tensor, c: torch.Tensor) -> torch.Tensor:
    """The causal depthwise convolution of the new inputs, then SiLU.

    Args:
        taps: [R, channel, width - 1] the inputs just before the window.
        fresh: [R, q, channel] the window's raw inputs.
        c: [channel, width] weights, the newest input last.

    Returns:
        [R, q, channel].
    """
    line = torch.cat([taps, fresh.transpose(1, 2)], dim=2)  # [R, channel, width - 1 + q]
    seen = [line[:, :, j : j + fresh.shape[1]] for j in range(c.shape[1])]  # [R, channel, q] each
    total = ordered_sum(c[:, j, None] * x for j, x in enumerate(seen))  # [R, channel, q]
    return silu(total).transpose(1, 2).contiguous()  # [R, q, channel]


def log_decay(config: K3Config, w: KdaWeights, raw: torch.Tensor) -> torch.Tensor:
    """The log decay g [M, h, d] from raw [M, h d]."""
    biased = (raw + w.dt_bias.to(raw.dtype)).unflatten(-1, (-1, config.kda_head_dim))  # [M, h, d]
    a = exp(w.a_log.to(raw.dtype))[:, None]  # [h, 1]
    if config.gate_lower_bound is None:
        return -a * softplus(biased)
    return config.gate_lower_bound * sigmoid(a * biased)


def delta_step(
    s: torch.Tensor, x: Inputs, t: int
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """One token of the recurrence; returns the new S [R, h, value, key], u and o [R, h, value]."""
    q, k, v, beta = x.q[:, t], x.k[:, t], x.v[:, t], x.beta[:, t]
    s = s * exp(x.g[:, t])[:, :, None, :]  # [R, h, value, key]
    u = beta[:, :, None] * (v - (s * k[:, :, None, :]).sum(3))  # [R, h, value]
    s = s + u[:, :, :, None] * k[:, :, None, :]  # [R, h, value, key]
    o = (s * q[:, :, None, :]).sum(3)  # [R, h, value]
    return s, u, o


def gated_norm(
    o: torch.Tensor, gate: torch.Tensor, weight: torch.Tensor, eps: float
) -> torch.Tensor:
    """Per-head RMSNorm of `o` [M, h, d], *then* the sigmoid gate [M, h d]; returns [M, h d]."""
    return rms_norm(o, weight, eps).flatten(1) * sigmoid(gate)  # [M, h d]


def project(ctx: Context, w: KdaWeights, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """The GEMMs that read `x`: qkv [M, 3 h d], gate [M, h d], f [M, d], bh [M, h]."""
    r, tap = ctx.rounding, ctx.tap
    raw_qkv = [linear(x, p) for p in (w.q_proj, w.k_proj, w.v_proj)]  # 3 x [M, h d]
    qkv = tap("kda.qkv", r.projection(torch.cat(raw_qkv, dim=1)))  # [M, 3 h d]
    gate = tap("kda.gate", r.projection(linear(x, w.g_proj)))  # [M, h d]
    f = tap("kda.f", r.projection(linear(x, w.f_a_proj)))  # [M, d]
    bh = r.projection(linear(x, w.b_proj))  # [M, h]
    tap("kda.projected", torch.cat([qkv, gate, f, bh], dim=1))  # [M, 4 h d + d + h]
    return qkv, gate, f, bh


def recurrence_inputs(
    ctx: Context, w: KdaWeights, conv: torch.Tensor, f: torch.Tensor, bh: torch.Tensor
) -> Inputs:
    """From conv [R, q, 3 h d], f [M, d] and bh [M, h] to what the recurrence reads."""
    c, r, tap = ctx.config, ctx.rounding, ctx.tap
    q, k, v = conv.flatten(0, 1).unflatten(1, (3, -1, c.kda_head_dim)).unbind(1)  # [M, h, d] each
    q = tap("kda.q", l2_norm(q, c.l2_norm_eps) * c.kda_scale)  # [M, h, d]
    k = tap("kda.k", l2_norm(k, c.l2_norm_eps))  # [M, h, d]
    v = tap("kda.v", v)  # [M, h, d]
    raw = tap("kda.raw", r.raw_decay(linear(f, w.f_b_proj)))  # [M, h d]
    g = tap("kda.log_decay", log_decay(c, w, raw))  # [M, h, d]
    beta = tap("kda.beta", sigmoid(bh))  # [M, h]
    return Inputs(*(y.unflatten(0, conv.shape[:2]) for y in (q, k, v, g, beta)))


def recur(
    r: Rounding, x: Inputs, state: KdaState, window: SlotWindow
) -> tuple[torch.Tensor, torch.Tensor]:
    """Run the window from each request's start slot, storing S after every token.

    Returns u and o, [M, h, value] each. All start states are read before any is overwritten.
    """
    s = state.read_recurrent(window, r.compute)  # [R, h, value, key]
    us, os = [], []
    for t in range(window.q):
        s, u, o = delta_step(s, x, t)
        state.write_recurrent(window, t, s)
        us.append(u)
        os.append(o)
    return torch.stack(us, 1).flatten(0, 1), torch.stack(os, 1).flatten(0, 1)  # [M, h, value]


def kda(
    ctx: Context, w: KdaWeights, x: torch.Tensor, state: KdaState, window: SlotWindow
) -> torch.Tensor:
    """The attention block: x [M, H] to a [M, H], summed over ranks; advances `state`."""
    c, r, tap = ctx.config, ctx.rounding, ctx.tap
    qkv, gate, f, bh = project(ctx, w, x)
    fresh = qkv.unflatten(0, (-1, window.q))  # [R, q, 3 h d]
    weights = torch.cat([w.q_conv, w.k_conv, w.v_conv])[:, 0].to(r.compute)  # [3 h d, width]
    taps = state.read_taps(window, c.conv_kernel_size, r.compute)  # [R, 3 h d, width - 1]
    conv = r.conv_out(conv_silu(taps, fresh, weights))  # [R, q, 3 h d]
    tap("kda.conv", conv.flatten(0, 1))
    state.write_taps(window, taps, fresh)
    u, o = recur(r, recurrence_inputs(ctx, w, conv, f, bh), state, window)
    tap("kda.u", u)
    o = tap("kda.o", r.kda_out(o))  # [M, h, d]
    attn = r.attn_out(gated_norm(o, gate, w.o_norm, c.rms_norm_eps))  # [M, h d]
    live = window.live.repeat_interleave(window.q)[:, None]  # [M, 1]
    attn = tap("kda.attn", torch.where(live, attn, torch.zeros_like(attn)))  # [M, h d]
    partial = tap("attention.partial", r.o_partial(linear(attn, w.o_proj)))  # [M, H]
    return tap("attention", r.reduced(ctx.comm.all_reduce(partial)))  # [M, H]
