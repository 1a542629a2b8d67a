# SPDX-License-Identifier: Apache-2.0
"""How long `fasttrack` takes, as whole cold processes against a synthetic 7,000-file repository.

    python -m tests.bench.check [--runs 15] [--output docs/performance.json]

All commands run in turn, round after round, so that a drift of the machine meets each alike.
Ratios are taken within a round, against a Python process that imports the dependencies and does
nothing. Bytecode is warm, in a folder of its own, whatever this process may write; and so are the
caches of the operating system.

This process stays small and builds nothing itself: the peak of a child starts at its parent's size.
"""

import argparse
import json
import os
import platform
import runpy
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.hostile.process import fasttrack

ROOT = Path(__file__).resolve().parents[2]
AS_OF = "2026-11-29"
NOTHING = "python with the dependencies"
_BYTECODE = ("PYTHONPYCACHEPREFIX", "PYTHONDONTWRITEBYTECODE")


@dataclass(frozen=True)
class Scenario:
    """One command, the exit status that it ends with, and the design's limits; 0 for none."""

    name: str
    arguments: tuple[str, ...]
    code: int
    limit_s: float = 0
    limit_mb: float = 0

    @property
    def argv(self) -> list[str]:
        """The whole command line."""
        if self.name == NOTHING:
            return [sys.executable, "-c", "import click, pydantic, yaml"]
        return [sys.executable, "-m", "fasttrack", *self.arguments]


@dataclass(frozen=True)
class Sample:
    """One process: wall and processor seconds, largest peak, and exit status.

    Seconds and peak include its children; the peak is that of the largest process among them.
    """

    wall_s: float
    cpu_s: float
    peak_mb: float
    code: int


def scenarios(repo: str) -> tuple[Scenario, ...]:
    """All commands; the first is what ratios are taken against."""
    check = ("check", "--repo", repo, "--as-of", AS_OF, "--format", "json", "--head")
    tested = ("--base", "tested", "--policy-from", "tested")
    kept = ("--base", "kept", "--policy-from", "kept")
    bare = ("--base", "bare", "--policy-from", "bare")
    told = ("--base", "told", "--policy-from", "told")
    where = ("--repo", repo, "--gpu", "h100", "--tp", "1", "--requests", "4")
    return (
        Scenario(NOTHING, (), 0),
        Scenario("fasttrack --help", ("--help",), 0, 0.25),
        Scenario("fasttrack scope explain", ("scope", "explain", *where), 1, 0.4),
        Scenario("check, 60 files, 8,000 added lines", (*check, "sixty"), 0, 1.0, 150),
        Scenario("check, the same, evidence owed", (*check, "sixty-tested", *tested), 3, 1.0, 150),
        Scenario("check, the same, 500 stale", (*check, "sixty-kept", *kept), 3, 1.0, 150),
        Scenario("check, the same, 46 of its own", (*check, "sixty-shown", *kept), 0, 1.0, 150),
        Scenario("check, the same, 500 of its own", (*check, "sixty-full", *bare), 0, 1.0, 150),
        Scenario("check, the same, 500 in the target", (*check, "sixty-told", *told), 0, 1.0, 150),
        Scenario("check, 3,001 files", (*check, "wide"), 4, 3.0, 500),
    )


@contextmanager
def warm_bytecode() -> Iterator[None]:
    """Lets the processes started meanwhile keep bytecode, and leaves none beside the sources."""
    before = {name: os.environ.pop(name, None) for name in _BYTECODE}
    with tempfile.TemporaryDirectory() as folder:
        os.environ[_BYTECODE[0]] = folder
        try:
            yield
        finally:
            del os.environ[_BYTECODE[0]]
            os.environ.update({name: told for name, told in before.items() if told is not None})


def run(argv: Sequence[str]) -> Sample:
    """Run one process to its end."""
    start = time.perf_counter()
    process = subprocess.Popen(argv, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    cpu = usage.ru_utime + usage.ru_stime
    return Sample(wall, cpu, usage.ru_maxrss * 1024 / 1e6, process.returncode)


def measure(all_: Sequence[Scenario], runs: int) -> list[dict[str, object]]:
    """Medians, spread and ratios of all scenarios, measured in turn."""
    codes = {s.name: run(s.argv).code for s in all_}  # the warm-up
    bad = {s.name: codes[s.name] for s in all_ if codes[s.name] != s.code}
    if bad:
        raise RuntimeError(f"commands that end otherwise than they must: {bad}")
    samples: dict[str, list[Sample]] = {s.name: [] for s in all_}
    for _ in range(runs):
        for scenario in all_:
            samples[scenario.name].append(run(scenario.argv))
    return [row(s, samples[s.name], samples[NOTHING]) for s in all_]


def row(scenario: Scenario, own: Sequence[Sample], base: Sequence[Sample]) -> dict[str, object]:
    """One row of the record.

    The peak of all processes together is looked at in a run of its own, as looking takes time.
    """
    walls = [s.wall_s for s in own]
    ratios = [s.wall_s / b.wall_s for s, b in zip(own, base, strict=True)]
    peak = max(s.peak_mb for s in own)
    if scenario.arguments:
        peak = max(peak, fasttrack(*scenario.arguments, cwd=ROOT).peak_mb)
    return {
        "name": scenario.name,
        "exit_code": own[0].code,
        "median_s": round(statistics.median(walls), 3),
        "min_s": round(min(walls), 3),
        "max_s": round(max(walls), 3),
        "cpu_s": round(statistics.median(s.cpu_s for s in own), 3),
        "ratio": round(statistics.median(ratios), 2),
        "peak_mb": round(peak),
        "limit_s": scenario.limit_s,
        "limit_mb": scenario.limit_mb,
    }


def machine() -> dict[str, object]:
    """What the numbers were measured on."""
    information = Path("/proc/cpuinfo").read_text().splitlines()
    models = [line.partition(":")[2].strip() for line in information if "model name" in line]
    git = subprocess.run(["git", "version"], capture_output=True, text=True, check=True).stdout
    return {
        "cpu": models[0] if models else platform.machine(),
        "cores": len(os.sched_getaffinity(0)),
        "system": platform.system(),
        "python": platform.python_version(),
        "git": git.split()[2],
    }


def main() -> None:
    """Measures, prints the table, and writes the record."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=15)
    parser.add_argument("--output", type=Path)
    arguments = parser.parse_args()
    load = [round(os.getloadavg()[0], 2)]
    with warm_bytecode(), tempfile.TemporaryDirectory() as folder:
        subprocess.run(
            [sys.executable, "-m", "tests.bench.repository", folder], cwd=ROOT, check=True
        )
        rows = measure(scenarios(folder), arguments.runs)
    load.append(round(os.getloadavg()[0], 2))
    record = {"machine": machine(), "load": load, "runs": arguments.runs, "rows": rows}
    if arguments.output:
        arguments.output.write_text(json.dumps(record, indent=2) + "\n")
    print(runpy.run_path(str(ROOT / "scripts" / "generate.py"))["performance_table"](record))


if __name__ == "__main__":
    main()
