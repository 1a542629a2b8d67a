# SPDX-License-Identifier: Apache-2.0
"""The gated FFN: layer 0's, and the shared experts' (spec 1.4, 2.7).

The equations are those of `reference.ffn`. Rounding points: `projection`, `activation`,
`ffn_partial`; the sum over ranks is the caller's.
"""

import torch

from kimi_k3.config import K3Config
from kimi_k3.operators.linear import linear
from kimi_k3.packed import PackedFfn
from kimi_k3.reference.context import Context


def situ(config: K3Config, gate_up: torch.Tensor) -> torch.Tensor:
    """The activation of `gate_up` [..., 2 I], gate columns and then up columns: [..., I]."""
    g, u = gate_up.chunk(2, dim=-1)
    beta, lb = config.situ_beta, config.situ_linear_beta
    gate = torch.tanh(g / beta).mul_(beta).mul_(torch.sigmoid(g))  # [..., I]
    return gate.mul_(u if lb is None else torch.tanh(u / lb).mul_(lb))


def gated(ctx: Context, w: PackedFfn, y: torch.Tensor) -> torch.Tensor:
    """This rank's share [M, H] of the FFN of y [M, H], before the sum over ranks."""
    r = ctx.rounding
    gate_up = r.projection(linear(y, w.gate_up))  # [M, 2 F]
    hidden = r.activation(situ(ctx.config, gate_up))  # [M, F]
    return r.ffn_partial(linear(hidden, w.down))
