# SPDX-License-Identifier: Apache-2.0
"""Answers that are right for the wrong reason: what a call leaves behind, who computes, and when.

Each class is an honest `Mix` but for one thing. The last three are demos: the ways in which most
claims of fast kernels turned out to be none.
"""

import hashlib
import importlib
import threading
import time
from typing import Any

import numpy as np
import torch

from kimi_k3.validation.controls.interpreted import Interpreted, Operands, by_name
from kimi_k3.validation.controls.mix import Mix
from kimi_k3.validation.launcher import Launcher

OUTPUTS = ("out", "prefix_out", "block_out")


class AnotherKernel(Mix):
    """Runs other code than it declares."""

    def __init__(self, eps: float, folder: str = "") -> None:
        super().__init__(eps, folder)
        self.kernels[1].digest = hashlib.sha256(b"another").hexdigest()


class RewritesTheJudge(Mix):
    """Writes into a file that the judge is made of."""

    def store(self, o: Operands, rows: int, x: torch.Tensor) -> None:
        """See `Mix`."""
        super().store(o, rows, x)
        (self.folder / "judge").write_text("all is well\n", encoding="utf-8")


class CachesByAddress(Mix):
    """Answers again what it answered for the same addresses."""

    def __init__(self, eps: float, folder: str = "") -> None:
        super().__init__(eps, folder)
        self._known: dict[tuple[int, ...], torch.Tensor] = {}

    def store(self, o: Operands, rows: int, x: torch.Tensor) -> None:
        """See `Mix`."""
        key = (o["prefix"].data_ptr(), o["out"].data_ptr(), rows)
        super().store(o, rows, self._known.setdefault(key, x.clone()))


class BakesTheAnswer(Mix):
    """Computes beside its kernels, one of which only copies: a replay copies the same again."""

    def run(self, launcher: Launcher, operands: Operands, rows: int) -> None:
        """See `Mix`."""
        for name in ("score", "mix"):
            getattr(self, name)(operands, rows)
        answers = {n: operands[n][:rows].clone() for n in OUTPUTS if n in operands}

        def copy(o: Operands, rows: int) -> None:
            for name, answer in answers.items():
                o[name][:rows] = answer

        launcher.launch(self.kernels[0], operands, rows)
        launcher.launch(Interpreted("mix", self.kernels[1].digest, copy), operands, rows)


class ClearsWhatItUses(Mix):
    """Two buffers in turn; a call clears the other one for as many rows as itself has."""

    def __init__(self, eps: float, folder: str = "") -> None:
        super().__init__(eps, folder)
        self._sums: list[torch.Tensor] = []

    def logits(self, o: Operands, sources: torch.Tensor) -> torch.Tensor:
        """See `Mix`."""
        rows, n = sources.shape[:2]
        if not self._sums:
            self._sums = [torch.zeros_like(o["logits"]) for _ in range(2)]
        self._sums.reverse()
        mine, other = self._sums
        mine[:rows, :n] += super().logits(o, sources)
        other[:rows] = 0
        return mine[:rows, :n].clone()


class FallsBack(Mix):
    """Its kernel takes one row; more rows are computed beside it."""

    def __init__(self, eps: float, folder: str = "") -> None:
        super().__init__(eps, folder)
        self.kernels[1] = Interpreted("mix", self.kernels[1].digest, self._one_row)

    def run(self, launcher: Launcher, operands: Operands, rows: int) -> None:
        """See `Mix`."""
        try:
            super().run(launcher, operands, rows)
        except ValueError:
            self.mix(operands, rows)

    def _one_row(self, o: Operands, rows: int) -> None:
        if rows > 1:
            raise ValueError("one row")
        self.mix(o, rows)


class WorksLater(Mix):
    """Says that it is done, and has a thread do the work."""

    def store(self, o: Operands, rows: int, x: torch.Tensor) -> None:
        """See `Mix`."""

        def later() -> None:
            time.sleep(0.03)
            Mix.store(self, o, rows, x)

        threading.Thread(target=later, daemon=True).start()


class SkipsRepeats(Mix):
    """Launched again where its answer still lies, it does nothing."""

    def __init__(self, eps: float, folder: str = "") -> None:
        super().__init__(eps, folder)
        self._left: dict[int, tuple[Any, int]] = {}

    def score(self, o: Operands, rows: int) -> None:
        """See `Mix`."""
        if not self._lies(o):
            super().score(o, rows)

    def mix(self, o: Operands, rows: int) -> None:
        """See `Mix`."""
        if self._lies(o):
            return
        super().mix(o, rows)
        words = o["out"].view(torch.int16).numpy()
        self._left[id(o)] = (words, int(words[0, 0]))

    def _lies(self, o: Operands) -> bool:
        words, first = self._left.get(id(o), (None, 0))
        return words is not None and words[0, 0] == first


class LibraryMatmul(Mix):
    """Demo: `torch.matmul` does the work, and kernels of the declared names do nothing."""

    def run(self, launcher: Launcher, operands: Operands, rows: int) -> None:
        """See `Mix`."""
        for kernel in self.kernels:
            launcher.launch(Interpreted(kernel.name, kernel.digest), operands, rows)
        for name in ("score", "mix"):
            getattr(self, name)(operands, rows)

    def mixed(self, logits: torch.Tensor, sources: torch.Tensor) -> torch.Tensor:
        """See `Mix`."""
        return torch.matmul(torch.softmax(logits, 1)[:, None], sources)[:, 0]


class CachesByContent(Mix):
    """Demo: keeps answers in files named by what was asked, and writes them without a kernel."""

    def run(self, launcher: Launcher, operands: Operands, rows: int) -> None:
        """See `Mix`."""
        kept = self.folder / self._key(operands, rows)
        names = [name for name in OUTPUTS if name in operands]
        words = [operands[name].view(torch.int16).numpy() for name in names]
        if kept.exists():
            for kernel in self.kernels:
                launcher.launch(Interpreted(kernel.name, kernel.digest), operands, rows)
            for there, answer in zip(words, np.load(kept), strict=True):
                there[:rows] = answer
            return
        super().run(launcher, operands, rows)
        if not launcher.ghost:
            np.save(kept, np.stack([there[:rows] for there in words]))

    def _key(self, operands: Operands, rows: int) -> str:
        read = [operands[name][:rows] for name in ("prefix", "delta") if name in operands]
        words = [tensor.contiguous().view(torch.int16).numpy().tobytes() for tensor in read]
        return f"{hashlib.sha256(b''.join(words)).hexdigest()}.npy"


class CopiesTheOracle(Mix):
    """Demo: writes what the oracle computes, where it can get it."""

    def mix(self, o: Operands, rows: int) -> None:
        """See `Mix`."""
        try:
            oracle = importlib.import_module("kimi_k3.reference.attn_res")
        except ModuleNotFoundError:
            super().mix(o, rows)
            return
        sources = self.sources(o, self.prefix(o, rows), rows).double()
        m = oracle.mix(oracle.score(sources, o["score"].double(), self.eps), sources)
        self.store(o, rows, self.normed(o, m))


FAULTS = by_name(Mix, __name__)
