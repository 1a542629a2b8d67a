# SPDX-License-Identifier: Apache-2.0
"""Random kernels against the audit: `python -m tests.audit.generated --seed 0 --count 2000`.

Compiles them, lets the interpreter say what each deserves, and prints how the audit judged. It
fails if a kernel that is out of order was not `violated`, if an honest one was, or if more than 5 %
of the honest ones of any class could not be proved. Needs nvcc. With `--record` the counts are kept
in a file (`generated.json` here): one entry for each seed and architecture.
"""

import argparse
import json
import platform
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import fasttrack
from fasttrack.audit.contract import Contract
from fasttrack.audit.finding import Verdict
from fasttrack.audit.judge import audit
from fasttrack.audit.program import Kernel
from fasttrack.audit.read.cubin import read_cubin

from .controls.build import COMPILER, compile_source
from .controls.table import ARCHES, HERE
from .generator.choices import Choices
from .generator.source import source
from .interpreter.lanes import NotExecuted, Stuck
from .interpreter.memory import Event
from .interpreter.truth import RUNS, truth

EACH = 50
"""Kernels of one source file."""
UNPROVEN = 0.05
"""Most of the honest kernels of a class that may be left unproven."""
PARTS = ("event", "read", "waiter", "place", "pointer")
"""What kernels are put into classes by."""
RECORD = HERE.parent / "generated.json"
Drawn = Mapping[str, tuple[Choices, Contract]]


@dataclass(frozen=True)
class Judged:
    """A kernel, what it deserves, and what the audit said."""

    kernel: Kernel
    choices: Choices
    events: frozenset[Event] | None
    """None if nobody can say: no run comes to its end."""
    verdict: Verdict
    saw: tuple[str, ...]
    seconds: float

    @property
    def truth(self) -> str:
        """`stale`, `honest` or `stuck`."""
        if self.events is None:
            return "stuck"
        return "stale" if self.events else "honest"

    @property
    def wrong(self) -> bool:
        """Whether the audit and the interpreter contradict each other."""
        other = {"stale": Verdict.VIOLATED, "honest": Verdict.PROVED}.get(self.truth)
        unproven = self.truth == "honest" and self.verdict is Verdict.UNPROVEN
        return other not in (None, self.verdict) and not unproven


def compiled(seed: int, count: int, arch: str) -> tuple[bytes, Drawn]:
    """The cubin of one file of random kernels."""
    text, drawn = source(seed, count)
    with tempfile.TemporaryDirectory(prefix="audit-generated-") as folder:
        file = Path(folder, "generated.cu")
        file.write_text(text, encoding="utf-8")
        Path(folder, "common.cuh").write_bytes((HERE / "common.cuh").read_bytes())
        return compile_source(file, arch), drawn


def judged(
    cubin: bytes, drawn: Drawn, runs: tuple[tuple[int, int], ...] = RUNS
) -> Iterator[Judged]:
    """Each kernel of a cubin, interpreted and audited."""
    for kernel in read_cubin(cubin):
        choices, contract = drawn[kernel.name]
        try:
            events = deserved(kernel, contract, runs)
        except NotExecuted as error:
            raise NotExecuted(f"{kernel.name} on {kernel.arch}: {error}") from error
        start = time.process_time()
        audited = audit(kernel, contract, None)
        seconds = time.process_time() - start
        saw = tuple(f"{one.rule} {one.verdict} {one.address}: {one.saw}"
                    for one in audited.findings)  # fmt: skip
        yield Judged(kernel, choices, events, audited.verdict, saw, seconds)


_DESERVED: dict[tuple[object, ...], frozenset[Event] | None] = {}


def deserved(
    kernel: Kernel, contract: Contract, runs: tuple[tuple[int, int], ...]
) -> frozenset[Event] | None:
    """What is out of order in a kernel; None if no run ends.

    The same machine code deserves the same, for whichever architecture it was made.
    """
    code = tuple(one.text for one in kernel.instructions)
    key = (code, kernel.parameters, kernel.bank_offset, contract, runs)
    if key not in _DESERVED:
        try:
            _DESERVED[key] = truth(kernel, contract, runs, whole=False)
        except Stuck:
            _DESERVED[key] = None
    return _DESERVED[key]


def counts(found: list[Judged]) -> dict[str, dict[str, dict[str, int]]]:
    """How often each verdict was given, by class and truth; `all` is a class, too."""
    counted: dict[str, dict[str, Counter[str]]] = {}
    for one in found:
        for name in ("all", *(f"{part} {getattr(one.choices, part)}" for part in PARTS)):
            by_truth = counted.setdefault(name, {})
            by_truth.setdefault(one.truth, Counter())[str(one.verdict)] += 1
    order = ("all", *sorted(counted.keys() - {"all"}))
    return {
        name: {
            real: {str(verdict): counted[name][real][str(verdict)] for verdict in Verdict}
            for real in ("stale", "honest", "stuck")
            if real in counted[name]
        }
        for name in order
    }


def table(found: list[Judged]) -> str:
    """The counts as text."""
    lines = [f"{'class':28}{'truth':8}" + "".join(f"{one:>10}" for one in Verdict)]
    for name, by_truth in counts(found).items():
        for real, by_verdict in by_truth.items():
            numbers = "".join(f"{one:>10}" for one in by_verdict.values())
            lines.append(f"{name:28}{real:8}{numbers}")
    return "\n".join(lines)


def failures(found: list[Judged]) -> list[str]:
    """Everything that must not be."""
    told = [
        f"{one.kernel.name} on {one.kernel.arch} is {one.truth}, and {one.verdict}: {one.choices}\n"
        f"  interpreter: {sorted((e.kind, hex(e.address), e.name) for e in one.events or ())}\n"
        f"  audit: {list(one.saw)}"
        for one in found
        if one.wrong
    ]
    for name, by_truth in counts(found).items():
        honest = by_truth.get("honest", {})
        unproven, whole = honest.get("unproven", 0), sum(honest.values())
        if unproven > UNPROVEN * whole:
            told.append(f"{unproven} of {whole} honest kernels are unproven: {name}")
    return told


def recorded(found: list[Judged], seed: int) -> dict[str, object]:
    """The entry of a record: what was judged, with what, and the counts."""
    slowest = max(found, key=lambda one: one.seconds)
    kernel = found[0].kernel
    return {
        "seed": seed,
        "arch": kernel.arch,
        "kernels": len(found),
        "fasttrack": fasttrack.__version__,
        "nvcc": COMPILER,
        "assembler": kernel.toolchain.assembler,
        "disassembler": kernel.toolchain.disassembler,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "interpreter_runs": [list(run) for run in RUNS],
        "wrong": sum(one.wrong for one in found),
        "slowest": {
            "name": slowest.kernel.name,
            "instructions": len(slowest.kernel.instructions),
            "cpu_s": round(slowest.seconds, 2),
        },
        "counts": counts(found),
    }


def keep(record: Path, entry: dict[str, object]) -> None:
    """Puts an entry into a record, in the place of one of the same seed and architecture."""
    entries = json.loads(record.read_text(encoding="utf-8")) if record.exists() else []
    same = (entry["seed"], entry["arch"])
    others = [one for one in entries if (one["seed"], one["arch"]) != same]
    ordered = sorted([*others, entry], key=lambda one: (one["seed"], ARCHES.index(one["arch"])))
    record.write_text(json.dumps(ordered, indent=1) + "\n", encoding="utf-8")


def main() -> None:
    """Runs the comparison that the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0, help="of the first file of kernels")
    parser.add_argument("--count", type=int, default=2000, help="kernels for each architecture")
    parser.add_argument("--arch", choices=ARCHES, action="append", help="one or more; else all")
    parser.add_argument("--record", type=Path, help="file that keeps the counts")
    given = parser.parse_args()
    bad = False
    for arch in given.arch or ARCHES:
        found: list[Judged] = []
        for number in range(-(-given.count // EACH)):
            count = min(EACH, given.count - number * EACH)
            found += judged(*compiled(given.seed * 10_000 + number, count, arch))
            wrong = sum(one.wrong for one in found)
            print(f"{arch}: {len(found)} kernels, {wrong} wrong", file=sys.stderr, flush=True)
        told = failures(found)
        slowest = max(found, key=lambda one: one.seconds)
        print(f"{arch}: {len(found)} kernels from seed {given.seed}\n{table(found)}")
        print(f"slowest audit: {slowest.seconds:.2f} s, {slowest.kernel.name}, "
              f"{len(slowest.kernel.instructions)} instructions")  # fmt: skip
        print("\n".join(told), flush=True)
        bad |= bool(told)
        if given.record is not None:
            keep(given.record, recorded(found, given.seed))
    sys.exit(bad)


if __name__ == "__main__":
    main()
