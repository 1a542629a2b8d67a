# SPDX-License-Identifier: Apache-2.0
"""The gated norm against the reference in float64, with padding."""

import pytest
import torch

from kimi_k3.config import mini, tiny
from kimi_k3.reference.kda import gated_norm as reference
from kimi_k3.stock.cuda.gated_norm import gated_norm
from tests.gpu.oracle import (
    BF16_UNIT,
    DEVICE,
    FP32_UNIT,
    LEAST_NORMAL,
    ON_GPU,
    ROWS,
    assert_within,
    attempts,
    poisoned,
    wide,
)

EPS = 1e-5
SMALL = ((mini().kda_num_heads, mini().kda_head_dim), (1, 16), (tiny().kda_num_heads, 16))
HEADS = ((12, 128), (6, 128), *SMALL) if ON_GPU else (*SMALL, (6, 128))


def check(requests: int, rows: int, heads: int, d: int, padding: slice) -> None:
    m = requests * rows
    for poison, inputs in attempts(m + heads):
        o = inputs.normal(m, heads, d)
        wider = inputs.normal(m, heads * d + 40, scale=4.0)
        gate = wider[:, 16 : 16 + heads * d]
        weight = inputs.normal(d, dtype=torch.float32)
        lengths = torch.full((requests,), 9, dtype=torch.int32, device=DEVICE)
        lengths[padding] = 0
        dead = (lengths == 0).repeat_interleave(rows)
        o[dead], gate[dead] = poison, poison
        out = poisoned(poison, m, heads * d)
        gated_norm(out, o, gate, weight, lengths, rows=rows, eps=EPS)
        exact = reference(wide(o), wide(gate), wide(weight), EPS)
        exact[dead.cpu()] = 0
        # As the row norm; the sigmoid's exponential is off by its argument's rounding.
        relative = BF16_UNIT + (48 + 4 * wide(gate).nan_to_num().abs().clamp(max=128)) * FP32_UNIT
        assert_within(out, exact, relative * exact.abs() + LEAST_NORMAL)
        assert (out[dead] == 0).all()


@pytest.mark.parametrize(("heads", "d"), HEADS)
@pytest.mark.parametrize("requests", ROWS)
def test_heads_are_normed_and_gated(heads: int, d: int, requests: int) -> None:
    check(requests, 1, heads, d, slice(0, 0))


@pytest.mark.parametrize(("heads", "d"), HEADS)
@pytest.mark.parametrize("rows", [1, 2, 8])
def test_padding_rows_are_zero_whatever_they_hold(heads: int, d: int, rows: int) -> None:
    check(5, rows, heads, d, slice(1, None, 2))


def test_shapes_that_do_not_fit_are_refused() -> None:
    x = torch.zeros(4, 2, 8, dtype=torch.bfloat16)
    with pytest.raises(ValueError, match="3 requests of 1 rows"):
        gated_norm(x.flatten(1), x, x.flatten(1), x[0, 0], torch.zeros(3), rows=1, eps=EPS)
