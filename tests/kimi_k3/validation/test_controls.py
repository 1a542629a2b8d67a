# SPDX-License-Identifier: Apache-2.0
"""Honest candidates pass every gate; each fault is caught by the gate that must catch it."""

from collections import Counter
from dataclasses import replace

import pytest

from kimi_k3.validation.budget import BUDGETS
from kimi_k3.validation.controls import delta, mix_cheats, mix_faults
from kimi_k3.validation.controls.candidates import (
    Control,
    controls,
    faulty_candidate,
    honest_candidate,
)
from kimi_k3.validation.controls.run import run_control, run_honest
from kimi_k3.validation.gates import GATES, State

SMOKE = BUDGETS["smoke"]
SEED = 1
CONTROLS = controls().controls


@pytest.mark.parametrize("name", controls().honest)
def test_an_honest_candidate_passes_every_gate(name: str) -> None:
    outcomes = run_honest(name, SMOKE, SEED)
    assert list(outcomes) == [gate.name for gate in GATES]
    for gate, outcome in outcomes.items():
        assert outcome.state is State.PASSED, (gate, outcome.findings)


@pytest.mark.parametrize("control", CONTROLS, ids=lambda one: one.name)
def test_a_fault_is_caught_by_its_gate(control: Control) -> None:
    caught = run_control(control, SMOKE, SEED)
    assert caught.killed, control.why
    assert all("RuntimeError" not in finding for finding in caught.outcome.findings)


@pytest.mark.parametrize("control", CONTROLS, ids=lambda one: one.name)
def test_a_control_without_its_fault_is_the_honest_candidate(control: Control) -> None:
    mended = control.model_copy(update={"fault": "", "classes": {}, "code": (), "digest": False})
    honest = honest_candidate(control.honest)
    without = faulty_candidate(mended)
    assert dict(without.arguments) == {**honest.arguments, "fault": ""}
    assert replace(without, name=honest.name, arguments=honest.arguments) == honest
    assert faulty_candidate(control) != without


def test_each_gate_has_two_controls_and_three_are_demos() -> None:
    given = Counter(one.gate for one in CONTROLS)
    assert set(given) == {gate.name for gate in GATES}
    assert min(given.values()) >= 2
    assert sum(one.demo for one in CONTROLS) == 3
    assert len({one.name for one in CONTROLS}) == len(CONTROLS)


def test_every_fault_that_is_written_is_a_control() -> None:
    written = {*mix_faults.FAULTS, *mix_cheats.FAULTS, *delta.FAULTS}
    assert written == {one.fault for one in CONTROLS} - {""}


def test_a_control_is_of_a_mode_that_its_gate_closes() -> None:
    closes = {gate.name: gate.closes for gate in GATES}
    for one in CONTROLS:
        assert set(one.modes) <= set(closes[one.gate]), one.name


def test_a_replacement_that_fits_nowhere_is_refused() -> None:
    odd = CONTROLS[0].model_copy(update={"code": ("no such text", "")})
    with pytest.raises(ValueError, match="no such text"):
        faulty_candidate(odd)
