# SPDX-License-Identifier: Apache-2.0
"""The stand-in for collectives: as many terms as ranks, in FP32, rounded once."""

import pytest
import torch

from kimi_k3.stock.cuda.loopback import Loopback
from tests.gpu.oracle import (
    BF16_UNIT,
    DEVICE,
    FP32_UNIT,
    LEAST_NORMAL,
    ON_GPU,
    ROWS,
    assert_same,
    assert_within,
    attempts,
    bf16,
    wide,
)

WIDTHS = (7168, 3584, 192, 96) if ON_GPU else (192, 96)


@pytest.mark.parametrize("size", [1, 8, 16])
@pytest.mark.parametrize("width", WIDTHS)
def test_a_sum_is_size_times_the_own_share(width: int, size: int) -> None:
    comm = Loopback(size)
    for rows in (*ROWS, 65):
        for _, inputs in attempts(rows):
            x = inputs.normal(rows, width)
            before = x.clone()
            got = comm.all_reduce(x)
            assert_same(got, bf16(x.float() * size))
            assert_same(x, before)
            again = comm.all_gather(x, dim=1)
            assert again.shape == (rows, size * width)


@pytest.mark.parametrize("width", WIDTHS)
def test_a_normed_sum_is_the_norm_of_the_rounded_sum(width: int) -> None:
    comm, eps = Loopback(8), 1e-5
    for rows in ROWS:
        for _, inputs in attempts(rows):
            x, weight = inputs.normal(rows, width), 1 + 0.1 * inputs.normal(width)
            got = comm.all_reduce_norm(x, weight, eps)
            total = wide(bf16(x.float() * 8))
            exact = total * torch.rsqrt((total**2).mean(1, keepdim=True) + eps) * wide(weight)
            # The mean of squares in a tree, its root and two products in FP32, then one rounding.
            bound = (BF16_UNIT + 20 * FP32_UNIT) * exact.abs() + LEAST_NORMAL
            assert_within(got, exact, bound)
            assert got.device.type == DEVICE
