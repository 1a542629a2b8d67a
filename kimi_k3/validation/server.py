# SPDX-License-Identifier: Apache-2.0
"""Forks the processes of candidates.

A process that imports torch takes seconds to start, and a fork of the judge's would have what the
judge knows. So the first candidate starts a server, which imports torch and `child`, never
initialises a device, and forks itself for every candidate. It ends when the judge does.

A request is a job as JSON, with one or two descriptors: the connection to the judge, and pages of
the host where memory is shared so.
"""

import atexit
import importlib
import json
import os
import signal
import socket
import struct
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from multiprocessing.connection import Connection
from typing import Any

from fasttrack.errors import FasttrackError

MOST_BYTES = 1 << 16
HALF_S = 5
"""Seconds within which a message ends that has begun."""
PACKAGES = ("fasttrack", "kimi_k3", "tests")
"""Packages that the server has from where the judge has them, whatever else is installed."""
BOOT = """
import importlib.util, json, sys
said = json.loads(sys.argv[2])
sys.path[:] = said["path"]
for name, folder in said["packages"].items():
    start = f"{folder}/__init__.py"
    spec = importlib.util.spec_from_file_location(name, start, submodule_search_locations=[folder])
    sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(sys.modules[name])
from kimi_k3.validation.server import serve
serve(int(sys.argv[1]))
"""


class Process:
    """A candidate's process, as the judge has it.

    Attributes:
        pid: its id.
        connection: to it.
    """

    def __init__(self, pid: int, connection: Connection) -> None:
        self.pid, self.connection = pid, connection
        self._handle = os.pidfd_open(pid)

    def end(self) -> None:
        """Ends it at once, whatever it does."""
        with suppress(ProcessLookupError):  # it has ended by itself
            signal.pidfd_send_signal(self._handle, signal.SIGKILL)

    def close(self) -> None:
        """Ends it, and forgets it."""
        self.end()
        os.close(self._handle)
        self.connection.close()


class Server:
    """The judge's end of the server."""

    def __init__(self) -> None:
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        here = {name: sys.modules[name].__path__[0] for name in PACKAGES if name in sys.modules}
        said = json.dumps({"path": sys.path, "packages": here})
        self._process = subprocess.Popen(
            [sys.executable, "-c", BOOT, str(theirs.fileno()), said],
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
        )
        theirs.close()
        atexit.register(self.close)

    def close(self) -> None:
        """Ends the server."""
        self._socket.close()
        self._process.wait()

    def start(self, job: Mapping[str, Any], descriptors: Sequence[int]) -> Process:
        """Forks a process.

        Args:
            job: as `child.main` takes it.
            descriptors: of memory that it shares.

        Raises:
            FasttrackError: the server has ended.
        """
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        # Half a message does not keep the judge waiting.
        ours.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", HALF_S, 0))
        socket.send_fds(self._socket, [json.dumps(job).encode()], [theirs.fileno(), *descriptors])
        theirs.close()
        try:
            pid = int(self._socket.recv(64))
        except (OSError, ValueError) as error:
            raise FasttrackError("the server of candidates has ended") from error
        return Process(pid, Connection(ours.detach()))


@cache
def server() -> Server:
    """The server of this process."""
    return Server()


def serve(number: int) -> None:
    """Serves one judge until it is gone.

    Args:
        number: the descriptor of the socket to it.
    """
    from kimi_k3.validation.child import main  # noqa: PLC0415  (the judge needs none of it)

    with suppress(ImportError):  # without a GPU's driver there are no cubins
        importlib.import_module("kimi_k3.validation.cubins")
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for the forks
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    judge = socket.socket(fileno=number)
    while True:
        job, descriptors, _, _ = socket.recv_fds(judge, MOST_BYTES, 2)
        if not job:
            return
        pid = os.fork()
        if pid == 0:
            judge.close()
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            _run(main, json.loads(job), descriptors)
        for descriptor in descriptors:
            os.close(descriptor)
        judge.send(str(pid).encode())


def _run(main: Any, job: dict[str, Any], descriptors: Sequence[int]) -> None:
    """Runs a candidate, and never returns into the server."""
    try:
        with suppress(EOFError, BrokenPipeError):  # the judge has gone
            main(Connection(descriptors[0]), job, descriptors[1:])
    finally:
        os._exit(0)
