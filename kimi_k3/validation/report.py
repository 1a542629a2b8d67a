# SPDX-License-Identifier: Apache-2.0
"""A validation's report, for people and for programs."""

import json
from collections.abc import Iterator
from typing import Any

from kimi_k3.validation.controls.run import Caught
from kimi_k3.validation.validate import Report, Validated

FORMAT_VERSION = 1
COPIED = (2, 22, 28)
"""Modes that are open where a candidate's own process moves the bytes."""


def as_json(report: Report) -> str:
    """All of it."""
    machine, budget = report.machine, report.budget
    said: dict[str, Any] = {
        "version": FORMAT_VERSION,
        "passed": report.passed,
        "budget": budget.name,
        "seeds": list(report.seeds),
        "device": {"name": machine.name, "arch": machine.arch, "peak_tb_s": machine.peak_tb_s},
        "isolation": "harness",
        "candidates": [_candidate(one) for one in report.validated],
        "gates": [
            {"number": gate.number, "name": gate.name, "closes": _closed(report, gate.closes)}
            | dict(zip(("killed", "controls"), report.rate(gate.name), strict=True))
            for gate in report.gates
        ],
        "controls": [_control(one) for one in report.caught],
    }
    return json.dumps(said, indent=1)


def as_text(report: Report) -> str:
    """What matters, findings in full."""
    return "\n".join(_lines(report))


def _lines(report: Report) -> Iterator[str]:
    verdict = "passed" if report.passed else "REFUSED"
    yield f"{verdict}: {report.budget.name} on {report.machine.name}"
    for one in report.validated:
        yield f"{one.candidate.name} ({one.candidate.operator})"
        for gate in report.gates:
            outcome = one.outcomes[gate.name]
            facts = "".join(f", {name} {value}" for name, value in outcome.facts.items())
            took = f"{one.seconds[gate.name]:.1f} s"
            yield f"  {gate.number} {gate.name:<10} {outcome.state.value:<7} {took}{facts}"
            yield from (f"     - {finding}" for finding in outcome.findings)
            yield from (f"     note: {note}" for note in outcome.notes)
    if report.caught:
        yield "negative controls"
    for gate in report.gates:
        killed, given = report.rate(gate.name)
        if given:
            yield f"  {gate.number} {gate.name:<10} caught {killed} of {given}"
    for caught in report.missed:
        yield f"     - {caught.control.name} got through: {caught.control.why}"
    left = sum(not caught.run for caught in report.caught)
    if left:
        yield f"     note: {left} could not be run here"


def _candidate(one: Validated) -> dict[str, Any]:
    candidate = one.candidate
    return {
        "name": candidate.name,
        "operator": candidate.operator,
        "rows": list(candidate.rows),
        "kernels": [{"name": k.name, "digest": k.digest} for k in candidate.kernels],
        "gates": {
            name: {
                "state": outcome.state.value,
                "findings": list(outcome.findings),
                "notes": list(outcome.notes),
                "facts": dict(outcome.facts),
                "seconds": round(one.seconds[name], 2),
            }
            for name, outcome in one.outcomes.items()
        },
    }


def _control(caught: Caught) -> dict[str, Any]:
    return {
        "gate": caught.control.gate,
        "name": caught.control.name,
        "run": caught.run,
        "killed": caught.killed,
        "modes": list(caught.control.modes),
        "finding": caught.outcome.findings[0] if caught.outcome.findings else "",
    }


def _closed(report: Report, modes: tuple[int, ...]) -> list[int]:
    """Modes that a pass of a gate rules out, as memory was shared in this run."""
    copied = any(
        outcome.facts.get("transport") == "copy"
        for one in report.validated
        for outcome in one.outcomes.values()
    )
    return [mode for mode in modes if not (copied and mode in COPIED)]
