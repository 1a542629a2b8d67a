# SPDX-License-Identifier: Apache-2.0
"""The small algebra: values against Python's own, and bits that do not depend on the company."""

import math

import pytest
import torch

from kimi_k3.reference.functions import (
    exp,
    exp2,
    log2,
    ordered_sum,
    sigmoid,
    silu,
    softplus,
    tanh,
)
from kimi_k3.reference.linear import linear
from kimi_k3.reference.norm import l2_norm, rms_norm

X = torch.linspace(-30, 30, 61)


@pytest.mark.parametrize(
    ("ours", "scalar"),
    [
        (exp, math.exp),
        (exp2, lambda x: 2.0**x),
        (tanh, math.tanh),
        (sigmoid, lambda x: 1 / (1 + math.exp(-x))),
        (silu, lambda x: x / (1 + math.exp(-x))),
        (softplus, lambda x: x if x > 20 else math.log1p(math.exp(x))),
    ],
)
def test_functions_have_their_values_alone_and_in_company(ours, scalar) -> None:  # type: ignore[no-untyped-def]
    got = ours(X.double()).tolist()
    assert got == pytest.approx([scalar(x) for x in X.tolist()], rel=1e-13, abs=1e-300)
    for i in range(len(X)):
        assert ours(X[i : i + 1]).item() == ours(X)[i].item() == ours(X[None].T[i]).item()


def test_log2_is_the_inverse_of_exp2() -> None:
    assert log2(exp2(X.double())).tolist() == pytest.approx(X.tolist(), rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("width", [7, 40, 128, 576])
def test_a_row_of_a_product_has_the_same_bits_whatever_stands_beside_it(width: int) -> None:
    g = torch.Generator().manual_seed(width)
    w, x = torch.randn(33, width, generator=g), torch.randn(9, width, generator=g)
    together = linear(x, w)
    for row in range(9):
        assert torch.equal(linear(x[row : row + 1], w)[0], together[row])
    assert torch.allclose(together, x @ w.T, rtol=1e-4, atol=1e-4)
    assert torch.equal(linear(x.double(), w.bfloat16()), linear(x.double(), w.bfloat16().double()))


def test_a_sum_runs_from_the_first_term_to_the_last() -> None:
    assert ordered_sum(torch.tensor([2.0**24, 1.0, -(2.0**24)])).item() == 0.0
    assert ordered_sum(torch.tensor([2.0**24, -(2.0**24), 1.0])).item() == 1.0


def test_l2_adds_eps_to_the_sum_and_rms_to_the_mean() -> None:
    x = torch.full((1, 4), 1e-3, dtype=torch.float64)
    assert l2_norm(x, 1e-6)[0, 0].item() == pytest.approx(1e-3 / math.sqrt(4e-6 + 1e-6))
    ones = torch.ones(4)
    assert rms_norm(x, ones, 1e-6)[0, 0].item() == pytest.approx(1e-3 / math.sqrt(1e-6 + 1e-6))
    assert (l2_norm(torch.zeros(2, 4), 1e-6) == 0).all()
