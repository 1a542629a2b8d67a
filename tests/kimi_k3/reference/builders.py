# SPDX-License-Identifier: Apache-2.0
"""A model whose dimensions all differ, random weights of a chosen dtype, and a small server.

With `tiny()` a swap of two equal dimensions would go unseen; `odd()` has no two alike.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any

import torch
from torch import Tensor

from kimi_k3.config import K3Config, tiny
from kimi_k3.reference.hooks import Tap
from kimi_k3.reference.model import NO_TAP, Model, StepOutput
from kimi_k3.reference.state import Caches, CacheShape, KvCache, allocate
from kimi_k3.weights import (
    DenseWeights,
    ExpertWeights,
    KdaWeights,
    LayerWeights,
    MlaWeights,
    ModelWeights,
    MoeWeights,
)

PAGE = 4


def odd() -> K3Config:
    """Six layers as in `tiny()`, every width different."""
    return replace(
        tiny(),
        hidden_size=40,
        vocab_size=58,
        kda_num_heads=3,
        kda_head_dim=8,
        mla_num_heads=2,
        q_lora_rank=14,
        kv_lora_rank=12,
        qk_nope_head_dim=6,
        qk_rope_head_dim=4,
        v_head_dim=10,
        intermediate_size=36,
        num_experts=11,
        num_experts_per_tok=3,
        routed_expert_hidden_size=32,
        moe_intermediate_size=64,
        shared_intermediate_size=28,
        min_expert_partition=32,
    )


@dataclass
class Draw:
    """Random tensors in a fixed order from one seed."""

    seed: int
    dtype: torch.dtype = torch.bfloat16
    generator: torch.Generator = field(init=False)

    def __post_init__(self) -> None:
        self.generator = torch.Generator().manual_seed(self.seed)

    def normal(self, *shape: int, scale: float = 1.0, dtype: torch.dtype | None = None) -> Tensor:
        x = scale * torch.randn(*shape, generator=self.generator, dtype=torch.float64)
        return x.to(dtype or self.dtype)

    def uniform(self, low: float, high: float, *shape: int) -> Tensor:
        x = torch.rand(*shape, generator=self.generator, dtype=torch.float64)
        return (low + (high - low) * x).to(torch.float32)

    def matrix(self, out: int, width: int) -> Tensor:
        return self.normal(out, width, scale=width**-0.5)

    def norm(self, width: int) -> Tensor:
        return (1 + self.normal(width, scale=0.1, dtype=torch.float64)).to(self.dtype)

    def bytes(self, low: int, high: int, *shape: int) -> Tensor:
        return torch.randint(low, high, shape, generator=self.generator).to(torch.uint8)


def kda_weights(c: K3Config, d: Draw) -> KdaWeights:
    w, f32 = c.kda_width, torch.float32
    return KdaWeights(
        *(d.matrix(w, c.hidden_size) for _ in range(4)),
        b_proj=d.matrix(c.kda_num_heads, c.hidden_size),
        f_a_proj=d.matrix(c.kda_head_dim, c.hidden_size),
        f_b_proj=d.matrix(w, c.kda_head_dim),
        q_conv=d.normal(w, 1, c.conv_kernel_size, scale=0.7, dtype=f32),
        k_conv=d.normal(w, 1, c.conv_kernel_size, scale=0.7, dtype=f32),
        v_conv=d.normal(w, 1, c.conv_kernel_size, scale=0.7, dtype=f32),
        a_log=d.uniform(0, 2.77, c.kda_num_heads),
        dt_bias=d.uniform(-2, 2, w),
        o_norm=d.norm(c.kda_head_dim).float(),
        o_proj=d.matrix(c.hidden_size, w),
    )


def mla_weights(c: K3Config, d: Draw) -> MlaWeights:
    return MlaWeights(
        q_a_proj=d.matrix(c.q_lora_rank, c.hidden_size),
        q_a_layernorm=d.norm(c.q_lora_rank),
        q_b_proj=d.matrix(c.q_b_width, c.q_lora_rank),
        kv_a_proj=d.matrix(c.kv_row, c.hidden_size),
        kv_a_layernorm=d.norm(c.kv_lora_rank),
        kv_b_proj=d.matrix(c.kv_b_width, c.kv_lora_rank),
        g_proj=d.matrix(c.mla_width, c.hidden_size),
        o_proj=d.matrix(c.hidden_size, c.mla_width),
    )


def dense_weights(c: K3Config, d: Draw, width: int) -> DenseWeights:
    up = (d.matrix(width, c.hidden_size), d.matrix(width, c.hidden_size))
    return DenseWeights(*up, d.matrix(c.hidden_size, width))


def expert_weights(c: K3Config, d: Draw) -> ExpertWeights:
    e, inter = c.num_experts, c.moe_intermediate_size
    latent = c.routed_expert_hidden_size
    return ExpertWeights(
        w13_packed=d.bytes(0, 256, e, 2 * inter, c.latent_bytes),
        w13_scale=d.bytes(122, 126, e, 2 * inter, c.latent_groups),
        w2_packed=d.bytes(0, 256, e, latent, c.expert_bytes),
        w2_scale=d.bytes(122, 126, e, latent, c.expert_groups),
    )


def moe_weights(c: K3Config, d: Draw) -> MoeWeights:
    return MoeWeights(
        router=d.matrix(c.num_experts, c.hidden_size),
        correction_bias=d.normal(c.num_experts, scale=0.2, dtype=torch.float32),
        latent_down=d.matrix(c.routed_expert_hidden_size, c.hidden_size),
        latent_norm=d.norm(c.routed_expert_hidden_size),
        latent_up=d.matrix(c.hidden_size, c.routed_expert_hidden_size),
        shared=dense_weights(c, d, c.shared_intermediate_size),
        experts=expert_weights(c, d),
    )


def model_weights(c: K3Config, seed: int) -> ModelWeights:
    d = Draw(seed)
    layers = tuple(
        LayerWeights(
            *(d.norm(c.hidden_size) for _ in range(3)),
            self_attention_res_proj=d.normal(1, c.hidden_size, scale=c.hidden_size**-0.5),
            mlp_res_norm=d.norm(c.hidden_size),
            mlp_res_proj=d.normal(1, c.hidden_size, scale=c.hidden_size**-0.5),
            attention=kda_weights(c, d) if c.is_kda(index) else mla_weights(c, d),
            ffn=dense_weights(c, d, c.intermediate_size)
            if c.is_dense(index)
            else moe_weights(c, d),
        )
        for index in range(c.num_layers)
    )
    return ModelWeights(
        embed_tokens=d.normal(c.vocab_size, c.hidden_size),
        lm_head=d.matrix(c.vocab_size, c.hidden_size),
        norm=d.norm(c.hidden_size),
        output_attn_res_norm=d.norm(c.hidden_size),
        output_attn_res_proj=d.normal(1, c.hidden_size, scale=c.hidden_size**-0.5),
        layers=layers,
    )


def widened(record: Any, dtype: torch.dtype) -> Any:
    """The same weights with every floating-point tensor in `dtype`, so that no step converts."""
    if isinstance(record, Tensor):
        return record.to(dtype) if record.is_floating_point() else record
    if isinstance(record, tuple):
        return tuple(widened(item, dtype) for item in record)
    assert is_dataclass(record)
    return type(record)(**{f.name: widened(getattr(record, f.name), dtype) for f in fields(record)})


@dataclass
class Server:
    """Requests that share one model: shuffled state slots, shuffled pages, verify windows."""

    model: Model
    requests: int
    draft: int = 7
    length_limit: int = 48
    kv: KvCache | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        g = torch.Generator().manual_seed(self.seed)
        width, pages = self.draft + 1, self.length_limit // PAGE
        count = self.requests * width
        self.slots = 1 + torch.randperm(count, generator=g).view(self.requests, width)
        self.tables = torch.randperm(self.requests * pages, generator=g).view(self.requests, pages)
        shape = CacheShape(count + 1, self.requests * pages, PAGE, self.draft)
        ctx = self.model.ctx
        self.caches: Caches = allocate(ctx.config, self.model.weights, ctx.rounding, shape, self.kv)

    def prefill(self, request: int, tokens: Sequence[int]) -> StepOutput:
        slot = int(self.slots[request, 0])
        return self.model.prefill(
            torch.tensor(tokens, dtype=torch.long), self.caches, slot, self.tables[request]
        )

    def step(
        self,
        tokens: Sequence[Sequence[int]],
        lengths: Sequence[int],
        accepted: Sequence[int],
        tap: Tap = NO_TAP,
    ) -> StepOutput:
        """One step of all requests; a request of length 0 is padding and gets null slots."""
        total = torch.tensor(lengths)
        slots = torch.where(total[:, None] > 0, self.slots, 0)
        return self.model.step(
            torch.tensor(tokens).flatten(),
            len(tokens[0]),
            self.caches,
            slots=slots,
            accepted=torch.tensor(accepted),
            block_table=self.tables,
            lengths=total,
            tap=tap,
        )
