# SPDX-License-Identifier: Apache-2.0
"""The mixture of experts against the reference: grouped, gathered, split over ranks."""

from dataclasses import replace

import pytest
import torch

from kimi_k3.assembly import shard
from kimi_k3.config import K3Config, tiny16
from kimi_k3.operators import moe
from kimi_k3.operators.expert_weights import expert_matrix
from kimi_k3.packed import PackedMoe, pack
from kimi_k3.ranks import Communicator, run_ranks
from kimi_k3.reference.context import Context
from kimi_k3.reference.latent_moe import latent_moe
from kimi_k3.reference.router import route as exact_route
from kimi_k3.rounding import Rounding, specialized, stock
from kimi_k3.weights import ModelWeights, MoeWeights
from tests.kimi_k3.operators.builders import (
    F64,
    MOE,
    close,
    context,
    gridded,
    moe_block,
    packed,
    weights,
)
from tests.kimi_k3.reference.builders import Draw, odd

POINTS = (
    *("router_logits", "router_weight", "latent", "expert_input", "expert_gate_up"),
    *("expert_hidden", "expert_row", "latent_partial", "reduced_latent", "latent_square"),
    *("latent_normed", "routed", "projection", "activation", "ffn_partial", "reduced", "ffn_out"),
)


def blocks(dtype: torch.dtype = torch.float64) -> tuple[PackedMoe, MoeWeights]:
    p, w = packed(dtype).layers[MOE].ffn, weights(dtype).layers[MOE].ffn
    assert isinstance(p, PackedMoe)
    assert isinstance(w, MoeWeights)
    return p, w


def inputs(rows: int, seed: int = 0) -> torch.Tensor:
    return Draw(seed).normal(rows, odd().hidden_size).double()


def both(y: torch.Tensor, rounding: Rounding = F64) -> torch.Tensor:
    p, w = blocks(rounding.compute)
    got = moe_block(context(rounding), p, y)
    close(got, latent_moe(context(rounding), w, y))
    return got


@pytest.mark.parametrize("rows", [1, 2, 7, 64, 65])
def test_the_block_equals_the_reference(rows: int) -> None:
    both(inputs(rows))


def test_all_rows_on_the_same_experts_equal_the_reference() -> None:
    both(inputs(1).repeat(64, 1))


@pytest.mark.parametrize("point", POINTS)
def test_each_rounding_point_stands_where_the_reference_has_it(point: str) -> None:
    y = inputs(5, seed=1)
    assert (both(y, gridded(point)) - both(y)).abs().max() > 1e-6


@pytest.mark.parametrize("rounding", [F64, stock(), specialized()], ids=lambda r: r.name)
@pytest.mark.parametrize("rows", [1, 5, 64])
def test_gathered_experts_equal_grouped_ones(
    rows: int, rounding: Rounding, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The form for accelerators, run here; only sums may be added in another order.

    A sum of 64 products in another order moves by 2^-24 at most relative to its terms; where that
    crosses a rounding boundary a value moves by one step of BF16, 2^-8, or of e4m3, 2^-3, and a
    row of the output is a sum of 64 of them.
    """
    p, _ = blocks(rounding.compute)
    ctx, y = context(rounding), inputs(rows).to(rounding.compute)
    ids, picked = moe.route(ctx, p, moe.logits(ctx, p, y))
    z = moe.latent(ctx, p, y)
    want = moe.experts(ctx, p.experts, ids, picked, z)
    monkeypatch.setattr(moe, "_grouped", moe._gathered)
    got = moe.experts(ctx, p.experts, ids, picked, z)
    if rounding is F64:
        close(got, want)
    else:
        assert (got != want).float().mean() < 0.05
        close(got, want, 64**0.5 * 2.0**-8)


def test_ids_are_those_of_the_exact_router_whatever_the_logits() -> None:
    """Ties, NaN rows and scores that saturate."""
    p, w = blocks()
    logits = Draw(1).normal(6, odd().num_experts, scale=3.0, dtype=torch.float32)
    logits[0] = 0.0
    logits[1, 3:6] = logits[1, 2]
    logits[2, 4] = torch.nan
    logits[3] = torch.nan
    logits[4] = 1e4
    ids, picked = moe.route(context(stock()), p, logits)
    want_ids, want = exact_route(odd(), logits, w.correction_bias)
    assert torch.equal(ids, want_ids)
    torch.testing.assert_close(picked, want, rtol=0, atol=0, equal_nan=True)


def test_a_row_of_nan_spoils_no_other() -> None:
    p, _ = blocks()
    y = inputs(6)
    want = moe_block(context(), p, y)
    y[2] = torch.nan
    got = moe_block(context(), p, y)
    rest = [0, 1, 3, 4, 5]
    close(got[rest], want[rest])
    assert got[2].isnan().all()


PADDED = replace(tiny16(), min_expert_partition=64)
"""At 16 ranks half of each expert's slice is padding."""


def ranked(config: K3Config, whole: ModelWeights, tp: int, rank: int) -> PackedMoe:
    layer = pack(config, shard(whole, config, tp, rank)).layers[MOE].ffn
    assert isinstance(layer, PackedMoe)
    return layer


@pytest.mark.parametrize("tp", [2, 4, 16])
def test_the_sum_over_ranks_equals_one_rank(tp: int, tiny16_weights: ModelWeights) -> None:
    c = PADDED
    y = Draw(2).normal(4, c.hidden_size).double()
    want = moe_block(Context(c, F64), ranked(c, tiny16_weights, 1, 0), y)

    def rank(comm: Communicator) -> torch.Tensor:
        return moe_block(Context(c, F64, comm), ranked(c, tiny16_weights, tp, comm.rank), y)

    for got in run_ranks(tp, rank):
        close(got, want)


@pytest.mark.parametrize("rounding", [F64, stock(), specialized()], ids=lambda r: r.name)
def test_what_padded_columns_hold_does_not_leak(
    rounding: Rounding, tiny16_weights: ModelWeights
) -> None:
    """Gate and up rows behind a rank's live slice are overwritten: their products meet zeros."""
    c, r = PADDED, rounding
    w = ranked(c, tiny16_weights, 16, 3).experts
    width = w.w13_packed.shape[1] // 2
    live = c.moe_intermediate_size // 16
    assert live < width
    packed_rows = w.w13_packed.clone().unflatten(1, (2, width))
    packed_rows[:, :, live:] = Draw(5).bytes(0, 256, *packed_rows[:, :, live:].shape)
    ids = torch.arange(8).view(4, 2)
    picked = torch.full((4, 2), 0.5, dtype=r.compute)
    z = Draw(6).normal(4, c.routed_expert_hidden_size).to(r.compute)
    want = moe.experts(Context(c, r), w, ids, picked, z)
    dirty = replace(w, w13_packed=packed_rows.flatten(1, 2))
    assert not torch.equal(dirty.w13_packed, w.w13_packed)
    assert torch.equal(moe.experts(Context(c, r), dirty, ids, picked, z), want)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_every_code_under_every_scale_decodes_to_its_value(dtype: torch.dtype) -> None:
    """All 256 bytes in all 256 scales; the value from the format's definition."""
    codes = torch.arange(256, dtype=torch.uint8).view(16, 16).repeat(256, 1, 1)
    scale = torch.arange(256, dtype=torch.uint8)[:, None, None].expand(256, 16, 1)
    got = expert_matrix(codes, scale, dtype)
    magnitude = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6], dtype=torch.float64)
    nibbles = torch.stack([codes % 16, codes // 16], dim=-1).flatten(-2).long()
    value = magnitude[nibbles % 8] * (1 - 2 * (nibbles // 8))
    want = value * torch.exp2(scale.double() - 127)
    want[255] = torch.nan
    torch.testing.assert_close(got, want.to(dtype), rtol=0, atol=0, equal_nan=True)
    assert got.shape == (256, 16, 32)
