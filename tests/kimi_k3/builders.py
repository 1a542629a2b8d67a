# SPDX-License-Identifier: Apache-2.0
"""Small models of random shape, and comparisons of whole weights."""

import torch
from hypothesis import strategies as st

from kimi_k3.assembly import disassemble, model_entries
from kimi_k3.config import K3Config
from kimi_k3.sharding import Sharding
from kimi_k3.weights import ModelWeights, MoeWeights


@st.composite
def configs(draw: st.DrawFn, tp: int = 1) -> K3Config:
    """A model that `tp` ranks can divide, with at most three layers and small widths."""

    def width(most: int = 3) -> int:
        return tp * draw(st.integers(1, most))

    layers = draw(st.integers(1, 3))
    experts = width()
    heads = width()
    return K3Config(
        hidden_size=width() * 2,
        num_layers=layers,
        kda_layers=tuple(n for n in range(layers) if draw(st.booleans())),
        attn_res_block_size=draw(st.integers(1, 4)),
        vocab_size=width(),
        max_positions=draw(st.integers(1, 100)),
        rms_norm_eps=draw(st.sampled_from([1e-5, 1e-6])),
        kda_num_heads=heads,
        kda_head_dim=draw(st.integers(1, 4)),
        conv_kernel_size=draw(st.integers(2, 4)),
        gate_lower_bound=draw(st.sampled_from([None, -5.0, -0.5])),
        a_log_padding=heads + draw(st.integers(0, 3)),
        mla_num_heads=width(),
        q_lora_rank=draw(st.integers(1, 5)),
        kv_lora_rank=draw(st.integers(1, 5)),
        qk_nope_head_dim=draw(st.integers(1, 4)),
        qk_rope_head_dim=draw(st.integers(1, 4)),
        v_head_dim=draw(st.integers(1, 4)),
        dense_layers=draw(st.integers(0, layers)),
        intermediate_size=width(),
        num_experts=experts,
        num_experts_per_tok=draw(st.integers(1, experts)),
        routed_expert_hidden_size=32 * tp * draw(st.integers(1, 2)),
        moe_intermediate_size=32 * width(2),
        shared_intermediate_size=width(),
        norm_topk_prob=draw(st.booleans()),
        routed_scaling_factor=draw(st.sampled_from([1.0, 2.5])),
        situ_beta=4.0,
        situ_linear_beta=draw(st.sampled_from([None, 25.0])),
        min_expert_partition=32 * draw(st.integers(1, 4)),
        l2_norm_eps=draw(st.sampled_from([1e-6, 1e-5])),
    )


def assert_equal(
    a: ModelWeights, b: ModelWeights, config: K3Config, tp: int = 1, rank: int = 0
) -> None:
    sharding = Sharding(config, tp, rank)
    compared = 0
    for (entry, x), (_, y) in zip(disassemble(a, sharding), disassemble(b, sharding), strict=True):
        assert torch.equal(x.contiguous().view(torch.uint8), y.contiguous().view(torch.uint8)), (
            entry.name
        )
        compared += 1
    assert compared == sum(1 for _ in model_entries(config))


def moe_of(weights: ModelWeights, layer: int) -> MoeWeights:
    ffn = weights.layers[layer].ffn
    assert isinstance(ffn, MoeWeights)
    return ffn
