# SPDX-License-Identifier: Apache-2.0
"""The prepared head against the reference, divided and whole, and the provider's bits."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
import torch

from fasttrack.pytest_plugin import Recorder
from kimi_k3.config import mini
from kimi_k3.mini import head
from kimi_k3.operators import ends
from kimi_k3.reference import head as reference
from tests.kimi_k3.reference.builders import Draw

from .builders import EXACT, SERVED, WIDE, context, near, packed, same, weights
from .cells import tried


def inputs(rows: int, seed: int, dtype: torch.dtype) -> torch.Tensor:
    """BF16 numbers, and a row of NaN that must spoil no other."""
    h = Draw(seed).normal(rows, mini().hidden_size, scale=4.0).to(dtype)
    if rows > 1:
        h[seed % rows] = torch.nan
    return h


@tried("head")
def test_logits_equal_the_reference_however_the_vocabulary_is_divided(
    fasttrack_cell: Mapping[str, Any], fasttrack_seeds: Sequence[int], fasttrack_record: Recorder
) -> None:
    rows = int(fasttrack_cell["rows"])
    for seed in fasttrack_seeds:
        for r in (EXACT, WIDE):
            hidden = inputs(rows, seed, r.compute)
            want = reference.head(context(r), weights(seed), hidden)
            for tp in (1, 2, 4):
                ready = [head.prepare(packed(seed, tp, rank), r.compute) for rank in range(tp)]
                got = torch.cat([head.logits(context(r), one, hidden) for one in ready], dim=1)
                near(fasttrack_record, "logits", got, want)
                fasttrack_record.launched("prepared-head", tp)


@tried("head")
def test_the_bits_are_those_of_the_reference_provider(
    fasttrack_cell: Mapping[str, Any], fasttrack_seeds: Sequence[int], fasttrack_record: Recorder
) -> None:
    rows, ctx = int(fasttrack_cell["rows"]), context(SERVED)
    for seed in fasttrack_seeds:
        hidden = inputs(rows, seed, torch.float32)
        for tp in (1, 2, 4):
            p = packed(seed, tp, seed % tp)
            got = head.logits(ctx, head.prepare(p, torch.float32), hidden)
            same(fasttrack_record, "logits", got, ends.final_norm_logits(ctx, p, hidden))
            fasttrack_record.launched("prepared-head")


def test_logits_without_the_last_norm_are_seen() -> None:
    hidden = inputs(2, 1, torch.float64)
    ready = head.prepare(packed(1), torch.float64)
    unit = head.Head(torch.ones_like(ready.norm), ready.lm_head)
    want = reference.head(context(WIDE), weights(1), hidden)
    with pytest.raises(AssertionError):
        near(Recorder(), "logits", head.logits(context(WIDE), unit, hidden), want)
