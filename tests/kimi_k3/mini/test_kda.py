# SPDX-License-Identifier: Apache-2.0
"""Prepared KDA against the reference, a matrix form, and the bits of the reference provider."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
import torch

from fasttrack.pytest_plugin import Recorder
from kimi_k3.config import mini
from kimi_k3.mini import kda
from kimi_k3.mini.windows import Windows
from kimi_k3.operators import kda as operators
from kimi_k3.packed import PackedKda
from kimi_k3.reference import kda as reference
from kimi_k3.reference.hooks import Recorder as Taps
from kimi_k3.reference.kda_forms import matrix_step
from kimi_k3.reference.state import KdaState, SlotWindow
from kimi_k3.rounding import Rounding
from kimi_k3.weights import KdaWeights

from .builders import (
    EXACT,
    KDA,
    SERVED,
    WIDE,
    Case,
    Size,
    case,
    context,
    near,
    packed,
    same,
    weights,
)
from .cells import tried


def prepared(one: Case, rounding: Rounding, w: PackedKda) -> tuple[torch.Tensor, KdaState]:
    """The heads of a window and the state after it."""
    ctx, own = context(rounding), one.copy().state
    ready = kda.prepare(w, rounding.compute)
    projected = kda.project(ctx, ready, one.x)
    return kda.core(ctx, ready, projected, own, Windows(mini()).of(one.part)), own


def judged(
    one: Case, rounding: Rounding, w: KdaWeights
) -> tuple[Mapping[str, torch.Tensor], KdaState]:
    """What the reference says of the same window."""
    taps, own = Taps(), one.copy().state
    window = SlotWindow(one.part.group.rows, one.part.slots, one.part.accepted)
    reference.kda(context(rounding).tapped(taps), w, one.x, own, window)
    return taps.values, own


def layer(seed: int, tp: int, rank: int) -> tuple[PackedKda, KdaWeights]:
    p, w = (
        packed(seed, tp, rank).layers[KDA].attention,
        weights(seed, tp, rank).layers[KDA].attention,
    )
    assert isinstance(p, PackedKda)
    assert isinstance(w, KdaWeights)
    return p, w


@tried("kda")
def test_a_window_equals_the_reference_whatever_is_padding(
    fasttrack_cell: Mapping[str, Any], fasttrack_seeds: Sequence[int], fasttrack_record: Recorder
) -> None:
    size, tp = Size.of(fasttrack_cell), int(fasttrack_cell["tensor_parallel"])
    for seed in fasttrack_seeds:
        p, w = layer(seed, tp, seed % tp)
        for alive in size.lives(seed):
            for rounding in (EXACT, WIDE):
                one = case(alive, size.rows, rounding, seed, tp)
                got, own = prepared(one, rounding, p)
                taps, want = judged(one, rounding, w)
                near(fasttrack_record, "kda heads", got, taps["kda.attn"])
                near(fasttrack_record, "kda state", own.recurrent, want.recurrent)
                near(fasttrack_record, "convolution window", own.conv, want.conv)
                fasttrack_record.launched("prepared-kda")


@tried("kda")
def test_the_bits_are_those_of_the_reference_provider(
    fasttrack_cell: Mapping[str, Any], fasttrack_seeds: Sequence[int], fasttrack_record: Recorder
) -> None:
    size, tp = Size.of(fasttrack_cell), int(fasttrack_cell["tensor_parallel"])
    for seed in fasttrack_seeds:
        p, _ = layer(seed, tp, seed % tp)
        for alive in size.lives(seed):
            one = case(alive, size.rows, SERVED, seed, tp)
            got, own = prepared(one, SERVED, p)
            want, ctx = one.copy().state, context(SERVED)
            heads = operators.window(ctx, p, operators.project(ctx, p, one.x), want, one.part)
            same(fasttrack_record, "kda heads", got, heads)
            same(fasttrack_record, "kda state", own.recurrent, want.recurrent)
            same(fasttrack_record, "convolution window", own.conv, want.conv)
            fasttrack_record.launched("prepared-kda")


@tried("kda")
def test_the_last_state_is_that_of_the_matrix_form(
    fasttrack_cell: Mapping[str, Any], fasttrack_seeds: Sequence[int], fasttrack_record: Recorder
) -> None:
    size, tp = Size.of(fasttrack_cell), int(fasttrack_cell["tensor_parallel"])
    for seed in fasttrack_seeds:
        p, w = layer(seed, tp, seed % tp)
        one = case([True] * size.requests, size.rows, EXACT, seed, tp)
        _, own = prepared(one, EXACT, p)
        fasttrack_record.launched("prepared-kda")
        taps, _ = judged(one, EXACT, w)
        request = size.requests - 1
        part, tokens = one.part, slice(request * size.rows, (request + 1) * size.rows)
        k, v, g, beta = (taps[f"kda.{name}"][tokens] for name in ("k", "v", "log_decay", "beta"))
        start = one.state.recurrent[part.slots[request, part.accepted[request] - 1]]
        for head in range(len(start)):
            s = start[head]
            for t in range(size.rows):
                s = matrix_step(s, k[t, head], v[t, head], g[t, head], beta[t, head])
            got = own.recurrent[part.slots[request, size.rows - 1], head]
            near(fasttrack_record, "kda state", got, s)


def test_a_null_slot_within_a_live_window_is_not_written() -> None:
    one = case([True], 3, EXACT, seed=1)
    one.part.accepted[0] = 1
    one.state.recurrent[one.part.slots[0, 0]] = 0.25
    one.part.slots[0, 1] = 0
    p, w = layer(1, 1, 0)
    got, own = prepared(one, EXACT, p)
    taps, want = judged(one, EXACT, w)
    assert own.recurrent[0].isnan().all()
    torch.testing.assert_close(got, taps["kda.attn"])
    torch.testing.assert_close(own.recurrent, want.recurrent, equal_nan=True)


def test_a_window_longer_than_the_state_is_refused() -> None:
    one = case([True], 8, EXACT, seed=1)
    one.part.accepted[0] = 1
    p, _ = layer(1, 1, 0)
    short = KdaState(one.state.recurrent, one.state.conv[:, :, :9])
    ready = kda.prepare(p, torch.float64)
    projected = kda.project(context(EXACT), ready, one.x)
    with pytest.raises(ValueError, match="10 inputs per channel to keep; the state has 9"):
        kda.core(context(EXACT), ready, projected, short, Windows(mini()).of(one.part))


def test_a_decay_that_is_lost_is_seen() -> None:
    """The comparison of states sees an operator that forgets exp(A_log)."""
    one = case([True, True], 3, WIDE, seed=2)
    p, w = layer(2, 1, 0)
    broken = replace(p, a_log=p.a_log * 0)
    _, own = prepared(one, WIDE, broken)
    _, want = judged(one, WIDE, w)
    with pytest.raises(AssertionError):
        near(Recorder(), "kda state", own.recurrent, want.recurrent)
