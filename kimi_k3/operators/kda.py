# SPDX-License-Identifier: Apache-2.0
"""Kimi delta attention of decode and verify windows (spec 2.3, 2.4).

The equations are those of `reference.kda`. All requests of a group advance together, token by
token; the projections of all tokens are one matrix product. `o_proj` is the caller's.

Rounding points: `projection`, `conv_out`, `raw_decay`, `kda_out`, `attn_out`.
"""

from dataclasses import dataclass

import torch

from kimi_k3.config import K3Config
from kimi_k3.operators.addresses import Starts, select_live, starts, write_slots
from kimi_k3.operators.linear import linear
from kimi_k3.packed import PackedKda
from kimi_k3.reference.context import Context
from kimi_k3.reference.functions import SOFTPLUS_LINEAR_ABOVE
from kimi_k3.reference.kda import Inputs
from kimi_k3.reference.norm import l2_norm, rms_norm
from kimi_k3.reference.state import KdaState
from kimi_k3.step import GroupTensors


@dataclass(frozen=True)
class Projected:
    """The parts of a packed projection of M rows."""

    qkv: torch.Tensor  # [M, 3 W]  raw inputs of the convolution
    gate: torch.Tensor  # [M, W]
    f: torch.Tensor  # [M, D]
    bh: torch.Tensor  # [M, N]


def project(ctx: Context, w: PackedKda, x: torch.Tensor) -> torch.Tensor:
    """All that reads x [M, H]: q, k, v, gate, f, b and padding, [M, rows of `in_proj`]."""
    return ctx.rounding.projection(linear(x, w.in_proj))


def window(
    ctx: Context,
    w: PackedKda,
    projected: torch.Tensor,
    state: KdaState,
    part: GroupTensors,
) -> torch.Tensor:
    """The gated output of this rank's heads for a group of windows; advances `state`.

    Args:
        ctx: constants and rounding.
        w: the layer's weights.
        projected: [M, rows of `in_proj`] of the group's own rows.
        state: S of every token goes to its slot, the raw inputs to column 0's window.
        part: the group.

    Returns:
        [M, W]; zeros for padding.

    Raises:
        ValueError: the window is longer than the state was allocated for.
    """
    begin, rows = starts(part), split(w, projected)
    fresh = rows.qkv.unflatten(0, (-1, part.group.rows))  # [R, q, 3 W]
    line = torch.cat([read_taps(ctx.config, state, part, begin, fresh.dtype), fresh], dim=1)
    keep_inputs(state, part, begin, line[:, 1:])
    conv = ctx.rounding.conv_out(conv_silu(line, w.conv))  # [R, q, 3 W]
    o = _recur(recurrence_inputs(ctx, w, conv, rows), state, part, begin)  # [R, q, N, D]
    return gated_output(ctx, w, o.flatten(0, 1), rows.gate, begin.live)


def split(w: PackedKda, projected: torch.Tensor) -> Projected:
    """The parts of `projected` [M, rows of `in_proj`], without the padding rows' columns."""
    width, rank, heads = len(w.dt_bias), w.f_b_proj.shape[1], len(w.a_log)
    sizes = [3 * width, width, rank, heads]
    return Projected(*projected[:, : sum(sizes)].split(sizes, dim=1))


def read_taps(
    config: K3Config, state: KdaState, part: GroupTensors, begin: Starts, dtype: torch.dtype
) -> torch.Tensor:
    """[R, width - 1, 3 W]: the inputs before each request's first row; zeros where it has none."""
    lines = state.conv[torch.where(begin.live, part.slots[:, 0].long(), 0)]  # [R, 3 W, window]
    tap = torch.arange(config.conv_kernel_size - 1, device=lines.device)
    index = (begin.offset[:, None] + tap)[:, None]  # [R, 1, width - 1]
    taps = lines.gather(2, index.expand(-1, lines.shape[1], -1)).transpose(1, 2).to(dtype)
    return torch.where((begin.live & ~begin.fresh)[:, None, None], taps, 0.0)


def keep_inputs(state: KdaState, part: GroupTensors, begin: Starts, line: torch.Tensor) -> None:
    """Stores raw inputs `line` [R, n, 3 W] at the start of the convolution windows.

    Raises:
        ValueError: the state was allocated for shorter windows.
    """
    count, most = line.shape[1], state.conv.shape[2]
    if count > most:
        raise ValueError(f"{count} inputs per channel to keep; the state has {most}")
    slots = part.slots[:, 0].long()
    write_slots(state.conv[:, :, :count], slots, line.transpose(1, 2), begin.live)


def conv_silu(line: torch.Tensor, c: torch.Tensor) -> torch.Tensor:
    """The causal depthwise convolution, then SiLU.

    Args:
        line: [R, width - 1 + q, channel] raw inputs, oldest first.
        c: [channel, width] weights, the newest input last.

    Returns:
        [R, q, channel].
    """
    weight = c.to(line.dtype).T.contiguous()  # [width, channel]
    q = line.shape[1] - len(weight) + 1
    total = line[:, :q] * weight[0]  # [R, q, channel]
    for j in range(1, len(weight)):
        total = torch.addcmul(total, line[:, j : j + q], weight[j])
    return torch.nn.functional.silu(total)


def recurrence_inputs(ctx: Context, w: PackedKda, conv: torch.Tensor, rows: Projected) -> Inputs:
    """What the recurrence reads, from conv [R, q, 3 W] and the projections of the same rows."""
    c, r = ctx.config, ctx.rounding
    q, k, v = conv.unflatten(2, (3, -1, c.kda_head_dim)).unbind(2)  # [R, q, N, D] each
    raw = r.raw_decay(linear(rows.f, w.f_b_proj))  # [M, W]
    g = log_decay(c, w, raw)  # [M, N, D]
    beta = torch.sigmoid(rows.bh)  # [M, N]
    return Inputs(
        l2_norm(q, c.l2_norm_eps) * c.kda_scale,
        l2_norm(k, c.l2_norm_eps),
        v,
        g.unflatten(0, conv.shape[:2]),
        beta.unflatten(0, conv.shape[:2]),
    )


def log_decay(config: K3Config, w: PackedKda, raw: torch.Tensor) -> torch.Tensor:
    """The log decay g [M, N, D] from raw [M, W]; at most 0."""
    biased = (raw + w.dt_bias.to(raw.dtype)).unflatten(1, (-1, config.kda_head_dim))  # [M, N, D]
    a = torch.exp(w.a_log.to(raw.dtype))[:, None]  # [N, 1]
    if config.gate_lower_bound is None:
        return -a * torch.nn.functional.softplus(biased, threshold=SOFTPLUS_LINEAR_ABOVE)
    return config.gate_lower_bound * torch.sigmoid(a * biased)


def gated_output(
    ctx: Context, w: PackedKda, o: torch.Tensor, gate: torch.Tensor, live: torch.Tensor
) -> torch.Tensor:
    """[M, W] of o [M, N, D] and gate [M, W]: the norm of each head, then its gate."""
    r = ctx.rounding
    normed = rms_norm(r.kda_out(o), w.o_norm, ctx.config.rms_norm_eps).flatten(1)  # [M, W]
    return select_live(live, r.attn_out(normed * torch.sigmoid(gate)))


def _recur(x: Inputs, state: KdaState, part: GroupTensors, begin: Starts) -> torch.Tensor:
    """Each token's o [R, q, N, D], storing S after it; all starts are read before any write."""
    decay, slots = torch.exp(x.g), part.slots.long()
    s = state.recurrent[begin.slot].to(decay.dtype)  # [R, N, value, key]
    s = torch.where(begin.live[:, None, None, None], s, 0.0)
    os = []
    for t in range(part.group.rows):
        k = x.k[:, t, :, None]  # [R, N, 1, key]
        s = s * decay[:, t, :, None]
        u = x.beta[:, t, :, None] * (x.v[:, t] - (s @ k.mT)[..., 0])  # [R, N, value]
        s = s + u[..., None] * k
        os.append((s @ x.q[:, t, :, :, None])[..., 0])
        write_slots(state.recurrent, slots[:, t], s, begin.live & (slots[:, t] > 0))
    return torch.stack(os, dim=1)
