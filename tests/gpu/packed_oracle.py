# SPDX-License-Identifier: Apache-2.0
"""What the tests of the experts' and the MLA kernels share: inputs, float64 truth, bounds.

Kernels run on the GPU where there is one, inside a replayed CUDA graph, and under Triton's
interpreter (TRITON_INTERPRET=1) on the CPU otherwise; full shapes only on the GPU.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from triton.runtime import interpreter

from kimi_k3.mxfp4 import decode_mxfp4
from kimi_k3.weights import ExpertWeights

ON_GPU = torch.cuda.is_available()
DEVICE = torch.device("cuda" if ON_GPU else "cpu")
POISONS = (float("nan"), 2.0**100)
ROUNDING = 2.0**-8 if ON_GPU else 2.0**-7
"""Relative error of one rounding to BF16: to nearest, and truncation under the interpreter."""
ADDITION = 2.0**-23
"""Relative error of one FP32 addition in an MMA, which truncates."""


class _IntOfOneElement(type):
    """`int` as Triton 3.6's interpreter means it where it takes the bound of a loop.

    It passes arrays of one element, which NumPy 2.4 no longer converts.
    """

    def __call__(cls, x: object) -> int:
        return int(x.item() if isinstance(x, np.ndarray) else x)

    def __instancecheck__(cls, x: object) -> bool:
        return isinstance(x, int)


if not ON_GPU:
    interpreter.int = _IntOfOneElement("int", (), {})


def generator(seed: int) -> torch.Generator:
    """Random numbers on the device of the kernels."""
    return torch.Generator(DEVICE).manual_seed(seed)


def normal(seed: int, *shape: int, scale: float = 1.0) -> torch.Tensor:
    """BF16 normal numbers."""
    values = torch.randn(*shape, generator=generator(seed), device=DEVICE)
    return (values * scale).bfloat16()


def int32(values: object) -> torch.Tensor:
    """An index tensor on the device."""
    return torch.as_tensor(values, dtype=torch.int32).to(DEVICE)


def launch(kernels: Callable[[], object], outputs: Sequence[torch.Tensor]) -> None:
    """Runs `kernels`; on a GPU a second time out of a graph, over poisoned outputs."""
    kernels()
    if not ON_GPU:
        return
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        kernels()
    for out in outputs:
        out.fill_(POISONS[1])
    graph.replay()
    torch.cuda.synchronize()


def bf16(x: torch.Tensor) -> torch.Tensor:
    """`x` rounded to BF16 as the kernels round, in float64."""
    if ON_GPU:
        return x.bfloat16().double()
    return (x.float().view(torch.int32) & -65536).view(torch.float32).double()


def summation_error(terms: torch.Tensor, depth: int) -> torch.Tensor:
    """Bound of an FP32 sum's error, from the sum of magnitudes and the number of terms.

    An MMA adds 16 products at a time to the accumulator, and those 16 among themselves.
    """
    return terms * ADDITION * (depth / 16 + 16)


@dataclass(frozen=True)
class Experts:
    """Widths of one rank's experts: I, of which `live` columns are not padding; L; E; picks k."""

    width: int
    live: int
    latent: int
    experts: int
    k: int


TP8 = Experts(width=384, live=384, latent=3584, experts=896, k=16)
TP16 = Experts(width=256, live=192, latent=3584, experts=896, k=16)
MINI = Experts(width=64, live=32, latent=96, experts=8, k=2)
ODD = Experts(width=128, live=96, latent=160, experts=16, k=4)
SHAPES = (TP8, TP16, MINI, ODD) if ON_GPU else (MINI, ODD)


def random_experts(shape: Experts, seed: int) -> ExpertWeights:
    """All 16 codes, scales 2^-9 to 2^-3; padding as `kimi_k3.weights` says."""
    g = generator(seed)

    def codes(*size: int) -> torch.Tensor:
        return torch.randint(0, 256, size, dtype=torch.uint8, generator=g, device=DEVICE)

    def scales(*size: int) -> torch.Tensor:
        return torch.randint(118, 125, size, dtype=torch.uint8, generator=g, device=DEVICE)

    e, i, latent, live = shape.experts, shape.width, shape.latent, shape.live
    w = ExpertWeights(
        codes(e, 2 * i, latent // 2),
        scales(e, 2 * i, latent // 32),
        codes(e, latent, i // 2),
        scales(e, latent, i // 32),
    )
    for half in (slice(live, i), slice(i + live, 2 * i)):
        w.w13_packed[:, half] = 0
        w.w13_scale[:, half] = 127
    w.w2_packed[:, :, live // 2 :] = 0
    w.w2_scale[:, :, live // 32 :] = 127
    return w


def routing(kind: str, rows: int, shape: Experts, seed: int) -> torch.Tensor:
    """Ids [rows, k] int32, distinct in each row: `random`, `equal` in all rows, or `skewed`."""
    keys = torch.rand(rows, shape.experts, generator=generator(seed), device=DEVICE)
    if kind == "equal":
        keys = keys[:1].expand(rows, -1)
    if kind == "skewed":  # expert 3 in every row, the others among the first third
        keys = keys.clone()
        keys[:, 3] = 2
        keys[:, max(shape.k, shape.experts // 3) :] -= 1
    return keys.topk(shape.k, dim=1).indices.int()


def situ64(g: torch.Tensor, u: torch.Tensor) -> torch.Tensor:
    """SiTU with the published constants."""
    return 4 * torch.tanh(g / 4) * torch.sigmoid(g) * 25 * torch.tanh(u / 25)


def by_expert(ids: torch.Tensor) -> list[tuple[int, torch.Tensor]]:
    """Each expert that is picked, with its pairs."""
    flat = ids.flatten()
    return [(int(e), (flat == e).nonzero()[:, 0]) for e in flat.unique().tolist()]


def hidden_bounds(
    shape: Experts, w: ExpertWeights, ids: torch.Tensor, z: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """The smallest and the largest right hidden value of each pair, [M k, live] float64.

    The exact gate and up values, moved by the bound of their sums and rounded to BF16, leave at
    most three neighbouring values each; the activation of all of them, and the rounding of the
    result, span the answer. Elementary functions may err by 2^-18.
    """
    low = z.new_empty(ids.numel(), shape.live, dtype=torch.float64)
    high = low.clone()
    for e, pairs in by_expert(ids):
        w13 = decode_mxfp4(w.w13_packed[e], w.w13_scale[e], torch.float64)  # [2 I, L]
        x = z[pairs // shape.k].double()  # [m, L]
        exact, size = x @ w13.T, x.abs() @ w13.abs().T  # [m, 2 I]
        error = summation_error(size, shape.latent)
        near = [bf16(exact + side * error) for side in (-1, 0, 1)]
        gates = [v[:, : shape.live] for v in near]
        ups = [v[:, shape.width : shape.width + shape.live] for v in near]
        all_of_them = torch.stack([situ64(g, u) for g in gates for u in ups])
        low[pairs], high[pairs] = all_of_them.amin(0), all_of_them.amax(0)
    slack = (ROUNDING + 2.0**-18) * torch.maximum(low.abs(), high.abs())
    return low - slack, high + slack


def down_rows(
    shape: Experts, w: ExpertWeights, ids: torch.Tensor, hidden: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """W2 h of each pair in float64 [M k, L], and how far a kernel may be from it."""
    rows = hidden.new_empty(ids.numel(), shape.latent, dtype=torch.float64)
    error = rows.clone()
    for e, pairs in by_expert(ids):
        w2 = decode_mxfp4(w.w2_packed[e], w.w2_scale[e], torch.float64)[:, : shape.live]
        h = hidden[pairs, : shape.live].double()
        rows[pairs] = h @ w2.T
        error[pairs] = summation_error(h.abs() @ w2.abs().T, shape.live)
    return rows, error + ROUNDING * (rows.abs() + error)


def weighted_rows(
    weights: torch.Tensor, rows: torch.Tensor, error: torch.Tensor | float = 0.0
) -> tuple[torch.Tensor, torch.Tensor]:
    """sum_j weights[m, j] rows[m k + j] in float64 [M, L], and how far a kernel may be from it.

    Args:
        weights: [M, k] FP32.
        rows: [M k, L] float64, or what a kernel wrote.
        error: [M k, L] how far the kernel's own rows may be from these.
    """
    m, k = weights.shape
    share = weights.double()[..., None]  # [M, k, 1]
    terms = share * rows.double().view(m, k, -1)
    within = share.abs() * torch.as_tensor(error, device=rows.device).expand_as(rows).view(m, k, -1)
    exact, size = terms.sum(1), (terms.abs() + within).sum(1)
    before = within.sum(1) + 2.0**-23 * k * size
    return exact, before + ROUNDING * (exact.abs() + before)
