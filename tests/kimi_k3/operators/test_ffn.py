# SPDX-License-Identifier: Apache-2.0
"""The gated FFN against the reference."""

from dataclasses import replace

import pytest
import torch

from kimi_k3.operators.ffn import situ
from kimi_k3.packed import PackedFfn
from kimi_k3.reference import ffn as reference
from kimi_k3.rounding import Rounding
from kimi_k3.weights import DenseWeights
from tests.kimi_k3.operators.builders import (
    DENSE,
    F64,
    close,
    context,
    ffn_block,
    gridded,
    packed,
    weights,
)
from tests.kimi_k3.reference.builders import Draw, odd


def both(rounding: Rounding = F64) -> torch.Tensor:
    p, w = packed(torch.float64).layers[DENSE].ffn, weights(torch.float64).layers[DENSE].ffn
    assert isinstance(p, PackedFfn)
    assert isinstance(w, DenseWeights)
    y = Draw(0).normal(5, odd().hidden_size).double()
    got = ffn_block(context(rounding), p, y)
    close(got, reference.gated_ffn(context(rounding), w, y, "dense"))
    return got


@pytest.mark.parametrize("point", ["projection", "activation", "ffn_partial", "reduced"])
def test_the_block_equals_the_reference_with_each_rounding_point(point: str) -> None:
    assert (both(gridded(point)) - both()).abs().max() > 1e-6


@pytest.mark.parametrize("linear_beta", [25.0, None])
def test_the_activation_equals_the_reference_far_beyond_both_bounds(
    linear_beta: float | None,
) -> None:
    c = replace(odd(), situ_linear_beta=linear_beta)
    g, u = Draw(1).normal(2, 7, 12, scale=40.0, dtype=torch.float64)
    close(situ(c, torch.cat([g, u], dim=-1)), reference.situ(c, g, u))


def test_the_activation_in_fp32_is_within_a_few_roundings_of_float64() -> None:
    """A quotient, tanh, sigmoid and four products, at 2^-24 each; tanh and sigmoid of a vector
    library may err by one more: 9 roundings of a number below 100."""
    gate_up = Draw(2).normal(300, 64, scale=10.0, dtype=torch.float32)
    wide = situ(odd(), gate_up.double())
    assert (situ(odd(), gate_up).double() - wide).abs().max() <= 9 * 2.0**-24 * 100
