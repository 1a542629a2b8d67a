# SPDX-License-Identifier: Apache-2.0
"""How long 10,000 signed statements take to be verified and mapped to cells, in cold processes.

    python -m tests.bench.evidence_verify [--runs 7] [--statements 10000] [--output FILE]

Statements of all kinds, of two pools, with a threshold of two, in compressed files; the size of the
store is that of its lines. Each of 5,000 owed cells of a manifest is answered, and must come out
covered; its unit's inputs are given. The ratio is to a process that only parses the same lines and
verifies the same signatures, round by round: what is left is what strictness and judgement cost.
Exits with 1 above a limit.

This process builds nothing itself: the peak of a child starts at its parent's size.
"""

import argparse
import json
import os
import statistics
import sys
import tempfile
from pathlib import Path

from tests.bench.check import Sample, machine, run, warm_bytecode

LIMIT_S = 5.0
LIMIT_MB = 300.0


def child(module: str, folder: Path, statements: int) -> Sample:
    """One cold process over the store."""
    name = f"tests.bench.{module}"
    sample = run([sys.executable, "-m", name, str(folder), str(statements)])
    if sample.code:
        raise RuntimeError(f"{name} ended with {sample.code}")
    return sample


def measure(folder: Path, statements: int, runs: int) -> dict[str, object]:
    """Medians, spread, ratio and peak."""
    modules = ("evidence_judge", "evidence_parse")
    rounds = [[child(name, folder, statements) for name in modules] for _ in range(1 + runs)]
    del rounds[0]  # the warm-up
    walls = [ours.wall_s for ours, _ in rounds]
    return {
        "median_s": round(statistics.median(walls), 2),
        "min_s": round(min(walls), 2),
        "max_s": round(max(walls), 2),
        "cpu_s": round(statistics.median(ours.cpu_s for ours, _ in rounds), 2),
        "ratio": round(statistics.median(ours.wall_s / least.wall_s for ours, least in rounds), 2),
        "peak_mb": round(max(ours.peak_mb for ours, _ in rounds)),
        "limit_s": LIMIT_S,
        "limit_mb": LIMIT_MB,
    }


def _unpacked(path: Path) -> int:
    """Bytes of a file's lines, as the end of a gzip member tells them."""
    return int.from_bytes(path.read_bytes()[-4:], "little")


def main() -> int:
    """Measures, prints, and writes the record; the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--statements", type=int, default=10_000)
    parser.add_argument("--output", type=Path)
    asked = parser.parse_args()
    load = [round(os.getloadavg()[0], 2)]
    with warm_bytecode(), tempfile.TemporaryDirectory() as name:
        child("evidence_store", Path(name), asked.statements)
        size = sum(_unpacked(path) for path in Path(name).iterdir())
        row = measure(Path(name), asked.statements, asked.runs)
    load.append(round(os.getloadavg()[0], 2))
    record = {
        "machine": machine(),
        "load": load,
        "runs": asked.runs,
        "statements": asked.statements,
        "store_mb": round(size / 1e6, 1),
        **row,
    }
    text = json.dumps(record, indent=2) + "\n"
    if asked.output:
        asked.output.write_text(text)
    print(text, end="")
    return int(row["median_s"] > LIMIT_S or row["peak_mb"] > LIMIT_MB)  # type: ignore[operator]


if __name__ == "__main__":
    sys.exit(main())
