# SPDX-License-Identifier: Apache-2.0
"""The mixture of experts and the gated FFN, against all experts under a mask."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from kimi_k3.mxfp4 import MxRule, fake_quantize_mxfp8
from kimi_k3.reference.context import Context
from kimi_k3.reference.ffn import gated_ffn, situ
from kimi_k3.reference.hooks import Recorder
from kimi_k3.reference.latent_moe import (
    expert_hidden,
    expert_out,
    latent_moe,
    weighted_sum,
)
from kimi_k3.reference.norm import rms_norm
from kimi_k3.rounding import bf16, exact, mxfp8_floor, specialized, stock
from kimi_k3.weights import ExpertWeights
from tests.kimi_k3.reference import second
from tests.kimi_k3.reference.builders import Draw, dense_weights, moe_weights, odd, widened

F64 = exact(torch.float64)
ROWS = 7


def one_expert(ctx: Context, w: ExpertWeights, e: int, z: torch.Tensor) -> torch.Tensor:
    return expert_out(ctx, w, e, expert_hidden(ctx, w, e, z))


def rows(seed: int = 3) -> torch.Tensor:
    return Draw(seed).normal(ROWS, 40, dtype=torch.float64)


@pytest.mark.parametrize("renormalise", [True, False])
@pytest.mark.parametrize("scaling", [1.0, 2.5])
def test_the_block_equals_all_experts_under_a_mask(scaling: float, renormalise: bool) -> None:
    c = replace(odd(), routed_scaling_factor=scaling, norm_topk_prob=renormalise)
    w = moe_weights(c, Draw(2))
    got = latent_moe(Context(c, F64), w, rows())
    np.testing.assert_allclose(got, second.moe(c, w, rows().numpy()), rtol=1e-10, atol=1e-12)


def test_duplicate_router_rows_tie_and_the_lower_id_is_visited() -> None:
    c = odd()
    w = moe_weights(c, Draw(2))
    best = torch.full((ROWS, 1), 4.0, dtype=torch.float64) * w.router[0].double()
    router = torch.cat([w.router[:5], w.router[:1], w.router[6:]])
    w = replace(w, router=router, correction_bias=torch.zeros(c.num_experts))
    tap = Recorder()
    got = latent_moe(Context(c, F64, tap=tap), w, best)
    picked = tap.values["moe.ids"]
    assert (picked[:, 0] == 0).all()
    assert (picked[:, 1] == 5).all()
    np.testing.assert_allclose(got, second.moe(c, w, best.numpy()), rtol=1e-10, atol=1e-12)


def test_nan_logits_stay_in_their_row() -> None:
    c = odd()
    w = moe_weights(c, Draw(2))
    y = rows()
    clean = latent_moe(Context(c, specialized()), w, y.float())
    y[3] = torch.nan
    tap = Recorder()
    got = latent_moe(Context(c, specialized(), tap=tap), w, y.float())
    assert tap.values["moe.ids"][3].tolist() == [0, 1, 2]
    others = [row for row in range(ROWS) if row != 3]
    assert torch.equal(got[others], clean[others])


def test_one_nan_logit_is_passed_over() -> None:
    c = odd()
    w = moe_weights(c, Draw(2))
    poisoned = w.router.clone()
    poisoned[4] = torch.nan
    tap = Recorder()
    got = latent_moe(Context(c, F64, tap=tap), replace(w, router=poisoned), rows())
    assert not (tap.values["moe.ids"] == 4).any()
    assert torch.isfinite(got).all()


def test_all_rows_may_visit_one_expert() -> None:
    c = odd()
    w = moe_weights(c, Draw(2))
    bias = torch.full((c.num_experts,), -100.0)
    bias[[9, 2, 6]] = torch.tensor([3.0, 2.0, 1.0])
    w = replace(w, correction_bias=bias)
    tap = Recorder()
    got = latent_moe(Context(c, F64, tap=tap), w, rows())
    assert {tuple(sorted(row)) for row in tap.values["moe.ids"].tolist()} == {(2, 6, 9)}
    np.testing.assert_allclose(got, second.moe(c, w, rows().numpy()), rtol=1e-10, atol=1e-12)


def test_padded_expert_columns_do_not_reach_the_output() -> None:
    """Zero codes under scale 127 behind the live columns of gate, up and down."""
    c = odd()
    e, d = moe_weights(c, Draw(2)).experts, c.moe_intermediate_size
    pad_rows = torch.zeros(c.num_experts, 32, c.latent_bytes, dtype=torch.uint8)
    ones = torch.full((c.num_experts, 32, c.latent_groups), 127, dtype=torch.uint8)
    columns = torch.zeros(c.num_experts, c.routed_expert_hidden_size, 16, dtype=torch.uint8)
    scale = torch.full((c.num_experts, c.routed_expert_hidden_size, 1), 127, dtype=torch.uint8)
    padded = type(e)(
        torch.cat([e.w13_packed[:, :d], pad_rows, e.w13_packed[:, d:], pad_rows], 1),
        torch.cat([e.w13_scale[:, :d], ones, e.w13_scale[:, d:], ones], 1),
        torch.cat([e.w2_packed, columns], 2),
        torch.cat([e.w2_scale, scale], 2),
    )
    z = Draw(5).normal(4, c.routed_expert_hidden_size, dtype=torch.float32)
    for r in (stock(), specialized(), specialized(mxfp8_floor)):
        got = one_expert(Context(c, r), padded, 3, z)
        assert torch.equal(got, one_expert(Context(c, r), e, 3, z))


@pytest.mark.parametrize("rule", list(MxRule))
def test_mxfp8_mode_quantises_what_both_expert_products_read(rule: MxRule) -> None:
    c = odd()
    e = moe_weights(c, Draw(2)).experts
    z = Draw(5).normal(4, c.routed_expert_hidden_size, dtype=torch.float32)
    policy = specialized() if rule is MxRule.AMAX else specialized(mxfp8_floor)
    got = one_expert(Context(c, policy), e, 3, policy.expert_input(z))
    z8 = fake_quantize_mxfp8(z, MxRule.AMAX).double().numpy()
    up = second.mxfp4(e.w13_packed[3], e.w13_scale[3])
    h = second.situ(c, z8 @ up[:64].T, z8 @ up[64:].T)
    h8 = fake_quantize_mxfp8(torch.tensor(h).float(), rule).double().numpy()
    want = torch.tensor(h8 @ second.mxfp4(e.w2_packed[3], e.w2_scale[3]).T)
    assert (got - want).abs().max() <= 2.0**-8 * want.abs().max()
    plain = one_expert(Context(c, exact(torch.float32)), e, 3, z)
    assert (got - plain).abs().max() > 2.0**-7 * want.abs().max()


def test_expert_rows_are_added_in_slot_order() -> None:
    """2^24 + 1 - 2^24 in FP32 tells the order: 0 from the front, 1 from the back."""
    big = 2.0**24
    values = torch.tensor([[[big], [1.0], [-big]]])
    weights = torch.ones(1, 3)
    assert weighted_sum(weights, values).item() == 0.0
    assert weighted_sum(weights, values[:, [0, 2, 1]]).item() == 1.0


def test_the_latent_norm_rounds_each_square_in_the_specialised_column_only() -> None:
    """Squares of 1 + 2^-5 round down in BF16: 1 + 2^-4 + 2^-10 loses its last bit."""
    x, ones = torch.full((1, 4), 1 + 2.0**-5), torch.ones(4)
    assert rms_norm(x, ones, 0.0, stock().latent_square).mean() == 1.0
    want = (1 + 2.0**-5) / (1 + 2.0**-4) ** 0.5
    got = rms_norm(x, ones, 0.0, specialized().latent_square)
    assert got[0, 0].item() == pytest.approx(want, rel=1e-6)


@pytest.mark.parametrize("linear_beta", [25.0, None])
def test_situ_equals_its_formula_and_saturates(linear_beta: float | None) -> None:
    c = replace(odd(), situ_linear_beta=linear_beta)
    g = torch.tensor([0.0, 0.3, -0.3, 4.0, -4.0, 60.0, -60.0, 1e30, -1e30], dtype=torch.float64)
    for up in (0.0, 0.7, -24.0, 400.0, -1e30):
        u = torch.full_like(g, up)
        got = situ(c, g, u)
        np.testing.assert_allclose(
            got, second.situ(c, g.numpy(), u.numpy()), rtol=1e-13, atol=1e-300
        )
        if linear_beta is not None:
            assert got.abs().max() <= 4 * 25
    if linear_beta is not None:
        corner = situ(c, torch.tensor([1e4]), torch.tensor([1e4]))
        assert corner.item() == 100.0
        assert situ(c, torch.tensor([1e4]), torch.tensor([-1e4])).item() == -100.0
        assert situ(c, torch.tensor([-1e4]), torch.tensor([1e4])).item() == 0.0


@pytest.mark.parametrize("scale", [1.0, 60.0])
def test_the_dense_ffn_equals_its_formula_with_small_and_saturated_gates(scale: float) -> None:
    c = odd()
    w = widened(dense_weights(c, Draw(6), 36), torch.float64)
    x = scale * rows()
    tap = Recorder()
    got = gated_ffn(Context(c, F64, tap=tap), w, x, "dense")
    np.testing.assert_allclose(got, second.glu(c, w, x.numpy()), rtol=1e-11, atol=1e-12)
    assert bool((x @ w.gate_proj.T > 100).any()) is (scale > 1)


def test_the_served_ffn_rounds_gate_up_and_activation() -> None:
    c = odd()
    w = widened(dense_weights(c, Draw(6), 36), torch.float32)
    x = rows().float()
    g, u = (bf16(torch.stack([m @ row for row in x])) for m in (w.gate_proj, w.up_proj))
    h = bf16(torch.tensor(second.situ(c, g.double().numpy(), u.double().numpy())).float())
    want = bf16(torch.stack([w.down_proj @ row for row in h]))
    got = gated_ffn(Context(c, stock()), w, x, "dense")
    assert (got != want).sum() <= 2  # a situ that lies on a boundary of FP32
    assert torch.allclose(got, want, rtol=2.0**-7)
