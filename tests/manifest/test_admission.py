# SPDX-License-Identifier: Apache-2.0
"""Axes that a question does not ask about, and those that only the runtime asks about."""

from dataclasses import fields, replace
from typing import Any

import pytest

from fasttrack.errors import InputError
from fasttrack.manifest.admission import Question, RegionAnswer, ask, require_known
from fasttrack.manifest.words import Ranks
from fasttrack.vocabulary import Tier

from .builders import manifest, region

NOTHING = Question(None, None, None, None, None, None)
ASKED: dict[str, Any] = {
    "gpu": "h200",
    "tp": 1,
    "dcp": 1,
    "requests": 4,
    "draft": 0,
    "context": 1,
    "graph_mode": "full",
    "weights": "mxfp4",
    "activations": "bf16",
    "kv_cache": "bf16",
    "conv_state": "bf16",
    "recurrent_state": "fp32",
}
PAST: dict[str, tuple[Any, str]] = {
    "gpu": ("b200", "gpu b200 is not one of h200"),
    "tp": (2, "tp 2 is not one of 1"),
    "dcp": (2, "dcp 2 is not one of 1"),
    "requests": (5, "5 requests are not within 1 to 4"),
    "draft": (1, "draft 1 is not one of 0"),
    "context": (2, "a context of 2 tokens exceeds 1"),
    "graph_mode": ("eager", "graph_mode eager is not one of full"),
    "weights": ("int4", "weights int4 is not one of mxfp4"),
    "activations": ("mxfp8", "activations mxfp8 is not one of bf16"),
    "kv_cache": ("fp8_e4m3", "kv_cache fp8_e4m3 is not one of bf16"),
    "conv_state": ("fp32", "conv_state fp32 is not one of bf16"),
    "recurrent_state": ("bf16", "recurrent_state bf16 is not one of fp32"),
}


def answer(question: Question, ranks: str = "real") -> RegionAnswer:
    (only,) = ask(manifest(region(ranks=ranks)), question, Tier.DECLARED)
    return only


@pytest.mark.parametrize("axis", ASKED)
def test_a_bound_speaks_of_its_axis_and_only_when_it_is_asked_about(axis: str) -> None:
    value, reason = PAST[axis]
    assert answer(replace(NOTHING, **{axis: ASKED[axis]})).outside == ()
    assert answer(replace(NOTHING, **{axis: value})).outside == (reason,)
    assert answer(Question(**ASKED | {axis: None})).outside == ()
    assert reason in answer(Question(**ASKED | {axis: value})).outside


def test_every_axis_of_a_question_is_tried() -> None:
    assert {one.name for one in fields(Question)} == {*ASKED, "ranks"} == {*PAST, "ranks"}


def test_rows_need_requests_and_draft() -> None:
    assert Question(None, None, None, 4, 7, None).rows == 32
    assert replace(NOTHING, requests=4).rows is replace(NOTHING, draft=7).rows is None
    past = "4 requests x (1 + 7 draft tokens) = 32 rows exceed 4"
    assert past in answer(Question(None, None, None, 4, 7, None)).outside


def test_devices_and_virtual_ranks_do_not_stand_for_each_other() -> None:
    virtual = replace(NOTHING, ranks=Ranks.VIRTUAL)
    assert answer(NOTHING, "real").admits
    assert answer(virtual, "virtual").admits
    assert answer(virtual, "real").outside == ("its ranks are devices, not virtual",)
    assert answer(NOTHING, "virtual").below == (
        "its ranks are virtual: one rank's shapes on one device, never a deployment",
    )


@pytest.mark.parametrize(
    ("gpu", "shown", "fix"),
    [
        ("H200", "'H200'", "--gpu h200"),
        ("h20", "'h20'", "--gpu h200"),
        ("", "''", ""),
        ("a100", "'a100'", ""),
        ("x" * 400, repr("x" * 40), ""),
    ],
)
def test_hardware_outside_the_vocabulary_is_told_from_hardware_outside_the_scope(
    gpu: str, shown: str, fix: str
) -> None:
    with pytest.raises(InputError) as caught:
        require_known(gpu, {"gb300": None, "h200": None, "cpu": None}, "--gpu")
    (problem,) = caught.value.problems
    want = "a hardware id of the policy: cpu, gb300, h200"
    assert (problem.where, problem.saw, problem.want, problem.fix) == ("--gpu", shown, want, fix)
    require_known("cpu", ("cpu", "h200"), "--gpu")
