# SPDX-License-Identifier: Apache-2.0
"""Times one rank's share of a stock layer on a GPU, and its operations one by one.

    python -m tests.bench.stock --output DIR

Layers at the full model's shapes, weights and states of several layers in turn so that none stays
in the L2 cache, all of them in one CUDA graph; medians over replays. Collectives are the loopback
stand-in: local bytes only, no interconnect. Writes DIR/stock-layers.json.
"""

import argparse
import json
import statistics
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from torch.profiler import ProfilerActivity, profile

from kimi_k3.config import K3Config, full
from kimi_k3.packed import (
    PackedFfn,
    PackedKda,
    PackedLayer,
    PackedMix,
    PackedMla,
    PackedModel,
    PackedMoe,
)
from kimi_k3.reference.context import Context
from kimi_k3.reference.state import KdaState, KvCache
from kimi_k3.rounding import stock
from kimi_k3.sharding import Sharding
from kimi_k3.step import Group, Kind, Step, StepShape
from kimi_k3.stock.cuda.loopback import Loopback
from kimi_k3.stock.cuda.ops import CudaOps
from kimi_k3.stock.model import run_layer
from kimi_k3.stock.ops import Residual
from kimi_k3.weights import ExpertWeights

DEVICE = torch.device("cuda")
LAYERS = 4
"""Layers in one graph: at M = 1 their weights are 780 MB at TP 8, 13 times an H200's L2."""
SAVED_BLOCKS = 4
"""Saved blocks of a layer in the middle of the model."""
PAGE_SIZE = 64
CONTEXT = 8192
REPLAYS = 60
BYTES_ROTATED = 300_000_000


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
    """Bytes that must move once over the bandwidth of a copy on this machine."""


def random_matrix(rows: int, columns: int) -> torch.Tensor:
    """[rows, columns] BF16, outputs of about the size of the inputs."""
    return (torch.randn(rows, columns, device=DEVICE) * columns**-0.5).bfloat16()


def norm_weight(width: int) -> torch.Tensor:
    """[width] BF16 around 1."""
    return (1 + 0.1 * torch.randn(width, device=DEVICE)).bfloat16()


def mix_weights(c: K3Config) -> PackedMix:
    score = torch.randn(c.hidden_size, device=DEVICE) * c.hidden_size**-0.5
    return PackedMix(score, norm_weight(c.hidden_size))


def attention_weights(s: Sharding, kind: str) -> PackedKda | PackedMla:
    c, h = s.config, s.config.hidden_size
    if kind == "kda":
        width = s.kda_width
        return PackedKda(
            in_proj=random_matrix(s.kda_in_rows, h),
            f_b_proj=random_matrix(width, c.kda_head_dim),
            conv=torch.randn(3 * width, c.conv_kernel_size, device=DEVICE) * 0.5,
            a_log=torch.empty(s.kda_heads, device=DEVICE).uniform_(1, 16).log(),
            dt_bias=torch.empty(width, device=DEVICE).uniform_(-2, 2),
            o_norm=1 + 0.1 * torch.randn(c.kda_head_dim, device=DEVICE),
            o_proj=random_matrix(h, width),
        )
    return PackedMla(
        in_proj=random_matrix(s.mla_in_rows, h),
        q_a_layernorm=norm_weight(c.q_lora_rank),
        q_b_proj=random_matrix(s.q_b_rows, c.q_lora_rank),
        kv_a_layernorm=norm_weight(c.kv_lora_rank),
        w_uk=random_matrix(s.mla_heads * c.qk_nope_head_dim, c.kv_lora_rank).unflatten(
            0, (s.mla_heads, -1)
        ),
        w_uv=random_matrix(s.mla_heads * c.v_head_dim, c.kv_lora_rank).unflatten(
            0, (s.mla_heads, -1)
        ),
        o_proj=random_matrix(h, s.mla_width),
    )


def expert_weights(s: Sharding) -> ExpertWeights:
    """Random codes; scales of 2^-7 keep the outputs near 1. Padding is zeros, as when loaded."""
    c = s.config
    latent, groups = c.routed_expert_hidden_size, c.latent_groups

    def codes(*size: int) -> torch.Tensor:
        return torch.randint(0, 256, size, dtype=torch.uint8, device=DEVICE)

    def scales(*size: int) -> torch.Tensor:
        return torch.randint(118, 123, size, dtype=torch.uint8, device=DEVICE)

    w13, w2 = (
        codes(c.num_experts, 2, s.expert_partition, latent // 2),
        codes(c.num_experts, latent, s.w2_bytes),
    )
    w13[:, :, s.expert_width :] = 0
    w2[:, :, s.expert_width // 2 :] = 0
    return ExpertWeights(
        w13.flatten(1, 2),
        scales(c.num_experts, s.w13_rows, groups),
        w2,
        scales(c.num_experts, latent, s.w2_groups),
    )


def moe_weights(s: Sharding) -> PackedMoe:
    c, h = s.config, s.config.hidden_size
    return PackedMoe(
        front=random_matrix(c.num_experts + c.routed_expert_hidden_size, h),
        correction_bias=0.01 * torch.randn(c.num_experts, device=DEVICE),
        latent_norm=norm_weight(c.routed_expert_hidden_size),
        latent_up=random_matrix(h, c.routed_expert_hidden_size),
        shared=PackedFfn(random_matrix(2 * s.shared_width, h), random_matrix(h, s.shared_width)),
        experts=expert_weights(s),
    )


def layers_of(s: Sharding, kind: str, count: int) -> list[PackedLayer]:
    return [
        PackedLayer(
            mix_weights(s.config),
            attention_weights(s, kind),
            mix_weights(s.config),
            moe_weights(s),
        )
        for _ in range(count)
    ]


def state_of(s: Sharding, kind: str, requests: int) -> KdaState | KvCache:
    c = s.config
    if kind == "kda":
        head = (s.kda_heads, c.kda_head_dim, c.kda_head_dim)
        return KdaState(
            torch.randn(requests + 1, *head, device=DEVICE) * 0.1,
            torch.randn(requests + 1, s.conv_channels, 3, device=DEVICE).bfloat16(),
        )
    pages = requests * (CONTEXT // PAGE_SIZE)
    return KvCache(torch.randn(pages, PAGE_SIZE, c.kv_row, device=DEVICE).bfloat16())


def decode_step(requests: int) -> Step:
    """One token of each request, states and pages in shuffled order."""

    def i32(x: torch.Tensor) -> torch.Tensor:
        return x.to(DEVICE, torch.int32)

    per_request = CONTEXT // PAGE_SIZE
    return Step(
        StepShape((Group(Kind.WINDOW, requests, 1),), CONTEXT),
        i32(torch.zeros(requests)),
        i32(torch.randperm(requests)[:, None] + 1),
        i32(torch.ones(requests)),
        i32(torch.randperm(requests * per_request).view(requests, per_request)),
        i32(torch.full((requests,), CONTEXT)),
    )


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


def replay_times(graphs: Sequence[torch.cuda.CUDAGraph], replays: int) -> list[list[float]]:
    """Microseconds of each replay, the graphs in turn."""
    times: list[list[float]] = [[] for _ in graphs]
    for _ in range(3):
        for graph in graphs:
            graph.replay()
    torch.cuda.synchronize()
    for _ in range(replays):
        for graph, own in zip(graphs, times, strict=True):
            before, after = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            before.record()
            graph.replay()
            after.record()
            after.synchronize()
            own.append(before.elapsed_time(after) * 1e3)
    return times


def captured(calls: Sequence[Callable[[], object]]) -> torch.cuda.CUDAGraph:
    """One graph of all calls, run twice before."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for call in calls:
            call()
    torch.cuda.current_stream().wait_stream(stream)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for call in calls:
            call()
    return graph


def copy_bandwidth() -> float:
    """TB/s of a device copy, read plus written; 8 GB each way.

    Not out of a graph: there a copy becomes a node of its own kind, which is slower.
    """
    source = torch.randn(1 << 31, device=DEVICE)
    target = torch.empty_like(source)
    times = []
    for _ in range(12):
        before, after = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        before.record()
        target.copy_(source)
        after.record()
        after.synchronize()
        times.append(before.elapsed_time(after) * 1e3)
    return 2 * source.nbytes / statistics.median(times) * 1e-6


def floor_us(s: Sharding, kind: str, rows: int, distinct: float, tb_s: float) -> float:
    """Bytes of one layer that must move once, over `tb_s`."""
    c, h = s.config, s.config.hidden_size
    live = s.expert_width
    expert = (3 * live * c.routed_expert_hidden_size) * 17 / 32
    front = (c.num_experts + c.routed_expert_hidden_size) * h * 2
    shared = 3 * s.shared_width * h * 2
    up = h * c.routed_expert_hidden_size * 2
    if kind == "kda":
        projections = (s.kda_in_rows * h + s.kda_width * (h + c.kda_head_dim)) * 2
        state = rows * s.kda_heads * c.kda_head_dim**2 * 8
    else:
        heads = s.mla_heads * c.kv_lora_rank * (c.qk_nope_head_dim + c.v_head_dim)
        projections = (s.mla_in_rows * h + s.q_b_rows * c.q_lora_rank + heads + s.mla_width * h) * 2
        state = rows * CONTEXT * c.kv_row * 2
    return (projections + state + distinct * expert + front + shared + up) / tb_s * 1e-6


def layer_table(tb_s: float) -> tuple[list[LayerTime], dict[str, list[tuple[str, float]]]]:
    rows_out, traces = [], {}
    for tp in (8, 16):
        s = Sharding(full(), tp, 0)
        for kind in ("kda", "mla"):
            layers = layers_of(s, kind, LAYERS)
            for rows in (1, 8, 64):
                chain = Chain(s, kind, layers, rows)
                (times,) = replay_times([chain.graph], REPLAYS)
                times.sort()
                per = [t / LAYERS for t in times]
                trace = chain.operations()
                distinct = full().num_experts * (1 - (1 - 16 / 896) ** rows)
                row = LayerTime(
                    f"{kind}+moe",
                    tp,
                    rows,
                    len(trace) / LAYERS,
                    statistics.median(per),
                    per[len(per) // 10],
                    per[-1 - len(per) // 10],
                    floor_us(s, kind, rows, distinct, tb_s),
                )
                finite = bool(torch.isfinite(chain.end.prefix).all())
                if not finite:
                    raise SystemExit(f"{row}: the layer's output is not finite")
                rows_out.append(row)
                traces[f"{kind}+moe/tp{tp}/m{rows}"] = trace[: len(trace) // LAYERS]
                sys.stdout.write(f"{row}\n")
                del chain
                torch.cuda.empty_cache()
            del layers
            torch.cuda.empty_cache()
    return rows_out, traces


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, required=True)
    arguments = parser.parse_args()
    torch.manual_seed(0)
    device = torch.cuda.get_device_properties(DEVICE)
    tb_s = copy_bandwidth()
    sys.stdout.write(f"{device.name}: copy {tb_s:.2f} TB/s\n")
    rows, traces = layer_table(tb_s)
    record = {
        "machine": {
            "gpu": device.name,
            "multiprocessors": device.multi_processor_count,
            "l2_bytes": device.L2_cache_size,
            "copy_tb_s": tb_s,
            "torch": torch.__version__,
            "cuda": torch.version.cuda,
        },
        "layers_in_a_graph": LAYERS,
        "replays": REPLAYS,
        "context": CONTEXT,
        "saved_blocks": SAVED_BLOCKS,
        "rows": [asdict(row) for row in rows],
        "traces": traces,
    }
    arguments.output.mkdir(parents=True, exist_ok=True)
    (arguments.output / "stock-layers.json").write_text(json.dumps(record, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
