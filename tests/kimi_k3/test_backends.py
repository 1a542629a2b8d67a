# SPDX-License-Identifier: Apache-2.0
"""What a setup builds: roundings by the experts' format and the ranks, caches by the options."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from kimi_k3.backends import RankModel, Setup, moved, specialized_rounding
from kimi_k3.config import tiny
from kimi_k3.decode.comm.local import LocalCommunicator, LocalGroup
from kimi_k3.decode.exchanges import exchanges_of
from kimi_k3.decode.packaged import packaged_manifest
from kimi_k3.decode.plan import Planner, RowCounts
from kimi_k3.engine.engine import Engine
from kimi_k3.engine.metrics import EngineMetrics
from kimi_k3.engine.options import EngineConfig
from kimi_k3.engine.request import Request, Sampling
from kimi_k3.engine.speculation import NO_SPECULATION, ngram
from kimi_k3.packed import pack
from kimi_k3.random_init import random_weights
from kimi_k3.ranks import SingleRank
from kimi_k3.reference.state import FP8, Caches, KvCache
from kimi_k3.rounding import bf16, keep, mxfp8_amax, mxfp8_floor, specialized, stock
from kimi_k3.step import Backend, Step, StepOutput
from kimi_k3.stock.model import StockModel
from kimi_k3.weights import ModelWeights
from tests.kimi_k3.decode.server import same_bits, tensors


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


def test_packed_weights_that_are_moved_keep_every_tensor(tiny_weights: ModelWeights) -> None:
    packed = pack(tiny(), tiny_weights)
    there = moved(packed, torch.device("meta"))
    assert there.layers[5].attention.in_proj.is_meta
    assert there.layers[1].ffn.experts.w2_scale.is_meta  # type: ignore[union-attr]
    assert there.final_mix.norm is None
    assert moved(packed, torch.device("cpu")).lm_head is packed.lm_head


@dataclass(frozen=True)
class Listening:
    """A backend that remembers the steps that it was given, and what came of them."""

    backend: Backend
    steps: list[Step]
    outputs: list[StepOutput]

    def step(self, step: Step) -> StepOutput:
        self.steps.append(step)
        self.outputs.append(self.backend.step(step))
        return self.outputs[-1]

    def providers(self) -> tuple[str, ...]:
        return self.backend.providers()


@dataclass(frozen=True)
class Served:
    """One engine over one backend, at its end."""

    heard: Listening
    kinds: list[type]
    results: list[tuple[int, ...]]
    metrics: EngineMetrics
    caches: Caches


def serve(
    model: RankModel, backend: Backend, requests: Sequence[Request], options: EngineConfig
) -> Served:
    heard = Listening(backend, [], [])
    engine = Engine(tiny(), heard, options)
    results = [result.tokens for result in engine.generate(requests)]
    kinds = [type(engine), type(engine.scheduler), type(engine.scheduler.memory)]
    return Served(heard, kinds, results, engine.metrics, model.caches)


def requests() -> st.SearchStrategy[list[Request]]:
    """Prompts that repeat themselves, so that n-grams are found, greedy or not."""
    one = st.builds(
        lambda unit, times, new, hot: Request(
            tuple(unit * times), new, Sampling(0.8 if hot else 0.0, seed=new)
        ),
        st.lists(st.integers(0, 511), min_size=1, max_size=3),
        st.integers(1, 4),
        st.integers(1, 9),
        st.booleans(),
    )
    return st.lists(one, min_size=1, max_size=4)


@settings(max_examples=10, deadline=None)
@given(asked=requests(), draft=st.integers(0, 3), budget=st.integers(2, 9), mixed=st.booleans())
def test_an_engine_s_steps_outputs_and_caches_are_the_same_over_both_backends(
    asked: list[Request], draft: int, budget: int, mixed: bool
) -> None:
    """Prompts in chunks, mixed steps and ragged windows fall back; the planner decides which.

    With the stock rounding both backends compute the same bits, so that every later step is the
    same, too; scheduler and memory are the same objects anyway.
    """
    options = EngineConfig(
        max_requests=2,
        pages=12,
        prefill_budget=budget,
        mixed=mixed,
        speculation=ngram(draft) if draft else NO_SPECULATION,
        padding=RowCounts().padded_requests,
    )
    setup, weights = Setup(tiny(), options, planned_rounding=stock()), random_weights(tiny())
    region = next(r for r in packaged_manifest().scope if r.id == "cpu-virtual-tp1")
    own = RankModel.build(setup, weights)
    auto = serve(own, own.auto(SingleRank()), asked, options)

    def one_rank(comm: LocalCommunicator) -> Served:
        model = RankModel.build(setup, weights)
        planner = Planner(region, RowCounts(), draft)
        return serve(model, model.specialized(comm, planner), asked, options)

    (ended,) = LocalGroup(exchanges_of(tiny(), 1, 1, 64, torch.float32)).run(one_rank)
    other = ended.value
    assert other is not None
    assert (auto.kinds, auto.results, auto.metrics) == (other.kinds, other.results, other.metrics)
    for one, two in zip(auto.heard.steps, other.heard.steps, strict=True):
        assert one.shape == two.shape
        for name in ("token_ids", "slots", "accepted", "block_table", "lengths"):
            assert torch.equal(getattr(one, name), getattr(two, name)), name
    for x, y in zip(auto.heard.outputs, other.heard.outputs, strict=True):
        assert same_bits(x.logits, y.logits)
        assert same_bits(x.hidden, y.hidden)
    for a, b in zip(tensors(auto.caches), tensors(other.caches), strict=True):
        assert same_bits(a, b)


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
