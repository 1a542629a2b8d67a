# SPDX-License-Identifier: Apache-2.0
"""Layouts keep operands apart, and the judge sees every byte that changes."""

from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from kimi_k3.decode.kernels.shapes import Operand, Role
from kimi_k3.validation.case import Expected
from kimi_k3.validation.judge import Kind, judged, strayed
from kimi_k3.validation.memory import (
    RED,
    STEP,
    Layout,
    blank,
    extent,
    layouts,
    room,
)

DTYPES = st.sampled_from(["bf16", "fp32", "int32", "int64"])


@st.composite
def operands(draw: st.DrawFn) -> tuple[Operand, ...]:
    found = []
    for i in range(draw(st.integers(1, 6))):
        shape = tuple(draw(st.lists(st.integers(1, 9), min_size=1, max_size=3)))
        inner = int(np.prod(shape[1:]))
        stride = draw(st.one_of(st.none(), st.integers(inner, 3 * inner)))
        found.append(Operand(f"o{i}", draw(DTYPES), shape, Role.OUT, stride))
    return tuple(found)


@given(operands(), st.integers(0, 2**32), st.integers(1, 4))
def test_operands_lie_apart_within_the_memory(
    some: tuple[Operand, ...], seed: int, calls: int
) -> None:
    size = room(some, calls)
    places = layouts(some, size, np.random.default_rng(seed), calls)
    spans = sorted(
        (place.offset, place.offset + extent(place.operand))
        for layout in places
        for place in layout.values()
    )
    assert len(spans) == calls * len(some)
    assert spans[0][0] >= RED
    assert spans[-1][1] + RED <= size
    assert all(start % STEP == 0 for start, _ in spans)
    for (_, end), (start, _) in pairwise(spans):
        assert start - end >= RED


@given(operands(), st.integers(0, 2**32), st.data())
def test_every_changed_byte_is_a_fault_of_the_right_kind(
    some: tuple[Operand, ...], seed: int, data: st.DataObject
) -> None:
    rng = np.random.default_rng(seed)
    size = room(some)
    (layout,) = layouts(some, size, rng)
    before = blank(size, rng)
    at = data.draw(st.integers(0, size - 1))
    owned = torch.zeros(size, dtype=torch.uint8)
    for place in layout.values():
        place.bits(owned).fill_(-1)
    after = before.clone()
    after[at] ^= data.draw(st.integers(1, 255))
    found = (
        *judged(layout, before, after, nothing(layout)).faults,
        *strayed(before, after, list(layout.values())),
    )
    assert [fault.kind for fault in found] == [Kind.STRAY if owned[at] else Kind.RED_ZONE]


def nothing(layout: Layout) -> dict[str, Expected]:
    """Nothing is to be written."""
    return {
        name: Expected(
            torch.zeros(place.operand.shape, dtype=torch.float64),
            torch.zeros(place.operand.shape, dtype=torch.float64),
            torch.zeros(place.operand.shape, dtype=torch.bool),
        )
        for name, place in layout.items()
    }


@pytest.mark.parametrize(
    ("written", "kinds"),
    [
        (1.0, []),
        (1.0009765625, []),
        (1.25, [Kind.VALUE]),
        (float("nan"), [Kind.NOT_A_NUMBER]),
        (float("inf"), [Kind.NOT_A_NUMBER]),
        (None, [Kind.UNWRITTEN, Kind.VALUE]),
    ],
)
def test_values_are_held_to_their_bound(written: float | None, kinds: list[Kind]) -> None:
    out = Operand("out", "fp32", (2, 3), Role.OUT)
    (layout,) = layouts([out], room([out]), np.random.default_rng(0))
    before = blank(room([out]), np.random.default_rng(1))
    layout["out"].view(before).fill_(2.0**100)
    after = before.clone()
    layout["out"].view(after)[0] = 1.0
    layout["out"].view(after)[0, 1] = 2.0**100 if written is None else written
    mask = torch.tensor([[True] * 3, [False] * 3])
    one = torch.ones(2, 3, dtype=torch.float64)
    found = judged(layout, before, after, {"out": Expected(one, one * 1e-3, mask)})
    assert [fault.kind for fault in found.faults] == kinds


@pytest.mark.parametrize("role", [Role.IN, Role.STATIC])
def test_what_is_only_read_must_stay(role: Role) -> None:
    one = Operand("x", "int32", (4,), role)
    (layout,) = layouts([one], room([one]), np.random.default_rng(0))
    before = blank(room([one]), np.random.default_rng(1))
    after = before.clone()
    layout["x"].view(after)[2] += 1
    assert [f.kind for f in judged(layout, before, after, {}).faults] == [Kind.INPUT]


def test_a_workspace_may_hold_anything() -> None:
    one = Operand("x", "int32", (4,), Role.WORKSPACE)
    (layout,) = layouts([one], room([one]), np.random.default_rng(0))
    before = blank(room([one]), np.random.default_rng(1))
    after = before.clone()
    layout["x"].view(after)[2] += 1
    assert judged(layout, before, after, {}).faults == ()
