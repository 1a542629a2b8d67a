# SPDX-License-Identifier: Apache-2.0
"""Kimi delta attention of the stock path between its two projections (spec 2.3, 2.4).

Windows run fla-core's recurrence on the state slots in place; prefills run its chunked form and
start from a copy of each request's state.
"""

import torch
from fla.ops.kda import chunk_kda

from kimi_k3.config import K3Config
from kimi_k3.packed import PackedKda
from kimi_k3.reference.state import KdaState
from kimi_k3.stock.cuda.conv import Convolution, conv_prefill, conv_window
from kimi_k3.stock.cuda.decay import Decay
from kimi_k3.stock.cuda.gated_norm import gated_norm
from kimi_k3.stock.cuda.prepared import Part
from kimi_k3.stock.cuda.recurrence import recurrence


def window(
    config: K3Config,
    w: PackedKda,
    projected: torch.Tensor,
    state: KdaState,
    part: Part,
    out: torch.Tensor,
) -> None:
    """This rank's heads of windows, gated; advances the state.

    Args:
        config: the model.
        w: the layer's weights.
        projected: [M, in_proj rows] BF16.
        state: slots; those of the live requests of `part` are written.
        part: R requests of M / R rows each.
        out: [M, W] BF16, written; zero for padding.
    """
    conv = _convolution(config, w, projected, state, part)
    raw = projected.new_empty(conv.out.shape[1:])  # [M, W]
    conv_window(conv, Decay(raw, _first_factor(config, w, projected), w.f_b_proj))
    q, k, v = _heads(config, conv.out)
    o = torch.empty_like(v)
    recurrence(
        o,
        (q, k, v),
        raw.view_as(k),
        conv.beta,
        w.a_log,
        w.dt_bias,
        state.recurrent,
        row_starts=part.row_starts,
        slots=part.slots,
        accepted=part.accepted,
        scale=config.kda_scale,
        lower_bound=config.gate_lower_bound,
    )
    _finish(config, w, projected, o, part, out)


def prefill(
    config: K3Config,
    w: PackedKda,
    projected: torch.Tensor,
    state: KdaState,
    part: Part,
    out: torch.Tensor,
) -> None:
    """The same for prefills; a request whose length is its rows starts from empty state."""
    conv = _convolution(config, w, projected, state, part)
    conv_prefill(conv)
    first = part.slots.gather(1, (part.accepted - 1).long()[:, None])[:, 0].long()  # [R]
    started = (part.lengths > part.group.rows)[:, None, None, None]
    initial = torch.where(started, state.recurrent[first], 0.0)  # [R, h, value, key]
    by_request = (part.group.requests, part.group.rows)
    q, k, v = (t.unflatten(0, by_request) for t in _heads(config, conv.out))
    o, final = chunk_kda(
        q,
        k,
        v,
        (_first_factor(config, w, projected) @ w.f_b_proj.T).view_as(k),
        conv.beta.unflatten(0, by_request),
        A_log=w.a_log,
        dt_bias=w.dt_bias,
        scale=config.kda_scale,
        initial_state=initial,
        output_final_state=True,
        use_qk_l2norm_in_kernel=True,
        use_gate_in_kernel=True,
        use_beta_sigmoid_in_kernel=True,
        safe_gate=config.gate_lower_bound is not None,
        lower_bound=config.gate_lower_bound,
        state_v_first=True,
    )
    live = (part.lengths > 0)[:, None, None, None]
    kept = torch.where(live, final, state.recurrent[0])  # padding writes the null slot back
    state.recurrent[part.slots[:, 0].long()] = kept
    _finish(config, w, projected, o.flatten(0, 1), part, out)


def _convolution(
    config: K3Config, w: PackedKda, projected: torch.Tensor, state: KdaState, part: Part
) -> Convolution:
    """The operands of the convolution, its outputs in new memory."""
    rows, width, heads = len(projected), len(w.dt_bias), len(w.a_log)
    beta_at = 4 * width + config.kda_head_dim
    return Convolution(
        out=projected.new_empty(3, rows, width),
        beta=projected.new_empty(rows, heads),
        qkv=projected[:, : 3 * width],
        beta_logits=projected[:, beta_at : beta_at + heads],
        weight=w.conv,
        state=state.conv,
        slots=part.slots[:, 0],
        accepted=part.accepted,
        lengths=part.lengths,
    )


def _heads(config: K3Config, qkv: torch.Tensor) -> list[torch.Tensor]:
    """The q, k and v [M, h, d] of [3, M, W]."""
    return [part.unflatten(1, (-1, config.kda_head_dim)) for part in qkv]


def _first_factor(config: K3Config, w: PackedKda, projected: torch.Tensor) -> torch.Tensor:
    """The f [M, D] of the projected rows: the decay's logits are f W_fb^T."""
    start = 4 * len(w.dt_bias)
    return projected[:, start : start + config.kda_head_dim]


def _finish(
    config: K3Config,
    w: PackedKda,
    projected: torch.Tensor,
    o: torch.Tensor,
    part: Part,
    out: torch.Tensor,
) -> None:
    """Norm and gate of o [M, h, d]."""
    width = len(w.dt_bias)
    gated_norm(
        out,
        o,
        projected[:, 3 * width : 4 * width],
        w.o_norm,
        part.lengths,
        rows=part.group.rows,
        eps=config.rms_norm_eps,
    )
