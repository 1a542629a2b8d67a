# SPDX-License-Identifier: Apache-2.0
"""Attention residuals and the output projection: `mix` and `attention_out`.

The equations are those of `operators.residual`; prepared are the score weight, the output norm and
the projection. Rounding points: `mixed`, `prefix_add`, `o_partial`.
"""

import torch

from kimi_k3.packed import PackedMix
from kimi_k3.reference.attn_res import normed_mix, update_prefix
from kimi_k3.reference.context import Context


def mix(
    ctx: Context,
    w: PackedMix,
    prefix: torch.Tensor,
    delta: torch.Tensor | None,
    blocks: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor]:
    """What the next block reads [M, H], and the new prefix [M, H].

    Args:
        ctx: constants and rounding.
        w: score weight and output norm.
        prefix: [M, H].
        delta: [M, H] to add to it; None right after a block write.
        blocks: [M, n, H] saved blocks, oldest first.
    """
    updated = update_prefix(ctx.rounding, prefix, delta)
    eps = ctx.config.rms_norm_eps
    mixed = updated
    if blocks.shape[1]:  # else the softmax over one source is 1
        mixed = _softmax_mix(w.score, updated, blocks, eps)
    return normed_mix(ctx.rounding, mixed, w.norm, eps), updated


def out_partial(ctx: Context, o_proj: torch.Tensor, heads: torch.Tensor) -> torch.Tensor:
    """This rank's share [M, H] of the output projection of heads [M, h]."""
    return ctx.rounding.o_partial(heads @ o_proj.T)


def _softmax_mix(
    w: torch.Tensor, prefix: torch.Tensor, blocks: torch.Tensor, eps: float
) -> torch.Tensor:
    """The mix m [M, H] = sum_j softmax(logit)_j s_j over raw sources."""
    logit = torch.cat([_logit(blocks, w, eps), _logit(prefix, w, eps)[:, None]], dim=1)  # [M, n+1]
    alpha = torch.softmax(logit, dim=1)  # [M, n + 1]
    mixed = alpha[:, :1] * blocks[:, 0]  # [M, H]
    for j in range(1, blocks.shape[1]):
        mixed = torch.addcmul(mixed, alpha[:, j, None], blocks[:, j])
    return torch.addcmul(mixed, alpha[:, -1:], prefix)


def _logit(s: torch.Tensor, w: torch.Tensor, eps: float) -> torch.Tensor:
    """(s . w) rsqrt(mean(s^2) + eps) of `s` [..., H]; returns [...]."""
    return (s @ w) * torch.rsqrt((s * s).mean(-1) + eps)
