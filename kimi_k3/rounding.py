# SPDX-License-Identifier: Apache-2.0
"""Where values are rounded: the map of spec 2.8 as a policy with named points.

Block code computes in `Rounding.compute` and says at each point what it has, `r.raw_decay(x)`;
the policy says what becomes of it. A rounded tensor keeps the compute dtype, it only holds fewer
bits. Four policies:

* `exact(torch.float64)`, `exact(torch.float32)`: nothing is rounded; the mathematics.
* `stock()`: what a good engine serves today (the left column of spec 2.8).
* `specialized()`: what the decode kernels do (the right column).
"""

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any

import torch

from kimi_k3.mxfp4 import MxRule, fake_quantize_mxfp8

Round = Callable[[torch.Tensor], torch.Tensor]


def keep(x: torch.Tensor) -> torch.Tensor:
    """No rounding."""
    return x


def bf16(x: torch.Tensor) -> torch.Tensor:
    """Round FP32 to the nearest BF16, ties to even; the dtype stays."""
    return x.to(torch.bfloat16).to(x.dtype)


def positive_zero(x: torch.Tensor) -> torch.Tensor:
    """Turn -0.0 into +0.0: the mailboxes use the bits of -0.0 as "not yet written"."""
    return torch.where(x == 0, torch.zeros_like(x), x)


def bf16_positive_zero(x: torch.Tensor) -> torch.Tensor:
    """Round to BF16, then turn -0.0 into +0.0 (a small negative value may round to -0.0)."""
    return positive_zero(bf16(x))


def mxfp8_amax(x: torch.Tensor) -> torch.Tensor:
    """Through MXFP8 with the smallest scale that keeps the group's maximum within 448."""
    return fake_quantize_mxfp8(x, MxRule.AMAX)


def mxfp8_floor(x: torch.Tensor) -> torch.Tensor:
    """Through MXFP8 with the scale of floor(log2 amax); saturates above 1.75 times a power of 2."""
    return fake_quantize_mxfp8(x, MxRule.FLOOR)


@dataclass(frozen=True)
class Rounding:
    """One policy. The points are in the order in which a step meets them."""

    name: str
    compute: torch.dtype
    """The dtype of every accumulation and of every tensor between two points."""
    stored: torch.dtype
    """Activations at rest: the convolution window and the unquantised KV rows."""
    recurrent: torch.dtype
    """The KDA state at rest; never BF16, small updates would be lost."""

    embedding: Round
    """The embedding row, after the sum over vocabulary shards."""
    prefix_add: Round
    """prefix + delta, stored back."""
    mixed: Round
    """The output of an AttnRes: x, y, and h of the last one."""
    projection: Round
    """A GEMM output without a point of its own: q~ k~ v~ gate f bh, qa c kr, FFN gate and up."""
    conv_out: Round
    """KDA q, k, v after the convolution and SiLU."""
    raw_decay: Round
    """KDA raw = W_fb f, before dt_bias."""
    kda_out: Round
    """KDA o = S q, before the gated norm."""
    mla_normed: Round
    """MLA qa and c after their RMSNorm."""
    mla_query: Round
    """MLA qn and qr."""
    mla_absorbed: Round
    """MLA ql = W_UK qn. An FP8 cache quantises it further (`state.KvCache`)."""
    mla_latent: Round
    """MLA z, one per shard under context parallelism, and again after the merge."""
    mla_value: Round
    """MLA o = W_UV z, before the gate. Not in spec 2.8: inferred from the kernels' fusion."""
    attn_out: Round
    """The gated output of this rank's heads."""
    o_partial: Round
    """This rank's share of W_o."""
    reduced: Round
    """A sum over ranks: attention, dense FFN, shared experts."""
    router_logits: Round
    """W_r y."""
    router_weight: Round
    """The weight of a picked expert."""
    latent: Round
    """z = W_down y."""
    expert_input: Round
    """z as the experts read it."""
    expert_gate_up: Round
    """W1 z and W3 z of an expert. Not in spec 2.8: inferred from the kernels' fusion."""
    expert_hidden: Round
    """situ(W1 z, W3 z) of an expert as W2 reads it."""
    expert_row: Round
    """r_e = W2 h."""
    latent_partial: Round
    """This rank's weighted sum of expert rows."""
    reduced_latent: Round
    """L, the sum of the partials over ranks."""
    latent_square: Round
    """Each square inside the RMS of L."""
    latent_normed: Round
    """n = RMSNorm(L)."""
    routed: Round
    """W_up n."""
    activation: Round
    """SiTU of the dense and the shared FFN."""
    ffn_partial: Round
    """This rank's share of the dense or the shared down projection."""
    ffn_out: Round
    """routed + shared."""
    final_normed: Round
    """RMSNorm(h), which the head reads."""
    logits: Round
    """The head's output."""


POINTS = tuple(f.name for f in fields(Rounding) if f.type is Round)
"""Names of all rounding points."""


def exact(dtype: torch.dtype) -> Rounding:
    """No rounding at any point; all arithmetic and all state in `dtype`."""
    everywhere: dict[str, Any] = dict.fromkeys(POINTS, keep)
    name = f"exact({str(dtype).removeprefix('torch.')})"
    return Rounding(name, compute=dtype, stored=dtype, recurrent=dtype, **everywhere)


def stock() -> Rounding:
    """The left column of spec 2.8: BF16 between operators, experts with BF16 activations."""
    everywhere: dict[str, Any] = dict.fromkeys(POINTS, bf16)
    everywhere["router_logits"] = keep  # FP32 logits, and FP32 weights after the sigmoid
    everywhere["router_weight"] = keep
    everywhere["expert_input"] = keep  # z is BF16 already
    everywhere["latent_square"] = keep
    return Rounding(
        "stock",
        compute=torch.float32,
        stored=torch.bfloat16,
        recurrent=torch.float32,
        **everywhere,
    )


def specialized(hidden: Round = mxfp8_amax) -> Rounding:
    """The right column of spec 2.8, experts with MXFP8 activations.

    Args:
        hidden: what W2 reads: `mxfp8_floor` as in the TP8 kernels, `mxfp8_amax` as at TP16, or
            `bf16` together with `expert_input=keep` for W4A16 experts (`dataclasses.replace`).
    """
    return replace(
        stock(),
        name="specialized",
        conv_out=keep,  # FP32 until the recurrence ends
        kda_out=keep,
        mla_value=keep,
        o_partial=bf16_positive_zero,
        router_logits=positive_zero,
        router_weight=bf16,
        expert_input=mxfp8_amax,
        expert_gate_up=keep,
        expert_hidden=hidden,
        latent_partial=bf16_positive_zero,
        latent_square=bf16,
        ffn_partial=bf16_positive_zero,
    )
