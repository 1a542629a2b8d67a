# SPDX-License-Identifier: Apache-2.0
"""Prepared MLA against the reference, keys of each head, and the reference provider's bits."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
import torch

from fasttrack.pytest_plugin import Recorder
from kimi_k3.config import mini
from kimi_k3.mini import mla
from kimi_k3.mini.cast import cast
from kimi_k3.mini.windows import Windows
from kimi_k3.operators import mla as operators
from kimi_k3.packed import PackedMla
from kimi_k3.reference import mla as reference
from kimi_k3.reference.hooks import Recorder as Taps
from kimi_k3.reference.norm import rms_norm
from kimi_k3.reference.state import KvCache, PageWindow
from kimi_k3.rounding import Rounding
from kimi_k3.weights import MlaWeights

from .builders import (
    EXACT,
    MLA,
    PAGE,
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

LONGEST = mini().max_positions


Tensors = tuple[torch.Tensor, torch.Tensor]


def prepared(one: Case, rounding: Rounding, w: PackedMla) -> tuple[Tensors, KvCache]:
    """The z and the heads of a window, and the cache after it."""
    ctx, own, windows = context(rounding), one.copy().cache, Windows(mini())
    ready = cast(w, rounding.compute)
    pages = windows.pages_of(one.part, PAGE)
    query, gate = mla.query(ctx, ready, mla.project(ctx, ready, one.x), own, pages)
    z = mla.core(ctx, query, own, pages)
    return (z, mla.value(ctx, ready, z, gate, windows.of(one.part))), own


def judged(
    one: Case, rounding: Rounding, w: MlaWeights
) -> tuple[Mapping[str, torch.Tensor], KvCache]:
    """What the reference says of the same window."""
    taps, own = Taps(), one.copy().cache
    window = PageWindow(one.part.group.rows, one.part.block_table, one.part.lengths)
    reference.mla(context(rounding).tapped(taps), w, one.x, own, window)
    return taps.values, own


def layer(seed: int, tp: int, rank: int) -> tuple[PackedMla, MlaWeights]:
    p, w = (
        packed(seed, tp, rank).layers[MLA].attention,
        weights(seed, tp, rank).layers[MLA].attention,
    )
    assert isinstance(p, PackedMla)
    assert isinstance(w, MlaWeights)
    return p, w


@tried("mla")
def test_a_window_equals_the_reference_whatever_is_padding(
    fasttrack_cell: Mapping[str, Any], fasttrack_seeds: Sequence[int], fasttrack_record: Recorder
) -> None:
    size, tp = Size.of(fasttrack_cell), int(fasttrack_cell["tensor_parallel"])
    for seed in fasttrack_seeds:
        p, w = layer(seed, tp, seed % tp)
        for alive in size.lives(seed):
            for rounding in (EXACT, WIDE):
                one = case(alive, size.rows, rounding, seed, tp, fasttrack_cell["kv_cache"])
                (z, got), own = prepared(one, rounding, p)
                taps, want = judged(one, rounding, w)
                near(fasttrack_record, "z", z, taps["mla.z"])
                near(fasttrack_record, "mla heads", got, taps["mla.attn"])
                near(fasttrack_record, "cache", own.pages, want.pages)
                fasttrack_record.launched("prepared-mla")


@tried("mla")
def test_the_bits_are_those_of_the_reference_provider(
    fasttrack_cell: Mapping[str, Any], fasttrack_seeds: Sequence[int], fasttrack_record: Recorder
) -> None:
    size, tp = Size.of(fasttrack_cell), int(fasttrack_cell["tensor_parallel"])
    for seed in fasttrack_seeds:
        p, _ = layer(seed, tp, seed % tp)
        for alive in size.lives(seed):
            one = case(alive, size.rows, SERVED, seed, tp, fasttrack_cell["kv_cache"])
            (_, got), own = prepared(one, SERVED, p)
            want, ctx = one.copy().cache, context(SERVED)
            heads = operators.window(ctx, p, operators.project(ctx, p, one.x), want, one.part)
            same(fasttrack_record, "mla heads", got, heads)
            same(fasttrack_record, "cache", own.pages, want.pages)
            fasttrack_record.launched("prepared-mla")


@tried("mla")
def test_the_longest_context_equals_keys_and_values_of_each_head(
    fasttrack_cell: Mapping[str, Any], fasttrack_seeds: Sequence[int], fasttrack_record: Recorder
) -> None:
    """One request as long as the scope allows, without the absorbed weights."""
    size, tp = Size.of(fasttrack_cell), int(fasttrack_cell["tensor_parallel"])
    for seed in fasttrack_seeds:
        p, w = layer(seed, tp, seed % tp)
        one = case([True], size.rows, EXACT, seed, tp, "bf16", longest=LONGEST)
        (_, got), own = prepared(one, EXACT, p)
        fasttrack_record.launched("prepared-mla")
        y = reference.latents(context(EXACT), w, one.x)
        qa = rms_norm(one.x @ w.q_a_proj.double().T, w.q_a_layernorm, mini().rms_norm_eps)
        heads = (qa @ w.q_b_proj.double().T).unflatten(1, (-1, mini().qk_head_dim))
        qn, qr = heads.split([mini().qk_nope_head_dim, mini().qk_rope_head_dim], dim=2)
        rows = own.read(one.part.block_table[0], LONGEST, torch.float64)
        for t in range(size.rows):
            seen = rows[: LONGEST - size.rows + 1 + t]
            o = reference.attend_unabsorbed(mini(), w, qn[t], qr[t], seen).flatten()
            near(fasttrack_record, "mla heads", got[t], o * torch.sigmoid(y.gate[t]))


def test_a_row_that_sees_the_token_after_it_is_caught() -> None:
    one = case([True, True], 4, EXACT, seed=3)
    p, w = layer(3, 1, 0)
    ctx, own, ready = context(EXACT), one.copy().cache, cast(p, torch.float64)
    pages = Windows(mini()).pages_of(one.part, PAGE)
    pages.unseen[:, :-1] = pages.unseen[:, 1:].clone()
    query, gate = mla.query(ctx, ready, mla.project(ctx, ready, one.x), own, pages)
    got = mla.value(
        ctx, ready, mla.core(ctx, query, own, pages), gate, Windows(mini()).of(one.part)
    )
    taps, _ = judged(one, EXACT, w)
    with pytest.raises(AssertionError):
        near(Recorder(), "mla heads", got, taps["mla.attn"])
