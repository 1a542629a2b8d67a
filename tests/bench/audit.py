# SPDX-License-Identifier: Apache-2.0
"""How long an audit takes for a kernel of 5,000 instructions, on each architecture.

`python -m tests.bench.audit --output FILE` measures and prints; every run is a process of its own.
The kernel is `audit_kernel.cu`; its cubins are stored, and `python -m tests.bench.audit build`
makes them again (it needs nvcc). Seconds are those of processors, NVIDIA's tools included: beside
other work, the clock on the wall says little.
"""

import argparse
import io
import json
import os
import resource
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time
from pathlib import Path

from fasttrack.audit.contract import Contract
from fasttrack.audit.judge import audit
from fasttrack.audit.read.cubin import read_cubin
from tests.audit.controls.build import COMPILER, compile_source, pack
from tests.audit.controls.table import ARCHES
from tests.audit.controls.table import HERE as CONTROLS
from tests.bench.check import ROOT, machine

HERE = Path(__file__).parent
SOURCE, ARCHIVE = HERE / "audit_kernel.cu", HERE / "audit_kernel.tar.xz"
LIMIT_S = 1.0
"""The design's limit for one kernel and architecture, without reading the file."""
HOLDS = {
    "w": "static", "x": "dynamic", "lengths": "metadata", "y": "out", "flag": "flag",
    "epoch": "scalar", "n": "scalar",
}  # fmt: skip


def contract() -> Contract:
    """The contract of the kernel."""
    parameters = [
        {"name": name, "holds": holds, **({"scope": "sys"} if holds == "flag" else {})}
        for name, holds in HOLDS.items()
    ]
    document = {
        "contract": 1, "kernel": "pipeline", "block": [128, 1, 1], "cluster": 1, "pdl": True,
        "parameters": parameters, "reads": ["w", "x", "lengths"], "writes": ["y", "flag"],
        "barriers": [{"id": 1, "threads": 96}],
    }  # fmt: skip
    return Contract.model_validate_json(json.dumps(document))


def stored(arch: str) -> bytes:
    """The cubin for one architecture."""
    with tarfile.open(fileobj=io.BytesIO(ARCHIVE.read_bytes()), mode="r:xz") as archive:
        file = archive.extractfile(f"{arch}.cubin")
        assert file is not None
        return file.read()


def built() -> dict[str, bytes]:
    """The cubins, compiled now."""
    with tempfile.TemporaryDirectory(prefix="audit-bench-") as folder:
        for file in (SOURCE, CONTROLS / "common.cuh"):
            Path(folder, file.name).write_bytes(file.read_bytes())
        return {f"{arch}.cubin": compile_source(Path(folder, SOURCE.name), arch) for arch in ARCHES}


def sample(arch: str) -> dict[str, object]:
    """One run in this process."""
    data = stored(arch)
    begun, before = time.process_time(), resource.getrusage(resource.RUSAGE_CHILDREN)
    (kernel,) = read_cubin(data)
    read, after = time.process_time(), resource.getrusage(resource.RUSAGE_CHILDREN)
    audited = audit(kernel, contract(), None)
    done = time.process_time()
    tools = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {
        "instructions": len(kernel.instructions),
        "verdict": str(audited.verdict),
        "audit_s": done - read,
        "read_s": read - begun + tools,
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6,
    }


def measure(arch: str, runs: int) -> dict[str, object]:
    """Medians and the largest of some runs, each a process."""
    command = [sys.executable, "-m", "tests.bench.audit", "sample", arch]
    done = [
        json.loads(subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout)
        for _ in range(runs)
    ]
    return {
        "arch": arch,
        "instructions": done[0]["instructions"],
        "verdict": done[0]["verdict"],
        "audit_cpu_s": round(statistics.median(one["audit_s"] for one in done), 3),
        "audit_cpu_max_s": round(max(one["audit_s"] for one in done), 3),
        "read_cpu_s": round(statistics.median(one["read_s"] for one in done), 3),
        "peak_mb": round(max(one["peak_mb"] for one in done)),
        "limit_s": LIMIT_S,
    }


def main() -> None:
    """Measures, prints, and writes the record."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", nargs="?", choices=("measure", "build", "sample"))
    parser.add_argument("arch", nargs="?", choices=ARCHES)
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--output", type=Path)
    given = parser.parse_args()
    if given.what == "build":
        ARCHIVE.write_bytes(pack(built()))
        return
    if given.what == "sample":
        print(json.dumps(sample(given.arch)))
        return
    load = [round(os.getloadavg()[0], 2)]
    rows = [measure(arch, given.runs) for arch in ARCHES]
    load.append(round(os.getloadavg()[0], 2))
    record = {
        "machine": machine(), "load": load, "runs": given.runs, "nvcc": COMPILER, "rows": rows,
    }  # fmt: skip
    text = json.dumps(record, indent=2) + "\n"
    if given.output is not None:
        given.output.write_text(text, encoding="utf-8")
    print(text, end="")
    sys.exit(any(row["audit_cpu_max_s"] > LIMIT_S for row in rows))  # type: ignore[operator]


if __name__ == "__main__":
    main()
