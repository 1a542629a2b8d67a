# SPDX-License-Identifier: Apache-2.0
"""What a record of GPU times says of its machine: device, software, and clocks under load.

A GPU lowers its clocks when it draws too much or has nothing to do, so that they are asked for
while the graph that was timed is still being replayed, right after its last timed replay.
"""

import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from tests.bench.graph_times import replay_times

QUERY = "clocks.sm,clocks.mem,driver_version"
LOAD_US = 500_000
"""How long the GPU stays busy for one question; nvidia-smi answers in a part of that."""


@dataclass(frozen=True)
class Clocks:
    """One answer of nvidia-smi."""

    sm_mhz: int
    memory_mhz: int
    driver: str


def clocks_under(graph: torch.cuda.CUDAGraph) -> Clocks | None:
    """Clocks while `graph` is replayed; None where nvidia-smi is missing or does not tell."""
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return None
    ((one,),) = replay_times([graph], 1)
    for _ in range(1 + int(LOAD_US / one)):
        graph.replay()
    argv = [tool, f"--query-gpu={QUERY}", "--format=csv,noheader,nounits"]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    torch.cuda.synchronize()
    return parsed(done.stdout) if done.returncode == 0 else None


def parsed(answer: str) -> Clocks | None:
    """The clocks of the only GPU; None with several, of which any could be ours, or no numbers."""
    lines = answer.strip().splitlines()
    cells = [cell.strip() for cell in lines[0].split(",")] if len(lines) == 1 else []
    if len(cells) != QUERY.count(",") + 1 or not (cells[0].isdecimal() and cells[1].isdecimal()):
        return None
    return Clocks(int(cells[0]), int(cells[1]), cells[2])


def gpu_machine(samples: Sequence[Clocks | None]) -> dict[str, object]:
    """The part of a record about the machine.

    Args:
        samples: of the graphs that were timed; None is an answer that was not got.
    """
    import triton  # noqa: PLC0415  (comes with PyTorch for CUDA alone)

    return {
        "gpu": torch.cuda.get_device_name(),
        "torch": torch.__version__,
        "cuda": torch.version.cuda,
        "triton": triton.__version__,
        **conditions([sample for sample in samples if sample is not None]),
    }


def conditions(samples: Sequence[Clocks]) -> dict[str, object]:
    """Driver, and the least and the greatest clock; None where nobody told."""
    if not samples:
        return {"driver": None, "sm_mhz": None, "memory_mhz": None}
    return {
        "driver": samples[-1].driver,
        "sm_mhz": [min(s.sm_mhz for s in samples), max(s.sm_mhz for s in samples)],
        "memory_mhz": [min(s.memory_mhz for s in samples), max(s.memory_mhz for s in samples)],
    }
