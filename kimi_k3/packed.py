# SPDX-License-Identifier: Apache-2.0
"""One rank's weights as a step reads them: what reads the same input is one matrix.

Both backends read these tensors. Everything but the packed matrices is the checkpoint's own
tensor; routed experts in particular have one resident copy, in checkpoint order. Letters are those
of `kimi_k3.weights`; row counts those of `kimi_k3.sharding`.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from kimi_k3.config import K3Config
from kimi_k3.sharding import ROW_ALIGN
from kimi_k3.weights import (
    DenseWeights,
    ExpertWeights,
    KdaWeights,
    LayerWeights,
    MlaWeights,
    ModelWeights,
    MoeWeights,
)


@dataclass(frozen=True)
class PackedKda:
    """Kimi delta attention."""

    in_proj: Tensor  # [4 W + D + N + pad, H]  q, k, v, g, f_a, b, then zero rows
    f_b_proj: Tensor  # [W, D]
    conv: Tensor  # [3 W, width] FP32  q, k, v; the newest input last
    a_log: Tensor  # [N] FP32
    dt_bias: Tensor  # [W] FP32
    o_norm: Tensor  # [D] FP32
    o_proj: Tensor  # [H, W]


@dataclass(frozen=True)
class PackedMla:
    """Multi-head latent attention."""

    in_proj: Tensor  # [Q + C + R + A U, H]  q_a, kv_a (latent, then extra), g
    q_a_layernorm: Tensor  # [Q]
    q_b_proj: Tensor  # [A (P + R), Q]
    kv_a_layernorm: Tensor  # [C]
    w_uk: Tensor  # [A, P, C]  key half of kv_b
    w_uv: Tensor  # [A, U, C]  value half of kv_b
    o_proj: Tensor  # [H, A U]


@dataclass(frozen=True)
class PackedFfn:
    """A gated FFN: layer 0's, or the fused shared experts'."""

    gate_up: Tensor  # [2 F, H]  gate rows, then up rows
    down: Tensor  # [H, F]


@dataclass(frozen=True)
class PackedMoe:
    """Latent mixture of experts."""

    front: Tensor  # [E + L, H]  router, then latent down: both read y
    correction_bias: Tensor  # [E] FP32
    latent_norm: Tensor  # [L]
    latent_up: Tensor  # [H, L]
    shared: PackedFfn
    experts: ExpertWeights

    @property
    def router(self) -> Tensor:
        """[E, H]."""
        return self.front[: len(self.correction_bias)]

    @property
    def latent_down(self) -> Tensor:
        """[L, H]."""
        return self.front[len(self.correction_bias) :]


@dataclass(frozen=True)
class PackedMix:
    """One attention-residual mix; `norm` is None for the last one of a step."""

    score: Tensor  # [H] FP32  norm weight x projection, which act only as their product
    norm: Tensor | None  # [H]


@dataclass(frozen=True)
class PackedLayer:
    """One layer, in the order in which a step meets it."""

    attention_mix: PackedMix
    attention: PackedKda | PackedMla
    ffn_mix: PackedMix
    ffn: PackedFfn | PackedMoe


@dataclass(frozen=True)
class PackedModel:
    """The text model of one rank."""

    embed_tokens: Tensor  # [V, H]
    layers: tuple[PackedLayer, ...]
    final_mix: PackedMix
    norm: Tensor  # [H]
    lm_head: Tensor  # [V, H]


def pack(config: K3Config, weights: ModelWeights) -> PackedModel:
    """Packs a rank's weights.

    Packed matrices are new memory; a caller that drops `weights` afterwards keeps one copy.
    """
    return PackedModel(
        weights.embed_tokens,
        tuple(_layer(config, layer) for layer in weights.layers),
        _mix(weights.output_attn_res_norm, weights.output_attn_res_proj, None),
        weights.norm,
        weights.lm_head,
    )


def _layer(config: K3Config, w: LayerWeights) -> PackedLayer:
    return PackedLayer(
        _mix(w.self_attention_res_norm, w.self_attention_res_proj, w.input_layernorm),
        _kda(w.attention) if isinstance(w.attention, KdaWeights) else _mla(config, w.attention),
        _mix(w.mlp_res_norm, w.mlp_res_proj, w.post_attention_layernorm),
        _ffn(w.ffn) if isinstance(w.ffn, DenseWeights) else _moe(w.ffn),
    )


def _mix(norm: Tensor, proj: Tensor, out_norm: Tensor | None) -> PackedMix:
    return PackedMix(norm.float() * proj[0].float(), out_norm)


def _kda(w: KdaWeights) -> PackedKda:
    rows = [w.q_proj, w.k_proj, w.v_proj, w.g_proj, w.f_a_proj, w.b_proj]
    live = sum(len(part) for part in rows)
    pad = w.q_proj.new_zeros(-live % ROW_ALIGN, w.q_proj.shape[1])
    conv = torch.cat([w.q_conv, w.k_conv, w.v_conv])[:, 0]
    return PackedKda(
        torch.cat([*rows, pad]), w.f_b_proj, conv, w.a_log, w.dt_bias, w.o_norm, w.o_proj
    )


def _mla(config: K3Config, w: MlaWeights) -> PackedMla:
    by_head = w.kv_b_proj.unflatten(0, (-1, config.kv_b_head_dim))  # [A, P + U, C]
    w_uk, w_uv = by_head.split([config.qk_nope_head_dim, config.v_head_dim], dim=1)
    return PackedMla(
        torch.cat([w.q_a_proj, w.kv_a_proj, w.g_proj]),
        w.q_a_layernorm,
        w.q_b_proj,
        w.kv_a_layernorm,
        w_uk.contiguous(),
        w_uv.contiguous(),
        w.o_proj,
    )


def _ffn(w: DenseWeights) -> PackedFfn:
    return PackedFfn(torch.cat([w.gate_proj, w.up_proj]), w.down_proj)


def _moe(w: MoeWeights) -> PackedMoe:
    return PackedMoe(
        torch.cat([w.router, w.latent_down]),
        w.correction_bias,
        w.latent_norm,
        w.latent_up,
        _ffn(w.shared),
        w.experts,
    )
