# SPDX-License-Identifier: Apache-2.0
"""Runs one program together with code of a change, and leaves nothing of it behind.

The program writes only to its own home, which is empty before and gone afterwards; opens no socket;
sees an environment made of an allow-list; has bounded time, memory, files and processes; and sends
its report, bounded as well, by a pipe. Whatever it does instead comes back as a reason in words.
"""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from fasttrack.errors import InputError
from fasttrack.evidence.child import KEPT_VARIABLES, LOG_TAIL
from fasttrack.evidence.descendants import (
    GRACE_S,
    Reader,
    adopt_orphans,
    children,
    kill_all,
    tail,
)
from fasttrack.evidence.wall import behind_wall, stands_around
from fasttrack.executed.box import Bounds, can_be_boxed, in_box

MAX_REPORT_BYTES = 32 << 20
"""Of a report; a larger one is none."""
POLL_S = 0.05
"""Seconds between two looks at what a run uses."""
_PAGE = os.sysconf("SC_PAGE_SIZE")

R = TypeVar("R", bound=BaseModel)


@dataclass(frozen=True)
class Ended:
    """What came of a run.

    Attributes:
        report: the bytes that it sent.
        why: why they can not be used, in words; empty where it ended by itself with code 0.
        log: the end of what it printed.
    """

    report: bytes
    why: str
    log: str

    def read(self, model: type[R]) -> R | str:
        """The report as data, or why there is none."""
        if self.why:
            return self.why
        try:
            return model.model_validate_json(self.report)
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            where = ".".join(map(str, first["loc"]))
            return f"its report can not be read: {where}: {first['msg']}"[:LOG_TAIL]


def require_sandbox() -> None:
    """Raises InputError where this system can not keep code from network and files."""
    if not (can_be_boxed() and stands_around(Path(tempfile.gettempdir()))):
        raise InputError.one(
            "--run-probe, --run-base-tests",
            "a system that keeps a process neither from the network nor from other files",
            "Linux 5.13 or newer with Landlock, on x86-64 or AArch64",
            "leave these options out here, and run them in a job on such a system",
        )


def package_folders() -> list[str]:
    """Where packages are installed for this interpreter; no folder that a `.pth` file adds.

    A working copy that is installed in place is such a folder: it would stand in for files that
    the judged tree does not have.
    """
    return [p for p in sys.path if Path(p).name in {"site-packages", "dist-packages"}]


def run_boxed(
    script: Path, arguments: Sequence[str], cwd: Path, *, job: bytes, timeout_s: float
) -> Ended:
    """Runs a Python file in the sandbox.

    It reads its job from standard input and is called with the descriptor of the pipe that takes
    its report, then `arguments`. No `.pth` file, user
    site or `PYTHON*` variable takes part, and no folder is on the module path but Python's own.

    Args:
        script: a file of this package.
        arguments: more words.
        cwd: working directory; not writable.
        job: what it reads.
        timeout_s: seconds after which it is killed.

    Raises:
        InputError: something that it started can not be killed.
    """
    adopt_orphans()
    others = children()
    bounds = Bounds(cpu_s=int(timeout_s) + 60)
    with (
        tempfile.TemporaryDirectory(prefix="fasttrack-home-", ignore_cleanup_errors=True) as home,
        tempfile.TemporaryFile() as output,
        tempfile.TemporaryFile() as feed,
    ):
        feed.write(job)
        feed.seek(0)
        report_out, report_in = os.pipe()
        command = [sys.executable, "-I", "-S", "-B", str(script), str(report_in), *arguments]
        child = subprocess.Popen(
            in_box(behind_wall(command, [Path(home)]), bounds),
            cwd=cwd,
            env=_environment(Path(home)),
            stdin=feed,
            stdout=output,
            stderr=subprocess.STDOUT,
            pass_fds=(report_in,),
            start_new_session=True,
        )
        os.close(report_in)
        reader = Reader(report_out, MAX_REPORT_BYTES)
        reader.start()
        try:
            why = _watch(child, others, bounds, timeout_s)
        finally:
            kill_all(child, others, "check")
        reader.join(GRACE_S)
        return Ended(
            reader.received, why or _fault(reader, child.returncode), tail(output, LOG_TAIL)
        )


def _fault(reader: Reader, code: int) -> str:
    if reader.is_alive():
        return "a process that it did not start holds its report open"
    if len(reader.received) > MAX_REPORT_BYTES:
        return f"its report exceeds {MAX_REPORT_BYTES:,} bytes"
    if code:
        how = f"was ended by signal {-code}" if code < 0 else f"ended with exit code {code}"
        return f"it {how}"
    return "" if reader.received else "it ended without a report"


def _watch(
    child: "subprocess.Popen[bytes]", others: Set[int], bounds: Bounds, timeout_s: float
) -> str:
    """Waits until it has ended; else why it has to be killed."""
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        with suppress(subprocess.TimeoutExpired):
            child.wait(POLL_S)
            return ""
        family = _family(others)
        if len(family) > bounds.processes:
            return f"more than {bounds.processes} processes at a time"
        if sum(map(_resident, family)) > bounds.memory_bytes:
            return f"more than {bounds.memory_bytes >> 30} GB of memory at a time"
    return f"no result after {timeout_s:g} s"


def _family(others: Set[int]) -> set[int]:
    """Everything that descends from us, but for what was there before."""
    found: set[int] = set()
    waiting = children() - others
    while waiting:
        pid = waiting.pop()
        found.add(pid)
        waiting |= children(str(pid)) - found
    return found


def _resident(pid: int) -> int:
    """Bytes of memory that a process holds; 0 for one that has ended."""
    with suppress(OSError, ValueError, IndexError):
        return int(Path(f"/proc/{pid}/statm").read_text("ascii").split()[1]) * _PAGE
    return 0


def _environment(home: Path) -> Mapping[str, str]:
    kept = {n: os.environ[n] for n in KEPT_VARIABLES if n in os.environ and n != "PYTHONPATH"}
    return kept | {
        "HOME": str(home),
        "TMPDIR": str(home),
        "XDG_CACHE_HOME": str(home / "cache"),
        "TRITON_CACHE_DIR": str(home / "triton"),
        "HYPOTHESIS_STORAGE_DIRECTORY": str(home / "hypothesis"),
        "LANG": "C.UTF-8",
        "TZ": "UTC",
    }
