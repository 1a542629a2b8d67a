# SPDX-License-Identifier: Apache-2.0
"""Decoded experts against the reference, which decodes each visit, and the provider's bits."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
import torch

from fasttrack.pytest_plugin import Recorder
from kimi_k3.config import mini
from kimi_k3.mini import experts
from kimi_k3.mxfp4 import decode_mxfp4
from kimi_k3.operators import moe
from kimi_k3.packed import PackedMoe
from kimi_k3.reference.latent_moe import expert_rows, weighted_sum
from kimi_k3.reference.linear import linear
from kimi_k3.reference.norm import rms_norm
from kimi_k3.rounding import Rounding
from kimi_k3.weights import MoeWeights
from tests.kimi_k3.reference.builders import Draw

from .builders import EXACT, MOE, SERVED, WIDE, context, near, packed, same, weights
from .cells import tried

Picked = tuple[torch.Tensor, torch.Tensor, torch.Tensor]


def layer(seed: int, tp: int) -> tuple[PackedMoe, MoeWeights]:
    p, w = packed(seed, tp, seed % tp).layers[MOE].ffn, weights(seed, tp, seed % tp).layers[MOE].ffn
    assert isinstance(p, PackedMoe)
    assert isinstance(w, MoeWeights)
    return p, w


def visits(rows: int, seed: int, dtype: torch.dtype, few: bool) -> Picked:
    """Ids, weights and z; with `few` all rows visit the same experts. One row is NaN."""
    d, c = Draw(seed), mini()
    order = torch.rand(1 if few else rows, c.num_experts, generator=d.generator).argsort(dim=1)
    ids = order[:, : c.num_experts_per_tok].expand(rows, -1)
    picked = d.uniform(0, 1, rows, c.num_experts_per_tok).bfloat16().to(dtype)
    z = d.normal(rows, c.routed_expert_hidden_size).to(dtype)
    if rows > 1:
        z[seed % rows] = torch.nan
    return ids, picked, z


def judged(
    r: Rounding, w: MoeWeights, ids: torch.Tensor, picked: torch.Tensor, z: torch.Tensor
) -> torch.Tensor:
    rows = expert_rows(context(r), w.experts, ids, r.expert_input(z))
    return r.latent_partial(weighted_sum(picked, rows))


@tried("experts")
def test_the_weighted_rows_equal_the_reference(
    fasttrack_cell: Mapping[str, Any], fasttrack_seeds: Sequence[int], fasttrack_record: Recorder
) -> None:
    rows, tp = int(fasttrack_cell["rows"]), int(fasttrack_cell["tensor_parallel"])
    for seed in fasttrack_seeds:
        p, w = layer(seed, tp)
        for r in (EXACT, WIDE):
            ready = experts.prepare(p, r.compute)
            for few in (False, True):
                ids, picked, z = visits(rows, seed, r.compute, few)
                got = experts.experts(context(r), ready, ids, picked, z)
                near(fasttrack_record, "latent share", got, judged(r, w, ids, picked, z))
                fasttrack_record.launched("prepared-experts")


@tried("experts")
def test_what_follows_the_sum_equals_the_reference(
    fasttrack_cell: Mapping[str, Any], fasttrack_seeds: Sequence[int], fasttrack_record: Recorder
) -> None:
    rows, tp = int(fasttrack_cell["rows"]), int(fasttrack_cell["tensor_parallel"])
    for seed in fasttrack_seeds:
        p, w = layer(seed, tp)
        d, c = Draw(seed), mini()
        for r in (EXACT, WIDE):
            total = d.normal(rows, c.routed_expert_hidden_size).to(r.compute)
            shared = d.normal(rows, c.hidden_size).to(r.compute)
            got = experts.tail(context(r), experts.prepare(p, r.compute), total, shared)
            normed = rms_norm(total, w.latent_norm, c.rms_norm_eps, square=r.latent_square)
            routed = r.routed(linear(r.latent_normed(normed), w.latent_up))
            near(fasttrack_record, "ffn output", got, r.ffn_out(routed + shared))
            fasttrack_record.launched("prepared-experts")


@tried("experts")
def test_the_bits_are_those_of_the_reference_provider(
    fasttrack_cell: Mapping[str, Any], fasttrack_seeds: Sequence[int], fasttrack_record: Recorder
) -> None:
    rows, tp = int(fasttrack_cell["rows"]), int(fasttrack_cell["tensor_parallel"])
    ctx = context(SERVED)
    for seed in fasttrack_seeds:
        p, _ = layer(seed, tp)
        ready = experts.prepare(p, torch.float32)
        for few in (False, True):
            ids, picked, z = visits(rows, seed, torch.float32, few)
            got = experts.experts(ctx, ready, ids, picked, z)
            want = moe.experts(ctx, p.experts, ids, picked, z)
            same(fasttrack_record, "latent share", got, want)
            shared = Draw(seed).normal(rows, mini().hidden_size).float()
            after = moe.finish(ctx, p, want, shared)
            same(fasttrack_record, "ffn output", experts.tail(ctx, ready, got, shared), after)
            fasttrack_record.launched("prepared-experts")


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_decoded_matrices_hold_the_values_of_the_format(dtype: torch.dtype) -> None:
    p, w = layer(1, 2)
    ready = experts.prepare(p, dtype)
    for e, (w13, w2) in enumerate(zip(ready.w13, ready.w2, strict=True)):
        x = w.experts
        assert torch.equal(w13, decode_mxfp4(x.w13_packed[e], x.w13_scale[e], dtype))
        assert torch.equal(w2, decode_mxfp4(x.w2_packed[e], x.w2_scale[e], dtype))


def test_a_row_that_is_given_another_expert_s_output_is_seen() -> None:
    p, w = layer(1, 1)
    ids, picked, z = visits(5, 1, torch.float64, few=False)
    got = experts.experts(context(WIDE), experts.prepare(p, torch.float64), ids.flip(1), picked, z)
    with pytest.raises(AssertionError):
        near(Recorder(), "latent share", got, judged(WIDE, w, ids, picked, z))
