# SPDX-License-Identifier: Apache-2.0
"""CUDA graphs, the times of their replays, and what the device's memory can do."""

import statistics

import torch

from kimi_k3.decode.kernels.timing import captured, replay_times
from tests.bench.rank_share import DEVICE

__all__ = ["captured", "copy_bandwidth", "replay_times"]


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
