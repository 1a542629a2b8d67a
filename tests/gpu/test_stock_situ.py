# SPDX-License-Identifier: Apache-2.0
"""SiTU-GLU against float64, every finite BF16 value of each branch included."""

from dataclasses import replace

import pytest
import torch

from kimi_k3.config import K3Config, full, mini
from kimi_k3.reference.ffn import situ as reference
from kimi_k3.stock.cuda.situ import situ
from tests.gpu.oracle import (
    BF16_UNIT,
    DEVICE,
    FP32_UNIT,
    LEAST_NORMAL,
    MANY,
    ON_GPU,
    ROWS,
    assert_within,
    attempts,
    poisoned,
    wide,
)

# Only the interpreter warns. The infinities lead to the right limits, or are not selected.
pytestmark = pytest.mark.filterwarnings("ignore:(overflow|invalid value) encountered")

SMALL = (mini().intermediate_size, mini().shared_intermediate_size // 8, 1)
LARGE = (768, 384, 4224, 2112)  # shared and dense at TP8 and TP16
WIDTHS = (*LARGE, *SMALL) if ON_GPU else SMALL


def check(out: torch.Tensor, gate_up: torch.Tensor, config: K3Config) -> None:
    g, u = wide(gate_up).chunk(2, 1)
    exact = reference(config, g, u)
    # The exponential of the sigmoid is off by its argument's rounding, |g| units; everything else
    # by few units. Where the sigmoid is below the normal numbers it may be flushed.
    relative = BF16_UNIT + (24 + 4 * g.abs().clamp(max=128)) * FP32_UNIT
    assert_within(out, exact, relative * exact.abs() + 200 * LEAST_NORMAL)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("rows", [*ROWS, MANY])
@pytest.mark.parametrize("config", [full(), replace(full(), situ_linear_beta=None)])
def test_gate_and_up_are_activated(width: int, rows: int, config: K3Config) -> None:
    for poison, inputs in attempts(rows + width):
        gate_up = inputs.normal(rows, 2 * width, scale=3.0)
        out = poisoned(poison, rows, width)
        situ(out, gate_up, config.situ_beta, config.situ_linear_beta)
        check(out, gate_up, config)


@pytest.mark.parametrize("branch", ["gate", "up"])
def test_every_finite_value_of_a_branch_is_activated(branch: str) -> None:
    every = torch.arange(-(2**15), 2**15, dtype=torch.int32).to(torch.int16).view(torch.bfloat16)
    finite = every[every.isfinite()].to(DEVICE)[None, :]  # [1, 65280]
    for poison, inputs in attempts(5):
        other = inputs.normal(1, finite.shape[1], scale=10.0)
        parts = [finite, other] if branch == "gate" else [other, finite]
        out = poisoned(poison, 1, finite.shape[1])
        situ(out, torch.cat(parts, 1), 4.0, 25.0)
        check(out, torch.cat(parts, 1), full())


def test_infinite_and_missing_inputs_saturate_or_stay_missing() -> None:
    inf, nan = float("inf"), float("nan")
    gate_up = torch.tensor([[inf, -inf, 1.0, nan, inf, inf, inf, 1.0]], dtype=torch.bfloat16)
    out = poisoned(0.0, 1, 4)
    situ(out, gate_up.to(DEVICE), 4.0, 25.0)
    assert out[0, 0] == 100.0
    assert out[0, 1] == 0.0
    assert out[0, 2].isfinite()
    assert out[0, 3].isnan()


def test_shapes_that_do_not_fit_are_refused() -> None:
    x = torch.zeros(2, 8, dtype=torch.bfloat16)
    with pytest.raises(ValueError, match="gate and up"):
        situ(x, x, 4.0, 25.0)
