# SPDX-License-Identifier: Apache-2.0
"""Run `fasttrack` as a process and measure what it and its git processes take together.

The peak is the sum of the high-water marks of the processes that live at the same time, looked at
a hundred times a second: too much rather than too little, as they need not peak together.
"""

import os
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

LIMIT_S = 60
"""Wall time that ends a process which hangs; the slowest of these takes a few seconds."""
_LOOK_EVERY_S = 0.01


@dataclass(frozen=True)
class Run:
    """What one finished command left.

    Attributes:
        code: exit status; -9 when it was ended for taking too long.
        out: standard output.
        err: standard error.
        wall_s: seconds from start to end.
        peak_mb: memory of the process and its children together, in 10^6 bytes.
    """

    code: int
    out: str
    err: str
    wall_s: float
    peak_mb: float


def fasttrack(*arguments: str | Path, cwd: Path) -> Run:
    """Run `python -m fasttrack` with these arguments."""
    argv = [sys.executable, "-m", "fasttrack", *map(str, arguments)]
    # From another folder, Python would import the installed package or none.
    env = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        start = time.perf_counter()
        process = subprocess.Popen(
            argv, cwd=cwd, env=env, stdout=out, stderr=err, start_new_session=True
        )
        peak = 0.0
        while process.poll() is None:
            peak = max(peak, _session_mb(process.pid))
            if time.perf_counter() - start > LIMIT_S:
                os.killpg(process.pid, signal.SIGKILL)
            time.sleep(_LOOK_EVERY_S)
        wall = time.perf_counter() - start
        out.seek(0)
        err.seek(0)
        texts = [file.read().decode("utf-8", "backslashreplace") for file in (out, err)]
    return Run(process.returncode, *texts, wall, peak)


def _session_mb(leader: int) -> float:
    """The sum of the high-water marks of the processes in a session."""
    return sum(
        _high_water_mb(int(process.name))
        for process in Path("/proc").glob("[0-9]*")
        if _is_member(int(process.name), leader)
    )


def _is_member(pid: int, leader: int) -> bool:
    try:
        if os.getsid(pid) != leader:
            return False
        # A child that has not become another program yet still shows its parent's memory.
        return pid == leader or not Path(f"/proc/{pid}/exe").samefile(f"/proc/{leader}/exe")
    except OSError:
        return False  # it has ended meanwhile


def _high_water_mb(pid: int) -> float:
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0.0
    marks = [line.split()[1] for line in status.splitlines() if line.startswith("VmHWM:")]
    return int(marks[0]) * 1024 / 1e6 if marks else 0.0
