# SPDX-License-Identifier: Apache-2.0
"""Runs controls: what each gate catches of the candidates that it must catch."""

import random
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from kimi_k3.validation.bench import Bench
from kimi_k3.validation.budget import BUDGETS, Budget
from kimi_k3.validation.candidate import Candidate
from kimi_k3.validation.controls.candidates import (
    Control,
    controls,
    faulty_candidate,
    honest_candidate,
)
from kimi_k3.validation.gates import GATES, Gate, Outcome, State
from kimi_k3.validation.session import CandidateError

PEAK_TB_S = 0.003
"""Several times what a program of many small steps moves, as the controls are."""


@dataclass(frozen=True)
class Caught:
    """How a control fared.

    Attributes:
        control: which.
        outcome: of its gate.
    """

    control: Control
    outcome: Outcome

    @property
    def run(self) -> bool:
        """Whether its gate could look at it."""
        return self.outcome.state is not State.NOT_RUN

    @property
    def killed(self) -> bool:
        """Whether its gate caught it."""
        return self.outcome.state is State.FAILED


def gate_named(name: str) -> Gate:
    """The gate of that name."""
    return next(gate for gate in GATES if gate.name == name)


def judged(gate: Gate, bench: Bench) -> Outcome:
    """What a gate says; a process that ended is a finding."""
    try:
        return gate.judge(bench)
    except CandidateError as error:
        bench.lost()
        return Outcome(State.FAILED, (str(error),))


def run_control(control: Control, budget: Budget, seed: int, device: str = "cpu") -> Caught:
    """Has a control judged by the gate that must catch it.

    Args:
        control: which.
        budget: how much is tried.
        seed: of all draws.
        device: where it runs, unless it needs memory of the host.
    """
    where = "cpu" if control.host else device
    with tempfile.TemporaryDirectory() as folder:
        candidate = faulty_candidate(control, where, folder)
        with control_bench(candidate, budget, seed, folder) as bench:
            return Caught(control, judged(gate_named(control.gate), bench))


def run_honest(
    name: str, budget: Budget, seed: int, device: str = "cpu", gates: Sequence[Gate] = GATES
) -> dict[str, Outcome]:
    """Has an honest candidate judged, gate by gate.

    Args:
        name: of the honest candidate.
        budget: how much is tried.
        seed: of all draws.
        device: where it runs.
        gates: which.
    """
    with tempfile.TemporaryDirectory() as folder:
        candidate = honest_candidate(name, device, folder)
        with control_bench(candidate, budget, seed, folder) as bench:
            return {gate.name: judged(gate, bench) for gate in gates}


def control_bench(candidate: Candidate, budget: Budget, seed: int, folder: str) -> Bench:
    """Where a control is judged: one file of the judge's lies where its fault can reach it."""
    judge = Path(folder) / "judge"
    judge.write_text("what decides\n", encoding="utf-8")
    peak = PEAK_TB_S if candidate.device == "cpu" else None
    return Bench(candidate, budget, seed, peak_tb_s=peak, files=[str(judge)])


def run_controls(
    names: Sequence[str], seed: int, device: str = "cpu", *, most: int | None = None
) -> tuple[Caught, ...]:
    """Runs the controls of some gates, with the smallest budget.

    Args:
        names: of gates.
        seed: of all draws.
        device: where they run, unless they need memory of the host.
        most: how many, drawn from those of all these gates; all by default.
    """
    chosen = [one for one in controls().controls if one.gate in names]
    if most is not None:
        rng = random.Random(seed)  # noqa: S311  (nothing is kept secret by it)
        chosen = rng.sample(chosen, min(most, len(chosen)))
    return tuple(run_control(one, BUDGETS["smoke"], seed, device) for one in chosen)
