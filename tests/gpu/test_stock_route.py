# SPDX-License-Identifier: Apache-2.0
"""Routing against the reference: the same ids always, ties and NaN included."""

import pytest
import torch

from kimi_k3.config import full, mini, tiny
from kimi_k3.reference.router import SUM_EPS, exact_sigmoid, pick
from kimi_k3.stock.cuda.route import route
from tests.gpu.oracle import (
    DEVICE,
    FP32_UNIT,
    ON_GPU,
    ROWS,
    Inputs,
    assert_same,
    assert_within,
    attempts,
    bf16,
    poisoned,
    wide,
)

MODELS = tuple((c.num_experts, c.num_experts_per_tok) for c in (full(), mini(), tiny()))
ODD = ((257, 3), (128, 32), (1, 1), (33, 16), (16, 16))
SIZES = (*MODELS, *ODD) if ON_GPU else (MODELS[0], MODELS[1], ODD[0], ODD[2])


def check(
    logits: torch.Tensor, bias: torch.Tensor, k: int, poison: float, scaling: float = 1.0
) -> None:
    """Ids and weights of `logits` [M, E]."""
    for normalize in (True, False):
        weights = poisoned(poison, len(logits), k, dtype=torch.float32)
        ids = torch.full_like(weights, -7, dtype=torch.int32)
        route(ids, weights, logits, bias, scaling=scaling, normalize=normalize)
        sc = exact_sigmoid(logits.cpu())
        want = pick(sc + bias.cpu(), k)
        assert ids.cpu().tolist() == want.tolist()
        picked = wide(sc.gather(1, want))
        exact = picked * scaling
        if normalize:
            exact = exact / (picked.sum(1, keepdim=True) + SUM_EPS)
        known = exact.nan_to_num()
        assert torch.equal(weights.isnan().cpu(), exact.isnan())
        # A sum of at most 32 positive terms in a tree, a product, a quotient of two units.
        assert_within(weights.nan_to_num(), known, 10 * FP32_UNIT * known)


@pytest.mark.parametrize(("experts", "k"), SIZES)
@pytest.mark.parametrize("rows", ROWS)
def test_the_best_experts_are_picked_in_order(experts: int, k: int, rows: int) -> None:
    for poison, inputs in attempts(rows + experts):
        logits = inputs.normal(rows, experts, scale=2.0, dtype=torch.float32)
        bias = inputs.normal(experts, scale=0.1, dtype=torch.float32)
        check(logits, bias, k, poison, scaling=2.5)


@pytest.mark.parametrize(("experts", "k"), SIZES)
def test_equal_keys_go_to_the_lower_id(experts: int, k: int) -> None:
    for poison, inputs in attempts(experts):
        bias = torch.zeros(experts, device=DEVICE)
        check(inputs.integers(0, 2, 6, experts).float(), bias, k, poison)
        check(torch.zeros(2, experts, device=DEVICE), bias, k, poison)
        saturated = inputs.integers(30, 60, 4, experts).float()  # every score is 1
        check(saturated, bias, k, poison)
        check(saturated, inputs.integers(-1, 2, experts).float(), k, poison)


def spoiled(inputs: Inputs, experts: int, share: float) -> torch.Tensor:
    """Logits of which about a `share` is missing or infinite."""
    logits = inputs.normal(5, experts, dtype=torch.float32)
    kind = inputs.integers(0, 3, 5, experts)
    hit = inputs.integers(0, 1000, 5, experts) < 1000 * share
    for i, value in enumerate((float("nan"), float("inf"), float("-inf"))):
        logits[hit & (kind == i)] = value
    return logits


@pytest.mark.parametrize(("experts", "k"), SIZES)
@pytest.mark.parametrize("share", [0.05, 0.9, 1.0])
def test_nan_comes_after_every_number(experts: int, k: int, share: float) -> None:
    for poison, inputs in attempts(experts):
        bias = inputs.normal(experts, scale=0.1, dtype=torch.float32)
        check(spoiled(inputs, experts, share), bias, k, poison)


@pytest.mark.parametrize("value", [float("nan"), float("-inf"), float("inf"), -200.0])
def test_rows_of_one_odd_value_pick_the_first_experts(value: float) -> None:
    for poison, inputs in attempts(2):
        bias = torch.full((896,), -1.0, device=DEVICE)
        check(torch.full((2, 896), value, device=DEVICE), bias, 16, poison)
        bias = inputs.normal(896, scale=0.1, dtype=torch.float32)
        check(torch.full((2, 896), value, device=DEVICE), bias, 16, poison)


def test_an_infinite_bias_decides() -> None:
    for poison, inputs in attempts(3):
        logits = inputs.normal(3, 896, dtype=torch.float32)
        bias = inputs.normal(896, dtype=torch.float32)
        bias[[5, 700]], bias[::3] = float("inf"), float("-inf")
        check(logits, bias, 16, poison)


def test_logits_may_be_columns_of_wider_rows() -> None:
    for poison, inputs in attempts(4):
        wider = inputs.normal(3, 1000, dtype=torch.float32)
        check(wider[:, 50:946], torch.zeros(896, device=DEVICE), 16, poison)


@pytest.mark.parametrize(("experts", "k"), [(8, 9), (64, 33), (8, 0)])
def test_more_picks_than_there_is_room_for_are_refused(experts: int, k: int) -> None:
    with pytest.raises(ValueError, match=f"{k} of {experts} experts"):
        route(torch.zeros(1, k, dtype=torch.int32), torch.zeros(1, k), torch.zeros(1, experts),
              torch.zeros(experts), scaling=1.0)  # fmt: skip


def test_shapes_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ValueError, match="of 8"):
        route(torch.zeros(1, 2, dtype=torch.int32), torch.zeros(1, 3), torch.zeros(1, 8),
              torch.zeros(8), scaling=1.0)  # fmt: skip


@pytest.mark.parametrize("width", [3584 if ON_GPU else 512, 96, 64])
def test_the_latent_is_rounded_on_the_way(width: int) -> None:
    for poison, inputs in attempts(width):
        front = inputs.normal(3, 40 + width, dtype=torch.float32)
        ids = torch.full((3, 4), -7, dtype=torch.int32, device=DEVICE)
        weights = poisoned(poison, 3, 4, dtype=torch.float32)
        latent = poisoned(poison, 3, width)
        bias = inputs.normal(40, dtype=torch.float32)
        route(
            ids,
            weights,
            front[:, :40],
            bias,
            scaling=1.0,
            latent=front[:, 40:],
            latent_out=latent,
        )
        assert_same(latent, bf16(front[:, 40:].contiguous()))
        assert (
            ids.cpu().tolist() == pick(exact_sigmoid(front[:, :40].cpu()) + bias.cpu(), 4).tolist()
        )


def test_a_latent_without_room_is_refused() -> None:
    for _, inputs in attempts(3):
        logits = inputs.normal(2, 8, dtype=torch.float32)
        ids = torch.zeros(2, 2, dtype=torch.int32, device=DEVICE)
        with pytest.raises(ValueError, match="nowhere to store it"):
            route(ids, ids.float(), logits, logits[0], scaling=1.0, latent=logits)
