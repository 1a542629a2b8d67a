# SPDX-License-Identifier: Apache-2.0
"""What a MoE layer reads of y, and which experts a row visits: `moe_front` and `moe_route`.

The equations are those of `operators.moe` and `reference.router`; the choice is exact. Prepared are
the router and the latent projection, each a matrix of its own. They stay two products: one product
of both might add in another order, and with it break a tie of two experts otherwise.

Rounding points: `router_logits`, `latent`, `router_weight`.
"""

from dataclasses import dataclass

import torch
from torch.nn.functional import linear

from kimi_k3.packed import PackedMoe
from kimi_k3.reference import router
from kimi_k3.reference.context import Context


@dataclass(frozen=True)
class Front:
    """The prepared matrices that read y."""

    router: torch.Tensor  # [E, H]
    latent_down: torch.Tensor  # [L, H]


def prepare(w: PackedMoe, dtype: torch.dtype) -> Front:
    """Converts both matrices."""
    return Front(w.router.to(dtype), w.latent_down.to(dtype))


def front(ctx: Context, w: Front, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Router logits [M, E] and z [M, L] of y [M, H]."""
    r = ctx.rounding
    return r.router_logits(linear(y, w.router)), r.latent(linear(y, w.latent_down))


def route(
    ctx: Context, bias: torch.Tensor, logits: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Ids [M, k], best first, and weights [M, k] of logits [M, E] under correction `bias` [E]."""
    c = ctx.config
    sc = router.exact_sigmoid(logits)  # [M, E]
    ids = pick(sc + bias, c.num_experts_per_tok)  # [M, k]
    picked = sc.gather(1, ids)  # [M, k]
    weights = picked * c.routed_scaling_factor  # [M, k]
    if c.norm_topk_prob:
        weights = weights / (picked.sum(1, keepdim=True) + router.SUM_EPS)
    return ids, ctx.rounding.router_weight(weights)


def pick(key: torch.Tensor, k: int) -> torch.Tensor:
    """Ids of the `k` best of `key` [M, E], best first; equal keys by id, NaN after everything."""
    best = torch.sort(key, dim=1, descending=True, stable=True)
    if bool(best.values[:, 0].isnan().any()):  # a descending sort puts NaN first
        return router.pick(key, k)
    return best.indices[:, :k]
