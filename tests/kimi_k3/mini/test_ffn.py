# SPDX-License-Identifier: Apache-2.0
"""The prepared FFN against the reference and the reference provider's bits, at every width."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pytest
import torch

from fasttrack.pytest_plugin import Recorder
from kimi_k3.config import mini
from kimi_k3.mini import ffn
from kimi_k3.mini.cast import cast
from kimi_k3.operators import ffn as operators
from kimi_k3.packed import PackedFfn, PackedMoe
from kimi_k3.reference.ffn import gated_ffn
from kimi_k3.reference.hooks import Recorder as Taps
from kimi_k3.weights import DenseWeights, MoeWeights
from tests.kimi_k3.reference.builders import Draw

from .builders import DENSE, EXACT, MOE, SERVED, WIDE, context, near, packed, same, weights
from .cells import tried


def blocks(seed: int) -> Iterator[tuple[PackedFfn, DenseWeights]]:
    """The dense and the shared FFN of one rank, at each tensor parallelism."""
    for tp in (1, 2, 4):
        p, w = packed(seed, tp, seed % tp), weights(seed, tp, seed % tp)
        dense, plain = p.layers[DENSE].ffn, w.layers[DENSE].ffn
        moe, whole = p.layers[MOE].ffn, w.layers[MOE].ffn
        assert isinstance(dense, PackedFfn)
        assert isinstance(plain, DenseWeights)
        assert isinstance(moe, PackedMoe)
        assert isinstance(whole, MoeWeights)
        yield dense, plain
        yield moe.shared, whole.shared


def inputs(rows: int, seed: int, dtype: torch.dtype) -> torch.Tensor:
    """BF16 numbers, and a row of NaN that must spoil no other."""
    y = Draw(seed).normal(rows, mini().hidden_size, scale=2.0).to(dtype)
    if rows > 1:
        y[seed % rows] = torch.nan
    return y


@tried("ffn")
def test_a_share_equals_the_reference(
    fasttrack_cell: Mapping[str, Any], fasttrack_seeds: Sequence[int], fasttrack_record: Recorder
) -> None:
    rows = int(fasttrack_cell["rows"])
    for seed in fasttrack_seeds:
        for p, w in blocks(seed):
            for r in (EXACT, WIDE):
                y, taps = inputs(rows, seed, r.compute), Taps()
                got = ffn.gated(context(r), cast(p, r.compute), y)
                gated_ffn(context(r).tapped(taps), w, y, "shared")
                near(fasttrack_record, "share", got, taps.values["shared.partial"])
                fasttrack_record.launched("prepared-ffn")


@tried("ffn")
def test_the_bits_are_those_of_the_reference_provider(
    fasttrack_cell: Mapping[str, Any], fasttrack_seeds: Sequence[int], fasttrack_record: Recorder
) -> None:
    rows, ctx = int(fasttrack_cell["rows"]), context(SERVED)
    for seed in fasttrack_seeds:
        for p, _ in blocks(seed):
            y = inputs(rows, seed, torch.float32)
            got = ffn.gated(ctx, cast(p, torch.float32), y)
            same(fasttrack_record, "share", got, operators.gated(ctx, p, y))
            fasttrack_record.launched("prepared-ffn")


def test_gate_and_up_that_are_exchanged_are_seen() -> None:
    p, w = next(blocks(1))
    y, taps = inputs(3, 1, torch.float64), Taps()
    gate, up = p.gate_up.double().chunk(2)
    wrong = PackedFfn(torch.cat([up, gate]), p.down.double())
    gated_ffn(context(WIDE).tapped(taps), w, y, "dense")
    with pytest.raises(AssertionError):
        near(Recorder(), "share", ffn.gated(context(WIDE), wrong, y), taps.values["dense.partial"])
