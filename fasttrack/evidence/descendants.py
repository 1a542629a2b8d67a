# SPDX-License-Identifier: Apache-2.0
"""Ends a child and everything that it has started, and reads what it sends without waiting for it.

Processes that lose their parent below this one become its own, so that none gets away by moving to
another session (Linux). Only what was started after the `others` that are handed in is killed.
"""

import ctypes
import os
import signal
import sys
import threading
import time
from collections.abc import Set
from contextlib import suppress
from pathlib import Path
from typing import IO, Protocol

from fasttrack.errors import InputError

GRACE_S = 10.0
"""Seconds in which whatever was killed has to be gone."""
_SET_CHILD_SUBREAPER = 36


class Child(Protocol):
    """A process that this one has started."""

    @property
    def pid(self) -> int:
        """Its id."""

    def wait(self) -> int:
        """Waits until it has ended."""


class Reader(threading.Thread):
    """Reads a pipe up to a bound while the child runs, so that the pipe can not fill up.

    Attributes:
        received: what came, at most one byte more than the bound.
    """

    def __init__(self, fd: int, limit: int) -> None:
        super().__init__(daemon=True)
        self._fd = fd
        self._limit = limit
        self.received = b""

    def run(self) -> None:
        """Reads until every writer has closed the pipe."""
        with os.fdopen(self._fd, "rb") as pipe:
            self.received = pipe.read(self._limit + 1)
            while pipe.read(1 << 16):
                pass  # drained, so that the child can end


def tail(output: IO[bytes], size: int) -> str:
    """The last bytes of a file, as text."""
    end = output.seek(0, os.SEEK_END)
    output.seek(max(0, end - size))
    return output.read(size).decode("utf-8", "replace")


def adopt_orphans() -> None:
    """Makes processes that lose their parent below us ours, so that they can be killed (Linux)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def kill_all(child: Child, others: Set[int], who: str) -> None:
    """Kills the child, its session, and what we adopted from it.

    Args:
        child: leader of its own session.
        others: children that were there before it.
        who: the command that speaks, for the message.

    Raises:
        InputError: something can not be killed.
    """
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()
    deadline = time.monotonic() + GRACE_S
    while left := children() - others:
        if time.monotonic() > deadline:
            saw = f"{len(left)} processes of a test that can not be killed"
            raise InputError.one(who, saw, "tests that end", f"kill {min(left)}")
        for pid in left:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
            with suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)


def children(of: str = "self") -> set[int]:
    """Processes whose parent is this one, or another, as far as the system tells (Linux)."""
    found: set[int] = set()
    for file in Path(f"/proc/{of}/task").glob("*/children"):
        with suppress(FileNotFoundError, ProcessLookupError):  # a thread that has just ended
            found |= set(map(int, file.read_text("ascii").split()))
    return found
