# SPDX-License-Identifier: Apache-2.0
"""What one step computes on one rank: name, shape after the rows, dtype, equation.

The names are those of the reference's recorder (`kda.beta` of `layer.3.kda.beta`), and besides
them the rows that only the decode kernels have. Dtypes are the specialised column of spec 2.8.
"""

from dataclasses import dataclass

from kimi_k3.sharding import Sharding
from kimi_k3.tensors import DType

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Load:
    """The step that states, caches and activations are shown for.

    Attributes:
        rows: token rows of the step.
        draft: draft tokens per request.
        kv: element type of the KV cache.
    """

    rows: int = 1
    draft: int = 0
    kv: DType = DType.BF16


Activation = tuple[str, Shape, DType, str, int]
"""Name, shape after the rows, dtype, equation, and the padded last dimension (0: none)."""


def step_activations(s: Sharding, _load: Load) -> tuple[Activation, ...]:
    """Outside the layers."""
    c = s.config
    h, n, bf16, fp32 = c.hidden_size, c.num_blocks, DType.BF16, DType.FP32
    return (
        ("embedding", (h,), bf16, "2.1 embed", 0),
        ("blocks", (n, h), bf16, "2.1 blocks", 0),
        ("final.prefix", (h,), bf16, "2.2 p", 0),
        ("final.logit", (n + 1,), fp32, "2.2 logit", 0),
        ("final.mix", (h,), fp32, "2.2 m", 0),
        ("final.hidden", (h,), bf16, "2.1 h", 0),
        ("final.normed", (h,), bf16, "2.1 RMSNorm(h)", 0),
        ("local_logits", (s.vocab_rows,), fp32, "2.7 this rank's vocabulary", 0),
        ("logits", (c.vocab_size,), fp32, "2.1 logits", 0),
    )


def mix_activations(s: Sharding, _load: Load) -> tuple[Activation, ...]:
    """Of every layer: the two mixes and what they lead to."""
    c = s.config
    h, n, bf16, fp32 = c.hidden_size, c.num_blocks + 1, DType.BF16, DType.FP32
    return (
        ("attn_res.prefix", (h,), bf16, "2.2 p", 0),
        ("attn_res.logit", (n,), fp32, "2.2 logit", 0),
        ("attn_res.mix", (h,), fp32, "2.2 m", 0),
        ("attn_res.x", (h,), bf16, "2.1 x", 0),
        ("attention.partial", (h,), bf16, "2.3, 2.5 W_o", 0),
        ("attention", (h,), bf16, "2.1 a", 0),
        ("ffn_res.prefix", (h,), bf16, "2.2 p", 0),
        ("ffn_res.logit", (n,), fp32, "2.2 logit", 0),
        ("ffn_res.mix", (h,), fp32, "2.2 m", 0),
        ("ffn_res.y", (h,), bf16, "2.1 y", 0),
        ("delta", (h,), bf16, "2.1 delta", 0),
    )


def kda_activations(s: Sharding, _load: Load) -> tuple[Activation, ...]:
    """Of a KDA layer."""
    d, width, heads = s.config.kda_head_dim, s.kda_width, (s.kda_heads, s.config.kda_head_dim)
    bf16, fp32 = DType.BF16, DType.FP32
    return (
        ("kda.projected", (s.kda_in_live_rows,), bf16, "2.3 [q k v g f b]", s.kda_in_rows),
        ("kda.qkv", (s.conv_channels,), bf16, "2.3 q~, k~, v~", 0),
        ("kda.gate", (width,), bf16, "2.3 gate_o", 0),
        ("kda.f", (d,), bf16, "2.3 f", 0),
        ("kda.conv", (s.conv_channels,), fp32, "2.3 q, k, v", 0),
        ("kda.q", heads, fp32, "2.3 q, normalised", 0),
        ("kda.k", heads, fp32, "2.3 k, normalised", 0),
        ("kda.v", heads, fp32, "2.3 v", 0),
        ("kda.raw", (width,), bf16, "2.3 raw", 0),
        ("kda.log_decay", heads, fp32, "2.3 g", 0),
        ("kda.beta", (s.kda_heads,), fp32, "2.3 beta", 0),
        ("kda.u", heads, fp32, "2.3 u", 0),
        ("kda.o", heads, fp32, "2.3 o", 0),
        ("kda.attn", (width,), bf16, "2.3 gated norm", 0),
    )


def mla_activations(s: Sharding, load: Load) -> tuple[Activation, ...]:
    """Of an MLA layer; the gathered ones are larger under DCP."""
    c, a = s.config, s.mla_heads
    bf16, fp32 = DType.BF16, DType.FP32
    rank, extra = c.kv_lora_rank, c.qk_rope_head_dim
    shards: tuple[Activation, ...] = (
        ("mla.gathered_query", (s.attention_heads, c.kv_row), load.kv, "3.3 all heads", 0),
        ("mla.partial_lse", (s.attention_heads,), fp32, "3.3 LSE", 0),
        ("mla.partial_z", (s.attention_heads, rank), bf16, "3.3 partial latent", 0),
    )
    return (
        ("mla.projected", (s.mla_in_rows,), bf16, "2.5 [qa c kr gate]", 0),
        ("mla.qa", (c.q_lora_rank,), bf16, "2.5 RMSNorm(qa)", 0),
        ("mla.c", (rank,), bf16, "2.5 RMSNorm(c)", 0),
        ("mla.kr", (extra,), bf16, "2.5 kr", 0),
        ("mla.gate", (s.mla_width,), bf16, "2.5 gate", 0),
        ("mla.qn", (a, c.qk_nope_head_dim), bf16, "2.5 qn", 0),
        ("mla.qr", (a, extra), bf16, "2.5 qr", 0),
        ("mla.ql", (a, rank), bf16, "2.5 ql", 0),
        ("mla.query", (a, c.kv_row), load.kv, "2.5 [ql qr]", 0),
        *shards,
        ("mla.lse", (a,), fp32, "3.3 LSE", 0),
        ("mla.z", (a, rank), bf16, "2.5 z", 0),
        ("mla.attn", (s.mla_width,), bf16, "2.5 o, gated", 0),
    )


def dense_activations(s: Sharding, _load: Load) -> tuple[Activation, ...]:
    """Of a dense FFN."""
    h, bf16 = s.config.hidden_size, DType.BF16
    return (
        ("dense.gate_up", (2, s.dense_width), bf16, "2.7 W_g x, W_u x", 0),
        ("dense.hidden", (s.dense_width,), bf16, "1.4 situ", s.dense_padded_width),
        ("dense.partial", (h,), bf16, "2.7 W_d", 0),
    )


def moe_activations(s: Sharding, _load: Load) -> tuple[Activation, ...]:
    """Of an expert FFN, with MXFP8 activations."""
    c = s.config
    h, latent, k = c.hidden_size, c.routed_expert_hidden_size, c.num_experts_per_tok
    bf16, fp32, fp8, u8 = DType.BF16, DType.FP32, DType.FP8, DType.U8
    live_groups = s.expert_width // c.mx_group
    return (
        ("moe.local_logits", (s.router_live_rows,), fp32, "2.6 this rank's experts", s.router_rows),
        ("moe.local_z", (s.latent_rows,), bf16, "2.6 this rank's columns of z", 0),
        ("moe.logits", (c.num_experts,), fp32, "2.6 logits", 0),
        ("moe.ids", (k,), DType.INT32, "2.6 largest of sc + bias", 0),
        ("moe.weights", (k,), bf16, "2.6 weight_e", 0),
        ("moe.z", (latent,), bf16, "2.6 z", 0),
        ("moe.mx_z", (latent,), fp8, "2.6 z in MXFP8", 0),
        ("moe.mx_z_scale", (c.latent_groups,), u8, "2.6 z in MXFP8", 0),
        ("moe.hidden", (k, s.expert_width), bf16, "2.6 h", s.expert_partition),
        ("moe.mx_hidden", (k, s.expert_width), fp8, "2.6 h", s.expert_partition),
        ("moe.mx_hidden_scale", (k, live_groups), u8, "2.6 h", s.w2_groups),
        ("moe.rows", (k, latent), bf16, "2.6 r_e", 0),
        ("moe.latent_partial", (latent,), bf16, "2.6 L of this rank", 0),
        ("moe.latent", (latent,), bf16, "2.6 L", 0),
        ("moe.normed", (latent,), bf16, "2.6 n", 0),
        ("moe.routed", (h,), bf16, "2.6 routed", 0),
        ("shared.gate_up", (2, s.shared_width), bf16, "2.6 W_sg y, W_su y", 0),
        ("shared.hidden", (s.shared_width,), bf16, "1.4 situ", 0),
        ("shared.partial", (h,), bf16, "2.6 W_sd", 0),
        ("moe.shared", (h,), bf16, "2.6 shared", 0),
    )
