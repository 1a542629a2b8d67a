# SPDX-License-Identifier: Apache-2.0
"""The table of stored tensors: name, place in memory, shape, dtype, and how ranks divide each.

Reading, writing, sharding and random initialisation follow it, so a tensor is described once.
`kimi_k3.resident` adds what a rank holds besides. Nothing is allocated, torch is not imported.
"""

from dataclasses import dataclass
from enum import StrEnum

from kimi_k3.config import K3Config
from kimi_k3.sharding import COLUMNS, ROWS, WHOLE, Split

EXPERT = "{expert}"
"""Stands for the expert's number in a name of `layer_tensors`."""


class DType(StrEnum):
    """Element types, by the names that safetensors uses."""

    BF16 = "BF16"
    FP32 = "F32"
    U8 = "U8"
    FP8 = "F8_E4M3"
    INT32 = "I32"

    @property
    def size(self) -> int:
        """Bytes of an element."""
        return {"BF16": 2, "F32": 4, "U8": 1, "F8_E4M3": 1, "I32": 4}[self.value]


@dataclass(frozen=True)
class StoredTensor:
    """A tensor of the checkpoint.

    Attributes:
        name: after `model.` or `model.layers.N.`; `{expert}` stands for an expert's number.
        place: its attribute path in `ModelWeights` or `LayerWeights`.
        shape: as stored, of one expert where the name has `{expert}`.
        dtype: element type.
        split: how ranks divide it.
        source: section and equation of the specification.
        fill: value of padding elements.
        live: shape without the zeros that A_log is stored with.
        block: an expert's gate (0) and up (1) rows share one tensor in memory.
    """

    name: str
    place: str
    shape: tuple[int, ...]
    dtype: DType
    split: Split
    source: str
    fill: int = 0
    live: tuple[int, ...] = ()
    block: int = 0

    def __post_init__(self) -> None:
        if not self.live:
            object.__setattr__(self, "live", self.shape)

    @property
    def is_expert(self) -> bool:
        """Whether there is one such tensor per expert."""
        return EXPERT in self.name


def model_tensors(c: K3Config) -> tuple[StoredTensor, ...]:
    """The tensors outside the layers; names are complete."""
    hidden, vocabulary = (c.hidden_size,), (c.vocab_size, c.hidden_size)
    bf16 = DType.BF16
    return (
        StoredTensor(
            "model.embed_tokens.weight", "embed_tokens", vocabulary, bf16, ROWS, "2.1 embed"
        ),
        StoredTensor("lm_head.weight", "lm_head", vocabulary, bf16, ROWS, "2.1 logits"),
        StoredTensor("model.norm.weight", "norm", hidden, bf16, WHOLE, "2.1 logits"),
        StoredTensor(
            "model.output_attn_res_norm.weight",
            "output_attn_res_norm",
            hidden,
            bf16,
            WHOLE,
            "2.2 w, output",
        ),
        StoredTensor(
            "model.output_attn_res_proj.weight",
            "output_attn_res_proj",
            (1, c.hidden_size),
            bf16,
            WHOLE,
            "2.2 w, output",
        ),
    )


def layer_tensors(c: K3Config, layer: int) -> tuple[StoredTensor, ...]:
    """The tensors of a layer; names follow `model.layers.N.`."""
    attention = _kda_tensors(c) if c.is_kda(layer) else _mla_tensors(c)
    ffn = _dense_tensors(c) if c.is_dense(layer) else (*_moe_tensors(c), *_expert_tensors(c))
    return (*_mix_tensors(c), *attention, *ffn)


def _mix_tensors(c: K3Config) -> tuple[StoredTensor, ...]:
    rows = (
        ("input_layernorm", (c.hidden_size,), "2.2 g, pre-attention"),
        ("post_attention_layernorm", (c.hidden_size,), "2.2 g, pre-FFN"),
        ("self_attention_res_norm", (c.hidden_size,), "2.2 w, pre-attention"),
        ("self_attention_res_proj", (1, c.hidden_size), "2.2 w, pre-attention"),
        ("mlp_res_norm", (c.hidden_size,), "2.2 w, pre-FFN"),
        ("mlp_res_proj", (1, c.hidden_size), "2.2 w, pre-FFN"),
    )
    return tuple(
        StoredTensor(f"{name}.weight", name, shape, DType.BF16, WHOLE, source)
        for name, shape, source in rows
    )


def _kda_tensors(c: K3Config) -> tuple[StoredTensor, ...]:
    wide, conv = (c.kda_width, c.hidden_size), (c.kda_width, 1, c.conv_kernel_size)
    low = (c.kda_head_dim, c.hidden_size)
    bf16, fp32 = DType.BF16, DType.FP32
    rows = (
        ("q_proj.weight", "q_proj", wide, bf16, ROWS, "2.3 W_q"),
        ("k_proj.weight", "k_proj", wide, bf16, ROWS, "2.3 W_k"),
        ("v_proj.weight", "v_proj", wide, bf16, ROWS, "2.3 W_v"),
        ("g_proj.weight", "g_proj", wide, bf16, ROWS, "2.3 W_g"),
        ("b_proj.weight", "b_proj", (c.kda_num_heads, c.hidden_size), bf16, ROWS, "2.3 W_b"),
        ("f_a_proj.weight", "f_a_proj", low, bf16, WHOLE, "2.3 W_fa"),
        ("f_b_proj.weight", "f_b_proj", (c.kda_width, c.kda_head_dim), bf16, ROWS, "2.3 W_fb"),
        ("q_conv1d.weight", "q_conv", conv, fp32, ROWS, "2.3 c_j"),
        ("k_conv1d.weight", "k_conv", conv, fp32, ROWS, "2.3 c_j"),
        ("v_conv1d.weight", "v_conv", conv, fp32, ROWS, "2.3 c_j"),
        ("A_log", "a_log", (c.a_log_padding,), fp32, ROWS, "2.3 A_log"),
        ("dt_bias", "dt_bias", (c.kda_width,), fp32, ROWS, "2.3 dt_bias"),
        ("o_norm.weight", "o_norm", (c.kda_head_dim,), fp32, WHOLE, "2.3 w_o"),
        ("o_proj.weight", "o_proj", (c.hidden_size, c.kda_width), bf16, COLUMNS, "2.3 W_o"),
    )
    return tuple(
        StoredTensor(
            f"self_attn.{name}",
            f"attention.{place}",
            shape,
            dtype,
            split,
            source,
            live=(c.kda_num_heads,) if place == "a_log" else (),
        )
        for name, place, shape, dtype, split, source in rows
    )


def _mla_tensors(c: K3Config) -> tuple[StoredTensor, ...]:
    rows = (
        ("q_a_proj", "q_a_proj", (c.q_lora_rank, c.hidden_size), WHOLE, "2.5 W_a"),
        ("q_a_layernorm", "q_a_layernorm", (c.q_lora_rank,), WHOLE, "2.5 RMSNorm(qa)"),
        ("q_b_proj", "q_b_proj", (c.q_b_width, c.q_lora_rank), ROWS, "2.5 W_qb"),
        ("kv_a_proj_with_mqa", "kv_a_proj", (c.kv_row, c.hidden_size), WHOLE, "2.5 W_a"),
        ("kv_a_layernorm", "kv_a_layernorm", (c.kv_lora_rank,), WHOLE, "2.5 RMSNorm(c)"),
        ("kv_b_proj", "kv_b_proj", (c.kv_b_width, c.kv_lora_rank), ROWS, "2.5 W_UK, W_UV"),
        ("g_proj", "g_proj", (c.mla_width, c.hidden_size), ROWS, "2.5 W_g"),
        ("o_proj", "o_proj", (c.hidden_size, c.mla_width), COLUMNS, "2.5 W_o"),
    )
    return tuple(
        StoredTensor(
            f"self_attn.{name}.weight", f"attention.{place}", shape, DType.BF16, split, source
        )
        for name, place, shape, split, source in rows
    )


def _gated_ffn(
    c: K3Config, prefix: str, place: str, width: int, source: str
) -> tuple[StoredTensor, ...]:
    up, down = (width, c.hidden_size), (c.hidden_size, width)
    rows = (("gate_proj", up, ROWS), ("up_proj", up, ROWS), ("down_proj", down, COLUMNS))
    return tuple(
        StoredTensor(f"{prefix}.{name}.weight", f"{place}.{name}", shape, DType.BF16, split, source)
        for name, shape, split in rows
    )


def _dense_tensors(c: K3Config) -> tuple[StoredTensor, ...]:
    return _gated_ffn(c, "mlp", "ffn", c.intermediate_size, "2.7 dense")


def _moe_tensors(c: K3Config) -> tuple[StoredTensor, ...]:
    latent = c.routed_expert_hidden_size
    bf16 = DType.BF16
    rows = (
        ("gate.weight", "router", (c.num_experts, c.hidden_size), bf16, "2.6 W_r"),
        (
            "gate.e_score_correction_bias",
            "correction_bias",
            (c.num_experts,),
            DType.FP32,
            "2.6 bias",
        ),
        (
            "routed_expert_down_proj.weight",
            "latent_down",
            (latent, c.hidden_size),
            bf16,
            "2.6 W_down",
        ),
        ("routed_expert_norm.weight", "latent_norm", (latent,), bf16, "2.6 RMSNorm(L)"),
        ("routed_expert_up_proj.weight", "latent_up", (c.hidden_size, latent), bf16, "2.6 W_up"),
    )
    whole = tuple(
        StoredTensor(f"block_sparse_moe.{name}", f"ffn.{place}", shape, dtype, WHOLE, source)
        for name, place, shape, dtype, source in rows
    )
    prefix = "block_sparse_moe.shared_experts"
    return (*whole, *_gated_ffn(c, prefix, "ffn.shared", c.shared_intermediate_size, "2.6 shared"))


def _expert_tensors(c: K3Config) -> tuple[StoredTensor, ...]:
    """The three matrices of one expert: w1 = gate, w3 = up, w2 = down."""
    width, latent = c.moe_intermediate_size, c.routed_expert_hidden_size
    rows = (
        ("w1.weight_packed", "w13_packed", (width, c.latent_bytes), Split(0, 1), 0, "2.6 W1_e"),
        ("w1.weight_scale", "w13_scale", (width, c.latent_groups), Split(0, 1), 0, "1.3 b of W1_e"),
        ("w3.weight_packed", "w13_packed", (width, c.latent_bytes), Split(0, 1), 1, "2.6 W3_e"),
        ("w3.weight_scale", "w13_scale", (width, c.latent_groups), Split(0, 1), 1, "1.3 b of W3_e"),
        ("w2.weight_packed", "w2_packed", (latent, c.expert_bytes), Split(1, 2), 0, "2.6 W2_e"),
        (
            "w2.weight_scale",
            "w2_scale",
            (latent, c.expert_groups),
            Split(1, c.mx_group),
            0,
            "1.3 b of W2_e",
        ),
    )
    return tuple(
        StoredTensor(
            f"block_sparse_moe.experts.{EXPERT}.{name}",
            f"ffn.experts.{place}",
            shape,
            DType.U8,
            split,
            source,
            fill=127 if name.endswith("scale") else 0,
            block=block,
        )
        for name, place, shape, split, block, source in rows
    )
