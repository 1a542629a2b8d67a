# SPDX-License-Identifier: Apache-2.0
"""Starts one child that measures one cell, and leaves nothing of it behind.

The child has a session and a home of its own, an environment made of an allow-list, and two pipes.
It is told nothing about the bundle; where the system can see to it, it writes nothing but what lies
in its home. When it has ended or its time is up, every process that it started is killed, those
that moved to another session included.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from pydantic import ValidationError

from fasttrack.evidence.child_report import MAX_REPORT_BYTES, ChildReport, Job
from fasttrack.evidence.descendants import (
    GRACE_S,
    Reader,
    adopt_orphans,
    children,
    kill_all,
    tail,
)
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
EXPECTED_CODES = (0, 5)
"""Exit codes of pytest when nothing failed: tests ran, or there were none."""
CAN_NOT_START = 4
"""Exit code of pytest when it can not start, such as when a `conftest.py` can not be imported."""
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
    adopt_orphans()
    others = children()
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
        reader = Reader(report_end, MAX_REPORT_BYTES)
        reader.start()
        try:
            child.wait(timeout_s)
        except subprocess.TimeoutExpired:
            why = f"no result after {timeout_s:g} s"
        finally:
            kill_all(child, others, "collect")
        reader.join(GRACE_S)
        log = tail(output, LOG_TAIL)
    if reader.is_alive():
        why = why or "a process that it did not start holds its report open"
    return Outcome(None, why, log) if why else _read(reader.received, job, child.returncode, log)


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


def _read(received: bytes, job: Job, code: int, log: str) -> Outcome:
    if not received:
        why = f"it ended with exit code {code} and no report"
        return Outcome(None, why, log, began=code != CAN_NOT_START)
    if len(received) > MAX_REPORT_BYTES:
        return Outcome(None, f"its report exceeds {MAX_REPORT_BYTES:,} bytes", log)
    try:
        report = ChildReport.model_validate_json(received)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"]))
        saw = f"its report can not be read: {where}: {first['msg']}"
        return Outcome(None, saw[:LOG_TAIL], log)
    if report.nonce != job.nonce:
        return Outcome(None, "its report answers another job", log)
    if code not in EXPECTED_CODES and not report.results.failed:
        return Outcome(None, f"it ended with exit code {code} after a report of no failure", log)
    return Outcome(report, "", log)
