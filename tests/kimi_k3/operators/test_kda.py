# SPDX-License-Identifier: Apache-2.0
"""Windows of KDA against the reference, in memory where everything unaddressed is NaN."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from kimi_k3.operators import kda
from kimi_k3.packed import PackedKda
from kimi_k3.reference import kda as reference
from kimi_k3.reference.state import KdaState, SlotWindow
from kimi_k3.rounding import Rounding
from kimi_k3.weights import KdaWeights
from tests.kimi_k3.operators.builders import (
    F64,
    KDA,
    Case,
    bits,
    case,
    close,
    context,
    gridded,
    kda_block,
    packed,
    weights,
)
from tests.kimi_k3.reference.builders import odd

POINTS = ("projection", "conv_out", "raw_decay", "kda_out", "attn_out")


def both(
    one: Case, rounding: Rounding = F64, lower: float | None = -5.0
) -> tuple[torch.Tensor, KdaState]:
    """Run operators and reference on copies of the memory; returns the output and the state."""
    config = replace(odd(), gate_lower_bound=lower)
    ctx, w = context(rounding, config), weights(rounding.compute).layers[KDA].attention
    own, p = one.memory.copy().state, packed(rounding.compute).layers[KDA].attention
    want = one.memory.copy().state
    assert isinstance(w, KdaWeights)
    assert isinstance(p, PackedKda)
    got_a = kda_block(ctx, p, one.x, own, one.part)
    window = SlotWindow(one.part.group.rows, one.part.slots, one.part.accepted)
    want_a = reference.kda(ctx, w, one.x, want, window)
    close(got_a, want_a)
    close(own.recurrent, want.recurrent)
    close(own.conv, want.conv)
    return got_a, own


@settings(max_examples=40, deadline=None)
@given(
    rows=st.integers(1, 8),
    alive=st.lists(st.booleans(), min_size=1, max_size=4),
    seed=st.integers(0, 1000),
    lower=st.sampled_from([-5.0, None]),
)
def test_a_window_equals_the_reference_with_padding_anywhere(
    rows: int, alive: list[bool], seed: int, lower: float | None
) -> None:
    one = case(alive, rows, seed=seed)
    _, own = both(one, lower=lower)
    written = one.part.slots[one.live][:, :rows].flatten()
    others = torch.ones(len(own.recurrent), dtype=torch.bool)
    others[written] = False
    assert torch.equal(bits(own.recurrent[others]), bits(one.memory.state.recurrent[others]))
    others = torch.ones(len(own.conv), dtype=torch.bool)
    others[one.part.slots[one.live][:, 0]] = False
    assert torch.equal(bits(own.conv[others]), bits(one.memory.state.conv[others]))


@pytest.mark.parametrize("point", POINTS)
def test_each_rounding_point_stands_where_the_reference_has_it(point: str) -> None:
    one = case([True, False, True], 3, seed=1)
    assert (both(one, gridded(point))[0] - both(one)[0]).abs().max() > 1e-6


def test_padding_gives_zeros_and_leaves_even_the_null_slot_alone() -> None:
    one = case([False, False], 2)
    state, w = one.memory.copy().state, packed(torch.float64).layers[KDA].attention
    assert isinstance(w, PackedKda)
    projected = kda.project(context(), w, one.x)
    attn = kda.window(context(), w, projected, state, one.part)
    assert projected.isnan().any()
    assert not attn.any()
    assert torch.equal(bits(state.recurrent), bits(one.memory.state.recurrent))
    assert torch.equal(bits(state.conv), bits(one.memory.state.conv))


def test_a_null_slot_within_a_live_window_is_not_written() -> None:
    one = case([True], 3, history=[4])
    one.part.accepted[0] = 1
    one.memory.state.recurrent[one.part.slots[0, 0]] = 0.25
    one.part.slots[0, 1] = 0
    _, own = both(one)
    assert own.recurrent[0].isnan().all()


def test_a_window_longer_than_the_state_is_refused() -> None:
    one = case([True], 8)
    short = replace(one.memory.state, conv=one.memory.state.conv[:, :, :9])
    w = packed(torch.float64).layers[KDA].attention
    assert isinstance(w, PackedKda)
    projected = kda.project(context(), w, one.x)
    one.part.accepted[0] = 1
    with pytest.raises(ValueError, match="10 inputs per channel to keep; the state has 9"):
        kda.window(context(), w, projected, short, one.part)
