# SPDX-License-Identifier: Apache-2.0
"""The mixture of experts: routed experts work in a narrow latent space, shared ones beside them.

Spec 2.6. Routed experts have MXFP4 weights (`kimi_k3.mxfp4`); all else is BF16.

    logits   = W_r y;   ids, weight = route(logits, bias)       see `router`
    z        = bf16(W_down y)
    h        = situ( W1_e z, W3_e z );   r_e = W2_e h           for each picked e
    L        = sum_e weight_e r_e, over experts in slot order, then over ranks
    n        = bf16(RMSNorm(L))                                 of the fully reduced L
    routed   = W_up n
    shared   = W_sd situ( W_sg y, W_su y )                      full width, not latent
    FFN      = bf16( bf16(routed) + bf16(shared) )

| symbol | shape (I: this rank's slice of an expert, k picked) | dtype |
|---|---|---|
| y, routed, shared, FFN | [M, H] | BF16 values |
| logits | [M, E] | FP32 |
| ids, weight | [M, k] | int64, compute |
| z, L, n | [M, latent] | BF16 values |
| h | [M, k, I] | BF16 or MXFP8 values |
| r_e | [M, k, latent] | BF16 values |

Rounding points: `router_logits`, `router_weight`, `latent`, `expert_input`, `expert_gate_up`,
`expert_hidden`, `expert_row`, `latent_partial`, `reduced_latent`, `latent_square`,
`latent_normed`, `routed`, `ffn_out`, and those of `ffn`. The experts' activation mode is the
policy's: `expert_input` and `expert_hidden` are BF16, or MXFP8 with either scale rule.
"""

import torch

from kimi_k3.mxfp4 import decode_mxfp4
from kimi_k3.reference.context import Context
from kimi_k3.reference.ffn import gated_ffn, situ
from kimi_k3.reference.functions import ordered_sum
from kimi_k3.reference.linear import linear
from kimi_k3.reference.norm import rms_norm
from kimi_k3.reference.router import route
from kimi_k3.weights import ExpertWeights, MoeWeights


def expert_hidden(ctx: Context, w: ExpertWeights, e: int, z: torch.Tensor) -> torch.Tensor:
    """The hidden rows [m, I] of expert `e` for the z [m, latent] that visit it."""
    r = ctx.rounding
    w13 = decode_mxfp4(w.w13_packed[e], w.w13_scale[e], z.dtype)  # [2 I, latent]
    w1, w3 = w13.chunk(2)  # [I, latent] each
    g, u = r.expert_gate_up(linear(z, w1)), r.expert_gate_up(linear(z, w3))  # [m, I] each
    return r.expert_hidden(situ(ctx.config, g, u))  # [m, I]


def expert_out(ctx: Context, w: ExpertWeights, e: int, h: torch.Tensor) -> torch.Tensor:
    """The rows r_e [m, latent] of expert `e` for its hidden rows h [m, I]."""
    w2 = decode_mxfp4(w.w2_packed[e], w.w2_scale[e], h.dtype)  # [latent, I]
    return ctx.rounding.expert_row(linear(h, w2))  # [m, latent]


def expert_rows(ctx: Context, w: ExpertWeights, ids: torch.Tensor, z: torch.Tensor) -> torch.Tensor:
    """The r_e of every row and slot: ids [M, k] and z [M, latent] to [M, k, latent]."""
    hidden = z.new_empty(*ids.shape, w.w2_packed.shape[2] * 2)  # [M, k, I]
    rows = z.new_empty(*ids.shape, z.shape[1])  # [M, k, latent]
    for e in ids.unique().tolist():
        row, slot = (ids == e).nonzero(as_tuple=True)
        hidden[row, slot] = expert_hidden(ctx, w, e, z[row])
        rows[row, slot] = expert_out(ctx, w, e, hidden[row, slot])
    ctx.tap("moe.hidden", hidden)
    return rows


def weighted_sum(weights: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
    """The sum over slots of weights [M, k] times rows [M, k, latent], added in slot order."""
    return ordered_sum(weights[:, j, None] * rows[:, j] for j in range(weights.shape[1]))


def routed_experts(ctx: Context, w: MoeWeights, y: torch.Tensor) -> torch.Tensor:
    """The routed half [M, H] for y [M, H]: the same on every rank."""
    c, r, tap = ctx.config, ctx.rounding, ctx.tap
    logits = tap("moe.logits", r.router_logits(linear(y, w.router)))  # [M, E]
    ids, weights = route(c, logits, w.correction_bias)  # [M, k] each
    tap("moe.ids", ids)
    weights = tap("moe.weights", r.router_weight(weights))
    z = tap("moe.z", r.latent(linear(y, w.latent_down)))  # [M, latent]
    rows = tap("moe.rows", expert_rows(ctx, w.experts, ids, r.expert_input(z)))
    partial = tap("moe.latent_partial", r.latent_partial(weighted_sum(weights, rows)))
    total = tap("moe.latent", r.reduced_latent(ctx.comm.all_reduce(partial)))  # [M, latent]
    normed = rms_norm(total, w.latent_norm, c.rms_norm_eps, square=r.latent_square)
    normed = tap("moe.normed", r.latent_normed(normed))  # [M, latent]
    return tap("moe.routed", r.routed(linear(normed, w.latent_up)))  # [M, H]


def latent_moe(ctx: Context, w: MoeWeights, y: torch.Tensor) -> torch.Tensor:
    """The FFN of a MoE layer: y [M, H] to delta [M, H], the same on every rank."""
    routed = routed_experts(ctx, w, y)  # [M, H]
    shared = ctx.tap("moe.shared", gated_ffn(ctx, w.shared, y, "shared"))  # [M, H]
    return ctx.rounding.ffn_out(routed + shared)  # [M, H]
