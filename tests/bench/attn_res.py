# SPDX-License-Identifier: Apache-2.0
"""Times the residual mix of the decode path on a GPU against Triton's and PyTorch's.

    python -m tests.bench.attn_res --output FILE [--cache .gpu/kernels] [--replays 40]

Every form at every prepared number of rows; inputs rotated past the L2 cache, all launches of one
operation in one CUDA graph, the graphs of one shape replayed in turn. The kernel's launches start
early, as the executor has them start; the others' follow one another. Each variant's output is
compared with float64 before it is timed. Cubins come from the cache, so that no compiler is needed.
"""

import argparse
import json
import statistics
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from kimi_k3.config import full
from kimi_k3.decode.kernels.attn_res.shape import Form
from kimi_k3.decode.kernels.build import parameters_of
from kimi_k3.decode.kernels.catalogue import candidate, table
from kimi_k3.decode.kernels.launch import Kernel
from kimi_k3.stock.cuda.mix import mix
from tests.bench.gpu_machine import Clocks, clocks_under, gpu_machine
from tests.bench.graph_times import captured, copy_bandwidth, replay_times
from tests.bench.rank_share import DEVICE

ROWS = (1, 2, 4, 8, 16, 32, 64)
FORMS = ("first", "add", "block", "plain", "last")
SAVED = (1, 4, 8)
ROTATED_BYTES = 260e6
"""More than four times an H200's L2."""
MOST_SETS = 1200
SUSTAINED, LAUNCH_US = 4.27, 1.1
"""TB/s of a device copy on an H200, and microseconds of a tiny kernel inside a graph: what
`docs/kernels.md` holds the kernel against."""
HIDDEN, ROOM, EPS = full().hidden_size, full().num_blocks, full().rms_norm_eps


@dataclass(frozen=True)
class Row:
    """One form at one shape.

    Attributes:
        form: of the variant table.
        variant: which of its variants.
        rows: of the launch.
        saved: blocks that are mixed.
        bytes: that must move once.
        floor_us: of these bytes at the sustained bandwidth.
        kernel_us: median of the kernel.
        triton_us: of the stock path's kernel.
        torch_us: of plain PyTorch in BF16 and FP32.
        spread_us: least and greatest of the kernel.
        error: relative error against float64, in the Euclidean norm.
    """

    form: str
    variant: str
    rows: int
    saved: int
    bytes: int
    floor_us: float
    kernel_us: float
    triton_us: float
    torch_us: float
    spread_us: tuple[float, float]
    error: float


class Sets:
    """Inputs of one shape, many times over."""

    def __init__(self, form: Form, rows: int, saved: int) -> None:
        self.form, self.rows, self.saved = form, rows, saved
        self.bytes = rows * HIDDEN * 2 * (saved + 2 + form.delta + form.kept + form.block)
        self.count = max(8, min(MOST_SETS, int(ROTATED_BYTES / self.bytes)))
        size = (self.count, rows, HIDDEN)
        self.blocks = torch.randn(self.count, rows, ROOM, HIDDEN, device=DEVICE).bfloat16()
        self.prefix = torch.randn(size, device=DEVICE).bfloat16()
        self.delta = torch.randn(size, device=DEVICE).bfloat16()
        self.score = torch.randn(HIDDEN, device=DEVICE) * HIDDEN**-0.5
        self.norm = (1 + 0.1 * torch.randn(HIDDEN, device=DEVICE)).bfloat16()
        self.out = torch.full((rows, HIDDEN), torch.nan, device=DEVICE, dtype=torch.bfloat16)
        self.prefix_out = torch.empty_like(self.out)
        self.block_out = torch.empty(rows, ROOM, HIDDEN, device=DEVICE, dtype=torch.bfloat16)

    def values(self, at: int) -> Mapping[str, torch.Tensor | int]:
        """The operands of the kernel."""
        own = {"prefix": self.prefix, "delta": self.delta, "blocks": self.blocks}
        shared = {"saved": self.saved, "score": self.score, "norm": self.norm, "out": self.out}
        outs = {"prefix_out": self.prefix_out, "block_out": self.block_out[:, 0]}
        return {name: value[at] for name, value in own.items()} | shared | outs

    def kernel_calls(self, kernel: Kernel) -> Iterator[Callable[[], None]]:
        names = [one.name for one in kernel.candidate.operands]

        def launch(at: int) -> None:
            values = self.values(at)
            kernel.launch([values[name] for name in names], self.rows, pdl=True)

        return (lambda at=at: launch(at) for at in range(self.count))

    def triton_calls(self) -> Iterator[Callable[[], None]]:
        def launch(at: int) -> None:
            mix(
                self.out,
                self.prefix[at],
                [self.delta[at]] if self.form.delta else [],
                self.blocks[at],
                self.saved,
                score=self.score,
                norm=self.norm if self.form.normed else None,
                eps=EPS,
                prefix_out=self.prefix_out if self.form.kept else None,
                write=self.form.block,
            )

        return (lambda at=at: launch(at) for at in range(self.count))

    def plain_calls(self) -> Iterator[Callable[[], object]]:
        return (lambda at=at: self.plain(at, torch.float32) for at in range(self.count))

    def plain(self, at: int, dtype: torch.dtype) -> torch.Tensor:
        """The mix in PyTorch."""
        p = self.prefix[at]
        if self.form.delta:
            p = (p.float() + self.delta[at].float()).bfloat16()
        sources = torch.cat([self.blocks[at][:, : self.saved], p[:, None]], 1).to(dtype)
        logit = (sources * self.score).sum(-1) * torch.rsqrt((sources**2).mean(-1) + EPS)
        m = (torch.softmax(logit, -1)[..., None] * sources).sum(1)
        if self.form.normed:
            m = m * torch.rsqrt((m**2).mean(-1, keepdim=True) + EPS) * self.norm
        if self.form.block:
            self.block_out[:, 0] = p
        return m if dtype is torch.float64 else m.bfloat16()


def rows_of(cache: Path, replays: int) -> Iterator[tuple[Row, Clocks | None]]:
    """Every form at every shape."""
    for variant in table("attn_res").variants:
        name = variant.kernel.removeprefix("attn-res-")
        if variant.arch != "sm_90a" or variant.tp != 8 or name not in FORMS:
            continue
        kernel, form = (
            Kernel(candidate("attn_res", variant, cache)),
            Form.of(parameters_of(variant)),
        )
        for rows in ROWS:
            if variant.rows[0] <= rows <= variant.rows[1]:
                for saved in saved_of(form):
                    yield timed(kernel, name, Sets(form, rows, saved), replays)


def saved_of(form: Form) -> tuple[int, ...]:
    """Few and many blocks; where one is written there is room for it."""
    return tuple(min(one, ROOM - form.block) for one in SAVED) if form.most else (0,)


def timed(kernel: Kernel, name: str, sets: Sets, replays: int) -> tuple[Row, Clocks | None]:
    """One shape, and the clocks under it."""
    next(iter(sets.kernel_calls(kernel)))()
    torch.cuda.synchronize()
    exact = sets.plain(0, torch.float64)
    error = float((sets.out.double() - exact).norm() / exact.norm())
    torch_calls = [*sets.plain_calls()][:32]
    graphs = [
        captured([*sets.kernel_calls(kernel)]),
        captured([*sets.triton_calls()]),
        captured(torch_calls),
    ]
    counts = (sets.count, sets.count, len(torch_calls))
    times = replay_times(graphs, replays)
    own, triton, plain = ([t / n for t in ts] for ts, n in zip(times, counts, strict=True))
    row = Row(
        name,
        kernel.candidate.variant.id,
        sets.rows,
        sets.saved,
        sets.bytes,
        round(sets.bytes / SUSTAINED * 1e-6, 3),
        round(statistics.median(own), 3),
        round(statistics.median(triton), 3),
        round(statistics.median(plain), 3),
        (round(min(own), 3), round(max(own), 3)),
        error,
    )
    return row, clocks_under(graphs[0]) if name == "add" else None


def main() -> int:
    """Measures and writes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--cache", type=Path, default=Path(".gpu/kernels"))
    parser.add_argument("--replays", type=int, default=40)
    options = parser.parse_args()
    torch.manual_seed(8)
    found, samples = [], []
    for row, clocks in rows_of(options.cache, options.replays):
        found.append(row)
        samples.append(clocks)
        limit = 2 * (row.floor_us + LAUNCH_US)
        print(
            f"{row.form:6} M {row.rows:2} saved {row.saved}  {row.kernel_us:6.2f} us  "
            f"(limit at 64 rows {limit:.2f})  triton {row.triton_us:6.2f}  "
            f"torch {row.torch_us:7.2f}  error {row.error:.1e}",
            flush=True,
        )
    result: dict[str, Any] = {"machine": gpu_machine(samples), "copy_tb_s": copy_bandwidth()}
    result |= {"replays": options.replays, "rows": [asdict(row) for row in found]}
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
