# SPDX-License-Identifier: Apache-2.0
"""The stock path's products and its recurrence one by one, each beside the plain call."""

import statistics
import sys
from dataclasses import dataclass
from functools import partial

import torch
from fla.ops.kda import fused_recurrent_kda
from fla.ops.kda.fused_recurrent import fused_recurrent_kda_fwd

from kimi_k3.stock.cuda.recurrence import recurrence
from tests.bench.graph_times import captured, replay_times
from tests.bench.rank_share import DEVICE, random_matrix

BYTES_ROTATED = 300_000_000


@dataclass(frozen=True)
class OperationTime:
    """One operation as the stock path calls it, beside its baseline, from one interleaved run."""

    operation: str
    rows: int
    median_us: float
    baseline_us: float
    """The plain call: `torch.matmul`, or fla-core's recurrence on states that lie in order."""
    ratio: float
    """Median of the ratios of neighbouring replays."""
    earlier_us: float | None
    """What the plain calls took on another machine of this kind; see `EARLIER`."""


EARLIER: dict[str, tuple[float | None, ...]] = {
    "KDA input TP8 [6288, 7168]": (27.0, 26.5, 26.8),
    "KDA input TP16 [3216, 7168]": (17.4, 17.6, 18.4),
    "MLA input TP8 [3648, 7168]": (18.4, 19.2, 20.6),
    "output TP8 [7168, 1536]": (8.7, 8.6, 8.9),
    "output TP16 [7168, 768]": (5.4, 5.5, 5.8),
    "router and latent down [4480, 7168]": (8.7 + 18.9, 8.8 + 18.5, 10.3 + 19.9),
    "shared gate and up TP8 [1536, 7168]": (10.6, 10.7, 11.1),
    "shared gate and up TP16 [768, 7168]": (8.1, 8.2, 8.5),
    "shared down TP8 [7168, 768]": (5.5, 5.4, 5.9),
    "shared down TP16 [7168, 384]": (4.1, 4.2, 4.5),
    "latent up [7168, 3584]": (17.8, 18.4, 16.2),
    "KDA recurrence TP8, 12 heads, public call": (4.6, 7.6, 31.8),
    "KDA recurrence TP8, 12 heads, its kernel": (None, None, None),
}
"""Microseconds at 1, 8 and 64 rows on an H200 with the same software, copy 4.27 TB/s, measured
before this path existed; router and latent down were two products then."""


def product_pair(name: str, rows: int) -> tuple[torch.cuda.CUDAGraph, torch.cuda.CUDAGraph, int]:
    """Graphs of the product as the stock path calls it and as `torch.matmul`, and their length."""
    n, k = (int(part) for part in name.partition("[")[2].rstrip("]").split(", "))
    count = min(48, max(4, BYTES_ROTATED // (2 * n * k)))
    weights = [random_matrix(n, k) for _ in range(count)]
    x = torch.randn(rows, k, device=DEVICE).bfloat16()
    out = torch.empty(rows, n, device=DEVICE, dtype=torch.bfloat16)
    wide = name.startswith("router")

    def ours(w: torch.Tensor) -> torch.Tensor:
        return torch.mm(x, w.T, out_dtype=torch.float32) if wide else x @ w.T

    mine = captured([partial(ours, w) for w in weights])
    plain = captured([partial(torch.matmul, x, w.T, out=out) for w in weights])
    return mine, plain, count


def recurrence_pair(
    heads: int, rows: int, *, public: bool
) -> tuple[torch.cuda.CUDAGraph, torch.cuda.CUDAGraph, int]:
    """Graphs of fla-core's recurrence on state slots in place, and from one state to another.

    The public call, which was measured earlier, fills its output with zeros first and gives its
    final state back to the allocator, so that the next call writes the same memory. The other
    baseline is the kernel alone, every final state in memory of its own.
    """
    d = 128
    state_bytes = rows * heads * d * d * 4
    count = max(8, -(-BYTES_ROTATED // state_bytes))
    q, k, v, g = (torch.randn(1, rows, heads, d, device=DEVICE).bfloat16() for _ in range(4))
    beta = torch.randn(1, rows, heads, device=DEVICE).bfloat16()
    accepted, out = torch.ones(rows, device=DEVICE, dtype=torch.int32), torch.empty_like(v)
    shared = {
        "A_log": torch.rand(heads, device=DEVICE),
        "dt_bias": torch.randn(heads * d, device=DEVICE),
        "scale": d**-0.5,
        "state_v_first": True,
        "use_qk_l2norm_in_kernel": True,
        "use_gate_in_kernel": True,
        "use_beta_sigmoid_in_kernel": True,
        "lower_bound": -5.0,
    }
    pool = torch.randn(1 + rows * count, heads, d, d, device=DEVICE)
    slots = (torch.randperm(rows * count, device=DEVICE) + 1).int().view(count, rows, 1)
    starts = torch.arange(rows + 1, device=DEVICE, dtype=torch.int32)

    def ours(own: torch.Tensor) -> None:
        recurrence(
            out[0],
            (q[0], k[0], v[0]),
            g[0],
            beta[0],
            shared["A_log"],
            shared["dt_bias"],
            pool,
            row_starts=starts,
            slots=own,
            accepted=accepted,
            scale=shared["scale"],
            lower_bound=shared["lower_bound"],
        )

    by_request = {
        name: t.transpose(0, 1)
        for name, t in {"q": q, "k": k, "v": v, "g": g, "beta": beta, "out": out}.items()
    }
    states = [torch.randn(rows, heads, d, d, device=DEVICE) for _ in range(count)]
    kept = []  # so that every final state has memory of its own

    def plain(state: torch.Tensor) -> None:
        if public:
            inputs = {name: t for name, t in by_request.items() if name != "out"}
            fused_recurrent_kda(initial_state=state, output_final_state=True, **inputs, **shared)
            return
        kept.append(
            fused_recurrent_kda_fwd(
                initial_state=state,
                inplace_final_state=False,
                output_final_state=True,
                **by_request,
                **shared,
            )
        )

    mine = captured([partial(ours, own) for own in slots])
    return mine, captured([partial(plain, state) for state in states]), count


def operation_table() -> list[OperationTime]:
    table = []
    for name, earlier in EARLIER.items():
        for rows, before in zip((1, 8, 64), earlier, strict=True):
            pair = (
                product_pair(name, rows)
                if "[" in name
                else recurrence_pair(12, rows, public="public" in name)
            )
            mine, plain, count = pair
            times, baseline = replay_times([mine, plain], 40)
            row = OperationTime(
                name,
                rows,
                statistics.median(times) / count,
                statistics.median(baseline) / count,
                statistics.median(a / b for a, b in zip(times, baseline, strict=True)),
                before,
            )
            table.append(row)
            sys.stdout.write(f"{row}\n")
    return table
