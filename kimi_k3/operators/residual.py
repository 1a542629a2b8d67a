# SPDX-License-Identifier: Apache-2.0
"""Attention residuals (spec 2.2): the equations are those of `reference.attn_res`.

The sources are never stacked: the saved blocks are one tensor already and the prefix stands last.
Rounding points: `mixed`; `prefix_add` is in `reference.attn_res.update_prefix`.
"""

import torch

from kimi_k3.packed import PackedMix
from kimi_k3.reference.attn_res import normed_mix, update_prefix
from kimi_k3.reference.context import Context

__all__ = ["mix", "update_prefix"]


def mix(
    ctx: Context, w: PackedMix, prefix: torch.Tensor, blocks: torch.Tensor | None
) -> torch.Tensor:
    """The softmax mix of the saved blocks and the prefix, normed by `w.norm` when there is one.

    Args:
        ctx: constants and rounding.
        w: score weight and output norm.
        prefix: [M, H] with the pending output added.
        blocks: [M, n, H] saved blocks, oldest first; none, or None, before the first block write.

    Returns:
        [M, H].
    """
    eps = ctx.config.rms_norm_eps
    mixed = prefix
    if blocks is not None and blocks.shape[1]:  # else the softmax over one source is 1
        mixed = _softmax_mix(w.score.to(prefix.dtype), prefix, blocks, eps)
    return normed_mix(ctx.rounding, mixed, w.norm, eps)


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
