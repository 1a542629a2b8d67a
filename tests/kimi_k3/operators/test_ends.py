# SPDX-License-Identifier: Apache-2.0
"""Embedding and head against the reference, on one rank and on several."""

from dataclasses import replace

import pytest
import torch

from kimi_k3.assembly import shard
from kimi_k3.config import tiny
from kimi_k3.operators.ends import embed, final_norm_logits, stored_rows
from kimi_k3.packed import pack
from kimi_k3.ranks import Communicator, run_ranks
from kimi_k3.reference import head as reference
from kimi_k3.reference.context import Context
from kimi_k3.weights import ModelWeights
from tests.kimi_k3.operators.builders import F64, close, context, gridded, packed, weights
from tests.kimi_k3.reference.builders import Draw, odd

IDS = torch.tensor([0, 57, 3, 3, 29])


def test_one_rank_gives_the_rows_of_the_reference() -> None:
    want = reference.embed(context(), weights(), IDS)
    assert torch.equal(embed(context(), packed(), IDS), want)
    assert torch.equal(embed(context(), packed(), IDS.int()), want)


@pytest.mark.parametrize("point", ["final_normed", "logits"])
def test_logits_equal_the_reference_with_each_rounding_point(point: str) -> None:
    h, ctx = Draw(0).normal(4, odd().hidden_size).double(), context(gridded(point))
    got = final_norm_logits(ctx, packed(torch.float64), h)
    close(got, reference.head(ctx, weights(torch.float64), h))
    assert (got - final_norm_logits(context(), packed(torch.float64), h)).abs().max() > 1e-6


@pytest.mark.parametrize("tp", [2, 4])
def test_ranks_together_give_what_one_gives(tp: int, tiny_weights: ModelWeights) -> None:
    ids, h = torch.tensor([0, 127, 128, 511]), Draw(0).normal(4, tiny().hidden_size).double()
    one = Context(tiny(), F64)
    want = embed(one, pack(tiny(), tiny_weights), ids)
    logits = final_norm_logits(one, pack(tiny(), tiny_weights), h)

    def rank(comm: Communicator) -> tuple[torch.Tensor, torch.Tensor]:
        ctx = replace(one, comm=comm)
        own = pack(tiny(), shard(tiny_weights, tiny(), tp, comm.rank))
        mine = final_norm_logits(ctx, own, h)
        assert mine.shape[1] == tiny().vocab_size // tp
        return comm.all_reduce(embed(ctx, own, ids)), comm.all_gather(mine, dim=1)

    for rows, got in run_ranks(tp, rank):
        assert torch.equal(rows, want)
        close(got, logits)


def test_an_id_of_nobody_gives_zeros() -> None:
    assert not embed(context(), packed(), torch.tensor([-1, 58])).any()


def test_stored_rows_keep_the_dtype_of_the_table(tiny_weights: ModelWeights) -> None:
    ctx, ids = Context(tiny(), F64), torch.tensor([0, 511, 512])
    rows = stored_rows(ctx, pack(tiny(), tiny_weights), ids)
    assert rows.dtype == tiny_weights.embed_tokens.dtype != F64.compute
    assert torch.equal(rows[:2], tiny_weights.embed_tokens[[0, 511]])
    assert not rows[2].any()
