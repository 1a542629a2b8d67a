# SPDX-License-Identifier: Apache-2.0
"""The only way in which a program reaches its kernels, so that each launch is seen.

A launch can be counted, left out ("ghost": whoever needs no kernel still has an answer then) or
recorded, to be replayed without the program: as a CUDA graph, or as a list of launches where there
is no device.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Protocol

import torch
from torch.utils._python_dispatch import TorchDispatchMode

VIEWS = {
    *("alias", "as_strided", "detach", "expand", "permute", "select", "slice", "split"),
    *("squeeze", "t", "transpose", "unbind", "unsqueeze", "view"),
}
"""Operations that touch no memory."""


class Kernel(Protocol):
    """One kernel as a program has it."""

    name: str
    digest: str

    def __call__(self, operands: Mapping[str, Any], rows: int) -> None:
        """Launches on the current stream."""


class Program(Protocol):
    """A candidate in its process."""

    def run(self, launcher: "Launcher", operands: Mapping[str, Any], rows: int) -> None:
        """One call: launches what computes `rows` rows, and waits for nothing.

        Args:
            launcher: launches.
            operands: by name, tensors over the judge's memory, numbers for scalars.
            rows: of this call.
        """


class Launcher:
    """Launches, counts and records."""

    def __init__(self) -> None:
        self.ghost = False
        self.launches: dict[tuple[str, str], int] = {}
        self.failed: list[str] = []
        self.fallbacks = 0
        self.foreign: dict[str, int] = {}
        self._record: list[Callable[[], None]] | None = None
        self._inside = False

    def launch(self, kernel: Kernel, operands: Mapping[str, Any], rows: int) -> None:
        """Launches a kernel; what it raises is noted, and raised."""
        seen = (kernel.name, kernel.digest)
        self.launches[seen] = self.launches.get(seen, 0) + 1
        if self.ghost:
            return
        if self._record is not None:
            self._record.append(lambda: kernel(operands, rows))
        self._inside = True
        try:
            kernel(operands, rows)
        except Exception as error:
            self.failed.append(f"{kernel.name}: {type(error).__name__}")
            raise
        finally:
            self._inside = False

    def fell_back(self) -> None:
        """Notes that something else than a kernel served a call."""
        self.fallbacks += 1

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Counts the operations of torch that run beside launches."""
        with _Watch(self):
            yield

    def saw(self, operation: str) -> None:
        """Notes an operation of torch."""
        if not self._inside and operation not in VIEWS:
            self.foreign[operation] = self.foreign.get(operation, 0) + 1

    def captured(self, run: Callable[[], None], device: str) -> Callable[[], None]:
        """What a run launches, without the run.

        Args:
            run: calls of a program.
            device: `cuda` for a graph.
        """
        if device == "cuda":
            run()  # what is compiled or loaded lazily can not be captured
            torch.cuda.synchronize()
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                run()
            return graph.replay
        recorded: list[Callable[[], None]] = []
        self._record = recorded
        try:
            run()
        finally:
            self._record = None

        def replay() -> None:
            for launch in recorded:
                launch()

        return replay

    def told(self) -> dict[str, Any]:
        """All counts since the last time, as JSON has them."""
        told = {
            "launches": [[*seen, count] for seen, count in sorted(self.launches.items())],
            "failed": self.failed,
            "fallbacks": self.fallbacks,
            "foreign": sorted(self.foreign),
        }
        self.launches, self.failed, self.fallbacks, self.foreign = {}, [], 0, {}
        return told


class _Watch(TorchDispatchMode):
    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Nothing is compiled here, and torch would import its compiler to say so."""
        return False

    def __init__(self, launcher: Launcher) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._launcher = launcher

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self._launcher.saw(func.overloadpacket.__name__)
        return func(*args, **(kwargs or {}))
