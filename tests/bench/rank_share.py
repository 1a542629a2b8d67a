# SPDX-License-Identifier: Apache-2.0
"""One rank's share of full-size layers on a GPU, with random weights and states made there."""

import torch

from kimi_k3.config import K3Config
from kimi_k3.packed import PackedFfn, PackedKda, PackedLayer, PackedMix, PackedMla, PackedMoe
from kimi_k3.reference.state import KdaState, KvCache
from kimi_k3.sharding import Sharding
from kimi_k3.step import Group, Kind, Step, StepShape
from kimi_k3.weights import ExpertWeights

DEVICE = torch.device("cuda")
PAGE_SIZE = 64
CONTEXT = 8192


def random_matrix(rows: int, columns: int) -> torch.Tensor:
    """[rows, columns] BF16, outputs of about the size of the inputs."""
    return (torch.randn(rows, columns, device=DEVICE) * columns**-0.5).bfloat16()


def norm_weight(width: int) -> torch.Tensor:
    """[width] BF16 around 1."""
    return (1 + 0.1 * torch.randn(width, device=DEVICE)).bfloat16()


def mix_weights(c: K3Config) -> PackedMix:
    score = torch.randn(c.hidden_size, device=DEVICE) * c.hidden_size**-0.5
    return PackedMix(score, norm_weight(c.hidden_size))


def attention_weights(s: Sharding, kind: str) -> PackedKda | PackedMla:
    c, h = s.config, s.config.hidden_size
    if kind == "kda":
        width = s.kda_width
        return PackedKda(
            in_proj=random_matrix(s.kda_in_rows, h),
            f_b_proj=random_matrix(width, c.kda_head_dim),
            conv=torch.randn(3 * width, c.conv_kernel_size, device=DEVICE) * 0.5,
            a_log=torch.empty(s.kda_heads, device=DEVICE).uniform_(1, 16).log(),
            dt_bias=torch.empty(width, device=DEVICE).uniform_(-2, 2),
            o_norm=1 + 0.1 * torch.randn(c.kda_head_dim, device=DEVICE),
            o_proj=random_matrix(h, width),
        )
    return PackedMla(
        in_proj=random_matrix(s.mla_in_rows, h),
        q_a_layernorm=norm_weight(c.q_lora_rank),
        q_b_proj=random_matrix(s.q_b_rows, c.q_lora_rank),
        kv_a_layernorm=norm_weight(c.kv_lora_rank),
        w_uk=random_matrix(s.mla_heads * c.qk_nope_head_dim, c.kv_lora_rank).unflatten(
            0, (s.mla_heads, -1)
        ),
        w_uv=random_matrix(s.mla_heads * c.v_head_dim, c.kv_lora_rank).unflatten(
            0, (s.mla_heads, -1)
        ),
        o_proj=random_matrix(h, s.mla_width),
    )


def expert_weights(s: Sharding) -> ExpertWeights:
    """Random codes; scales around 2^-7 keep outputs near 1. Padding is zeros, as when loaded."""
    c = s.config
    latent, groups = c.routed_expert_hidden_size, c.latent_groups

    def codes(*size: int) -> torch.Tensor:
        return torch.randint(0, 256, size, dtype=torch.uint8, device=DEVICE)

    def scales(*size: int) -> torch.Tensor:
        return torch.randint(118, 123, size, dtype=torch.uint8, device=DEVICE)

    w13, w2 = (
        codes(c.num_experts, 2, s.expert_partition, latent // 2),
        codes(c.num_experts, latent, s.w2_bytes),
    )
    w13[:, :, s.expert_width :] = 0
    w2[:, :, s.expert_width // 2 :] = 0
    return ExpertWeights(
        w13.flatten(1, 2),
        scales(c.num_experts, s.w13_rows, groups),
        w2,
        scales(c.num_experts, latent, s.w2_groups),
    )


def moe_weights(s: Sharding) -> PackedMoe:
    c, h = s.config, s.config.hidden_size
    return PackedMoe(
        front=random_matrix(c.num_experts + c.routed_expert_hidden_size, h),
        correction_bias=0.01 * torch.randn(c.num_experts, device=DEVICE),
        latent_norm=norm_weight(c.routed_expert_hidden_size),
        latent_up=random_matrix(h, c.routed_expert_hidden_size),
        shared=PackedFfn(random_matrix(2 * s.shared_width, h), random_matrix(h, s.shared_width)),
        experts=expert_weights(s),
    )


def layers_of(s: Sharding, kind: str, count: int) -> list[PackedLayer]:
    return [
        PackedLayer(
            mix_weights(s.config),
            attention_weights(s, kind),
            mix_weights(s.config),
            moe_weights(s),
        )
        for _ in range(count)
    ]


def state_of(s: Sharding, kind: str, requests: int) -> KdaState | KvCache:
    c = s.config
    if kind == "kda":
        head = (s.kda_heads, c.kda_head_dim, c.kda_head_dim)
        return KdaState(
            torch.randn(requests + 1, *head, device=DEVICE) * 0.1,
            torch.randn(requests + 1, s.conv_channels, 3, device=DEVICE).bfloat16(),
        )
    pages = requests * (CONTEXT // PAGE_SIZE)
    return KvCache(torch.randn(pages, PAGE_SIZE, c.kv_row, device=DEVICE).bfloat16())


def decode_step(requests: int) -> Step:
    """One token of each request, states and pages in shuffled order."""

    def i32(x: torch.Tensor) -> torch.Tensor:
        return x.to(DEVICE, torch.int32)

    per_request = CONTEXT // PAGE_SIZE
    return Step(
        StepShape((Group(Kind.WINDOW, requests, 1),), CONTEXT),
        i32(torch.zeros(requests)),
        i32(torch.randperm(requests)[:, None] + 1),
        i32(torch.ones(requests)),
        i32(torch.randperm(requests * per_request).view(requests, per_request)),
        i32(torch.full((requests,), CONTEXT)),
    )
