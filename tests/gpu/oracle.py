# SPDX-License-Identifier: Apache-2.0
"""What the tests of GPU operators share: where they run, inputs, poisoned outputs, error bounds.

Without a GPU the Triton kernels run in Triton's interpreter (see `conftest.py`), on fewer rows and
with the shapes of small configurations: the semantics are tested, not the compiler. The
interpreter rounds FP32 to BF16 toward zero; GPUs round to nearest.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import torch

ON_GPU = torch.cuda.is_available()
DEVICE = "cuda" if ON_GPU else "cpu"
ROWS = (1, 2, 3, 8, 17, 64) if ON_GPU else (1, 3)
MANY = 2048 if ON_GPU else 20
"""Rows of a prefill."""

BF16_UNIT = 2.0**-8 if ON_GPU else 2.0**-7
"""Largest relative error of rounding to BF16: half a unit in the last of 8 bits, or a whole one."""
FP32_UNIT = 2.0**-24
LEAST_NORMAL = 2.0**-126
"""Below it FP32 results of a GPU may be flushed to zero."""

POISONS = (float("nan"), 2.0**100)
"""What outputs hold before a kernel runs; a second run does not inherit the first one's result."""


@dataclass(frozen=True)
class Inputs:
    """Seeded random tensors on the tests' device."""

    generator: torch.Generator

    def normal(
        self, *shape: int, scale: float = 1.0, dtype: torch.dtype = torch.bfloat16
    ) -> torch.Tensor:
        """Normally distributed values."""
        return (torch.randn(shape, generator=self.generator) * scale).to(dtype).to(DEVICE)

    def integers(self, low: int, high: int, *shape: int) -> torch.Tensor:
        """Uniform int32 values of [low, high)."""
        drawn = torch.randint(low, high, shape, generator=self.generator)
        return drawn.to(torch.int32).to(DEVICE)


def attempts(seed: int) -> Iterator[tuple[float, Inputs]]:
    """(poison, fresh inputs) for each poison."""
    for i, poison in enumerate(POISONS):
        yield poison, Inputs(torch.Generator().manual_seed(1000 * seed + i))


def poisoned(poison: float, *shape: int, dtype: torch.dtype = torch.bfloat16) -> torch.Tensor:
    """An output that holds `poison` everywhere."""
    return torch.full(shape, poison, dtype=dtype, device=DEVICE)


def bf16(x: torch.Tensor) -> torch.Tensor:
    """FP32 rounded to BF16 as a kernel rounds."""
    if ON_GPU:
        return x.to(torch.bfloat16)
    return (x.view(torch.int32) & -(2**16)).view(torch.float32).to(torch.bfloat16)


def wide(x: torch.Tensor) -> torch.Tensor:
    """A float64 copy on the CPU."""
    return x.detach().cpu().double()


def assert_within(got: torch.Tensor, exact: torch.Tensor, bound: torch.Tensor) -> None:
    """Each value of `got` is within its own `bound` of `exact` (both float64, CPU)."""
    error = (wide(got) - exact).abs()
    worst = (error / bound.clamp(min=LEAST_NORMAL)).nan_to_num(nan=torch.inf)
    assert worst.max() <= 1, f"error {worst.max():.3g} times its bound at {int(worst.argmax())}"


def assert_same(got: torch.Tensor, want: torch.Tensor) -> None:
    """The same values, bit for bit but for the sign of zero and the payload of a NaN."""
    assert got.shape == want.shape
    assert got.dtype == want.dtype
    assert torch.equal(got.cpu().nan_to_num(nan=123.0), want.cpu().nan_to_num(nan=123.0))
