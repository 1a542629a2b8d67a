# SPDX-License-Identifier: Apache-2.0
"""Attention residuals: each layer reads a softmax mix of saved blocks and the running prefix.

Spec 2.2. Sources s_0..s_{n-1} are the saved blocks in order, then the updated prefix p.

    p       = bf16(prefix + delta)                      stored back
    w       = norm_weight * proj_weight
    logit_j = (s_j . w) * rsqrt(mean(s_j^2) + eps)      the sources themselves are not normalised
    alpha   = softmax(logit)
    m       = sum_j alpha_j s_j
    out     = m * rsqrt(mean(m^2) + eps) * g            or m, for the last AttnRes of a step

| symbol | shape | dtype |
|---|---|---|
| prefix, delta, p | [M, H] | BF16 values |
| sources | [M, n, H] | BF16 values |
| logit, alpha | [M, n] | compute |
| m | [M, H] | compute |

Rounding points: `prefix_add` (p), `mixed` (out).

The second half of this file is the same mix in two phases, as fused kernels compute it: all that
needs only the saved blocks first, the prefix when it arrives. Four scalars per row then suffice
for the output norm, and the softmax's denominator cancels.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from kimi_k3.reference.functions import ordered_sum
from kimi_k3.reference.norm import rms_norm
from kimi_k3.rounding import Rounding


def update_prefix(r: Rounding, prefix: torch.Tensor, delta: torch.Tensor | None) -> torch.Tensor:
    """The prefix with the pending output added; `delta` is None right after a block write."""
    if delta is None:
        return prefix
    return r.prefix_add(prefix + delta)  # [M, H]


def score_weight(norm: torch.Tensor, proj: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """The score weight w [H]: norm weight [H] and projection [1, H] act only as their product."""
    return norm.to(dtype) * proj[0].to(dtype)  # [H]


def score(s: torch.Tensor, w: torch.Tensor, eps: float) -> torch.Tensor:
    """The logit of each source: `s` [..., H], `w` [H]; returns [...]."""
    rms = torch.rsqrt((s * s).mean(-1) + eps)  # [...]
    return (s * w).sum(-1) * rms  # [...]


def mix(logit: torch.Tensor, sources: torch.Tensor) -> torch.Tensor:
    """The mix m [M, H]: raw sources [M, n, H] weighted by alpha = softmax(logit [M, n])."""
    alpha = torch.softmax(logit, dim=-1)  # [M, n]
    return ordered_sum(alpha[:, j, None] * sources[:, j] for j in range(sources.shape[1]))


def stack_sources(blocks: Sequence[torch.Tensor], prefix: torch.Tensor) -> torch.Tensor:
    """Saved blocks, then the prefix: [M, n, H]."""
    return torch.stack([*blocks, prefix], dim=1)


@dataclass(frozen=True)
class BlockSummary:
    """Phase A: what a row needs of its saved blocks."""

    top: torch.Tensor
    """[M] mB, the largest block logit; -inf when nothing is saved yet."""
    total: torch.Tensor
    """[M] S = sum exp(logit - mB)."""
    mixed: torch.Tensor
    """[M, H] X = sum exp(logit - mB) s."""
    mixed_square: torch.Tensor
    """[M] X . X."""


def summarize_blocks(blocks: torch.Tensor, w: torch.Tensor, eps: float) -> BlockSummary:
    """Phase A over `blocks` [M, n, H], n >= 0; needs nothing of the current layer."""
    logit = score(blocks, w, eps)  # [M, n]
    floor = logit.new_full((len(logit), 1), -torch.inf)  # [M, 1]
    top = torch.cat([floor, logit], 1).amax(1)  # [M]
    weight = torch.exp(logit - top[:, None])  # [M, n]
    mixed = (weight[:, :, None] * blocks).sum(1)  # [M, H]
    return BlockSummary(top, weight.sum(1), mixed, (mixed * mixed).sum(1))


def finish_mix(
    blocks: BlockSummary, p: torch.Tensor, w: torch.Tensor, g: torch.Tensor, eps: float
) -> torch.Tensor:
    """Phase B: add the prefix `p` [M, H] and apply the output norm `g` [H], in one reduction."""
    hidden = p.shape[1]
    lp = score(p, w, eps)  # [M]
    t = torch.maximum(blocks.top, lp)  # [M]
    a = torch.exp(blocks.top - t)  # [M]
    b = torch.exp(lp - t)  # [M]
    den = a * blocks.total + b  # [M]
    cross = (blocks.mixed * p).sum(1)  # [M]
    square = (p * p).sum(1)  # [M]
    quad = a * a * blocks.mixed_square + 2 * a * b * cross + b * b * square  # [M] den^2 |m|^2
    scale = torch.rsqrt(quad / hidden + eps * den * den)  # [M]
    return ((a * scale)[:, None] * blocks.mixed + (b * scale)[:, None] * p) * g  # [M, H]


def normed_mix(
    r: Rounding, mixed: torch.Tensor, norm: torch.Tensor | None, eps: float
) -> torch.Tensor:
    """The block's output: normed by `norm` [H], or the bare mix when there is no output norm."""
    return r.mixed(mixed if norm is None else rms_norm(mixed, norm, eps))  # [M, H]
