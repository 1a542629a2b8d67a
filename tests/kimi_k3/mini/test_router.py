# SPDX-License-Identifier: Apache-2.0
"""The prepared router: logits and latent against the reference, and the one right choice."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from fasttrack.pytest_plugin import Recorder
from kimi_k3.config import mini
from kimi_k3.mini import router
from kimi_k3.operators import moe
from kimi_k3.packed import PackedMoe
from kimi_k3.reference import router as reference
from kimi_k3.reference.linear import linear
from kimi_k3.weights import MoeWeights
from tests.kimi_k3.reference.builders import Draw

from .builders import EXACT, MOE, SERVED, WIDE, context, near, packed, same, weights
from .cells import tried


def layer(seed: int) -> tuple[PackedMoe, MoeWeights]:
    p, w = packed(seed).layers[MOE].ffn, weights(seed).layers[MOE].ffn
    assert isinstance(p, PackedMoe)
    assert isinstance(w, MoeWeights)
    return p, w


def inputs(rows: int, seed: int, dtype: torch.dtype) -> torch.Tensor:
    """BF16 numbers, and a row of NaN that must spoil no other."""
    y = Draw(seed).normal(rows, mini().hidden_size).to(dtype)
    if rows > 1:
        y[seed % rows] = torch.nan
    return y


def hard_logits(rows: int, seed: int) -> torch.Tensor:
    """Logits with ties, saturated scores and NaN in places that a seed chooses."""
    d, experts = Draw(seed), mini().num_experts
    logits = d.normal(rows, experts, scale=3.0, dtype=torch.float32)
    kind = torch.randint(0, 4, (rows, experts), generator=d.generator)
    logits = torch.where(kind == 1, logits[:, :1], logits)
    logits = torch.where(kind == 2, 100 * logits.sign(), logits)
    nan = torch.rand(rows, experts, generator=d.generator) < 0.05
    return torch.where(nan, torch.nan, logits)


@tried("router")
def test_what_reads_y_equals_the_reference(
    fasttrack_cell: Mapping[str, Any], fasttrack_seeds: Sequence[int], fasttrack_record: Recorder
) -> None:
    rows = int(fasttrack_cell["rows"])
    for seed in fasttrack_seeds:
        p, w = layer(seed)
        for r in (EXACT, WIDE):
            y = inputs(rows, seed, r.compute)
            logits, latent = router.front(context(r), router.prepare(p, r.compute), y)
            near(fasttrack_record, "router logits", logits, r.router_logits(linear(y, w.router)))
            near(fasttrack_record, "latent", latent, r.latent(linear(y, w.latent_down)))
            fasttrack_record.launched("prepared-router")


@tried("router")
def test_the_choice_is_the_exact_one(
    fasttrack_cell: Mapping[str, Any], fasttrack_seeds: Sequence[int], fasttrack_record: Recorder
) -> None:
    rows = int(fasttrack_cell["rows"])
    for seed in fasttrack_seeds:
        bias = layer(seed)[1].correction_bias
        for logits in (hard_logits(rows, seed), hard_logits(rows, seed).nan_to_num()):
            ids, picked = router.route(context(SERVED), bias, logits)
            want_ids, want = reference.route(mini(), logits, bias)
            same(fasttrack_record, "ids", ids, want_ids)
            same(fasttrack_record, "weights", picked, SERVED.router_weight(want))
            fasttrack_record.launched("prepared-router")


@tried("router")
def test_the_bits_are_those_of_the_reference_provider(
    fasttrack_cell: Mapping[str, Any], fasttrack_seeds: Sequence[int], fasttrack_record: Recorder
) -> None:
    rows, ctx = int(fasttrack_cell["rows"]), context(SERVED)
    for seed in fasttrack_seeds:
        p, _ = layer(seed)
        y = inputs(rows, seed, torch.float32)
        logits, latent = router.front(ctx, router.prepare(p, torch.float32), y)
        same(fasttrack_record, "router logits", logits, moe.logits(ctx, p, y))
        same(fasttrack_record, "latent", latent, moe.latent(ctx, p, y))
        fasttrack_record.launched("prepared-router")


KEYS = st.sampled_from([0.0, -0.0, 0.5, 1.0, -1.0, float("inf"), float("-inf"), float("nan")])


@given(rows=st.lists(st.lists(KEYS, min_size=4, max_size=4), min_size=1, max_size=3))
def test_the_order_is_larger_first_then_the_lower_id_and_nan_last(rows: list[list[float]]) -> None:
    key = torch.tensor(rows)

    def place(row: list[float], e: int) -> tuple[bool, float, int]:
        value = row[e]
        return value != value, 0.0 if value != value else -value, e

    want = [sorted(range(4), key=lambda e, row=row: place(row, e))[:2] for row in rows]  # type: ignore[misc]
    assert router.pick(key, 2).tolist() == want


def test_the_comparison_sees_a_choice_that_is_off_by_one() -> None:
    logits, bias = hard_logits(4, 1), layer(1)[1].correction_bias
    ids, _ = router.route(context(SERVED), bias, logits)
    with pytest.raises(AssertionError, match="ids"):
        same(
            Recorder(),
            "ids",
            (ids + 1) % mini().num_experts,
            reference.route(mini(), logits, bias)[0],
        )
