# SPDX-License-Identifier: Apache-2.0
"""The judge's side of a candidate's process.

A process that does not answer in time is ended, and that is its answer.
"""

import json
import secrets
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch

from fasttrack.errors import FasttrackError
from kimi_k3.validation.arena import REFUSED, Arena, IpcRefusedError, arena
from kimi_k3.validation.candidate import Candidate
from kimi_k3.validation.memory import Layout
from kimi_k3.validation.said import Answer, M, Ready, read
from kimi_k3.validation.server import Process, server

ANSWER_S = 120.0
"""How long a process may take for an answer."""
MOST_BYTES = 1 << 22
"""Of an answer."""


class CandidateError(FasttrackError):
    """A candidate's process could not be started, ended by itself, or did not answer."""


@dataclass(frozen=True)
class Call:
    """One call of a candidate.

    Attributes:
        layout: where its operands are.
        rows: how many.
        scalars: numbers by name.
    """

    layout: Layout
    rows: int
    scalars: Mapping[str, int]

    def to_json(self) -> dict[str, Any]:
        """As a candidate's process is asked."""
        places = {
            name: {
                "dtype": place.operand.dtype,
                "shape": list(place.operand.shape),
                "strides": list(place.operand.strides),
                "offset": place.offset,
            }
            for name, place in self.layout.items()
        }
        return {"places": places, "rows": self.rows, "scalars": dict(self.scalars)}


@dataclass(frozen=True)
class Told:
    """What a candidate's process said; none of it is a result.

    Attributes:
        error: what the program raised, or empty.
        launches: kernel's name and digest to how often it was launched.
        failed: launches that raised.
        fallbacks: calls that something else than a kernel served.
        foreign: operations of torch that ran beside the launches.
        asked: modules that it wanted and must not have.
        traced: what a profiler saw run on the device; None where nothing told.
        threads: how many threads the process had, as the system tells.
        seconds: from the request to the answer, by the judge's clock.
    """

    error: str
    launches: Mapping[tuple[str, str], int]
    failed: Sequence[str]
    fallbacks: int
    foreign: Sequence[str]
    asked: Sequence[str]
    traced: Sequence[str] | None
    threads: int
    seconds: float = field(compare=False)


class Session:
    """One process of one candidate, with memory of its own; a context manager."""

    def __init__(
        self,
        candidate: Candidate,
        size: int,
        *,
        transport: str | None = None,
        walled: bool = True,
    ) -> None:
        """Starts it.

        Args:
            candidate: what runs.
            size: bytes of its memory.
            transport: one of `arena.TRANSPORTS`; by default the closest that the machine has.
            walled: whether modules that may know an answer are kept from it.

        Raises:
            CandidateError: it does not start.
        """
        self.candidate = candidate
        self._home = TemporaryDirectory(prefix="candidate-")
        self._job = {
            "home": self._home.name,
            "entry": candidate.entry,
            "arguments": dict(candidate.arguments),
            "device": candidate.device,
            "walled": walled,
        }
        self._process: Process | None = None
        self._closed = False
        self.arena: Arena = arena(candidate.device, size, transport)
        try:
            self._start_anyhow(size, transport)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> "Session":
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def write(self, image: torch.Tensor) -> None:
        """Puts an image into the memory."""
        self.arena.write(image)

    def read(self) -> torch.Tensor:
        """A copy of the memory."""
        return self.arena.read()

    def call(self, call: Call, *, ghost: bool = False, trace: bool = False) -> Told:
        """Has the program run once.

        Args:
            call: operands and rows.
            ghost: leave all launches out.
            trace: have a profiler look, on a device.
        """
        return self._ask({"do": "call", "ghost": ghost, "trace": trace} | call.to_json())

    def load(self, candidate: Candidate) -> None:
        """Has another variant of the same kernel take the place of this one.

        Raises:
            CandidateError: it can not be made.
        """
        told = self._ask(
            {"do": "load", "entry": candidate.entry, "arguments": dict(candidate.arguments)}
        )
        if told.error:
            raise CandidateError(told.error)
        self.candidate = candidate

    def capture(self, calls: Sequence[Call]) -> Told:
        """Has the program run for some calls, and its launches kept."""
        return self._ask({"do": "capture", "calls": [call.to_json() for call in calls]})

    def replay(self, times: int = 1) -> Told:
        """Launches what was kept."""
        return self._ask({"do": "replay", "times": times})

    def close(self) -> None:
        """Ends the process, and gives its memory back; once is enough."""
        if self._closed:
            return
        self._closed = True
        if self._process is not None:
            self._process.close()
            self._process = None
        self.arena.close()
        self._home.cleanup()

    def _start_anyhow(self, size: int, transport: str | None) -> None:
        try:
            self._start()
        except IpcRefusedError:
            if transport == "ipc":
                raise
            self.arena.close()
            self.arena = arena(self.candidate.device, size, "copy")
            self._start()

    def _start(self) -> None:
        shared = self.arena.share()
        memory = {"transport": shared.transport, "size": shared.size, "handle": shared.handle}
        self._process = server().start(self._job | memory, shared.descriptors)
        ready = self._received(Ready)
        if ready.error:
            self._process.close()
            self._process = None
            refused = REFUSED in ready.error
            raise (IpcRefusedError if refused else CandidateError)(ready.error)
        self.files: Sequence[str] = ready.files

    def _ask(self, request: dict[str, Any]) -> Told:
        nonce = secrets.token_hex(16)
        started = time.perf_counter()
        try:
            self._alive().connection.send_bytes(json.dumps(request | {"nonce": nonce}).encode())
        except OSError as error:
            raise CandidateError("the process has ended") from error
        said = self._received(Answer)
        seconds = time.perf_counter() - started
        if said.nonce != nonce:
            raise CandidateError("an answer to something else")
        return Told(
            error=said.error,
            launches={(name, digest): count for name, digest, count in said.launches},
            failed=said.failed,
            fallbacks=said.fallbacks,
            foreign=said.foreign,
            asked=said.asked,
            traced=said.traced,
            threads=_threads(self._alive().pid),
            seconds=seconds,
        )

    def _received(self, kind: type[M]) -> M:
        process = self._alive()
        if not process.connection.poll(ANSWER_S):
            process.end()
            raise CandidateError(f"no answer in {ANSWER_S:g} s")
        try:
            said = read(kind, process.connection.recv_bytes(MOST_BYTES))
        except (EOFError, OSError) as error:
            raise CandidateError("the process has ended without an answer") from error
        if said is None:
            raise CandidateError("an answer that is none")
        return said

    def _alive(self) -> Process:
        if self._process is None:
            raise CandidateError("there is no process")
        return self._process


def _threads(pid: int) -> int:
    tasks = Path(f"/proc/{pid}/task")
    return sum(1 for _ in tasks.iterdir()) if tasks.is_dir() else 0
