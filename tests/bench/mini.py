# SPDX-License-Identifier: Apache-2.0
"""Times planned steps of the mini model with reference and with prepared operators, on a CPU.

    python -m tests.bench.mini --output docs/mini-speed.json

Decode only: 96 tokens of each request after a prompt of 32, on one thread, through the engine. The
operators take turns within a round; medians over rounds, and the median of the rounds' ratios. What
is measured is processor time, so that others on the machine matter less. Memory is counted: what
preparation adds to one rank's packed weights.
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
from kimi_k3.mini.assembly import added_bytes, prepare, tensors
from kimi_k3.packed import pack
from kimi_k3.random_init import random_weights
from tests.bench.check import machine

ROUNDS = 15
PROMPT = 32
DECODED = 96
REQUESTS = (1, 8)
OPERATORS = ("reference", "prepared")


def processor_seconds(call: Callable[[], object]) -> float:
    """How much of a processor a call takes."""
    start = time.process_time()
    call()
    return time.process_time() - start


def speed_of() -> Callable[[int, str], float]:
    """What measures decoded tokens per second of a core, for so many requests and operators."""
    config, weights = mini(), random_weights(mini())
    region = next(r for r in packaged_manifest().scope if r.id == "cpu-virtual-tp1")

    def run(requests: int, new: int, operators: str) -> float:
        setup = Setup(config, EngineConfig(), decode_operators=operators)
        prompts = [
            Request(tuple((i * 7 + n) % 512 for i in range(PROMPT)), new) for n in range(requests)
        ]
        return processor_seconds(lambda: generate(setup, lambda _: weights, prompts, region))

    def speed(requests: int, operators: str) -> float:
        # What packing, preparing, a prompt and its first token take is taken off.
        rest = run(requests, 1, operators)
        return requests * DECODED / (run(requests, DECODED + 1, operators) - rest)

    return speed


def memory() -> dict[str, int]:
    """Bytes of one rank's packed weights, and what preparation adds."""
    packed = pack(mini(), random_weights(mini()))
    return {
        "packed_bytes": sum(tensor.untyped_storage().nbytes() for tensor in distinct(packed)),
        "added_bytes": added_bytes(packed, prepare(packed, torch.float32)),
    }


def distinct(record: object) -> list[torch.Tensor]:
    """One tensor of each storage."""
    return [*{t.untyped_storage().data_ptr(): t for t in tensors(record)}.values()]


def row(requests: int, speeds: dict[str, list[float]]) -> dict[str, object]:
    """One line of the record."""
    pairs = zip(*(speeds[name] for name in OPERATORS), strict=True)
    ratios = [after / before for before, after in pairs]
    measured = {
        name: {
            "median_tokens_s": round(statistics.median(values), 1),
            "min_tokens_s": round(min(values), 1),
            "max_tokens_s": round(max(values), 1),
        }
        for name, values in speeds.items()
    }
    ratio = {
        "ratio": round(statistics.median(ratios), 2),
        "min_ratio": round(min(ratios), 2),
        "max_ratio": round(max(ratios), 2),
    }
    return {"requests": requests, **measured, **ratio}


def main() -> None:
    """Measures and writes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, required=True)
    output = parser.parse_args().output
    torch.set_num_threads(1)
    speed = speed_of()
    for requests in REQUESTS:
        for operators in OPERATORS:
            speed(requests, operators)  # not counted
    before = os.getloadavg()[0]
    rows = []
    for requests in REQUESTS:
        speeds: dict[str, list[float]] = {name: [] for name in OPERATORS}
        for turn in range(ROUNDS):
            for operators in OPERATORS if turn % 2 else reversed(OPERATORS):
                speeds[operators].append(speed(requests, operators))
        rows.append(row(requests, speeds))
    record = {
        "machine": machine() | {"torch": torch.__version__},
        "threads": 1,
        "rounds": ROUNDS,
        "prompt": PROMPT,
        "decoded": DECODED,
        "load": [round(before, 2), round(os.getloadavg()[0], 2)],
        **memory(),
        "rows": rows,
    }
    output.write_text(json.dumps(record, indent=1) + "\n")
    for one in rows:
        sys.stdout.write(f"{one}\n")


if __name__ == "__main__":
    main()
