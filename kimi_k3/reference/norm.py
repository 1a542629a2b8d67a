# SPDX-License-Identifier: Apache-2.0
"""The two normalisations: RMS over a mean (spec 2.2 to 2.6), L2 over a sum (spec 2.3).

Both compute in the dtype of `x` and keep it.
"""

import torch

from kimi_k3.rounding import Round, keep


def rms_norm(
    x: torch.Tensor, weight: torch.Tensor, eps: float, square: Round = keep
) -> torch.Tensor:
    """`x` * rsqrt(mean(x^2) + eps) * weight over the last axis.

    Args:
        x: [..., n].
        weight: [n].
        eps: added to the mean of squares.
        square: rounding of each square; only the latent's norm has one (spec 2.8).
    """
    rms = torch.rsqrt(square(x * x).mean(-1, keepdim=True) + eps)  # [..., 1]
    return x * rms * weight.to(x.dtype)  # [..., n]


def l2_norm(x: torch.Tensor, eps: float) -> torch.Tensor:
    """`x` * rsqrt(sum(x^2) + eps): eps is added to the *sum*, so that a zero row stays zero."""
    return x * torch.rsqrt((x * x).sum(-1, keepdim=True) + eps)  # [..., n]
