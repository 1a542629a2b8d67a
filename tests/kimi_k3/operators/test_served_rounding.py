# SPDX-License-Identifier: Apache-2.0
"""Operators under the rounding that is served, against the reference under the same.

The two add the same FP32 products in another order, which moves a sum by about 2^-24 relative to
its terms. A value of BF16 moves only when that crosses a boundary, 2^-8 apart: about one in
10^4. An output that depends on some hundred rounded values then has about one chance in a hundred
to move; one in ten is granted. A rounding point that is missing or misplaced moves every
rounded value, and with them about half of the outputs. By how much a value moves is bounded by
the reference's own distance from float64, which consists of many such steps.
"""

import pytest
import torch

from kimi_k3.operators import moe
from kimi_k3.operators.ends import final_norm_logits
from kimi_k3.packed import PackedFfn, PackedKda, PackedMla, PackedMoe
from kimi_k3.reference import ffn, head, kda, latent_moe, mla
from kimi_k3.reference.latent_moe import route as exact_route
from kimi_k3.reference.linear import linear
from kimi_k3.reference.state import FP8, KvCache, PageWindow, SlotWindow
from kimi_k3.rounding import Rounding, specialized, stock
from kimi_k3.weights import DenseWeights, KdaWeights, MlaWeights, MoeWeights
from tests.kimi_k3.operators.builders import (
    DENSE,
    F64,
    KDA,
    MLA,
    MOE,
    case,
    context,
    ffn_block,
    kda_block,
    mla_block,
    moe_block,
    packed,
    weights,
)
from tests.kimi_k3.reference.builders import Draw, odd

SERVED = pytest.mark.parametrize("rounding", [stock(), specialized()], ids=lambda r: r.name)
QUANTISED = KvCache(torch.empty(0, dtype=FP8), q_scale=0.5, k_scale=0.25)


def agree(got: torch.Tensor, want: torch.Tensor, exact: torch.Tensor) -> None:
    own = (want.double() - exact).abs().max()
    assert own > 0
    assert (got != want).float().mean() <= 0.1
    assert (got.double() - want.double()).abs().max() <= own


def rows(count: int = 24) -> torch.Tensor:
    return Draw(4).normal(count, odd().hidden_size).float()  # BF16 numbers


@SERVED
@pytest.mark.parametrize("q", [1, 5])
def test_kda_windows_agree(rounding: Rounding, q: int) -> None:
    alive = [True, True, False, True]
    one = case(alive, q, seed=1, rounding=rounding)
    p, w = packed().layers[KDA].attention, weights().layers[KDA].attention
    assert isinstance(p, PackedKda)
    assert isinstance(w, KdaWeights)
    own, theirs = one.memory.copy().state, one.memory.copy().state
    wide = kda.KdaState(*(x.double() for x in one.memory.copy().tensors()[:2]))
    window = SlotWindow(q, one.part.slots, one.part.accepted)
    got = kda_block(context(rounding), p, one.x, own, one.part)
    want = kda.kda(context(rounding), w, one.x, theirs, window)
    exact = kda.kda(context(F64), w, one.x.double(), wide, window)
    agree(got, want, exact)
    step = (own.recurrent - theirs.recurrent).nan_to_num().abs().max()
    assert step <= (theirs.recurrent - wide.recurrent).nan_to_num().abs().max()
    assert torch.equal(own.recurrent.isnan(), theirs.recurrent.isnan())


@SERVED
@pytest.mark.parametrize("form", [None, QUANTISED], ids=["bf16", "fp8"])
@pytest.mark.parametrize("q", [1, 5])
def test_mla_windows_agree(rounding: Rounding, form: KvCache | None, q: int) -> None:
    one = case([True, True, False, True], q, seed=1, rounding=rounding, form=form)
    p, w = packed().layers[MLA].attention, weights().layers[MLA].attention
    assert isinstance(p, PackedMla)
    assert isinstance(w, MlaWeights)
    window = PageWindow(q, one.part.block_table, one.part.lengths)
    got = mla_block(context(rounding), p, one.x, one.memory.copy().cache, one.part)
    want = mla.mla(context(rounding), w, one.x, one.memory.copy().cache, window)
    exact = mla.mla(context(F64), w, one.x.double(), one.memory.copy().cache, window)
    agree(got, want, exact)


@SERVED
def test_dense_ffns_agree(rounding: Rounding) -> None:
    p, w = packed().layers[DENSE].ffn, weights().layers[DENSE].ffn
    assert isinstance(p, PackedFfn)
    assert isinstance(w, DenseWeights)
    y = rows()
    exact = ffn.gated_ffn(context(F64), w, y.double(), "dense")
    want = ffn.gated_ffn(context(rounding), w, y, "dense")
    agree(ffn_block(context(rounding), p, y), want, exact)


@SERVED
def test_mixtures_of_experts_agree_and_route_alike_outside_ties(rounding: Rounding) -> None:
    p, w = packed().layers[MOE].ffn, weights().layers[MOE].ffn
    assert isinstance(p, PackedMoe)
    assert isinstance(w, MoeWeights)
    y = rows(200)
    ids, _ = moe.route(context(rounding), p, moe.logits(context(rounding), p, y))
    logits = linear(y, w.router)
    want_ids, _ = exact_route(odd(), logits, w.correction_bias)
    key = torch.sigmoid(logits) + w.correction_bias
    ranked = key.sort(dim=1, descending=True).values[:, : odd().num_experts_per_tok + 1]
    gap = -ranked.diff(dim=1).amax(dim=1)
    # 40 products, one rounding each, either side; a sigmoid's slope is at most 1/4.
    margin = 2 * 40 * 2.0**-24 * (y.abs() @ w.router.float().abs().T).amax(1) / 4
    alike = (ids == want_ids).all(1)
    assert (alike | (gap <= margin)).all()
    got = moe_block(context(rounding), p, y)
    want = latent_moe.latent_moe(context(rounding), w, y)
    exact = latent_moe.latent_moe(context(F64), w, y.double())
    agree(got[alike], want[alike], exact[alike])


@SERVED
def test_logits_agree(rounding: Rounding) -> None:
    h = rows()
    want = head.head(context(rounding), weights(), h)
    exact = head.head(context(F64), weights(), h.double())
    agree(final_norm_logits(context(rounding), packed(), h), want, exact)
