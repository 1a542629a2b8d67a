# SPDX-License-Identifier: Apache-2.0
"""`kimi-k3 validate` and the report behind it: what they say, and how they end."""

import json
from collections.abc import Sequence
from dataclasses import replace

import pytest
import torch
from click.testing import CliRunner, Result

from fasttrack.errors import Exit, InputError
from fasttrack.pytest_plugin import Recorder
from kimi_k3.cli import cli
from kimi_k3.validation import subjects
from kimi_k3.validation.budget import BUDGETS
from kimi_k3.validation.controls.candidates import (
    controls,
    faulty_candidate,
    honest_candidate,
)
from kimi_k3.validation.controls.run import Caught
from kimi_k3.validation.gates import GATES, Outcome, State
from kimi_k3.validation.machine import machine
from kimi_k3.validation.record import record
from kimi_k3.validation.report import as_json, as_text
from kimi_k3.validation.subjects import ON_CPU, UNITS, Subject
from kimi_k3.validation.validate import Report, Validated, judge_files, validate

SMOKE = BUDGETS["smoke"]
QUICK = [gate for gate in GATES if gate.name in {"provenance", "numerics"}]
HERE = machine("cpu")
NARROW = next(one for one in controls().controls if one.name == "narrow-sums")
MISSED = Caught(NARROW, Outcome(State.PASSED))


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["validate", *arguments])


def report_of(*some: Subject, given: Sequence[Caught] = ()) -> Report:
    found = validate(some, SMOKE, [1], HERE, controls=0, gates=QUICK)
    return replace(found, caught=tuple(given))


HONEST = Subject(honest_candidate("mix"), None)
FAULTY = Subject(faulty_candidate(NARROW), None)


def test_a_report_of_an_honest_candidate_is_a_pass_in_text_and_json() -> None:
    report = report_of(HONEST)
    assert report.passed
    assert as_text(report).splitlines()[0] == "passed: smoke on a processor"
    said = json.loads(as_json(report))
    assert (said["version"], said["passed"], said["isolation"]) == (1, True, "harness")
    (one,) = said["candidates"]
    assert {name: gate["state"] for name, gate in one["gates"].items()} == {
        "provenance": "passed",
        "numerics": "passed",
    }
    assert [kernel["name"] for kernel in one["kernels"]] == ["score", "mix"]


def test_a_faulty_candidate_is_refused_and_the_report_tells_where() -> None:
    report = report_of(HONEST, FAULTY)
    assert not report.passed
    text = as_text(report)
    assert text.startswith("REFUSED")
    assert "times the bound" in text
    assert [one.passed for one in report.validated] == [True, False]


def test_a_control_that_gets_through_refuses_everything() -> None:
    report = report_of(HONEST, given=[MISSED])
    assert not report.passed
    assert "narrow-sums got through" in as_text(report)
    assert report.rate("numerics") == (0, 1)


def test_a_control_that_could_not_be_run_is_neither_caught_nor_missed() -> None:
    report = report_of(HONEST, given=[Caught(NARROW, Outcome(State.NOT_RUN))])
    assert report.passed
    assert report.rate("numerics") == (0, 0)
    assert "1 could not be run here" in as_text(report)


def test_variants_of_one_kernel_may_share_a_process() -> None:
    some = [HONEST, Subject(honest_candidate("block"), None), FAULTY]
    quick = replace(SMOKE, pairs=0)
    asked = [gate for gate in GATES if gate.name != "static"]
    found = validate(some, quick, [2], HERE, controls=0, gates=asked, together=True)
    assert [one.passed for one in found.validated] == [True, True, False]
    recorder = Recorder()
    record(found, recorder)
    assert [one["name"] for one in recorder.gates][-1] == "identity-in-part"
    apart = validate(some, quick, [2], HERE, controls=0, gates=asked)
    for one, other in zip(found.validated, apart.validated, strict=True):
        assert {n: o.state for n, o in one.outcomes.items()} == {
            n: o.state for n, o in other.outcomes.items()
        }


def test_a_few_controls_may_be_drawn_by_the_seed() -> None:
    drawn = set()
    for seed in range(2):
        found = validate([HONEST], SMOKE, [seed], HERE, controls=2, gates=QUICK)
        assert found.passed
        assert {one.control.gate for one in found.caught} <= {gate.name for gate in QUICK}
        rates = [found.rate(gate.name) for gate in QUICK]
        assert tuple(map(sum, zip(*rates, strict=True))) == (2, 2)
        drawn |= {one.control.name for one in found.caught}
    assert len(drawn) > 2


def test_copied_memory_leaves_modes_open() -> None:
    report = report_of(HONEST)
    (one,) = report.validated
    gates = tuple(gate for gate in GATES if gate.name == "identity")
    for transport, closed in (("copy", False), ("ipc", True)):
        outcome = Outcome(State.PASSED, facts={"transport": transport})
        shown = Validated(one.candidate, {"identity": outcome}, {"identity": 0.0}, {})
        said = json.loads(as_json(replace(report, validated=(shown,), gates=gates)))
        assert ({2, 22, 28} <= set(said["gates"][0]["closes"])) is closed


def test_gates_launches_and_bounds_are_recorded_for_evidence() -> None:
    recorder = Recorder()
    caught = Caught(NARROW, Outcome(State.FAILED, ("off",)))
    record(report_of(HONEST, given=[caught]), recorder, {"mix": "attn-res"})
    assert recorder.gates == [
        {"name": "provenance", "passed": True, "controls": 0, "killed": 0},
        {"name": "numerics", "passed": True, "controls": 1, "killed": 1},
    ]
    digest = HONEST.candidate.kernels[0].digest
    calls = 2 + SMOKE.cases
    assert recorder.launches == {("attn-res", digest, None, "mix"): 2 * calls}
    assert {one["name"] for one in recorder.tolerances} == {
        "out of attn-res",
        "prefix_out of attn-res",
    }


def test_without_a_gpu_the_stand_ins_are_validated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert set(ON_CPU) < set(UNITS)
    done = run("--variant", "mix", "--seed", "5", "--no-controls", "--format", "json")
    assert done.exit_code == 0, done.output
    said = json.loads(done.stdout)
    assert [one["name"] for one in said["candidates"]] == ["mix"]
    assert said["seeds"] == [5]
    facts = said["candidates"][0]["gates"]["identity"]["facts"]
    assert facts["stock cold us"] > 0


def test_a_refused_candidate_ends_the_command_with_1(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setitem(
        subjects.UNITS,
        "stand-ins",
        lambda _arch, _cache: iter([FAULTY]),  # type: ignore[misc]
    )
    done = run("--seed", "1", "--no-controls")
    assert done.exit_code == Exit.REFUSED
    assert done.stdout.startswith("REFUSED")


@pytest.mark.parametrize(
    ("arguments", "saw"),
    [
        (("--unit", "attn-res"), "attn-res, and no GPU"),
        (("--variant", "none"), "saw none; want one of mix, block, delta"),
    ],
)
def test_what_is_not_here_is_bad_input(
    arguments: tuple[str, ...], saw: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    done = run(*arguments)
    assert isinstance(done.exception, InputError)
    assert saw in str(done.exception)


def test_the_judge_is_made_of_files_that_are_there() -> None:
    names = [path.rsplit("/", 1)[-1] for path in judge_files()]
    assert {"judge.py", "numerics.py", "attn_res.py", "validate.py"} <= set(names)
    assert not any("controls" in path for path in judge_files())
