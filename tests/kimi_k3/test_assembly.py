# SPDX-License-Identifier: Apache-2.0
"""Weights are divided among ranks without loss, in the right order, with harmless padding."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from kimi_k3.assembly import disassemble, shard, unshard
from kimi_k3.config import PRESETS, tiny
from kimi_k3.mxfp4 import decode_mxfp4
from kimi_k3.random_init import random_weights
from kimi_k3.sharding import Sharding
from kimi_k3.weights import KdaWeights, MlaWeights, ModelWeights
from tests.kimi_k3.builders import assert_equal, configs, moe_of


@pytest.mark.parametrize(
    ("name", "tp"), [("tiny", 2), ("tiny", 4), ("tiny16", 8), ("tiny16", 16), ("mini", 8)]
)
def test_ranks_together_are_the_whole(name: str, tp: int, request: pytest.FixtureRequest) -> None:
    config = PRESETS[name]()
    whole: ModelWeights = request.getfixturevalue(f"{name}_weights")
    ranks = [shard(whole, config, tp, rank) for rank in range(tp)]
    assert_equal(unshard(ranks, config), whole, config)


@settings(max_examples=30)
@given(data=st.data(), tp=st.sampled_from([1, 2, 3]), seed=st.integers(0, 2**63))
def test_dividing_and_joining_are_inverse_for_every_shape(
    data: st.DataObject, tp: int, seed: int
) -> None:
    config = data.draw(configs(tp))
    whole = random_weights(config, seed)
    ranks = [random_weights(config, seed, tp, rank) for rank in range(tp)]
    for rank in range(tp):
        assert_equal(ranks[rank], shard(whole, config, tp, rank), config, tp, rank)
    assert_equal(unshard(ranks, config), whole, config)


def test_ranks_that_disagree_on_a_replicated_tensor_are_not_joined(
    tiny_weights: ModelWeights,
) -> None:
    ranks = [shard(tiny_weights, tiny(), 2, rank) for rank in range(2)]
    ranks[1] = replace(ranks[1], norm=ranks[1].norm + 1)
    with pytest.raises(ValueError, match=r"model\.norm\.weight: not the same on all ranks"):
        unshard(ranks, tiny())


def test_padding_of_an_expert_decodes_to_finite_zeros_at_the_end_of_gate_up_and_down(
    tiny_weights: ModelWeights,
) -> None:
    for rank in range(4):
        experts = moe_of(shard(tiny_weights, tiny(), 4, rank), 1).experts
        w13 = decode_mxfp4(experts.w13_packed, experts.w13_scale)
        w2 = decode_mxfp4(experts.w2_packed, experts.w2_scale)
        assert (tuple(w13.shape), tuple(w2.shape)) == ((16, 128, 64), (16, 64, 64))
        for padding in (w13[:, 32:64], w13[:, 96:], w2[:, :, 32:]):
            assert padding.abs().max() == 0
        for live in (w13[:, :32], w13[:, 64:96], w2[:, :, :32]):
            assert (live != 0).float().mean() > 0.8
        assert (experts.w13_scale[:, 32:64] == 127).all()
        assert (experts.w2_scale[:, :, 1:] == 127).all()


@pytest.mark.parametrize("tp", [1, 2, 4])
def test_the_sum_over_ranks_of_an_expert_is_the_whole_expert(
    tiny_weights: ModelWeights, tp: int
) -> None:
    """Wrong offsets of gate, up or down rows would change the sum; padding must not."""
    z = torch.linspace(-1, 1, 64, dtype=torch.float64)

    def output(weights: ModelWeights) -> torch.Tensor:
        e = moe_of(weights, 2).experts
        w13 = decode_mxfp4(e.w13_packed[5], e.w13_scale[5], torch.float64)
        w2 = decode_mxfp4(e.w2_packed[5], e.w2_scale[5], torch.float64)
        gate, up = (w13 @ z).chunk(2)
        return w2 @ (torch.tanh(gate) * up)

    # The whole, from the stored matrices rather than from the stacked ones.
    stored = {e.name: v for e, v in disassemble(tiny_weights, Sharding(tiny(), 1, 0))}
    prefix = "model.layers.2.block_sparse_moe.experts.5"
    w1, w3, w2 = (
        decode_mxfp4(
            stored[f"{prefix}.{w}.weight_packed"],
            stored[f"{prefix}.{w}.weight_scale"],
            torch.float64,
        )
        for w in ("w1", "w3", "w2")
    )
    whole = w2 @ (torch.tanh(w1 @ z) * (w3 @ z))
    total = sum(output(shard(tiny_weights, tiny(), tp, rank)) for rank in range(tp))
    assert torch.allclose(torch.as_tensor(total), whole, rtol=1e-12, atol=1e-12)
    assert whole.abs().max() > 0.01


def test_heads_go_to_ranks_in_order(tiny_weights: ModelWeights) -> None:
    whole_kda, whole_mla = tiny_weights.layers[0].attention, tiny_weights.layers[3].attention
    assert isinstance(whole_kda, KdaWeights)
    assert isinstance(whole_mla, MlaWeights)
    rank = shard(tiny_weights, tiny(), 4, 2)
    kda, mla = rank.layers[0].attention, rank.layers[3].attention
    assert isinstance(kda, KdaWeights)
    assert isinstance(mla, MlaWeights)
    assert torch.equal(kda.q_proj, whole_kda.q_proj[32:48])
    assert torch.equal(kda.o_proj, whole_kda.o_proj[:, 32:48])
    assert torch.equal(kda.a_log, whole_kda.a_log[2:3])
    assert torch.equal(kda.f_a_proj, whole_kda.f_a_proj)
    assert torch.equal(mla.q_b_proj, whole_mla.q_b_proj[48:72])
    assert torch.equal(mla.kv_b_proj, whole_mla.kv_b_proj[64:96])
    assert torch.equal(mla.kv_a_proj, whole_mla.kv_a_proj)
    assert torch.equal(rank.embed_tokens, tiny_weights.embed_tokens[256:384])
