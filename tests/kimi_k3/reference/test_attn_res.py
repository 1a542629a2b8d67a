# SPDX-License-Identifier: Apache-2.0
"""AttnRes: source by source, in two phases, and at the edges of its softmax."""

import numpy as np
import pytest
import torch

from kimi_k3.reference.attn_res import (
    finish_mix,
    mix,
    normed_mix,
    score,
    score_weight,
    stack_sources,
    summarize_blocks,
    update_prefix,
)
from kimi_k3.rounding import exact, stock
from tests.kimi_k3.reference import second
from tests.kimi_k3.reference.builders import Draw, odd

F64 = exact(torch.float64)
EPS = 1e-5
HIDDEN, ROWS = 40, 3


def case(saved: int, scale: float = 1.0) -> tuple[list[torch.Tensor], torch.Tensor, Draw]:
    d = Draw(saved, torch.float64)
    blocks = [d.normal(ROWS, HIDDEN, scale=scale) for _ in range(saved)]
    return blocks, d.normal(ROWS, HIDDEN, scale=scale), d


@pytest.mark.parametrize("saved", [0, 1, 2, 3, 8])
def test_the_mix_equals_scoring_each_normalised_source(saved: int) -> None:
    blocks, p, d = case(saved)
    norm, proj, g = d.norm(HIDDEN), d.normal(1, HIDDEN), d.norm(HIDDEN)
    sources = stack_sources(blocks, p)
    got = mix(score(sources, score_weight(norm, proj, torch.float64), EPS), sources)
    want = second.attn_res(odd(), [s.numpy() for s in (*blocks, p)], norm, proj)
    np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-13)
    out = normed_mix(F64, got, g, EPS)
    np.testing.assert_allclose(out, second.rms(want, g.numpy(), EPS), rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("saved", [0, 1, 2, 3, 8])
def test_two_phases_equal_the_direct_form(saved: int, scale: float) -> None:
    """The scale moves eps from negligible to dominant: it must meet den^2 in the output norm."""
    blocks, p, d = case(saved, scale)
    norm, proj, g = d.norm(HIDDEN), d.normal(1, HIDDEN), d.norm(HIDDEN)
    w = score_weight(norm, proj, torch.float64)
    saved_blocks = torch.stack(blocks, 1) if blocks else p.new_empty(ROWS, 0, HIDDEN)
    got = finish_mix(summarize_blocks(saved_blocks, w, EPS), p, w, g, EPS)
    sources = stack_sources(blocks, p)
    want = normed_mix(F64, mix(score(sources, w, EPS), sources), g, EPS)
    assert torch.allclose(got, want, rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("sharp", [1.0, 40.0, 4000.0])
def test_two_phases_agree_when_one_source_takes_all(sharp: float) -> None:
    """Logits of many hundreds: exp must never see a positive argument, whichever side wins."""
    blocks, p, d = case(3)
    proj = sharp * d.normal(1, HIDDEN)
    w = score_weight(d.norm(HIDDEN), proj, torch.float64)
    sources = stack_sources(blocks, p)
    want = normed_mix(F64, mix(score(sources, w, EPS), sources), d.norm(HIDDEN) * 0 + 1, EPS)
    got = finish_mix(
        summarize_blocks(torch.stack(blocks, 1), w, EPS), p, w, torch.ones(HIDDEN).double(), EPS
    )
    assert torch.isfinite(got).all()
    assert torch.allclose(got, want, rtol=1e-10, atol=1e-12)


def test_one_source_is_itself_whatever_its_score() -> None:
    _, p, d = case(0)
    w = score_weight(d.norm(HIDDEN), 100 * d.normal(1, HIDDEN), torch.float64)
    sources = stack_sources([], p)
    assert torch.equal(mix(score(sources, w, EPS), sources), p)


def test_equal_sources_mix_to_themselves_and_tied_scores_share_alike() -> None:
    d = Draw(5, torch.float64)
    one, other = d.normal(1, HIDDEN), d.normal(1, HIDDEN)
    flat = torch.zeros(HIDDEN, dtype=torch.float64)
    sources = stack_sources([one, one], other)
    got = mix(score(sources, flat, EPS), sources)
    assert torch.allclose(got, (2 * one + other) / 3, rtol=1e-14)


def test_sources_are_scored_normalised_but_mixed_raw() -> None:
    """Scaling a source leaves its score alone and scales its part of the mix."""
    blocks, p, d = case(1)
    w = score_weight(d.norm(HIDDEN), d.normal(1, HIDDEN), torch.float64)
    sources = stack_sources(blocks, p)
    louder = stack_sources([3 * blocks[0]], p)
    assert torch.allclose(score(louder, w, 0.0), score(sources, w, 0.0), rtol=1e-12)
    alpha = torch.softmax(score(sources, w, 0.0), 1)[:, :1]
    change = mix(score(louder, w, 0.0), louder) - mix(score(sources, w, 0.0), sources)
    assert torch.allclose(change, 2 * alpha * blocks[0], rtol=1e-9, atol=1e-12)


def test_the_prefix_add_rounds_once_and_a_block_write_leaves_nothing_to_add() -> None:
    prefix, delta = torch.tensor([[1.0, 256.0]]), torch.tensor([[2.0**-8, 1.0]])
    assert update_prefix(stock(), prefix, delta).tolist() == [[1.0, 256.0]]  # ties to even
    assert update_prefix(exact(torch.float32), prefix, delta).tolist() == [[1.00390625, 257.0]]
    assert update_prefix(stock(), prefix, None) is prefix


def test_a_mix_without_output_norm_is_only_rounded() -> None:
    m = torch.tensor([[1.00390625, 3.0]])
    assert normed_mix(stock(), m, None, EPS).tolist() == [[1.0, 3.0]]
    assert torch.equal(normed_mix(exact(torch.float32), m, None, EPS), m)
