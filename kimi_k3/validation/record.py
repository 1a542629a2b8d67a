# SPDX-License-Identifier: Apache-2.0
"""Tells a validation to whoever collects evidence: gates and kill rates, launches, bounds."""

from collections.abc import Mapping
from typing import Protocol

from kimi_k3.validation.candidate import Candidate
from kimi_k3.validation.gates import State
from kimi_k3.validation.gates.identity import Identity
from kimi_k3.validation.operators import OPERATORS
from kimi_k3.validation.validate import Report

IN_PART = "identity-in-part"
"""What the gate is called where it leaves out time, trace and other processes."""


class Recorder(Protocol):
    """What is needed of `fasttrack_record`."""

    def tolerance(
        self, name: str, dtype: str, *, atol: float = 0.0, rtol: float = 0.0, reason: str
    ) -> tuple[float, float]:
        """Notes a tolerance."""

    def launched(
        self, name: str, launches: int = 1, cubin: str | None = None, *, variant: str | None = None
    ) -> None:
        """Notes that a kernel ran."""

    def gate(self, name: str, *, passed: bool, controls: int, killed: int) -> None:
        """Notes a gate."""


def record(report: Report, recorder: Recorder, kernels: Mapping[str, str] | None = None) -> None:
    """Notes what a report says.

    Args:
        report: of candidates that are variants of a table.
        recorder: `fasttrack_record`.
        kernels: candidate to the kernel of its variant; their symbols where it names none.
    """
    for gate in report.gates:
        killed, given = report.rate(gate.name)
        states = [one.outcomes[gate.name].state for one in report.validated]
        if any(state is not State.NOT_RUN for state in states):
            passed = all(state is not State.FAILED for state in states)
            whole = report.budget.pairs or gate.name != Identity.name
            name = gate.name if whole else IN_PART
            recorder.gate(name, passed=passed, controls=given, killed=killed)
    for one in report.validated:
        candidate = one.candidate
        for kernel in candidate.kernels:
            name = (kernels or {}).get(candidate.name, kernel.name)
            launches = one.launches.get((kernel.name, kernel.digest), 0)
            if launches:
                recorder.launched(name, launches, kernel.digest, variant=candidate.name)
        _tolerances(candidate, recorder)


def _tolerances(candidate: Candidate, recorder: Recorder) -> None:
    for name, dtype, rtol, reason in OPERATORS[candidate.operator].tolerances():
        if candidate.operand(name) is not None:
            recorder.tolerance(f"{name} of {candidate.operator}", dtype, rtol=rtol, reason=reason)
