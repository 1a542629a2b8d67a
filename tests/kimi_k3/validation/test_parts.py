# SPDX-License-Identifier: Apache-2.0
"""Launcher, timing, subjects and static gate, each by itself."""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from fasttrack.errors import InputError
from fasttrack.manifest.variants import Variant
from kimi_k3.decode.kernels.build import key_of, parameters_of
from kimi_k3.decode.kernels.catalogue import operands, table
from kimi_k3.decode.kernels.shapes import Operand, Role
from kimi_k3.validation.bench import Bench
from kimi_k3.validation.budget import BUDGETS
from kimi_k3.validation.controls.candidates import (
    controls,
    faulty_candidate,
    honest_candidate,
)
from kimi_k3.validation.controls.interpreted import Interpreted
from kimi_k3.validation.controls.run import gate_named
from kimi_k3.validation.draw import some
from kimi_k3.validation.gates import State
from kimi_k3.validation.gates import static as static_gate
from kimi_k3.validation.gates.static import Static
from kimi_k3.validation.launcher import Launcher
from kimi_k3.validation.memory import layouts, room
from kimi_k3.validation.operators import OPERATORS
from kimi_k3.validation.operators.base import Schema
from kimi_k3.validation.subjects import arguments_of, variants
from kimi_k3.validation.timing import Spread, timed
from kimi_k3.validation.trial import tried

MIX = honest_candidate("mix")


def double(o: Mapping[str, Any], rows: int) -> None:
    o["x"][:rows] *= 2


def kernel() -> Interpreted:
    return Interpreted("double", "d", double)


def test_launches_are_counted_and_ghosts_do_nothing() -> None:
    launcher, x = Launcher(), torch.ones(3)
    launcher.launch(kernel(), {"x": x}, 2)
    launcher.ghost = True
    launcher.launch(kernel(), {"x": x}, 2)
    assert x.tolist() == [2, 2, 1]
    assert launcher.told()["launches"] == [["double", "d", 2]]
    assert launcher.told()["launches"] == []


def test_what_runs_beside_launches_is_seen_and_views_are_not() -> None:
    launcher, x = Launcher(), torch.ones(3)
    with launcher.watched():
        launcher.launch(kernel(), {"x": x[:2].view(2)}, 2)
    assert launcher.told()["foreign"] == []
    with launcher.watched():
        x.add_(1)
    assert launcher.told()["foreign"] == ["add_"]


def test_a_failed_launch_is_noted_even_when_it_is_caught() -> None:
    def refuse(_: Mapping[str, Any], __: int) -> None:
        raise ValueError("no")

    launcher = Launcher()
    with pytest.raises(ValueError, match="no"):
        launcher.launch(Interpreted("refuses", "d", refuse), {}, 1)
    assert launcher.told()["failed"] == ["refuses: ValueError"]


def test_a_replay_launches_what_was_launched_and_nothing_beside_it() -> None:
    launcher, x, y = Launcher(), torch.ones(2), torch.zeros(1)

    def run() -> None:
        y.add_(1)
        launcher.launch(kernel(), {"x": x}, 2)

    replay = launcher.captured(run, "cpu")
    replay()
    replay()
    assert (x.tolist(), y.item()) == ([8, 8], 1)


def test_a_spread_has_the_middle_and_both_ends() -> None:
    spread = Spread.of([5.0, 1.0, 3.0, 2.0, 4.0])
    assert spread.median == 3
    assert spread.low <= 1.5
    assert spread.high >= 4.5
    assert Spread.of([7.0]) == Spread(7, 7, 7)


def test_candidate_and_stock_are_timed_on_the_same_memory() -> None:
    baseline = replace(
        MIX,
        entry="kimi_k3.validation.baseline:attn_res",
        arguments={"eps": 1e-5, "device": "cpu"},
        kernels=(),
    )
    with Bench(MIX, BUDGETS["smoke"], 1, baseline=baseline) as bench:
        found = timed(bench, 7, bench.rng("timing"))
    assert found.faults == ()
    assert found.rows == 7
    assert found.calls >= 2
    assert found.stock_cold is not None
    assert min(found.cold.median, found.warm.median, found.stock_cold.median) > 1


def test_a_stock_program_that_computes_something_else_would_be_no_baseline() -> None:
    """The baseline's own answers are right, judged like a candidate's."""
    baseline = replace(
        MIX,
        entry="kimi_k3.validation.baseline:attn_res",
        arguments={"eps": 1e-5, "device": "cpu"},
    )
    with (
        Bench(MIX, BUDGETS["smoke"], 1) as bench,
        bench.fresh(1, baseline) as session,
    ):
        rng = bench.rng("a test")
        for case in some(MIX, rng, 9):
            assert tried(session, bench.prepared(case, rng)).faults == ()


def test_without_timed_pairs_identity_is_judged_in_one_process() -> None:
    quick = replace(BUDGETS["smoke"], pairs=0)
    with Bench(MIX, quick, 1) as bench:
        outcome = gate_named("identity").judge(bench)
    assert outcome.state is State.PASSED
    assert "neither timed" in outcome.notes[0]
    matmul = next(one for one in controls().controls if one.name == "library-matmul")
    with Bench(faulty_candidate(matmul), quick, 1) as bench:
        assert gate_named("identity").judge(bench).state is State.FAILED


def test_the_static_gate_is_not_run_without_code_or_tools(monkeypatch: pytest.MonkeyPatch) -> None:
    with Bench(replace(MIX, code=None), BUDGETS["smoke"], 1) as bench:
        assert Static().judge(bench).state is State.NOT_RUN
    with Bench(MIX, BUDGETS["smoke"], 1) as bench:
        assert Static().judge(bench).state is State.PASSED

        def nowhere(tool: str) -> str:
            raise InputError.one(tool, "not installed", "it")

        monkeypatch.setattr(static_gate, "path_of", nowhere)
        outcome = Static().judge(bench)
    assert outcome.state is State.NOT_RUN
    assert "not installed" in outcome.notes[0]


def test_a_contract_that_can_not_be_read_is_a_refusal() -> None:
    assert MIX.code is not None
    odd = replace(MIX, code=replace(MIX.code, contract=b"contract: 1\n"))
    with Bench(odd, BUDGETS["smoke"], 1) as bench:
        assert Static().judge(bench).state is State.FAILED


def test_a_cubin_that_nobody_built_is_bad_input(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="kimi-k3 kernels build"):
        list(variants("attn_res", "attn-res", "sm_90a", tmp_path))


def test_a_row_means_the_same_machine_code_in_a_process_of_its_own(tmp_path: Path) -> None:
    for row in table("attn_res").variants:
        sent = json.loads(json.dumps(arguments_of("attn_res", row, tmp_path)))["variant"]
        came = Variant.model_validate_json(json.dumps(sent))
        assert key_of("attn_res", came) == key_of("attn_res", row)


def test_every_variant_has_operands_of_the_schema() -> None:
    schema: Schema = OPERATORS["attn-res"].schema
    for row in table("attn_res").variants:
        for one in operands("attn_res", parameters_of(row)):
            want = schema.operands[one.name]
            assert (one.dtype, one.role.value, len(one.shape)) == (
                want.dtype,
                want.role,
                len(want.shape),
            )


def test_a_memory_has_room_for_many_calls() -> None:
    one = Operand("x", "fp32", (100,), Role.OUT)
    size = room([one], 50)
    assert len(layouts([one], size, np.random.default_rng(0), 50)) == 50
