# SPDX-License-Identifier: Apache-2.0
"""The policies against the two columns of spec 2.8."""

import pytest
import torch

from kimi_k3.rounding import (
    POINTS,
    bf16,
    bf16_positive_zero,
    exact,
    keep,
    mxfp8_amax,
    mxfp8_floor,
    positive_zero,
    specialized,
    stock,
)

KEPT_IN_FP32 = {
    "stock": {"router_logits", "router_weight", "latent_square", "expert_input"},
    "specialized": {"conv_out", "kda_out", "mla_value", "router_logits", "expert_gate_up"},
}
POSITIVE_ZERO = {"o_partial", "router_logits", "latent_partial", "ffn_partial"}
MXFP8 = {"expert_input", "expert_hidden"}
PROBE = torch.tensor([1.00390625, 1.01171875, -0.0, 3.14159, -1e-41] + [0.0] * 27)


@pytest.mark.parametrize("policy", [stock(), specialized()], ids=lambda p: p.name)
@pytest.mark.parametrize("point", POINTS)
def test_each_point_rounds_as_its_column_says(policy, point: str) -> None:  # type: ignore[no-untyped-def]
    got = getattr(policy, point)(PROBE)
    if policy.name == "specialized" and point in MXFP8:
        assert got[:2].tolist() == [1.0, 1.0]  # three bits of mantissa
    elif point in KEPT_IN_FP32[policy.name]:
        assert torch.equal(got, PROBE)
    else:
        assert torch.equal(got, PROBE.bfloat16().float())
        assert got[:2].tolist() == [1.0, 1.015625]  # ties to even, down and up
    expected = policy.name == "specialized" and point in POSITIVE_ZERO
    assert bool(got[2].signbit()) is not expected or point in MXFP8


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_the_exact_policies_round_nowhere_and_keep_one_dtype(dtype: torch.dtype) -> None:
    policy = exact(dtype)
    assert len(POINTS) == 32
    assert all(getattr(policy, point) is keep for point in POINTS)
    assert policy.compute is policy.stored is policy.recurrent is dtype


@pytest.mark.parametrize("policy", [stock(), specialized()], ids=lambda p: p.name)
def test_served_policies_keep_fp32_state_and_bf16_windows(policy) -> None:  # type: ignore[no-untyped-def]
    assert policy.compute is policy.recurrent is torch.float32
    assert policy.stored is torch.bfloat16


def test_negative_zero_is_the_one_value_that_changes_bits() -> None:
    x = torch.tensor([-0.0, 0.0, -1.5, float("nan"), -float("inf"), -1e-45])
    got = positive_zero(x)
    assert got.view(torch.int32)[1:].tolist() == x.view(torch.int32)[1:].tolist()
    assert got.view(torch.int32)[0].item() == 0
    assert not bf16_positive_zero(torch.tensor([-1e-45])).signbit().item()
    assert bf16(torch.tensor([-1e-45])).signbit().item()


def test_the_hidden_rule_is_a_choice_and_differs_above_1_75() -> None:
    x = torch.zeros(1, 32)
    x[0, 0] = 1.9
    assert mxfp8_amax(x)[0, 0].item() == 1.875
    assert mxfp8_floor(x)[0, 0].item() == 1.75
    assert specialized(mxfp8_floor).expert_hidden is mxfp8_floor
    assert specialized().expert_hidden is specialized().expert_input is mxfp8_amax
