# SPDX-License-Identifier: Apache-2.0
"""Times both backends on a CPU with the mini model, through the engine, on two threads.

    python -m tests.bench.cpu --output docs/cpu-speed.json

Prefill: prompts of 2,048 tokens in the engine's chunks, one token each. Decode: one request, 192
tokens after a prompt of 32. The backends take turns; medians over rounds. Processor and load are
written down because both matter more than the numbers.
"""

import argparse
import json
import os
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import torch

from kimi_k3.backends import Setup
from kimi_k3.config import mini
from kimi_k3.decode.packaged import packaged_manifest
from kimi_k3.engine.options import EngineConfig
from kimi_k3.engine.request import Request
from kimi_k3.generate import generate
from kimi_k3.random_init import random_weights
from tests.bench.check import machine

THREADS = 2
ROUNDS = 7
PROMPT = 2048
DECODED = 192
LEAST = {"prefill": 5000, "decode": 50}
"""Tokens per second that `auto` must reach on two cores."""


def warned(load: float, processors: int) -> str:
    """What to say of a machine that others use, too; empty when it is idle enough."""
    if load <= processors:
        return ""
    return (
        f"warning: load average {load:.2f} on {processors} processors: others run here, too, and "
        "what is measured is how busy they are\n"
    )


def seconds(call: Callable[[], object]) -> float:
    """How long a call takes."""
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def main() -> int:
    """Measures and writes; the exit code says whether `auto` is fast enough."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, required=True)
    output = parser.parse_args().output
    before = os.getloadavg()[0]
    sys.stderr.write(warned(before, len(os.sched_getaffinity(0))))
    torch.set_num_threads(THREADS)
    config, weights = mini(), random_weights(mini())
    region = next(r for r in packaged_manifest().scope if r.id == "cpu-virtual-tp1")
    setup = Setup(config, EngineConfig())

    def run(prompt: int, new: int, specialised: bool) -> float:
        request = Request(tuple(i * 7 % 512 for i in range(prompt)), new)
        place = region if specialised else None
        return seconds(lambda: generate(setup, lambda _: weights, [request], place))

    cases = {
        ("prefill", "auto"): lambda: PROMPT / run(PROMPT, 1, specialised=False),
        # What a prompt of 32 and its first token take is measured beside it and taken off.
        ("decode", "auto"): lambda: (
            DECODED / (run(32, DECODED + 1, specialised=False) - run(32, 1, specialised=False))
        ),
        ("decode", "latency_specialized"): lambda: (
            DECODED / (run(32, DECODED + 1, specialised=True) - run(32, 1, specialised=True))
        ),
    }
    for measure in cases.values():
        measure()  # not counted
    speeds: dict[tuple[str, str], list[float]] = {case: [] for case in cases}
    for _ in range(ROUNDS):
        for case, measure in cases.items():
            speeds[case].append(measure())
    rows = [
        {
            "what": what,
            "backend": backend,
            "median_tokens_s": round(statistics.median(values), 1),
            "min_tokens_s": round(min(values), 1),
            "max_tokens_s": round(max(values), 1),
            "least_tokens_s": LEAST[what] if backend == "auto" else None,
        }
        for (what, backend), values in speeds.items()
    ]
    record = {
        "machine": machine() | {"torch": torch.__version__},
        "threads": THREADS,
        "rounds": ROUNDS,
        "prompt": PROMPT,
        "decoded": DECODED,
        "load": [round(before, 2), round(os.getloadavg()[0], 2)],
        "rows": rows,
    }
    output.write_text(json.dumps(record, indent=1) + "\n")
    for row in rows:
        sys.stdout.write(f"{row}\n")
    slow = [r for r in rows if r["least_tokens_s"] and r["median_tokens_s"] < r["least_tokens_s"]]
    return 1 if slow else 0


if __name__ == "__main__":
    sys.exit(main())
