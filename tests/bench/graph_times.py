# SPDX-License-Identifier: Apache-2.0
"""CUDA graphs, and the times of their replays."""

import statistics
from collections.abc import Callable, Sequence

import torch

from tests.bench.rank_share import DEVICE

BUSY_CYCLES = 400_000
"""About 0.2 ms: the device is busy while the host enqueues a replay, so that the time between the
two events is the device's alone."""


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
            torch.cuda._sleep(BUSY_CYCLES)
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
