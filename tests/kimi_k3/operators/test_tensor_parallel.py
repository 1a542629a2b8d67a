# SPDX-License-Identifier: Apache-2.0
"""Attention and FFN blocks split over ranks, with the caller's sums, against one rank."""

from dataclasses import replace

import pytest
import torch

from kimi_k3.assembly import shard
from kimi_k3.config import tiny
from kimi_k3.packed import PackedFfn, PackedKda, PackedMla, PackedMoe, pack
from kimi_k3.ranks import Communicator, SingleRank, run_ranks
from kimi_k3.reference.context import Context
from kimi_k3.reference.state import CacheShape, KdaState, KvCache, allocate
from kimi_k3.step import Group, GroupTensors, Kind
from kimi_k3.weights import ModelWeights
from tests.kimi_k3.operators.builders import (
    F64,
    close,
    ffn_block,
    kda_block,
    mla_block,
    moe_block,
)
from tests.kimi_k3.reference.builders import Draw

PROMPT, WINDOW = 19, 3


def part(kind: Kind, rows: int, length: int) -> GroupTensors:
    """Two requests of equal length and one that is padding."""
    slots = torch.arange(1, 10).view(3, 3)
    slots[1] = 0
    return GroupTensors(
        Group(kind, 3, rows),
        slice(0, 3 * rows),
        slots,
        torch.ones(3, dtype=torch.long),
        torch.randperm(18, generator=torch.Generator().manual_seed(0)).view(3, 6),
        torch.tensor([length, 0, length]),
    )


def blocks(ctx: Context, weights: ModelWeights) -> list[torch.Tensor]:
    """What every block of the model returns for a prompt and then a window, each on its own."""
    w, d, outs = pack(ctx.config, weights), Draw(0), []
    caches = allocate(ctx.config, weights, F64, CacheShape(10, 18, 4, WINDOW - 1))
    for now in (
        part(Kind.PREFILL, PROMPT, PROMPT),
        part(Kind.WINDOW, WINDOW, PROMPT + WINDOW),
    ):
        for layer, state in zip(w.layers, caches.layers, strict=True):
            x = d.normal(now.group.total, ctx.config.hidden_size).double()
            match layer.attention, state:
                case PackedKda(), KdaState():
                    outs.append(kda_block(ctx, layer.attention, x, state, now))
                case PackedMla(), KvCache():
                    outs.append(mla_block(ctx, layer.attention, x, state, now))
            match layer.ffn:
                case PackedFfn():
                    outs.append(ffn_block(ctx, layer.ffn, x))
                case PackedMoe():
                    outs.append(moe_block(ctx, layer.ffn, x))
    return outs


@pytest.mark.parametrize("shares_tokens", [False, True])
@pytest.mark.parametrize("tp", [2, 4])
def test_ranks_together_give_what_one_gives(
    tp: int, shares_tokens: bool, tiny_weights: ModelWeights
) -> None:
    one = Context(tiny(), F64)
    want = blocks(one, tiny_weights)
    assert len(want) == 4 * tiny().num_layers

    def rank(comm: Communicator) -> list[torch.Tensor]:
        ctx = replace(one, comm=comm, dcp=comm if shares_tokens else SingleRank())
        return blocks(ctx, shard(tiny_weights, tiny(), tp, comm.rank))

    for outs in run_ranks(tp, rank):
        for got, expected in zip(outs, want, strict=True):
            close(got, expected)
