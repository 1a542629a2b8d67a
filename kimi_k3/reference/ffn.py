# SPDX-License-Identifier: Apache-2.0
"""SiTU and the gated FFN: layer 0's, and the shared experts of the MoE layers.

Spec 1.4 and 2.7, with beta 4 and lb 25 in the published model:

    situ(g, u) = beta * tanh(g / beta) * sigmoid(g)  *  lb * tanh(u / lb)
    FFN(x)     = W_d bf16( situ( bf16(W_g x), bf16(W_u x) ) )

|situ| < beta * lb = 100: no later quantisation can overflow. Without lb the second factor is u.

| symbol | shape (I: this rank's width) | dtype |
|---|---|---|
| x, FFN(x) | [M, H] | BF16 values |
| g, u, situ | [M, I] | BF16 values |

Rounding points: `projection` (g, u), `activation` (situ), `ffn_partial`, `reduced`.
"""

import torch

from kimi_k3.config import K3Config
from kimi_k3.reference.context import Context
from kimi_k3.reference.functions import sigmoid, tanh
from kimi_k3.reference.linear import linear
from kimi_k3.weights import DenseWeights


def situ(config: K3Config, g: torch.Tensor, u: torch.Tensor) -> torch.Tensor:
    """The activation of gate `g` and up `u`, both [..., I]."""
    beta, lb = config.situ_beta, config.situ_linear_beta
    gate = beta * tanh(g / beta) * sigmoid(g)  # [..., I]
    up = u if lb is None else lb * tanh(u / lb)  # [..., I]
    return gate * up


def gated_ffn(ctx: Context, w: DenseWeights, x: torch.Tensor, name: str) -> torch.Tensor:
    """The FFN: x [M, H] to [M, H], summed over ranks; hooks under `name`."""
    r, tap = ctx.rounding, ctx.tap
    g = r.projection(linear(x, w.gate_proj))  # [M, I]
    u = r.projection(linear(x, w.up_proj))  # [M, I]
    tap(f"{name}.gate_up", torch.stack([g, u], dim=1))  # [M, 2, I]
    h = tap(f"{name}.hidden", r.activation(situ(ctx.config, g, u)))  # [M, I]
    partial = tap(f"{name}.partial", r.ffn_partial(linear(h, w.down_proj)))  # [M, H]
    return r.reduced(ctx.comm.all_reduce(partial))  # [M, H]
