# SPDX-License-Identifier: Apache-2.0
"""The gated FFN over prepared weights: `dense` and `moe_shared`, before the sum over ranks.

The equations are those of `operators.ffn`; prepared are both matrices. Rounding points:
`projection`, `activation`, `ffn_partial`.
"""

import torch
from torch.nn.functional import linear

from kimi_k3.operators.ffn import situ
from kimi_k3.packed import PackedFfn
from kimi_k3.reference.context import Context


def gated(ctx: Context, w: PackedFfn, y: torch.Tensor) -> torch.Tensor:
    """This rank's share [M, H] of the FFN of y [M, H]."""
    r = ctx.rounding
    hidden = r.activation(situ(ctx.config, r.projection(linear(y, w.gate_up))))  # [M, F]
    return r.ffn_partial(linear(hidden, w.down))
