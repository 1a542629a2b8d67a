# SPDX-License-Identifier: Apache-2.0
"""The last norm and this rank's logits over prepared weights: `head`.

The equations are those of `operators.ends`. The embedding keeps its reference provider: it reads
one row of the table per token, and there is nothing to prepare. Rounding points: `final_normed`,
`logits`.
"""

from dataclasses import dataclass

import torch
from torch.nn.functional import linear

from kimi_k3.packed import PackedModel
from kimi_k3.reference.context import Context
from kimi_k3.reference.norm import rms_norm


@dataclass(frozen=True)
class Head:
    """The prepared weights."""

    norm: torch.Tensor  # [H]
    lm_head: torch.Tensor  # [V of the rank, H]


def prepare(w: PackedModel, dtype: torch.dtype) -> Head:
    """Converts both."""
    return Head(w.norm.to(dtype), w.lm_head.to(dtype))


def logits(ctx: Context, w: Head, hidden: torch.Tensor) -> torch.Tensor:
    """This rank's logits [M, V of the rank] of h [M, H], which is not yet normed."""
    r = ctx.rounding
    normed = r.final_normed(rms_norm(hidden, w.norm, ctx.config.rms_norm_eps))  # [M, H]
    return r.logits(linear(normed, w.lm_head))
