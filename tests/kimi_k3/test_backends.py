# SPDX-License-Identifier: Apache-2.0
"""What a setup builds: roundings by the experts' format and the ranks, caches by the options."""

from dataclasses import dataclass, replace

import pytest
import torch

from kimi_k3.backends import RankModel, Setup, moved, specialized_rounding
from kimi_k3.config import tiny
from kimi_k3.decode.comm.local import LocalGroup
from kimi_k3.decode.exchanges import exchanges_of
from kimi_k3.decode.packaged import packaged_manifest
from kimi_k3.decode.plan import Planner, RowCounts
from kimi_k3.engine.engine import Engine
from kimi_k3.engine.options import EngineConfig
from kimi_k3.engine.request import Request, Sampling
from kimi_k3.engine.speculation import ngram
from kimi_k3.ranks import SingleRank
from kimi_k3.reference.state import FP8, KvCache
from kimi_k3.rounding import bf16, keep, mxfp8_amax, mxfp8_floor, specialized, stock
from kimi_k3.step import Backend, Step, StepOutput
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


def test_weights_that_are_moved_keep_every_tensor(tiny_weights: ModelWeights) -> None:
    there = moved(tiny_weights, torch.device("meta"))
    assert there.layers[5].attention.o_proj.is_meta
    assert there.layers[1].ffn.experts.w2_scale.is_meta  # type: ignore[union-attr]
    assert there.norm.shape == tiny_weights.norm.shape
    assert moved(tiny_weights, torch.device("cpu")).norm is tiny_weights.norm


@dataclass(frozen=True)
class Listening:
    """A backend that remembers the steps that it was given."""

    backend: Backend
    steps: list[Step]

    def step(self, step: Step) -> StepOutput:
        self.steps.append(step)
        return self.backend.step(step)

    def providers(self) -> tuple[str, ...]:
        return self.backend.providers()


def test_scheduler_sampler_and_memory_are_the_same_objects_over_both_backends(
    tiny_weights: ModelWeights,
) -> None:
    """With the stock rounding both compute the same logits; then every step is the same, too."""
    options = EngineConfig(
        max_requests=2,
        pages=12,
        prefill_budget=4,
        speculation=ngram(3),
        padding=RowCounts().padded_requests,
    )
    setup = Setup(tiny(), options, planned_rounding=stock())
    region = next(r for r in packaged_manifest().scope if r.id == "cpu-virtual-tp1")
    requests = [
        Request((5, 6, 5, 6, 5, 6, 5), 9, Sampling(0.7, seed=3)),
        Request((1, 2, 1, 2, 1), 7),
        Request((9,), 5),
    ]

    def serve(backend: Backend) -> tuple[list[Step], list[type], object, tuple[str, ...]]:
        heard = Listening(backend, [])
        engine = Engine(tiny(), heard, options)
        results = [result.tokens for result in engine.generate(requests)]
        kinds = [type(engine), type(engine.scheduler), type(engine.scheduler.memory)]
        return heard.steps, kinds, (results, engine.metrics), backend.providers()

    auto = serve(RankModel.build(setup, tiny_weights).auto(SingleRank()))
    group = LocalGroup(exchanges_of(tiny(), 1, 1, 64, torch.float32))
    (ended,) = group.run(
        lambda comm: serve(
            RankModel.build(setup, tiny_weights).specialized(comm, Planner(region, RowCounts(), 3))
        )
    )
    assert ended.value is not None
    assert (auto[3], ended.value[3]) == (("stock",), ("reference", "stock"))
    assert auto[1:3] == ended.value[1:3]
    for one, other in zip(auto[0], ended.value[0], strict=True):
        assert one.shape == other.shape
        for name in ("token_ids", "slots", "accepted", "block_table", "lengths"):
            assert torch.equal(getattr(one, name), getattr(other, name)), name


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
