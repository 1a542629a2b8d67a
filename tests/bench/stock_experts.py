# SPDX-License-Identifier: Apache-2.0
"""Times every candidate tile of the stock path's routed experts on one GPU.

    python3 -m tests.bench.stock_experts --output experts.json [--rows 1 8 64] [--tp 8 16]

Each candidate is first checked against float64 (the bounds of `tests/gpu`) on the inputs of the
first iteration. Then a CUDA graph of `ITERATIONS` launches, each with other random experts, is
replayed; a time is the replay's divided by that number. All experts of one layer are resident, so
that between two uses of an expert far more than the L2 cache is read. A floor is the bytes of the
distinct experts, scales included, at the sustained bandwidth. At last the chain in use is timed:
plan, both products, weighted sum; by pair, gate and up, then down with the sum.
"""

import argparse
import json
import statistics
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import torch

from kimi_k3.stock.cuda.expert_plan import ExpertPlan, plan_pairs
from kimi_k3.stock.cuda.expert_sum import down_sum, weighted_sum
from kimi_k3.stock.cuda.expert_tiles import Tile, Tiles, tiles_for
from kimi_k3.stock.cuda.experts import down, gate_up
from kimi_k3.weights import ExpertWeights
from tests.bench.gpu_machine import Clocks, clocks_under, gpu_machine
from tests.bench.graph_times import captured, replay_times
from tests.gpu.packed_oracle import (
    DEVICE,
    ON_GPU,
    TP8,
    TP16,
    Experts,
    down_rows,
    hidden_bounds,
    int32,
    normal,
    random_experts,
    routing,
    weighted_rows,
)

SUSTAINED = 4.27e12
"""Bytes per second of a copy on an H200."""
ITERATIONS = 20
REPLAYS = 10
SHAPES = {8: TP8, 16: TP16}


@dataclass(frozen=True)
class Timing:
    """One line of the table; times in microseconds per launch (or per chain)."""

    tp: int
    rows: int
    kernel: str
    tile: str
    median_us: float
    least_us: float
    most_us: float
    floor_us: float

    @property
    def of_floor(self) -> float:
        return self.floor_us / self.median_us


@dataclass(frozen=True)
class Case:
    """Inputs of all iterations for one shape and row count."""

    shape: Experts
    tiles: Tiles
    w: ExpertWeights
    z: torch.Tensor
    ids: list[torch.Tensor]
    plans: list[ExpertPlan]
    lengths: torch.Tensor
    weights: torch.Tensor
    hidden: torch.Tensor  # what `down` reads, and its exact result is known for
    out: torch.Tensor  # what `gate_up` writes
    rows: torch.Tensor
    partial: torch.Tensor
    hidden_bounds: tuple[torch.Tensor, torch.Tensor]
    down_rows: tuple[torch.Tensor, torch.Tensor]

    @classmethod
    def random(cls, shape: Experts, w: ExpertWeights, m: int) -> "Case":
        tiles = tiles_for(m, shape.live)
        ids = [routing("random", m, shape, seed=100 * m + i) for i in range(ITERATIONS)]
        z, hidden = normal(1, m, shape.latent), normal(2, m * shape.k, shape.width)
        case = cls(
            shape,
            tiles,
            w,
            z,
            ids,
            [
                ExpertPlan.by_pair(own, tiles.tokens)
                if tiles.by_pair
                else ExpertPlan.empty(own.numel(), tiles.tokens, DEVICE)
                for own in ids
            ],
            int32([1] * m),
            torch.full((m, shape.k), 1 / shape.k, device=DEVICE),
            hidden,
            torch.empty_like(hidden),
            normal(3, m * shape.k, shape.latent),
            torch.empty(m, shape.latent, dtype=torch.bfloat16, device=DEVICE),
            hidden_bounds(shape, w, ids[0], z),
            down_rows(shape, w, ids[0], hidden),
        )
        for i in range(ITERATIONS):
            case.plan(i)
        return case

    def plan(self, i: int) -> None:
        if self.plans[i].counts is not None:
            plan_pairs(self.ids[i], self.lengths, 1, self.plans[i])

    def gate_up(self, i: int, tile: Tile) -> None:
        gate_up(
            self.z,
            self.w,
            self.plans[i],
            self.out,
            tile,
            live=self.shape.live,
            beta=4.0,
            linear_beta=25.0,
            wide=False,
        )

    def down(self, i: int, tile: Tile) -> None:
        """What follows `gate_up`: by pair the sum, too."""
        live = self.shape.live
        if not self.tiles.by_pair:
            down(self.hidden, self.w, self.plans[i], self.rows, tile, live=live, wide=False)
            return
        down_sum(
            self.weights,
            self.hidden,
            self.w,
            self.ids[i],
            self.lengths,
            self.partial,
            tile,
            live=live,
            wide=False,
        )

    def total(self) -> None:
        weighted_sum(self.weights, self.rows, self.lengths, 1, self.partial)

    def chain(self, i: int) -> None:
        """What a step does, with the tiles in use."""
        self.plan(i)
        self.gate_up(i, self.tiles.gate_up[0])
        self.down(i, self.tiles.down[0])
        if not self.tiles.by_pair:
            self.total()

    def floor_us(self, weight_rows: int, depth: int) -> float:
        """Time to read `weight_rows` x `depth` MXFP4 weights of each distinct expert."""
        distinct = statistics.mean(len(own.unique()) for own in self.ids)
        return distinct * weight_rows * depth * (1 / 2 + 1 / 32) / SUSTAINED * 1e6

    def check_gate_up(self, tile: Tile) -> None:
        """The first iteration's hidden rows against float64."""
        self.out.fill_(torch.nan)
        self.gate_up(0, tile)
        low, high = self.hidden_bounds
        live = self.out[:, : self.shape.live].double()
        self._require(((low <= live) & (live <= high)).all(), "gate_up", tile)

    def check_down(self, tile: Tile) -> None:
        """The first iteration's rows, or their sum, against float64."""
        out = self.partial if self.tiles.by_pair else self.rows
        out.fill_(torch.nan)
        self.down(0, tile)
        exact, bound = self.down_rows
        if self.tiles.by_pair:
            exact, bound = weighted_rows(self.weights, exact, bound)
        self._require(((out.double() - exact).abs() <= bound).all(), "down", tile)

    def _require(self, right: torch.Tensor, kernel: str, tile: Tile) -> None:
        if not bool(right):
            raise SystemExit(f"{kernel} with {tile}: wrong at {len(self.z)} rows")


def iterations(launches: Callable[[int], None]) -> torch.cuda.CUDAGraph:
    """A graph of `launches(0)`, `launches(1)`, ..."""
    return captured([partial(launches, i) for i in range(ITERATIONS)])


def measure(tp: int, m: int, w: ExpertWeights) -> tuple[list[Timing], Clocks | None]:
    """All candidates of both kernels at one row count, the chain in use, and clocks under it."""
    shape = SHAPES[tp]
    case = Case.random(shape, w, m)
    tiles = case.tiles
    results: list[Timing] = []

    def add(kernel: str, tile: str, floor_us: float, graph: torch.cuda.CUDAGraph) -> None:
        (replays,) = replay_times([graph], REPLAYS)
        times = [time / ITERATIONS for time in replays]
        line = Timing(
            tp, m, kernel, tile, statistics.median(times), min(times), max(times), floor_us
        )
        results.append(line)
        print(
            f"TP{tp:<3} M={m:<3} {kernel:<9} {line.median_us:8.2f} us  floor {floor_us:7.2f}"
            f"  {line.of_floor:5.0%}  [{line.least_us:.2f}, {line.most_us:.2f}]  {tile}"
        )

    first_floor = case.floor_us(2 * shape.live, shape.latent)
    second_floor = case.floor_us(shape.latent, shape.live)
    for tile in tiles.gate_up:
        case.check_gate_up(tile)
        graph = iterations(partial(case.gate_up, tile=tile))
        add("gate_up", str(tile), first_floor, graph)
    for tile in tiles.down:
        case.check_down(tile)
        graph = iterations(partial(case.down, tile=tile))
        add("down", str(tile), second_floor, graph)
    if not case.tiles.by_pair:
        graph = iterations(lambda _: case.total())
        add("sum", "", 2 * case.rows.numel() / SUSTAINED * 1e6, graph)
    graph = iterations(case.chain)
    add("chain", "in use", first_floor + second_floor, graph)
    return results, clocks_under(graph)


def main() -> None:
    """Measures, prints the table, writes JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--rows", type=int, nargs="+", default=[1, 2, 4, 8, 16, 32, 64])
    parser.add_argument("--tp", type=int, nargs="+", choices=sorted(SHAPES), default=[8, 16])
    args = parser.parse_args()
    if not ON_GPU:
        raise SystemExit("no GPU to measure")
    results: list[Timing] = []
    clocks: list[Clocks | None] = []
    for tp in args.tp:
        w = random_experts(SHAPES[tp], seed=tp)
        for m in args.rows:
            timings, sample = measure(tp, m, w)
            results.extend(timings)
            clocks.append(sample)
    record = {
        "machine": gpu_machine(clocks),
        "sustained_bytes_per_s": SUSTAINED,
        "iterations": ITERATIONS,
        "replays": REPLAYS,
        "timings": [asdict(line) | {"of_floor": line.of_floor} for line in results],
    }
    args.output.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
