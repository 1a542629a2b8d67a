# SPDX-License-Identifier: Apache-2.0
"""What a gate works with: a candidate, how much to try, and processes to try it in."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from kimi_k3.validation.budget import Budget
from kimi_k3.validation.candidate import Candidate
from kimi_k3.validation.case import Case
from kimi_k3.validation.memory import Layout, room
from kimi_k3.validation.session import Session
from kimi_k3.validation.trial import POISONS, Prepared, Seen, prepared, tried

SLACK = 1.25
"""Memory beyond what a layout needs, so that addresses vary."""


def size_for(candidate: Candidate, calls: int = 1) -> int:
    """Bytes of a memory for so many calls of a candidate."""
    wanted = int(SLACK * room(candidate.memory, calls))
    return wanted + -wanted % 4096


class Bench:
    """One candidate under validation; a context manager.

    Attributes:
        candidate: who is judged.
        budget: how much is tried.
        baseline: the stock path for the same operands, to be timed beside it, or None.
        peak_tb_s: bandwidth that no device of this kind has, or None where nobody knows.
        files: files that the judge is made of.
        seen: calls of all gates so far, for those that look at how a candidate ran.
    """

    def __init__(
        self,
        candidate: Candidate,
        budget: Budget,
        seed: int,
        *,
        baseline: Candidate | None = None,
        peak_tb_s: float | None = None,
        transport: str | None = None,
        files: Sequence[str] = (),
        lent: Session | None = None,
    ) -> None:
        """Takes what its attributes are, and how to start processes.

        Args:
            candidate: see above.
            budget: see above.
            seed: of all draws.
            baseline: see above.
            peak_tb_s: see above.
            transport: how memory is shared; by default the closest way that the machine has.
            files: see above.
            lent: a process of another variant of the same kernel, with room for these operands;
                it stays open.
        """
        self.candidate, self.budget, self.baseline = candidate, budget, baseline
        self.peak_tb_s, self.files = peak_tb_s, files
        self.seen: list[Seen] = []
        self._seed, self._transport = seed, transport
        self._shared: Session | None = None
        self._lent = lent
        self._calls = 0

    def __enter__(self) -> "Bench":
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    @property
    def transport(self) -> str:
        """How memory is shared with the candidate."""
        return self.session().arena.transport

    def rng(self, gate: str) -> np.random.Generator:
        """Draws of one gate, the same in every run with this seed."""
        words = list(f"{gate} {self.candidate.operator}".encode())
        return np.random.default_rng([self._seed, *words])

    def size(self, calls: int = 1) -> int:
        """Bytes of a memory for so many calls."""
        return size_for(self.candidate, calls)

    def session(self) -> Session:
        """The process that all gates share, so that what a candidate keeps would show."""
        if self._shared is None and self._lent is not None:
            self._lent.load(self.candidate)
            self._shared = self._lent
        if self._shared is None:
            self._shared = self.fresh()
        return self._shared

    def fresh(self, calls: int = 1, candidate: Candidate | None = None) -> Session:
        """A new process.

        Args:
            calls: for how many calls its memory must have room.
            candidate: another one than the judged one; it may import what it likes.
        """
        size = max(self.size(calls), 0 if self._shared is None else self._shared.arena.size)
        walled = candidate is None
        return Session(candidate or self.candidate, size, transport=self._transport, walled=walled)

    def poison(self) -> float:
        """The two poisons in turn."""
        self._calls += 1
        return POISONS[self._calls % len(POISONS)]

    def prepared(
        self,
        case: Case,
        rng: np.random.Generator,
        *,
        at: Layout | None = None,
        poison: float | None = None,
    ) -> Prepared:
        """The memory before one call."""
        return prepared(
            [case],
            self.session().arena.size,
            rng,
            self.poison() if poison is None else poison,
            at=None if at is None else [at],
            device=self.session().arena.device,
        )

    def tried(self, ready: Prepared, *, trace: bool = False) -> Seen:
        """One call in the shared process."""
        seen = tried(self.session(), ready, trace=trace)
        light = replace(seen.judged, answers={}, bits={})
        self.seen.append(replace(seen, judged=light))
        return seen

    def lost(self) -> None:
        """Gives up the shared process; the next gate gets another one."""
        if self._shared is not None:
            self._shared.close()
            self._shared = self._lent = None

    def close(self) -> None:
        """Ends all that was started."""
        if self._shared is not self._lent:
            self.lost()
