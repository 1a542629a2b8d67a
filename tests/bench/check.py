# SPDX-License-Identifier: Apache-2.0
"""How long `fasttrack` takes, as whole cold processes against a synthetic 7,000-file repository.

    python tests/bench/check.py [--runs 15] [--output docs/performance.json]

All commands run in turn, round after round, so that a drift of the machine meets each alike.
Ratios are taken within a round, against a Python process that imports the dependencies and does
nothing. Bytecode is warm, caches of the operating system too. Memory is the peak of the Python
process; git's processes are bounded apart.
"""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from fasttrack.adopt.layouts import GENERIC
from fasttrack.adopt.propose import Answers, propose
from fasttrack.testing import Repo

ROOT = "engine/models/foo/"
AS_OF = "2026-11-29"
PYTHON = [sys.executable, "-m", "fasttrack"]
NOTHING = [sys.executable, "-c", "import click, pydantic, yaml"]


@dataclass(frozen=True)
class Scenario:
    """One command, and the limit that the design sets for it."""

    name: str
    argv: Sequence[str]
    limit_s: float | None = None
    limit_mb: float | None = None


def module(number: int, lines: int) -> str:
    """A Python module of so many lines, unlike any other."""
    body = [f'"""Module {number}."""', "", "import math", ""]
    for i in range((lines - 4) // 4):
        body += ["", "", f"def f{number}_{i}(x):", f"    return math.sin(x + {number * i})"]
    return "\n".join(body) + "\n"


def build(where: Path) -> None:
    """The repository: 7,000 files, 300 of them in the roots, and two changes."""
    repo = Repo(where)
    answers = Answers(
        GENERIC, (ROOT,), "manifests", "owner", "backup", "org/model", date(2026, 11, 1)
    )
    files = dict(propose(answers))
    files |= {f"{ROOT}unit{n % 12}/m{n}.py": module(n, 120) for n in range(300)}
    files |= {f"engine/shared{n % 70}/m{n}.py": module(n, 60) for n in range(300, 5000)}
    files |= {
        f"tests/t{n % 40}/test_m{n}.py": module(n, 40)
        for n in range(5000, 7000 - len(files) + 5000)
    }
    tip = repo.commit("main", files)
    inside = sorted(p for p in files if p.startswith(ROOT))
    edits = {p: str(files[p]) + module(9000 + i, 134) for i, p in enumerate(inside[:60])}
    repo.commit("sixty", edits, parent=tip)
    wide = {p: str(t) + "Y = 1\n" for p, t in sorted(files.items()) if p.endswith(".py")}
    repo.commit("wide", dict(list(wide.items())[:3001]), parent=tip)
    for path, text in propose(answers).items():
        target = where / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)


def scenarios(repo: Path) -> tuple[Scenario, ...]:
    check = [*PYTHON, "check", "--repo", str(repo), "--as-of", AS_OF, "--format", "json", "--head"]
    where = ["--repo", str(repo), "--gpu", "h100", "--tp", "1", "--requests", "4"]
    return (
        Scenario("python with the dependencies", NOTHING),
        Scenario("fasttrack --help", [*PYTHON, "--help"], 0.25),
        Scenario("fasttrack scope explain", [*PYTHON, "scope", "explain", *where], 0.4),
        Scenario("check, 60 files, 8,000 added lines", [*check, "sixty"], 1.0, 150),
        Scenario("check, 3,001 files", [*check, "wide"], 3.0),
    )


def run(argv: Sequence[str]) -> tuple[float, float, int]:
    """Wall seconds, peak MB (10^6 bytes) and exit status of one process."""
    with open(os.devnull, "wb") as sink:  # noqa: PTH123
        start = time.perf_counter()
        process = subprocess.Popen(argv, stdout=sink, stderr=sink)
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    return wall, usage.ru_maxrss * 1024 / 1e6, process.returncode


def measure(all_: Sequence[Scenario], runs: int) -> list[dict[str, object]]:
    """Medians, spread and ratios of all scenarios, measured in turn."""
    codes = {s.name: run(s.argv)[2] for s in all_}  # the warm-up
    walls: dict[str, list[float]] = {s.name: [] for s in all_}
    peaks: dict[str, list[float]] = {s.name: [] for s in all_}
    for _ in range(runs):
        for scenario in all_:
            wall, peak, code = run(scenario.argv)
            if code != codes[scenario.name] or code in {2, 70}:
                raise RuntimeError(f"{scenario.name} ended with {code}")
            walls[scenario.name].append(wall)
            peaks[scenario.name].append(peak)
    base = walls[all_[0].name]
    return [
        {
            "name": s.name,
            "exit_code": codes[s.name],
            "median_s": round(statistics.median(walls[s.name]), 3),
            "min_s": round(min(walls[s.name]), 3),
            "max_s": round(max(walls[s.name]), 3),
            "ratio": round(
                statistics.median(w / b for w, b in zip(walls[s.name], base, strict=True)), 2
            ),
            "peak_mb": round(statistics.median(peaks[s.name])),
            "limit_s": s.limit_s,
            "limit_mb": s.limit_mb,
        }
        for s in all_
    ]


def table(rows: Sequence[Mapping[str, object]]) -> str:
    """The results as a Markdown table."""
    lines = [
        "| command | median s | min to max s | limit s | ratio | peak MB | limit MB |",
        "|---|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {r['name']} | {r['median_s']} | {r['min_s']} to {r['max_s']} | {r['limit_s'] or '-'} "
        f"| {r['ratio']} | {r['peak_mb']} | {r['limit_mb'] or '-'} |"
        for r in rows
    ]
    return "\n".join(lines)


def machine() -> dict[str, object]:
    """What the numbers were measured on."""
    cpu = next(
        (
            line.partition(":")[2].strip()
            for line in Path("/proc/cpuinfo").read_text().splitlines()
            if line.startswith("model name")
        ),
        platform.processor(),
    )
    git = subprocess.run(["git", "version"], capture_output=True, text=True, check=True).stdout
    return {
        "cpu": cpu,
        "cores": len(os.sched_getaffinity(0)),
        "python": platform.python_version(),
        "git": git.split()[2],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=15)
    parser.add_argument("--output", type=Path)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        build(Path(temporary))
        rows = measure(scenarios(Path(temporary)), arguments.runs)
    print(table(rows))
    if arguments.output:
        record = {"machine": machine(), "runs": arguments.runs, "rows": rows}
        arguments.output.write_text(json.dumps(record, indent=2) + "\n")


if __name__ == "__main__":
    main()
