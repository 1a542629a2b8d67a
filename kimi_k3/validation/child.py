# SPDX-License-Identifier: Apache-2.0
"""A candidate's process: it does what the judge asks, and answers that it is done.

Requests and answers are JSON, one message each; an answer carries the request's nonce. Nothing that
an answer says is taken for a result: results are bytes in memory, which the judge reads.

| request | what is done |
|---|---|
| `call` | the program runs once, watched; with `ghost` all of its launches are left out |
| `load` | another program of the same kernel takes the place of this one |
| `capture` | the program runs for each of some calls, and what it launched is kept |
| `replay` | what was kept is launched so many times |
"""

import importlib
import json
import os
import sys
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import torch

from kimi_k3.validation.arena import Shared
from kimi_k3.validation.attach import Attached
from kimi_k3.validation.launcher import Launcher, Program
from kimi_k3.validation.wall import Wall, raised


class Served:
    """A program, the memory that it works in, and what it launched."""

    def __init__(self, memory: Attached, program: Program, device: str, wall: Wall | None) -> None:
        self._memory, self._program, self._device, self._wall = memory, program, device, wall
        self._launcher = Launcher()
        self._kept: Callable[[], None] | None = None

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """Does what is asked; a program's error is an answer, too."""
        told: dict[str, Any] = {"error": "", "traced": None}
        self._memory.fetch()
        try:
            match request["do"]:
                case "call":
                    self._call(request, told)
                case "load":
                    self._program, self._kept = made(request), None
                case "capture":
                    self._kept = self._capture(request["calls"])
                case "replay" if self._kept is not None:
                    for _ in range(request["times"]):
                        self._kept()
        except Exception as error:  # whatever a candidate raises is its answer
            told["error"] = f"{type(error).__name__}: {error}"[:500]
        self._memory.bring()
        return (
            told
            | self._launcher.told()
            | {"nonce": request["nonce"], "asked": self._wall.asked if self._wall else []}
        )

    def _call(self, request: dict[str, Any], told: dict[str, Any]) -> None:
        operands, rows = self._operands(request), request["rows"]
        self._launcher.ghost = request["ghost"]
        try:
            with self._launcher.watched():
                if request["trace"] and self._device == "cuda":
                    told["traced"] = _traced(
                        lambda: self._program.run(self._launcher, operands, rows)
                    )
                else:
                    self._program.run(self._launcher, operands, rows)
        finally:
            self._launcher.ghost = False

    def _capture(self, calls: Sequence[dict[str, Any]]) -> Callable[[], None]:
        prepared = [(self._operands(call), call["rows"]) for call in calls]

        def run() -> None:
            for operands, rows in prepared:
                self._program.run(self._launcher, operands, rows)

        return self._launcher.captured(run, self._device)

    def _operands(self, call: dict[str, Any]) -> dict[str, Any]:
        places = {name: self._memory.operand(place) for name, place in call["places"].items()}
        scalars: dict[str, Any] = call["scalars"]
        return places | scalars


def made(job: dict[str, Any]) -> Program:
    """The program that an `entry` makes of its `arguments`."""
    module, _, name = job["entry"].partition(":")
    program: Program = getattr(importlib.import_module(module), name)(**job["arguments"])
    return program


def _traced(run: Callable[[], None]) -> list[str] | None:
    """Names of what ran on the device, or None where nothing can tell."""
    from torch.profiler import ProfilerActivity, profile  # noqa: PLC0415  (wanted on devices only)

    with profile(activities=[ProfilerActivity.CUDA], acc_events=True) as seen:
        run()
        torch.cuda.synchronize()
    names = [event.name for event in seen.events() or [] if str(event.device_type).endswith("CUDA")]
    return names or None


def main(connection: Connection, job: dict[str, Any], descriptors: Sequence[int]) -> None:
    """Serves one candidate until the judge is done with it.

    Args:
        connection: to the judge.
        job: `entry`, `arguments`, `device`, whether it is `walled`, and of the memory the
            `transport`, the `size` and the `handle`; `home` is an empty folder.
        descriptors: of memory of the host.
    """
    torch.set_num_threads(1)
    os.chdir(job["home"])
    try:
        wall = raised() if job["walled"] else None
        shared = Shared(job["transport"], job["size"], job["handle"], tuple(descriptors))
        memory = Attached(shared)
        program = made(job)
    except Exception as error:  # whatever a candidate raises is its answer
        _send(connection, {"error": f"{type(error).__name__}: {error}"[:500]})
        return
    served = Served(memory, program, job["device"], wall)
    _send(connection, {"error": "", "files": _loaded()})
    while True:
        _send(connection, served.answer(json.loads(connection.recv_bytes())))


def _loaded() -> list[str]:
    """Files of this repository's packages that are imported here."""
    found = (getattr(module, "__file__", None) for module in list(sys.modules.values()))
    return sorted({str(Path(path)) for path in found if path and "kimi_k3" in path})


def _send(connection: Connection, answer: dict[str, Any]) -> None:
    connection.send_bytes(json.dumps(answer).encode())
