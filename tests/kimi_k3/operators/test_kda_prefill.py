# SPDX-License-Identifier: Apache-2.0
"""Prompts through KDA against the reference, which takes one token at a time."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from kimi_k3.config import K3Config
from kimi_k3.operators import kda
from kimi_k3.packed import PackedKda
from kimi_k3.reference import kda as reference
from kimi_k3.reference.context import Context
from kimi_k3.reference.state import KdaState, SlotWindow
from kimi_k3.rounding import exact
from kimi_k3.step import Group, GroupTensors, Kind
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

F32 = exact(torch.float32)


def config(lower: float | None = -5.0) -> K3Config:
    return replace(odd(), gate_lower_bound=lower)


def by_token(ctx: Context, one: Case) -> tuple[torch.Tensor, KdaState]:
    """The reference's output [M, H] and state, one row of each request per step."""
    w, state = weights(ctx.rounding.compute).layers[KDA].attention, one.memory.copy().state
    assert isinstance(w, KdaWeights)
    part, outs = one.part, []
    fresh = part.lengths == part.group.rows
    state.recurrent[part.slots[fresh, 0]] = 0
    state.conv[part.slots[fresh, 0]] = 0
    accepted = torch.where(fresh, 1, part.accepted)
    x = one.x.unflatten(0, (-1, part.group.rows))  # [R, T, H]
    for t in range(part.group.rows):
        window = SlotWindow(1, part.slots, accepted)
        outs.append(reference.kda(ctx, w, x[:, t], state, window))
        accepted = torch.ones_like(accepted)
    return torch.stack(outs, 1).flatten(0, 1), state


def run(ctx: Context, one: Case, state: KdaState | None = None) -> tuple[torch.Tensor, KdaState]:
    state = state or one.memory.copy().state
    w = packed(ctx.rounding.compute).layers[KDA].attention
    assert isinstance(w, PackedKda)
    return kda_block(ctx, w, one.x, state, one.part), state


def check(ctx: Context, one: Case, tolerance: float = 1e-12) -> None:
    (got, own), (want_a, want) = run(ctx, one), by_token(ctx, one)
    close(got, want_a, tolerance)
    close(own.recurrent, want.recurrent, tolerance)
    # The newest inputs only: what else a window holds is not read after a prefill.
    close(own.conv[:, :, :3], want.conv[:, :, :3], tolerance)
    others = torch.ones(len(own.conv), dtype=torch.bool)
    others[one.part.slots[one.live, 0]] = False
    assert torch.equal(bits(own.conv[others]), bits(one.memory.state.conv[others]))
    assert torch.equal(bits(own.recurrent[others]), bits(one.memory.state.recurrent[others]))


@pytest.mark.parametrize("lower", [-5.0, None])
@pytest.mark.parametrize("tokens", [1, 2, 3, 15, 16, 17, 63, 64, 65, 130, 200])
def test_a_prompt_equals_the_reference_token_by_token(tokens: int, lower: float | None) -> None:
    """The first request is new, the second continues, and one is padding."""
    one = case([True, True, False], tokens, kind=Kind.PREFILL, history=[0, 3, 0], pages=60)
    check(context(F64, config(lower)), one)


@settings(max_examples=20, deadline=None)
@given(
    tokens=st.integers(1, 40),
    alive=st.lists(st.booleans(), min_size=1, max_size=4),
    seed=st.integers(0, 1000),
)
def test_prompts_of_equal_length_equal_the_reference_with_padding_anywhere(
    tokens: int, alive: list[bool], seed: int
) -> None:
    check(context(), case(alive, tokens, seed=seed, kind=Kind.PREFILL, pages=20))


def test_a_prompt_in_fp32_equals_float64_to_the_roundings_of_its_products() -> None:
    """Dot products over 40 inputs, 8 keys and 64 tokens, at 2^-24 each and 4 times their root."""
    one = case([True], 200, kind=Kind.PREFILL, history=[0], rounding=F32, pages=60)
    got, state = run(context(F32), one)
    wide = case([True], 200, kind=Kind.PREFILL, history=[0], pages=60)
    want, exact_state = run(context(), wide)
    bound = 4 * (40 + 8 + 64) ** 0.5 * 2.0**-24
    close(got.double(), want, bound)
    close(state.recurrent.double(), exact_state.recurrent, bound)


@pytest.mark.parametrize("point", ["projection", "conv_out", "raw_decay", "kda_out", "attn_out"])
def test_each_rounding_point_stands_where_the_reference_has_it(point: str) -> None:
    one = case([True], 20, kind=Kind.PREFILL, history=[0])
    ctx = context(gridded(point))
    check(ctx, one, 1e-11)
    assert (run(ctx, one)[0] - run(context(), one)[0]).abs().max() > 1e-6


def chunked(one: Case, cuts: Sequence[int]) -> tuple[torch.Tensor, KdaState]:
    """The prompt of `one` in consecutive parts."""
    state, outs, part = one.memory.copy().state, [], one.part
    x = one.x.unflatten(0, (-1, part.group.rows))
    before = part.lengths - part.group.rows
    accepted = part.accepted
    for start, stop in zip((0, *cuts), (*cuts, part.group.rows), strict=True):
        count = stop - start
        piece = GroupTensors(
            Group(Kind.PREFILL, part.group.requests, count),
            slice(0, part.group.requests * count),
            part.slots,
            accepted,
            part.block_table,
            before + stop,
        )
        rows = x[:, start:stop].flatten(0, 1)
        outs.append(run(context(), replace(one, part=piece, x=rows), state)[0])
        outs[-1] = outs[-1].unflatten(0, (-1, count))
        accepted = torch.ones_like(accepted)
    return torch.cat(outs, 1).flatten(0, 1), state


@settings(max_examples=25, deadline=None)
@given(
    cuts=st.lists(st.integers(1, 89), min_size=1, max_size=2, unique=True).map(sorted),
    history=st.sampled_from([0, 5]),
)
def test_a_prompt_may_be_split_anywhere(cuts: list[int], history: int) -> None:
    one = case([True, True], 90, kind=Kind.PREFILL, history=[history, history], pages=30)
    (got, state), (want, whole) = chunked(one, cuts), run(context(), one)
    close(got, want)
    close(state.recurrent, whole.recurrent)
    close(state.conv[:, :, :3], whole.conv[:, :, :3])


def test_a_verify_window_follows_a_prompt_like_the_tokens_themselves() -> None:
    prompt = case([True], 33, kind=Kind.PREFILL, history=[0], pages=20)
    whole = case([True], 38, kind=Kind.PREFILL, history=[0], pages=20)
    whole = replace(
        whole,
        x=torch.cat([prompt.x, whole.x[33:]]),
        part=replace(whole.part, slots=prompt.part.slots),
    )
    _, state = run(context(), prompt)
    group = Group(Kind.WINDOW, 1, 5)
    window = replace(whole.part, group=group, rows=slice(0, 5), accepted=torch.ones(1).long())
    w = packed(torch.float64).layers[KDA].attention
    assert isinstance(w, PackedKda)
    got = kda_block(context(), w, whole.x[33:], state, window)
    close(got, run(context(), whole)[0][33:])


def test_padding_is_written_nowhere() -> None:
    one = case([False, False], 20, kind=Kind.PREFILL)
    w = packed(torch.float64).layers[KDA].attention
    assert isinstance(w, PackedKda)
    assert kda.project(context(), w, one.x).isnan().any()
    got, state = run(context(), one)
    assert not got.any()
    assert torch.equal(bits(state.recurrent), bits(one.memory.state.recurrent))
    assert torch.equal(bits(state.conv), bits(one.memory.state.conv))
