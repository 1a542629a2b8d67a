# SPDX-License-Identifier: Apache-2.0
"""The row norm against float64."""

import pytest
import torch

from kimi_k3.config import full, mini, tiny
from kimi_k3.reference.norm import rms_norm as reference
from kimi_k3.stock.cuda.norm import rms_norm
from tests.gpu.oracle import (
    BF16_UNIT,
    FP32_UNIT,
    MANY,
    ON_GPU,
    ROWS,
    assert_within,
    attempts,
    poisoned,
    wide,
)

EPS = 1e-5
SMALL = (mini().hidden_size, mini().routed_expert_hidden_size, tiny().q_lora_rank, 1)
LARGE = (full().hidden_size, full().routed_expert_hidden_size, full().q_lora_rank)
WIDTHS = (*LARGE, *SMALL) if ON_GPU else SMALL


def check(rows: int, width: int, scale: float) -> None:
    for poison, inputs in attempts(rows + width):
        x, weight = inputs.normal(rows, width, scale=scale), inputs.normal(width)
        out = poisoned(poison, rows, width)
        rms_norm(out, x, weight, EPS)
        exact = reference(wide(x), wide(weight), EPS)
        # Squares add up without cancelling, in a tree: at most 8 + 10 steps and few roundings.
        assert_within(out, exact, (BF16_UNIT + 40 * FP32_UNIT) * exact.abs())


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("rows", [*ROWS, MANY])
def test_rows_are_normed(width: int, rows: int) -> None:
    check(rows, width, 1.0)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("scale", [1e-18, 1e-3, 1e15])
def test_small_and_large_rows_are_normed(width: int, scale: float) -> None:
    check(3, width, scale)


def test_columns_of_wider_rows_are_normed_and_the_others_stay() -> None:
    for poison, inputs in attempts(3):
        wider, weight = inputs.normal(5, 200), inputs.normal(96)
        out = poisoned(poison, 5, 160)
        rms_norm(out[:, 32:128], wider[:, 64:160], weight, EPS)
        exact = reference(wide(wider[:, 64:160]), wide(weight), EPS)
        assert_within(out[:, 32:128], exact, (BF16_UNIT + 40 * FP32_UNIT) * exact.abs())
        rest = torch.cat([out[:, :32], out[:, 128:]], 1).nan_to_num(nan=2.0**100)
        assert (rest == 2.0**100).all()


def test_a_row_of_zeros_stays_zero() -> None:
    for poison, inputs in attempts(4):
        out = poisoned(poison, 2, 96)
        rms_norm(out, torch.zeros_like(out), inputs.normal(96), EPS)
        assert (out == 0).all()


def test_rows_that_do_not_fit_are_refused() -> None:
    x = torch.zeros(2, 8, dtype=torch.bfloat16)
    with pytest.raises(ValueError, match="norm"):
        rms_norm(x, x, x[0, :4], EPS)
