# SPDX-License-Identifier: Apache-2.0
"""Kimi delta attention of prompts: `kda` with the recurrence in chunks (`kda_chunks`).

Rounding points as in `kda`. S is kept once, after the last token.
"""

import torch

from kimi_k3.operators.addresses import starts, write_slots
from kimi_k3.operators.kda import (
    conv_silu,
    gated_output,
    keep_inputs,
    read_taps,
    recurrence_inputs,
    split,
)
from kimi_k3.operators.kda_chunks import delta_rule
from kimi_k3.packed import PackedKda
from kimi_k3.reference.context import Context
from kimi_k3.reference.state import KdaState
from kimi_k3.step import GroupTensors


def prefill(
    ctx: Context,
    w: PackedKda,
    projected: torch.Tensor,
    state: KdaState,
    part: GroupTensors,
) -> torch.Tensor:
    """The gated output of this rank's heads for a group of prompts; advances `state`.

    A request whose length is its rows starts from nothing, another one from where its previous
    step ended. Afterwards S and the newest inputs are in slot column 0: the next step's
    `accepted` is 1.

    Args:
        ctx: constants and rounding.
        w: the layer's weights.
        projected: [M, rows of `in_proj`] of the group's own rows.
        state: see above.
        part: the group.

    Returns:
        [M, W]; zeros for padding.
    """
    begin, rows = starts(part), split(w, projected)
    fresh = rows.qkv.unflatten(0, (-1, part.group.rows))  # [R, T, 3 W]
    line = torch.cat([read_taps(ctx.config, state, part, begin, fresh.dtype), fresh], dim=1)
    conv = ctx.rounding.conv_out(conv_silu(line, w.conv))  # [R, T, 3 W]
    s = state.recurrent[begin.slot].to(conv.dtype)  # [R, N, value, key]
    s = torch.where((begin.live & ~begin.fresh)[:, None, None, None], s, 0.0)
    o, s = delta_rule(recurrence_inputs(ctx, w, conv, rows), s)
    keep_inputs(state, part, begin, line[:, line.shape[1] - ctx.config.conv_kernel_size + 1 :])
    write_slots(state.recurrent, part.slots[:, 0].long(), s, begin.live)
    return gated_output(ctx, w, o.flatten(0, 1), rows.gate, begin.live)
