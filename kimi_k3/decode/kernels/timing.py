# SPDX-License-Identifier: Apache-2.0
"""Times launches on a GPU: many of them in one CUDA graph, several graphs in turn."""

from collections.abc import Callable, Sequence

import torch

BUSY_CYCLES = 400_000
"""About 0.2 ms: the device is busy while the host enqueues a replay, so that the time between the
two events is the device's alone."""
WARM = 3


def captured(calls: Sequence[Callable[[], object]]) -> torch.cuda.CUDAGraph:
    """One graph of all calls, which run once before."""
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


def replay_times(graphs: Sequence[torch.cuda.CUDAGraph], replays: int) -> list[list[float]]:
    """Microseconds of each replay, the graphs in turn."""
    times: list[list[float]] = [[] for _ in graphs]
    for turn in range(WARM + replays):
        for graph, own in zip(graphs, times, strict=True):
            before, after = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            torch.cuda._sleep(BUSY_CYCLES)
            before.record()
            graph.replay()
            after.record()
            after.synchronize()
            if turn >= WARM:
                own.append(before.elapsed_time(after) * 1e3)
    return times
