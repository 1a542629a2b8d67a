# SPDX-License-Identifier: Apache-2.0
"""Times one rank's share of a stock layer on a GPU, and its operations one by one.

    python -m tests.bench.stock --output DIR

Layers at the full model's shapes, weights and states of several layers in turn so that none stays
in the L2 cache, all of them in one CUDA graph; medians over replays. Collectives are the loopback
stand-in: local bytes only, no interconnect. Operations one by one: weights rotated likewise, the
operation and the plain call it is held against replayed in turn. Writes DIR/stock-layers.json.
"""

import argparse
import json
import statistics
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from torch.profiler import ProfilerActivity, profile

from kimi_k3.config import full
from kimi_k3.packed import PackedLayer, PackedModel
from kimi_k3.reference.context import Context
from kimi_k3.rounding import stock
from kimi_k3.sharding import Sharding
from kimi_k3.stock.cuda.loopback import Loopback
from kimi_k3.stock.cuda.ops import CudaOps
from kimi_k3.stock.model import run_layer
from kimi_k3.stock.ops import Residual
from tests.bench.gpu_machine import Clocks, clocks_under, gpu_machine
from tests.bench.graph_times import copy_bandwidth, replay_times
from tests.bench.rank_share import (
    CONTEXT,
    DEVICE,
    decode_step,
    layers_of,
    mix_weights,
    norm_weight,
    state_of,
)
from tests.bench.stock_operations import operation_table

LAYERS = 4
"""Layers in one graph. One row reads 830 MB of them at least, 13 times an H200's L2."""
MOST_OPERATIONS = 23
"""Of a KDA + MoE layer at one row: the published count of a good engine."""
SAVED_BLOCKS = 4
"""Saved blocks of a layer in the middle of the model."""
REPLAYS = 60


@dataclass(frozen=True)
class LayerTime:
    """One row of the layer table."""

    kind: str
    tp: int
    rows: int
    operations: float
    median_us: float
    low_us: float
    high_us: float
    """The 10th and the 90th percentile."""
    floor_us: float
    """Bytes that this path must move once, over the bandwidth of a copy on this machine."""
    divided_floor_us: float
    """The same where ranks share out what here every rank reads whole."""


class Chain:
    """Several layers after one another in one CUDA graph."""

    def __init__(self, s: Sharding, kind: str, layers: Sequence[PackedLayer], rows: int) -> None:
        c = s.config
        dummy = torch.empty(0, device=DEVICE)
        model = PackedModel(dummy, tuple(layers), mix_weights(c), norm_weight(1), dummy)
        context = Context(c, stock(), Loopback(s.tp))
        self.ops = CudaOps(context, model)
        self.layers = layers
        self.states = [state_of(s, kind, rows) for _ in layers]
        self.step = decode_step(rows)
        self.start = Residual(
            torch.randn(rows, c.hidden_size, device=DEVICE).bfloat16(),
            (torch.randn(rows, c.hidden_size, device=DEVICE).bfloat16(),),
            torch.randn(rows, c.num_blocks, c.hidden_size, device=DEVICE).bfloat16(),
            SAVED_BLOCKS,
        )
        self.graph = torch.cuda.CUDAGraph()
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            self.run()
            self.run()
        torch.cuda.current_stream().wait_stream(stream)
        torch.cuda.synchronize()
        self.prepared = self.ops.prepare(self.step)
        with torch.cuda.graph(self.graph):
            self.end = self.chain()

    def run(self) -> None:
        self.prepared = self.ops.prepare(self.step)
        self.chain()

    def chain(self) -> Residual:
        stream = self.start
        for layer, state in zip(self.layers, self.states, strict=True):
            stream, _ = run_layer(self.ops, layer, stream, state, self.prepared, writes=False)
        return stream

    def operations(self) -> list[tuple[str, float]]:
        """Name and microseconds of every GPU operation of one replay."""
        self.graph.replay()
        torch.cuda.synchronize()
        with profile(activities=[ProfilerActivity.CUDA]) as trace:
            self.graph.replay()
            torch.cuda.synchronize()
        on_gpu = [e for e in trace.events() if e.device_type == torch.autograd.DeviceType.CUDA]
        return [(e.name, e.device_time) for e in sorted(on_gpu, key=lambda e: e.time_range.start)]


def floor_us(s: Sharding, kind: str, rows: int, *, divided: bool, tb_s: float) -> float:
    """Bytes of one layer that must move once, over `tb_s`.

    Weights, the expected number of distinct experts, states, KV rows and convolution windows; not
    the residual stream, which is small. `divided` is the layout of the decode kernels, in which
    ranks share out router, latent down and latent up; here every rank reads them whole.
    """
    c, h = s.config, s.config.hidden_size
    latent, share = c.routed_expert_hidden_size, s.tp if divided else 1
    distinct = c.num_experts * (1 - (1 - c.num_experts_per_tok / c.num_experts) ** rows)
    experts = distinct * 3 * s.expert_width * latent * 17 / 32
    everyone = (c.num_experts + 2 * latent) * h * 2 / share
    shared = 3 * s.shared_width * h * 2
    if kind == "kda":
        own = (s.kda_in_rows * h + s.kda_width * (h + c.kda_head_dim)) * 2
        window = s.conv_channels * (c.conv_kernel_size - 1) * 2
        state = rows * (s.kda_heads * c.kda_head_dim**2 * 4 + window) * 2
    else:
        heads = s.mla_heads * c.kv_lora_rank * (c.qk_nope_head_dim + c.v_head_dim)
        own = (s.mla_in_rows * h + s.q_b_rows * c.q_lora_rank + heads + s.mla_width * h) * 2
        state = rows * CONTEXT * c.kv_row * 2
    return (own + state + experts + everyone + shared) / tb_s * 1e-6


def layer_table(
    tb_s: float,
) -> tuple[list[LayerTime], dict[str, list[tuple[str, float]]], list[Clocks | None]]:
    """Every row, the operations of each, and the clocks under each."""
    rows_out, traces, clocks = [], {}, []
    for tp in (8, 16):
        s = Sharding(full(), tp, 0)
        for kind in ("kda", "mla"):
            layers = layers_of(s, kind, LAYERS)
            for rows in (1, 8, 64):
                chain = Chain(s, kind, layers, rows)
                (times,) = replay_times([chain.graph], REPLAYS)
                clocks.append(clocks_under(chain.graph))
                times.sort()
                per = [t / LAYERS for t in times]
                trace = chain.operations()
                row = LayerTime(
                    f"{kind}+moe",
                    tp,
                    rows,
                    len(trace) / LAYERS,
                    statistics.median(per),
                    per[len(per) // 10],
                    per[-1 - len(per) // 10],
                    floor_us(s, kind, rows, divided=False, tb_s=tb_s),
                    floor_us(s, kind, rows, divided=True, tb_s=tb_s),
                )
                for out in (chain.end.prefix, *chain.end.pending):
                    if not bool(torch.isfinite(out).all()):
                        raise SystemExit(f"{row}: the layer's output is not finite")
                rows_out.append(row)
                traces[f"{kind}+moe/tp{tp}/m{rows}"] = trace[: len(trace) // LAYERS]
                sys.stdout.write(f"{row}\n")
                del chain
                torch.cuda.empty_cache()
            del layers
            torch.cuda.empty_cache()
    return rows_out, traces, clocks


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, required=True)
    arguments = parser.parse_args()
    torch.manual_seed(0)
    device = torch.cuda.get_device_properties(DEVICE)
    tb_s = copy_bandwidth()
    sys.stdout.write(f"{device.name}: copy {tb_s:.2f} TB/s\n")
    rows, traces, clocks = layer_table(tb_s)
    operations = operation_table()
    record = {
        "machine": gpu_machine(clocks)
        | {
            "multiprocessors": device.multi_processor_count,
            "l2_bytes": device.L2_cache_size,
            "copy_tb_s": tb_s,
        },
        "layers_in_a_graph": LAYERS,
        "replays": REPLAYS,
        "context": CONTEXT,
        "saved_blocks": SAVED_BLOCKS,
        "rows": [asdict(row) for row in rows],
        "operations": [asdict(row) for row in operations],
        "traces": traces,
    }
    arguments.output.mkdir(parents=True, exist_ok=True)
    (arguments.output / "stock-layers.json").write_text(json.dumps(record, indent=1))
    too_many = [
        r for r in rows if r.kind == "kda+moe" and r.rows == 1 and r.operations > MOST_OPERATIONS
    ]
    for row in too_many:
        sys.stdout.write(f"more than {MOST_OPERATIONS} operations: {row}\n")
    return 1 if too_many else 0


if __name__ == "__main__":
    sys.exit(main())
