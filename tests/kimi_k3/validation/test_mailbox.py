# SPDX-License-Identifier: Apache-2.0
"""Rows that arrive by a mailbox: what the judge puts there, and what it wants to find later."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from kimi_k3.decode.kernels.shapes import Operand, Role
from kimi_k3.decode.kernels.wait import SENTINEL, wait_operands
from kimi_k3.validation.candidate import Candidate
from kimi_k3.validation.case import Case
from kimi_k3.validation.judge import Kind
from kimi_k3.validation.memory import room
from kimi_k3.validation.operators import OPERATORS
from kimi_k3.validation.trial import Prepared, expected_of, prepared, red_zones, verdict

ROWS, HIDDEN, ROOM = 8, 64, 3
OPERATOR = OPERATORS["attn-res"]


def candidate(*, adds: bool) -> Candidate:
    """The form that adds what arrives to the prefix, or that to which the prefix arrives."""
    rows = (ROWS, HIDDEN)
    operands = (
        *([Operand("prefix", "bf16", rows, Role.IN)] if adds else []),
        *wait_operands(ROWS, HIDDEN),
        Operand("blocks", "bf16", (ROWS, ROOM, HIDDEN), Role.IN),
        Operand("saved", "int32", (), Role.SCALAR, low=1, high=ROOM),
        Operand("score", "fp32", (HIDDEN,), Role.STATIC),
        Operand("norm", "bf16", (HIDDEN,), Role.STATIC),
        Operand("out", "bf16", rows, Role.OUT),
        Operand("prefix_out", "bf16", rows, Role.OUT),
    )
    return Candidate(
        name="mailbox",
        operator="attn-res",
        entry="",
        arguments={},
        operands=operands,
        rows=(1, ROWS),
        constants={"eps": 1e-5},
        kernels=(),
        device="cpu",
    )


def ready_for(case: Case) -> Prepared:
    return prepared([case], room(case.candidate.memory), np.random.default_rng(1), 2.0**100)


def answered(ready: Prepared) -> torch.Tensor:
    """The memory with the right answer in it."""
    after = ready.image.clone()
    for name, right in expected_of(ready, 0).items():
        view = ready.layouts[0][name].view(after)
        view[right.written] = right.value[right.written].to(view.dtype)
    return after


CASES = st.builds(
    lambda adds, rows, ordinal, saved, seed: Case(
        candidate(adds=adds), rows, {"ordinal": ordinal, "saved": saved}, "normal", seed
    ),
    st.booleans(),
    st.integers(1, ROWS),
    st.integers(0, 1 << 16),
    st.integers(1, ROOM),
    st.integers(0, 2**62),
)


@given(CASES)
def test_the_right_answer_arms_the_mailbox_again_and_passes(case: Case) -> None:
    ready = ready_for(case)
    after = answered(ready)
    assert verdict(ready, 0, after).faults == ()
    assert red_zones(ready, after) == ()
    assert bool((ready.layouts[0]["mailbox"].view(after) == SENTINEL).all())


@given(CASES)
def test_rows_come_at_the_parity_of_the_exchange_and_nowhere_else(case: Case) -> None:
    content = OPERATOR.content(case)
    step, per_step = int(content["counter"][0]), int(content["exchange"][0])
    parity = (step * per_step + case.scalars["ordinal"]) % 2
    words = content["mailbox"]
    assert not bool((words[parity, : case.rows] == SENTINEL).any())
    assert bool((words[parity, case.rows :] == SENTINEL).all())
    assert bool((words[1 - parity] == SENTINEL).all())
    assert ("delta" in content, "prefix" in content) == (False, case.has("prefix"))


def _not_armed(ready: Prepared, after: torch.Tensor) -> None:
    place = ready.layouts[0]["mailbox"]
    place.view(after).copy_(place.view(ready.image))


def _other_parity(ready: Prepared, after: torch.Tensor) -> None:
    words = ready.layouts[0]["mailbox"].view(after)
    came = (ready.layouts[0]["mailbox"].view(ready.image) != SENTINEL).any(2).any(1)
    words[int((~came).nonzero()[0]), 0, 0] = 0


def _failed(ready: Prepared, after: torch.Tensor) -> None:
    ready.layouts[0]["fail"].view(after)[0] = 1


def _recorded(ready: Prepared, after: torch.Tensor) -> None:
    ready.layouts[0]["health"].view(after)[3] = 5


@pytest.mark.parametrize(
    ("breaks", "kinds"),
    [
        (_not_armed, {Kind.UNWRITTEN, Kind.VALUE}),
        (_other_parity, {Kind.STRAY}),
        (_failed, {Kind.STRAY}),
        (_recorded, {Kind.STRAY}),
    ],
)
def test_what_a_wait_leaves_otherwise_is_a_fault(
    breaks: Callable[[Prepared, torch.Tensor], None], kinds: set[Kind]
) -> None:
    case = Case(candidate(adds=True), 5, {"ordinal": 7, "saved": 2}, "normal", 11)
    ready = ready_for(case)
    after = answered(ready)
    breaks(ready, after)
    assert {fault.kind for fault in verdict(ready, 0, after).faults} == kinds
