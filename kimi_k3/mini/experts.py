# SPDX-License-Identifier: Apache-2.0
"""The routed experts over decoded weights: `moe_experts` and `moe_tail`.

The equations are those of `operators.moe`. All experts of a layer are decoded from MXFP4 once: 32
bits for 4.25, which a small model can spare. Rounding points: `expert_input`, `expert_gate_up`,
`expert_hidden`, `expert_row`, `latent_partial`, `latent_square`, `latent_normed`, `routed`,
`ffn_out`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch.nn.functional import linear

from kimi_k3.operators.expert_weights import expert_matrix
from kimi_k3.operators.ffn import situ
from kimi_k3.packed import PackedMoe
from kimi_k3.reference.context import Context
from kimi_k3.reference.latent_moe import weighted_sum
from kimi_k3.reference.norm import rms_norm

Matrices = tuple[torch.Tensor, ...]


@dataclass(frozen=True)
class Experts:
    """This rank's slice of every expert, decoded, and what follows their sum over ranks."""

    w13: Matrices  # of each expert [2 I, L]  gate rows, then up rows
    w2: Matrices  # of each expert [L, I]
    latent_norm: torch.Tensor  # [L]
    latent_up: torch.Tensor  # [H, L]


def prepare(w: PackedMoe, dtype: torch.dtype) -> Experts:
    """Decodes every expert of a layer."""
    e = w.experts
    return Experts(
        tuple(map(_decoded(dtype), e.w13_packed, e.w13_scale)),
        tuple(map(_decoded(dtype), e.w2_packed, e.w2_scale)),
        w.latent_norm.to(dtype),
        w.latent_up.to(dtype),
    )


def experts(
    ctx: Context, w: Experts, ids: torch.Tensor, weights: torch.Tensor, z: torch.Tensor
) -> torch.Tensor:
    """This rank's share [M, L] of the weighted sum of expert rows, before the sum over ranks.

    Args:
        ctx: constants and rounding.
        w: the layer's experts.
        ids: [M, k] picked experts.
        weights: [M, k].
        z: [M, L].
    """
    r = ctx.rounding
    return r.latent_partial(weighted_sum(weights, _rows(ctx, w, ids, r.expert_input(z))))


def tail(ctx: Context, w: Experts, total: torch.Tensor, shared: torch.Tensor) -> torch.Tensor:
    """The FFN's output [M, H].

    Args:
        ctx: constants and rounding.
        w: the layer's experts.
        total: [M, L] the latent partials summed over ranks, after `reduced_latent`.
        shared: [M, H] the shared experts summed over ranks, after `reduced`.
    """
    r, eps = ctx.rounding, ctx.config.rms_norm_eps
    normed = r.latent_normed(rms_norm(total, w.latent_norm, eps, square=r.latent_square))  # [M, L]
    return r.ffn_out(r.routed(linear(normed, w.latent_up)) + shared)


def _decoded(dtype: torch.dtype) -> Callable[[torch.Tensor, torch.Tensor], torch.Tensor]:
    return lambda packed, scale: expert_matrix(packed, scale, dtype)


def _rows(ctx: Context, w: Experts, ids: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """The r_e [M, k, L] of ids [M, k] and x [M, L]."""
    if len(ids) == 1:  # visits no expert twice: nothing to bring together, nothing to put back
        picked = [(e, 1) for e in ids[0].tolist()]
        return _visited(ctx, w, picked, x.expand(ids.shape[1], -1))[None]
    visits: dict[int, list[int]] = {}
    for visit, e in enumerate(ids.flatten().tolist()):
        visits.setdefault(e, []).append(visit)
    picked = [(e, len(visits[e])) for e in sorted(visits)]
    order = torch.tensor([visit for e, _ in picked for visit in visits[e]], device=x.device)
    out = _visited(ctx, w, picked, x[order // ids.shape[1]])
    rows = torch.empty_like(out)
    rows[order] = out
    return rows.view(*ids.shape, -1)


def _visited(
    ctx: Context, w: Experts, picked: Sequence[tuple[int, int]], x: torch.Tensor
) -> torch.Tensor:
    """The r_e [n, L] of x [n, L], whose rows stand expert after expert, as `picked` counts them."""
    r, counts = ctx.rounding, [count for _, count in picked]

    def multiply(matrices: Matrices, rows: torch.Tensor) -> torch.Tensor:
        blocks = zip(picked, rows.split(counts), strict=True)
        return torch.cat([linear(block, matrices[e]) for (e, _), block in blocks])

    hidden = situ(ctx.config, r.expert_gate_up(multiply(w.w13, x)))  # [n, I]
    return r.expert_row(multiply(w.w2, r.expert_hidden(hidden)))
