# SPDX-License-Identifier: Apache-2.0
"""The prepared mixes against the reference, its two-phase form, and the provider's bits."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
import torch

from fasttrack.pytest_plugin import Recorder
from kimi_k3.config import mini
from kimi_k3.mini import residual
from kimi_k3.mini.cast import cast
from kimi_k3.operators import residual as operators
from kimi_k3.packed import PackedMix
from kimi_k3.reference import attn_res as reference
from kimi_k3.reference.linear import linear
from kimi_k3.rounding import Rounding
from tests.kimi_k3.reference.builders import Draw

from .builders import EXACT, KDA, SERVED, WIDE, context, near, packed, same, weights
from .cells import tried

EPS = mini().rms_norm_eps


def sources(rows: int, saved: int, seed: int, dtype: torch.dtype) -> tuple[torch.Tensor, ...]:
    """A prefix, a delta and saved blocks: BF16 numbers, before NaN where nothing is saved yet."""
    d, width = Draw(seed), mini().hidden_size
    room = torch.full((rows, mini().num_blocks, width), torch.nan, dtype=dtype)
    room[:, :saved] = d.normal(rows, saved, width).to(dtype)
    prefix, delta = (d.normal(rows, width, scale=2.0).to(dtype) for _ in range(2))
    return prefix, delta, room[:, :saved]


def judged(
    r: Rounding,
    w: PackedMix,
    prefix: torch.Tensor,
    delta: torch.Tensor | None,
    blocks: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor]:
    """What the reference says of one mix."""
    updated = reference.update_prefix(r, prefix, delta)
    stacked = reference.stack_sources(blocks.unbind(1), updated)
    mixed = reference.mix(reference.score(stacked, w.score.to(r.compute), EPS), stacked)
    return reference.normed_mix(r, mixed, w.norm, EPS), updated


@tried("residual")
def test_a_mix_equals_the_reference_and_its_two_phase_form(
    fasttrack_cell: Mapping[str, Any], fasttrack_seeds: Sequence[int], fasttrack_record: Recorder
) -> None:
    rows = int(fasttrack_cell["rows"])
    for seed in fasttrack_seeds:
        layer = packed(seed).layers[KDA]
        for saved in range(mini().num_blocks + 1):
            for r in (EXACT, WIDE):
                prefix, delta, blocks = sources(rows, saved, seed, r.compute)
                for w in (layer.attention_mix, layer.ffn_mix, packed(seed).final_mix):
                    for pending in (delta, None):
                        ready = cast(w, r.compute)
                        got = residual.mix(context(r), ready, prefix, pending, blocks)
                        for value, want in zip(
                            got, judged(r, w, prefix, pending, blocks), strict=True
                        ):
                            near(fasttrack_record, "mix", value, want)
                        fasttrack_record.launched("prepared-residual")
            two_phases(fasttrack_record, layer.ffn_mix, prefix.double(), blocks.double())


def two_phases(record: Recorder, w: PackedMix, prefix: torch.Tensor, blocks: torch.Tensor) -> None:
    score, norm = w.score.double(), w.norm
    assert norm is not None
    got, _ = residual.mix(context(EXACT), cast(w, torch.float64), prefix, None, blocks)
    summary = reference.summarize_blocks(blocks, score, EPS)
    near(record, "mix", got, reference.finish_mix(summary, prefix, score, norm.double(), EPS))


@tried("residual")
def test_the_output_projection_equals_the_reference(
    fasttrack_cell: Mapping[str, Any], fasttrack_seeds: Sequence[int], fasttrack_record: Recorder
) -> None:
    rows = int(fasttrack_cell["rows"])
    for seed in fasttrack_seeds:
        for tp in (1, 2, 4):
            o_proj = weights(seed, tp, seed % tp).layers[KDA].attention.o_proj
            for r in (EXACT, WIDE):
                heads = Draw(seed).normal(rows, o_proj.shape[1]).to(r.compute)
                got = residual.out_partial(context(r), cast(o_proj, r.compute), heads)
                near(fasttrack_record, "share", got, r.o_partial(linear(heads, o_proj)))
                fasttrack_record.launched("prepared-residual")


@tried("residual")
def test_the_bits_are_those_of_the_reference_provider(
    fasttrack_cell: Mapping[str, Any], fasttrack_seeds: Sequence[int], fasttrack_record: Recorder
) -> None:
    rows, ctx = int(fasttrack_cell["rows"]), context(SERVED)
    for seed in fasttrack_seeds:
        layer = packed(seed).layers[KDA]
        for saved in range(mini().num_blocks + 1):
            prefix, delta, blocks = sources(rows, saved, seed, torch.float32)
            ready = cast(layer.ffn_mix, torch.float32)
            got, updated = residual.mix(ctx, ready, prefix, delta, blocks)
            before = operators.update_prefix(SERVED, prefix, delta)
            same(fasttrack_record, "prefix", updated, before)
            want = operators.mix(ctx, layer.ffn_mix, before, blocks)
            same(fasttrack_record, "mix", got, want)
            fasttrack_record.launched("prepared-residual")


def test_a_prefix_that_is_mixed_before_its_delta_is_added_is_seen() -> None:
    w = packed(1).layers[KDA].ffn_mix
    prefix, delta, blocks = sources(3, 2, 1, torch.float64)
    got, _ = residual.mix(context(WIDE), cast(w, torch.float64), prefix, None, blocks)
    want, _ = judged(WIDE, w, prefix, delta, blocks)
    with pytest.raises(AssertionError):
        near(Recorder(), "mix", got, want)
