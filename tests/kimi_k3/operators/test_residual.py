# SPDX-License-Identifier: Apache-2.0
"""The mix of attention residuals against the reference and its two-phase form."""

import pytest
import torch

from kimi_k3.operators.residual import mix
from kimi_k3.packed import PackedMix
from kimi_k3.reference import attn_res as reference
from tests.kimi_k3.operators.builders import F64, close, context, gridded
from tests.kimi_k3.reference.builders import Draw

WIDTH = 40


def sources(count: int, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor, PackedMix]:
    """A prefix, `count` blocks, and weights."""
    d = Draw(seed, torch.float64)
    w = PackedMix(d.normal(WIDTH, scale=WIDTH**-0.5, dtype=torch.float32), d.norm(WIDTH))
    return d.normal(6, WIDTH, scale=2.0), d.normal(6, count, WIDTH), w


def expected(prefix: torch.Tensor, blocks: torch.Tensor, w: PackedMix) -> torch.Tensor:
    stacked = reference.stack_sources(blocks.unbind(1), prefix)
    logit = reference.score(stacked, w.score.double(), 1e-5)
    return reference.normed_mix(F64, reference.mix(logit, stacked), w.norm, 1e-5)


@pytest.mark.parametrize("count", [1, 2, 3, 8])
def test_the_mix_equals_the_reference_and_its_two_phase_form(count: int) -> None:
    prefix, blocks, w = sources(count)
    got = mix(context(), w, prefix, blocks)
    close(got, expected(prefix, blocks, w))
    assert w.norm is not None
    score = w.score.double()
    summary = reference.summarize_blocks(blocks, score, 1e-5)
    close(got, reference.finish_mix(summary, prefix, score, w.norm, 1e-5))


def test_before_the_first_block_write_the_prefix_is_normed_alone() -> None:
    prefix, blocks, w = sources(0)
    want = expected(prefix, blocks, w)
    close(mix(context(), w, prefix, None), want)
    close(mix(context(), w, prefix, blocks), want)


def test_the_last_mix_has_no_norm() -> None:
    prefix, blocks, w = sources(3)
    bare = PackedMix(w.score, None)
    close(mix(context(), bare, prefix, blocks), expected(prefix, blocks, bare))


def test_the_saved_blocks_may_be_a_part_of_memory_that_holds_nan_behind_them() -> None:
    prefix, blocks, w = sources(3)
    room = torch.full((6, 8, WIDTH), torch.nan, dtype=torch.float64)
    room[:, :3] = blocks
    close(mix(context(), w, prefix, room[:, :3]), expected(prefix, blocks, w))


def test_the_output_is_rounded_and_nothing_before_it() -> None:
    prefix, blocks, w = sources(2)
    got = mix(context(gridded("mixed")), w, prefix, blocks)
    close(got, torch.round(expected(prefix, blocks, w) * 64) / 64)
