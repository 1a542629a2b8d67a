# SPDX-License-Identifier: Apache-2.0
"""The gates on a GPU: kernels through them, and their negative controls.

Cubins come from `.gpu/kernels/`, made by `kimi-k3 kernels build --cache .gpu/kernels` anywhere.
"""

from pathlib import Path

import pytest

from fasttrack.pytest_plugin import Recorder
from kimi_k3.decode.kernels.catalogue import table
from kimi_k3.validation.budget import BUDGETS
from kimi_k3.validation.controls.candidates import Control, controls
from kimi_k3.validation.controls.run import run_control, run_honest
from kimi_k3.validation.gates import State
from kimi_k3.validation.machine import machine
from kimi_k3.validation.record import record
from kimi_k3.validation.report import as_text
from kimi_k3.validation.subjects import Subject, attn_res
from kimi_k3.validation.validate import validate
from tests.gpu.oracle import ON_GPU

pytestmark = pytest.mark.skipif(not ON_GPU, reason="cubins run on a GPU alone")
CACHE = Path(__file__).resolve().parents[2] / ".gpu" / "kernels"
SMOKE = BUDGETS["smoke"]
SM90 = [one for one in table("attn_res").variants if one.arch == "sm_90a" and one.tp == 8]
ON_DEVICE = [one for one in controls().controls if not one.host and one.gate != "static"]


def subjects(*names: str) -> list[Subject]:
    return [one for one in attn_res("sm_90a", CACHE) if not names or one.candidate.name in names]


@pytest.mark.parametrize("name", [one.id for one in SM90])
def test_a_variant_passes_every_gate(name: str, fasttrack_record: Recorder) -> None:
    report = validate(subjects(name), SMOKE, [1], machine("cuda"), controls=0)
    print(as_text(report))
    record(report, fasttrack_record, {one.id: one.kernel for one in SM90})
    assert report.passed, as_text(report)


@pytest.mark.parametrize("transport", ["ipc", "copy"])
def test_memory_is_shared_either_way(transport: str) -> None:
    (subject,) = subjects(SM90[2].id)
    report = validate([subject], SMOKE, [3], machine("cuda"), transport=transport, controls=0)
    identity = report.validated[0].outcomes["identity"]
    assert identity.facts["transport"] == transport
    assert report.passed, as_text(report)


@pytest.mark.parametrize("name", ["mix", "block"])
def test_an_honest_candidate_passes_every_gate_on_a_device(name: str) -> None:
    for gate, outcome in run_honest(name, SMOKE, 1, "cuda").items():
        assert outcome.state is not State.FAILED, (gate, outcome.findings)


@pytest.mark.parametrize("control", ON_DEVICE, ids=lambda one: one.name)
def test_a_control_is_caught_on_a_device(control: Control) -> None:
    caught = run_control(control, SMOKE, 1, "cuda")
    print(caught.outcome.findings[:3])
    assert caught.killed, control.why
