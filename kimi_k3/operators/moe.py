# SPDX-License-Identifier: Apache-2.0
"""The mixture of experts (spec 2.6), in pieces between which a caller reduces over ranks.

The equations are those of `reference.latent_moe`. Rounding points: `router_logits`,
`router_weight`, `latent`, `expert_input`, `expert_gate_up`, `expert_hidden`, `expert_row`,
`latent_partial`, `latent_square`, `latent_normed`, `routed`, `ffn_out`; those of the shared
experts are in `ffn`.
"""

import torch

from kimi_k3.operators.expert_weights import expert_matrix
from kimi_k3.operators.ffn import situ
from kimi_k3.operators.linear import linear
from kimi_k3.packed import PackedMoe
from kimi_k3.reference.context import Context
from kimi_k3.reference.latent_moe import weighted_sum
from kimi_k3.reference.norm import rms_norm
from kimi_k3.reference.router import route as exact_route
from kimi_k3.weights import ExpertWeights

GATHERED_ROWS = 64
"""Up to here an accelerator multiplies without telling the host which experts were picked."""


def logits(ctx: Context, w: PackedMoe, y: torch.Tensor) -> torch.Tensor:
    """Router logits [M, E] of y [M, H]."""
    return ctx.rounding.router_logits(linear(y, w.router))


def latent(ctx: Context, w: PackedMoe, y: torch.Tensor) -> torch.Tensor:
    """The z [M, L] of y [M, H], what the experts work on."""
    return ctx.rounding.latent(linear(y, w.latent_down))


def route(ctx: Context, w: PackedMoe, logits: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Ids [M, k], best first, and weights [M, k] of router logits [M, E]; exact."""
    ids, weights = exact_route(ctx.config, logits, w.correction_bias)
    return ids, ctx.rounding.router_weight(weights)


def experts(
    ctx: Context,
    w: ExpertWeights,
    ids: torch.Tensor,
    weights: torch.Tensor,
    z: torch.Tensor,
) -> torch.Tensor:
    """This rank's share of the weighted sum of expert rows.

    Args:
        ctx: constants and rounding.
        w: this rank's slice of every expert.
        ids: [M, k] picked experts.
        weights: [M, k].
        z: [M, L].

    Returns:
        [M, L] before the sum over ranks.
    """
    r = ctx.rounding
    by_slot = _gathered if z.is_cuda and len(z) <= GATHERED_ROWS else _grouped
    rows = by_slot(ctx, w, ids, r.expert_input(z))  # [M, k, L]
    return r.latent_partial(weighted_sum(weights, rows))


def routed(ctx: Context, w: PackedMoe, total: torch.Tensor) -> torch.Tensor:
    """The routed half [M, H] of the reduced latent [M, L], after `reduced_latent`."""
    r, eps = ctx.rounding, ctx.config.rms_norm_eps
    normed = r.latent_normed(rms_norm(total, w.latent_norm, eps, square=r.latent_square))  # [M, L]
    return r.routed(linear(normed, w.latent_up))


def finish(ctx: Context, w: PackedMoe, total: torch.Tensor, shared: torch.Tensor) -> torch.Tensor:
    """The FFN's output [M, H].

    Args:
        ctx: constants and rounding.
        w: the layer's weights.
        total: [M, L] the latent partials summed over ranks, after `reduced_latent`.
        shared: [M, H] the shared experts summed over ranks, after `reduced`.
    """
    return ctx.rounding.ffn_out(routed(ctx, w, total) + shared)


def _grouped(ctx: Context, w: ExpertWeights, ids: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """The r_e [M, k, L] of ids [M, k] and x [M, L]: each picked expert is decoded once."""
    r = ctx.rounding
    order = ids.flatten().argsort(stable=True)  # [M k] visits, expert after expert
    visits = torch.bincount(ids.flatten(), minlength=len(w.w2_packed)).tolist()
    picked = [(e, count) for e, count in enumerate(visits) if count]

    def multiply(packed: torch.Tensor, scale: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
        blocks = rows.split([count for _, count in picked])
        return torch.cat(
            [
                linear(block, expert_matrix(packed[e], scale[e], x.dtype))
                for (e, _), block in zip(picked, blocks, strict=True)
            ]
        )

    gate_up = r.expert_gate_up(multiply(w.w13_packed, w.w13_scale, x[order // ids.shape[1]]))
    hidden = r.expert_hidden(situ(ctx.config, gate_up))  # [M k, I]
    out = r.expert_row(multiply(w.w2_packed, w.w2_scale, hidden))  # [M k, L]
    rows = torch.empty_like(out)
    rows[order] = out
    return rows.view(*ids.shape, -1)


def _gathered(ctx: Context, w: ExpertWeights, ids: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """The same without a host read: each row's experts are decoded for it, slot by slot."""
    r, slots = ctx.rounding, []
    for e in ids.unbind(1):  # [M]
        w13 = expert_matrix(w.w13_packed[e], w.w13_scale[e], x.dtype)  # [M, 2 I, L]
        gate_up = r.expert_gate_up((w13 @ x[:, :, None])[..., 0])  # [M, 2 I]
        hidden = r.expert_hidden(situ(ctx.config, gate_up))  # [M, I]
        w2 = expert_matrix(w.w2_packed[e], w.w2_scale[e], x.dtype)  # [M, L, I]
        slots.append(r.expert_row((w2 @ hidden[:, :, None])[..., 0]))  # [M, L]
    return torch.stack(slots, dim=1)
