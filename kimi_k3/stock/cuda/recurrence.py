# SPDX-License-Identifier: Apache-2.0
"""fla-core's delta rule for windows, on state slots in place.

Its host function launches the kernel with 32 value rows and four warps a program. One warp with 8
rows keeps more states on their way and needs no barrier for the norms of q and k: a tenth less time
at one request, an eighth at 64 (see `docs/stock.md`).
"""

import torch
import triton
from fla.ops.kda.fused_recurrent import fused_recurrent_kda_fwd_kernel

VALUE_ROWS = 8
"""Of one program; states are [value, key]."""
WARPS = 1


def recurrence(
    out: torch.Tensor,
    qkv: tuple[torch.Tensor, torch.Tensor, torch.Tensor],
    decay_logits: torch.Tensor,
    beta_logits: torch.Tensor,
    a_log: torch.Tensor,
    dt_bias: torch.Tensor,
    states: torch.Tensor,
    *,
    row_starts: torch.Tensor,
    slots: torch.Tensor,
    accepted: torch.Tensor,
    scale: float,
    lower_bound: float | None,
) -> None:
    """The output and the new states of every window, decay and norms of q and k included.

    A request starts from the slot of the last token that was accepted and leaves the state after
    each of its rows in that row's slot. Moves 4 h d^2 bytes in per request and as many out per row.

    Args:
        out: [M, h, d] BF16, written for the rows of live requests.
        qkv: three of [M, h, d] BF16, after the convolution.
        decay_logits: [M, h, d] BF16.
        beta_logits: [M, h] BF16.
        a_log: [h] FP32.
        dt_bias: [h d] FP32.
        states: [slots, h, d, d] FP32, value before key.
        row_starts: [R + 1] int32 first row of each request; padding has none.
        slots: [R, q] int32, state slot of each row.
        accepted: [R] int32, at least 1: how many rows of the last window were accepted.
        scale: of q.
        lower_bound: of the decay's logarithm; None for the unbounded form.
    """
    q, k, v = qkv
    heads, d = q.shape[1:]
    requests = len(slots)
    fused_recurrent_kda_fwd_kernel[(requests * heads * triton.cdiv(d, VALUE_ROWS),)](
        q=q,
        k=k,
        v=v,
        g=decay_logits,
        beta=beta_logits,
        A_log=a_log,
        dt_bias=dt_bias,
        o=out,
        h0=states,
        ht=states,
        cu_seqlens=row_starts,
        ssm_state_indices=slots,
        num_accepted_tokens=accepted,
        lower_bound=lower_bound,
        scale=scale,
        N=requests,
        T=len(q),
        H=heads,
        HV=heads,
        K=d,
        V=d,
        BK=triton.next_power_of_2(d),
        BV=VALUE_ROWS,
        stride_init_state_token=states.stride(0),
        stride_final_state_token=states.stride(0),
        stride_indices_seq=slots.stride(0),
        stride_indices_tok=slots.stride(1),
        IS_BETA_HEADWISE=False,
        USE_QK_L2NORM_IN_KERNEL=True,
        INPLACE_FINAL_STATE=True,
        USE_GATE_IN_KERNEL=True,
        APPLY_BETA_SIGMOID=True,
        ALLOW_NEG_EIGVAL=False,
        STATE_V_FIRST=True,
        num_warps=WARPS,
        num_stages=2,
    )
