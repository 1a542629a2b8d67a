# SPDX-License-Identifier: Apache-2.0
"""The whole validation: candidates through all gates, and the controls of each gate.

1. Every candidate is judged by every gate, in the order of their cost.
2. Every gate is given its controls: what it does not catch shows that its passes show nothing.
"""

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path

from kimi_k3.validation.bench import Bench, size_for
from kimi_k3.validation.budget import Budget
from kimi_k3.validation.candidate import Candidate
from kimi_k3.validation.controls.run import Caught, judged, run_controls
from kimi_k3.validation.gates import GATES, Gate, Outcome, State
from kimi_k3.validation.machine import Machine
from kimi_k3.validation.memory import room
from kimi_k3.validation.session import Session
from kimi_k3.validation.subjects import Subject

PACKAGE = Path(__file__).parent
JUDGE = ("", "gates", "operators")
"""Folders of this package that the judge is made of."""
ORACLE = PACKAGE.parent / "reference"


@dataclass(frozen=True)
class Validated:
    """A candidate's way through the gates.

    Attributes:
        candidate: who was judged.
        outcomes: name of a gate to what it said.
        seconds: name of a gate to what it took.
        launches: kernel's name and digest to how often its process said that it was launched.
    """

    candidate: Candidate
    outcomes: Mapping[str, Outcome]
    seconds: Mapping[str, float]
    launches: Mapping[tuple[str, str], int]

    @property
    def passed(self) -> bool:
        """Whether no gate refused it."""
        return all(one.state is not State.FAILED for one in self.outcomes.values())


@dataclass(frozen=True)
class Report:
    """What a validation found.

    Attributes:
        machine: where it ran.
        budget: how much was tried.
        seeds: of all draws, for one candidate after the other.
        validated: candidates, in the order of their tables.
        caught: controls, in the order of their gates.
        gates: which were asked.
    """

    machine: Machine
    budget: Budget
    seeds: tuple[int, ...]
    validated: tuple[Validated, ...]
    caught: tuple[Caught, ...]
    gates: tuple[Gate, ...]

    @property
    def passed(self) -> bool:
        """Whether no candidate was refused and no control got through."""
        return all(one.passed for one in self.validated) and not self.missed

    @property
    def missed(self) -> tuple[Caught, ...]:
        """Controls that got through; one that could not be run has not."""
        return tuple(one for one in self.caught if one.outcome.state is State.PASSED)

    def rate(self, gate: str) -> tuple[int, int]:
        """Controls that a gate caught, and how many it was given."""
        given = [c for c in self.caught if c.control.gate == gate and c.run]
        return sum(one.killed for one in given), len(given)


def validate(
    subjects: Sequence[Subject],
    budget: Budget,
    seeds: Sequence[int],
    machine: Machine,
    *,
    transport: str | None = None,
    controls: int | None = None,
    gates: Sequence[Gate] = GATES,
    together: bool = False,
) -> Report:
    """Judges candidates.

    Args:
        subjects: candidates, and what they are timed beside.
        budget: how much is tried.
        seeds: of all draws: the first candidate has the first one, and so on, and round again.
        machine: where they run.
        transport: how memory is shared; by default the closest way that the machine has.
        controls: how many of the gates' controls are run, drawn; all by default. Fewer than all run
            on the processor, as the judge is the same.
        gates: which gates.
        together: whether the candidates are variants of one kernel, and share a process.
    """
    with ExitStack() as stack:
        lent = None
        if together:
            widest = max((one.candidate for one in subjects), key=lambda one: room(one.memory))
            lent = stack.enter_context(Session(widest, size_for(widest), transport=transport))
        validated = tuple(
            _validated(one, budget, seed, machine, transport=transport, gates=gates, lent=lent)
            for one, seed in zip(subjects, cycle(seeds), strict=False)
        )
    names = [gate.name for gate in gates]
    where = machine.device if controls is None else "cpu"
    caught = run_controls(names, seeds[0], where, most=controls)
    return Report(machine, budget, tuple(seeds), validated, caught, tuple(gates))


def judge_files() -> list[str]:
    """Files that decide: gates, operators, this package's own, and the oracle."""
    own = [path for folder in JUDGE for path in (PACKAGE / folder).glob("*.py")]
    return sorted(str(path) for path in (*own, *ORACLE.glob("*.py")))


def _validated(
    subject: Subject,
    budget: Budget,
    seed: int,
    machine: Machine,
    *,
    transport: str | None,
    gates: Sequence[Gate],
    lent: Session | None,
) -> Validated:
    with Bench(
        subject.candidate,
        budget,
        seed,
        baseline=subject.baseline,
        peak_tb_s=machine.peak_tb_s,
        transport=transport,
        files=judge_files(),
        lent=lent,
    ) as bench:
        outcomes, seconds = {}, {}
        for gate in gates:
            started = time.monotonic()
            outcomes[gate.name] = judged(gate, bench)
            seconds[gate.name] = time.monotonic() - started
        launches: Counter[tuple[str, str]] = Counter()
        for seen in bench.seen:
            launches.update(seen.told.launches)
        return Validated(subject.candidate, outcomes, seconds, launches)
