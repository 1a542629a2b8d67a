# SPDX-License-Identifier: Apache-2.0
"""The weights of the model as frozen records, whole or one rank's share of them.

Matrices are in checkpoint orientation `[out, in]`. Letters of the shape comments (per rank, when
a record holds one rank's share; `kimi_k3.sharding` gives the numbers):

    H  hidden width            N  KDA heads          D  KDA head width      W  N x D
    V  vocabulary              A  MLA heads          P, R, U  nope, extra and value width of a head
    Q, C  query and KV rank    L  latent width       E  experts             I  expert width
    F  width of a dense or shared FFN

BF16 unless marked. Padding of an expert slice (I of the rank is then larger than its live part)
has zero codes and scale byte 127, so that it decodes to finite zeros.
"""

from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True)
class KdaWeights:
    """Kimi delta attention (spec 2.3)."""

    q_proj: Tensor  # [W, H]
    k_proj: Tensor  # [W, H]
    v_proj: Tensor  # [W, H]
    g_proj: Tensor  # [W, H]    output gate
    b_proj: Tensor  # [N, H]    beta
    f_a_proj: Tensor  # [D, H]  decay, first factor; whole on every rank
    f_b_proj: Tensor  # [W, D]  decay, second factor
    q_conv: Tensor  # [W, 1, 4] FP32
    k_conv: Tensor  # [W, 1, 4] FP32
    v_conv: Tensor  # [W, 1, 4] FP32
    a_log: Tensor  # [N] FP32   live values only; a checkpoint stores them zero-padded
    dt_bias: Tensor  # [W] FP32
    o_norm: Tensor  # [D] FP32  one weight for all heads
    o_proj: Tensor  # [H, W]


@dataclass(frozen=True)
class MlaWeights:
    """Multi-head latent attention (spec 2.5)."""

    q_a_proj: Tensor  # [Q, H]        whole on every rank
    q_a_layernorm: Tensor  # [Q]
    q_b_proj: Tensor  # [A (P + R), Q]  of each head, P rows and then R rows
    kv_a_proj: Tensor  # [C + R, H]   C latent rows, then the R extra key rows; whole on every rank
    kv_a_layernorm: Tensor  # [C]
    kv_b_proj: Tensor  # [A (P + U), C]  of each head, P key rows and then U value rows
    g_proj: Tensor  # [A U, H]        output gate
    o_proj: Tensor  # [H, A U]


@dataclass(frozen=True)
class DenseWeights:
    """A gated FFN: layer 0's, or the fused shared experts' (spec 2.7, 2.6)."""

    gate_proj: Tensor  # [F, H]
    up_proj: Tensor  # [F, H]
    down_proj: Tensor  # [H, F]


@dataclass(frozen=True)
class ExpertWeights:
    """All routed experts of a layer in MXFP4; two codes per byte, low nibble = even column."""

    w13_packed: Tensor  # [E, 2 I, L/2] u8   I gate rows, then I up rows
    w13_scale: Tensor  # [E, 2 I, L/32] u8
    w2_packed: Tensor  # [E, L, I/2] u8
    w2_scale: Tensor  # [E, L, I/32] u8


@dataclass(frozen=True)
class MoeWeights:
    """Latent mixture of experts (spec 2.6); router and latent projections whole on every rank."""

    router: Tensor  # [E, H]
    correction_bias: Tensor  # [E] FP32  added for selection only
    latent_down: Tensor  # [L, H]
    latent_norm: Tensor  # [L]
    latent_up: Tensor  # [H, L]
    shared: DenseWeights
    experts: ExpertWeights


@dataclass(frozen=True)
class LayerWeights:
    """One layer: two attention-residual mixes, an attention block and an FFN (spec 2.1)."""

    input_layernorm: Tensor  # [H]
    post_attention_layernorm: Tensor  # [H]
    self_attention_res_norm: Tensor  # [H]
    self_attention_res_proj: Tensor  # [1, H]
    mlp_res_norm: Tensor  # [H]
    mlp_res_proj: Tensor  # [1, H]
    attention: KdaWeights | MlaWeights
    ffn: DenseWeights | MoeWeights


@dataclass(frozen=True)
class ModelWeights:
    """The text model; embedding and head hold this rank's part of the vocabulary."""

    embed_tokens: Tensor  # [V, H]
    lm_head: Tensor  # [V, H]
    norm: Tensor  # [H]
    output_attn_res_norm: Tensor  # [H]
    output_attn_res_proj: Tensor  # [1, H]
    layers: tuple[LayerWeights, ...]
