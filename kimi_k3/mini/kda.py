# SPDX-License-Identifier: Apache-2.0
"""Kimi delta attention over prepared weights: `kda_in` and `kda_core`.

The equations are those of `operators.kda`. Prepared are the input projection, the second decay
factor, exp(A_log), and the convolution with its taps apart. Rounding points: `projection`,
`conv_out`, `raw_decay`, `kda_out`, `attn_out`.
"""

from dataclasses import dataclass

import torch
from torch.nn.functional import linear, silu, softplus

from kimi_k3.mini.cast import cast
from kimi_k3.mini.windows import Window, store
from kimi_k3.operators.kda import Projected, split
from kimi_k3.packed import PackedKda
from kimi_k3.reference.context import Context
from kimi_k3.reference.functions import SOFTPLUS_LINEAR_ABOVE
from kimi_k3.reference.kda import Inputs
from kimi_k3.reference.norm import l2_norm, rms_norm
from kimi_k3.reference.state import KdaState


@dataclass(frozen=True)
class PreparedKda(PackedKda):
    """The layer's weights in the compute dtype, and two that follow from them."""

    taps: torch.Tensor  # [width, 3 W]  the oldest input's weights first
    rate: torch.Tensor  # [N, 1]  exp(A_log)


def prepare(w: PackedKda, dtype: torch.dtype) -> PreparedKda:
    """Converts a layer's weights."""
    c = cast(w, dtype)
    return PreparedKda(
        c.in_proj,
        c.f_b_proj,
        c.conv,
        c.a_log,
        c.dt_bias,
        c.o_norm,
        c.o_proj,
        c.conv.T.contiguous(),
        torch.exp(c.a_log)[:, None],
    )


def project(ctx: Context, w: PreparedKda, x: torch.Tensor) -> torch.Tensor:
    """All that reads x [M, H]: q, k, v, gate, f, b and padding, [M, rows of `in_proj`]."""
    return ctx.rounding.projection(linear(x, w.in_proj))


def core(
    ctx: Context, w: PreparedKda, projected: torch.Tensor, state: KdaState, window: Window
) -> torch.Tensor:
    """The gated output [M, W] of this rank's heads; zeros for padding; advances `state`.

    Raises:
        ValueError: the window is longer than the state was allocated for.
    """
    r, rows = ctx.rounding, split(w, projected)
    fresh = rows.qkv.unflatten(0, (-1, window.part.group.rows))  # [R, q, 3 W]
    line = torch.cat([_read_taps(state, window, fresh.dtype), fresh], dim=1)
    _keep_inputs(state, window, line[:, 1:])
    conv = r.conv_out(_convolved(line, w.taps))  # [R, q, 3 W]
    o = _recur(_inputs(ctx, w, conv, rows), state, window).flatten(0, 1)  # [M, N, D]
    normed = rms_norm(r.kda_out(o), w.o_norm, ctx.config.rms_norm_eps).flatten(1)  # [M, W]
    return window.silent(r.attn_out(normed * torch.sigmoid(rows.gate)))


def _read_taps(state: KdaState, window: Window, dtype: torch.dtype) -> torch.Tensor:
    """[R, width - 1, 3 W]: the inputs before each request's first row; zeros for padding."""
    lines = state.conv[window.carried]  # [R, 3 W, window]
    index = window.taps.expand(-1, lines.shape[1], -1)  # [R, 3 W, width - 1]
    taps = lines.gather(2, index).transpose(1, 2).to(dtype)
    return taps if window.whole else torch.where(window.begin.live[:, None, None], taps, 0.0)


def _keep_inputs(state: KdaState, window: Window, line: torch.Tensor) -> None:
    """Stores raw inputs `line` [R, n, 3 W] at the start of the convolution windows."""
    count, most = line.shape[1], state.conv.shape[2]
    if count > most:
        raise ValueError(f"{count} inputs per channel to keep; the state has {most}")
    target = state.conv[:, :, :count]
    store(target, window.carried, line.transpose(1, 2), window.carrying)


def _convolved(line: torch.Tensor, taps: torch.Tensor) -> torch.Tensor:
    """The causal depthwise convolution of `line` [R, width - 1 + q, 3 W], then SiLU."""
    q = line.shape[1] - len(taps) + 1
    total = line[:, :q] * taps[0]  # [R, q, 3 W]
    for j in range(1, len(taps)):
        total = torch.addcmul(total, line[:, j : j + q], taps[j])
    return silu(total)


def _inputs(ctx: Context, w: PreparedKda, conv: torch.Tensor, rows: Projected) -> Inputs:
    """What the recurrence reads, from conv [R, q, 3 W] and the projections of the same rows."""
    c, r = ctx.config, ctx.rounding
    heads = conv.unflatten(2, (3, -1, c.kda_head_dim))  # [R, q, 3, N, D]
    q, k = l2_norm(heads[:, :, :2], c.l2_norm_eps).unbind(2)  # [R, q, N, D] each
    biased = (r.raw_decay(linear(rows.f, w.f_b_proj)) + w.dt_bias).unflatten(
        1, (-1, c.kda_head_dim)
    )  # [M, N, D]
    if c.gate_lower_bound is None:
        g = -w.rate * softplus(biased, threshold=SOFTPLUS_LINEAR_ABOVE)
    else:
        g = c.gate_lower_bound * torch.sigmoid(w.rate * biased)
    return Inputs(
        q * c.kda_scale,
        k,
        heads[:, :, 2],
        g.unflatten(0, conv.shape[:2]),
        torch.sigmoid(rows.bh).unflatten(0, conv.shape[:2]),
    )


def _recur(x: Inputs, state: KdaState, window: Window) -> torch.Tensor:
    """Each token's o [R, q, N, D], storing S after it; all starts are read before any write."""
    decay = torch.exp(x.g)
    s = state.recurrent[window.begin.slot].to(decay.dtype)  # [R, N, value, key]
    if not window.whole:
        s = torch.where(window.begin.live[:, None, None, None], s, 0.0)
    os = []
    for t, chosen in enumerate(window.written):
        k = x.k[:, t, :, None]  # [R, N, 1, key]
        s = s * decay[:, t, :, None]
        u = x.beta[:, t, :, None] * (x.v[:, t] - (s @ k.mT)[..., 0])  # [R, N, value]
        s = s + u[..., None] * k
        os.append((s @ x.q[:, t, :, :, None])[..., 0])
        store(state.recurrent, window.slots[:, t], s, chosen)
    return torch.stack(os, dim=1)
