# SPDX-License-Identifier: Apache-2.0
"""What a setup builds: roundings by the experts' format and the ranks, caches by the options."""

from dataclasses import replace

import pytest
import torch

from kimi_k3.backends import RankModel, Setup, specialized_rounding
from kimi_k3.config import tiny
from kimi_k3.decode.comm.local import LocalGroup
from kimi_k3.decode.exchanges import exchanges_of
from kimi_k3.decode.packaged import packaged_manifest
from kimi_k3.decode.plan import Planner, RowCounts
from kimi_k3.engine.options import EngineConfig
from kimi_k3.ranks import SingleRank
from kimi_k3.reference.state import FP8, KvCache
from kimi_k3.rounding import bf16, keep, mxfp8_amax, mxfp8_floor, specialized, stock
from kimi_k3.stock.model import StockModel
from kimi_k3.weights import ModelWeights


@pytest.mark.parametrize(
    ("activations", "tp", "z", "hidden"),
    [
        ("bf16", 8, keep, bf16),
        ("bf16", 16, keep, bf16),
        ("mxfp8", 8, mxfp8_amax, mxfp8_floor),
        ("mxfp8", 16, mxfp8_amax, mxfp8_amax),
    ],
)
def test_planned_steps_round_the_experts_rows_by_their_format(
    activations: str, tp: int, z: object, hidden: object
) -> None:
    got = specialized_rounding(activations, tp)
    assert (got.expert_input, got.expert_hidden) == (z, hidden)
    same = replace(got, expert_input=mxfp8_amax, expert_hidden=mxfp8_amax)
    assert same == specialized()  # in all else the specialised column


@pytest.mark.parametrize("fp8", [False, True])
def test_caches_are_as_the_engine_s_options_say(fp8: bool, tiny_weights: ModelWeights) -> None:
    options = EngineConfig(max_requests=3, pages=5, page_size=4, interleave=2)
    model = RankModel.build(Setup(tiny(), options, fp8_cache=fp8), tiny_weights)
    caches = [layer for layer in model.caches.layers if isinstance(layer, KvCache)]
    assert {cache.interleave for cache in caches} == {2}
    assert {tuple(cache.pages.shape) for cache in caches} == {(5, 4, tiny().kv_row)}
    assert {cache.pages.dtype for cache in caches} == {FP8 if fp8 else torch.bfloat16}


def test_both_backends_are_asked_for_the_same_streams(tiny_weights: ModelWeights) -> None:
    setup = Setup(tiny(), EngineConfig(pages=4), aux_layers=(2, 5))
    model = RankModel.build(setup, tiny_weights)
    auto = model.auto(SingleRank())
    assert isinstance(auto, StockModel)
    assert auto.aux_layers == (2, 5)
    region = next(r for r in packaged_manifest().scope if r.id == "cpu-virtual-tp1")
    group = LocalGroup(exchanges_of(tiny(), 1, 1, 64, torch.float32))
    (ended,) = group.run(lambda comm: model.specialized(comm, Planner(region, RowCounts(), 0)))
    assert ended.value is not None
    assert ended.value.aux_layers == (2, 5)
    assert ended.value.stock.aux_layers == (2, 5)  # type: ignore[attr-defined]
    assert setup.stock_rounding == stock()
