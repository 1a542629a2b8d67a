# SPDX-License-Identifier: Apache-2.0
"""Starts one child that measures one cell, and leaves nothing of it behind.

The child has a session and a home of its own, an environment made of an allow-list, and two pipes.
It is told nothing about the bundle; where the system can see to it, it writes nothing but what lies
in its home. When it has ended or its time is up, every process that it started is killed, those
that moved to another session included.
"""

import ctypes
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from pydantic import ValidationError

from fasttrack.errors import InputError
from fasttrack.evidence.child_report import MAX_REPORT_BYTES, ChildReport, Job
from fasttrack.evidence.wall import behind_wall

KEPT_VARIABLES = (
    "CUDA_HOME",
    "CUDA_VISIBLE_DEVICES",
    "CUTE_DSL_ARCH",
    "LD_LIBRARY_PATH",
    "PATH",
    "PYTHONPATH",
)
"""Environment variables that a child inherits; no other."""
LOG_TAIL = 4000
"""Bytes of a child's output that are kept."""
GRACE_S = 10.0
"""Seconds in which whatever was killed has to be gone."""
EXPECTED_CODES = (0, 5)
"""Exit codes of pytest when nothing failed: tests ran, or there were none."""
CAN_NOT_START = 4
"""Exit code of pytest when it can not start, such as when a `conftest.py` can not be imported."""
_SET_CHILD_SUBREAPER = 36
_START = Path(__file__).with_name("child_start.py")


@dataclass(frozen=True)
class Runs:
    """What of a tree a child runs.

    Attributes:
        tests: test files, relative to the tree; none where something is only built.
        own: folders and files whose packages and modules are the tree's, whatever is installed.
    """

    tests: Sequence[str]
    own: Sequence[str] = ()


@dataclass(frozen=True)
class Outcome:
    """What came of a child.

    Attributes:
        report: its report; None when it sent none that can be read.
        why: why there is none, in words.
        log: the end of what it printed.
        began: whether there was anything to run; not when pytest itself could not start.
    """

    report: ChildReport | None
    why: str
    log: str
    began: bool = True


def measure(
    root: Path, runs: Runs, job: Job, bytecode: Path, *, walled: bool, timeout_s: float
) -> Outcome:
    """Runs the tests of one cell in a child of their own.

    Args:
        root: the source tree; the child's working directory.
        runs: what of it is run.
        job: cell and seeds.
        bytecode: where Python keeps what it compiles. Whoever writes there decides what later
            children run: one folder is for children of one unit, and empty before the first.
        walled: whether it is kept from writing anywhere else; see `wall.stands_around`.
        timeout_s: seconds after which the child is killed.

    Raises:
        InputError: something that the child started can not be killed.
    """
    _adopt_orphans()
    others = _children()
    why = ""
    with (
        tempfile.TemporaryDirectory(prefix="fasttrack-cell-", ignore_cleanup_errors=True) as home,
        # A file and no pipe: a process that outlives the child would keep a pipe open. It has no
        # name, so that the child can not take it away.
        tempfile.TemporaryFile() as output,
    ):
        environment = _environment(Path(home), bytecode)
        writable = (Path(home), bytecode) if walled else ()
        child, report_end = _start(root, runs, job, environment, output, writable=writable)
        reader = _Reader(report_end)
        reader.start()
        try:
            child.wait(timeout_s)
        except subprocess.TimeoutExpired:
            why = f"no result after {timeout_s:g} s"
        finally:
            _kill_all(child, others)
        reader.join(GRACE_S)
        tail = _tail(output)
    if reader.is_alive():
        why = why or "a process that it did not start holds its report open"
    return Outcome(None, why, tail) if why else _read(reader.received, job, child.returncode, tail)


def _start(
    root: Path,
    runs: Runs,
    job: Job,
    environment: Mapping[str, str],
    output: IO[bytes],
    *,
    writable: Sequence[Path],
) -> tuple["subprocess.Popen[bytes]", int]:
    """A child, and the end of the pipe where its report is read; no wall without `writable`.

    No settings file takes part: evidence binds to `conftest.py` files and to no others.
    """
    job_out, job_in = os.pipe()
    report_out, report_in = os.pipe()
    # Where Python itself would look first, the first moments would go unseen.
    search_path = environment.get("PYTHONPATH", "")
    started = {name: value for name, value in environment.items() if name != "PYTHONPATH"}
    command = [
        *(sys.executable, "-P", "-S", str(_START), str(root.resolve()), search_path, *runs.own),
        *("--", "-q", "-rN", "--import-mode=append"),
        *(() if runs.tests else ("--noconftest",)),
        *("-p", "fasttrack.pytest_plugin", "-p", "no:cacheprovider", "-p", "no:xdist"),
        *("-c", os.devnull, f"--rootdir={root.resolve()}", f"--confcutdir={root.resolve()}"),
        *(f"--fasttrack-job={job_out}", f"--fasttrack-report={report_in}", "--", *runs.tests),
    ]
    child = subprocess.Popen(
        behind_wall(command, writable) if writable else command,
        cwd=root,
        env=started,
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=subprocess.STDOUT,
        pass_fds=(job_out, report_in),
        start_new_session=True,
    )
    os.close(job_out)
    os.close(report_in)
    with suppress(BrokenPipeError), os.fdopen(job_in, "wb") as pipe:
        pipe.write(job.model_dump_json().encode("ascii"))
    return child, report_out


def _environment(home: Path, bytecode: Path) -> Mapping[str, str]:
    kept = {name: os.environ[name] for name in KEPT_VARIABLES if name in os.environ}
    return kept | {
        "HOME": str(home),
        "TMPDIR": str(home),
        "XDG_CACHE_HOME": str(home / "cache"),
        "TRITON_CACHE_DIR": str(home / "triton"),
        "HYPOTHESIS_STORAGE_DIRECTORY": str(home / "hypothesis"),
        "PYTHONPYCACHEPREFIX": str(bytecode),
        "PYTHONHASHSEED": "0",
        "LANG": "C.UTF-8",
        "TZ": "UTC",
    }


class _Reader(threading.Thread):
    """Reads a report up to its bound while the child runs, so that the pipe can not fill up."""

    def __init__(self, fd: int) -> None:
        super().__init__(daemon=True)
        self._fd = fd
        self.received = b""

    def run(self) -> None:
        with os.fdopen(self._fd, "rb") as pipe:
            self.received = _bounded(pipe)


def _bounded(pipe: IO[bytes]) -> bytes:
    received = pipe.read(MAX_REPORT_BYTES + 1)
    while pipe.read(1 << 16):
        pass  # drained, so that the child can end
    return received


def _tail(output: IO[bytes]) -> str:
    size = output.seek(0, os.SEEK_END)
    output.seek(max(0, size - LOG_TAIL))
    return output.read(LOG_TAIL).decode("utf-8", "replace")


def _read(received: bytes, job: Job, code: int, tail: str) -> Outcome:
    if not received:
        why = f"it ended with exit code {code} and no report"
        return Outcome(None, why, tail, began=code != CAN_NOT_START)
    if len(received) > MAX_REPORT_BYTES:
        return Outcome(None, f"its report exceeds {MAX_REPORT_BYTES:,} bytes", tail)
    try:
        report = ChildReport.model_validate_json(received)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"]))
        saw = f"its report can not be read: {where}: {first['msg']}"
        return Outcome(None, saw[:LOG_TAIL], tail)
    if report.nonce != job.nonce:
        return Outcome(None, "its report answers another job", tail)
    if code not in EXPECTED_CODES and not report.results.failed:
        return Outcome(None, f"it ended with exit code {code} after a report of no failure", tail)
    return Outcome(report, "", tail)


def _adopt_orphans() -> None:
    """Makes processes that lose their parent below us ours, so that they can be killed (Linux)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _kill_all(child: "subprocess.Popen[bytes]", others: Set[int]) -> None:
    """Kills the child, its session, and what we adopted from it."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()
    deadline = time.monotonic() + GRACE_S
    while left := _children() - others:
        if time.monotonic() > deadline:
            saw = f"{len(left)} processes of a test that can not be killed"
            raise InputError.one("collect", saw, "tests that end", f"kill {min(left)}")
        for pid in left:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
            with suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)


def _children() -> set[int]:
    """Processes whose parent this one is, as far as the system tells (Linux)."""
    found: set[int] = set()
    for file in Path("/proc/self/task").glob("*/children"):
        with suppress(FileNotFoundError, ProcessLookupError):  # a thread that has just ended
            found |= set(map(int, file.read_text("ascii").split()))
    return found
