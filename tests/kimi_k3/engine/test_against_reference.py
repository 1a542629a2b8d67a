# SPDX-License-Identifier: Apache-2.0
"""The engine over the reference in float64: what each request gives is what it gives alone.

The expected tokens come from a loop that knows no engine: each token from a fresh pass over the
whole text. In float64 the logits of both differ by rounding of about 1e-13; random weights put two
logits that close together in none of these texts, as the test asserts.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import cache

import pytest
import torch

from kimi_k3.assembly import shard
from kimi_k3.config import tiny
from kimi_k3.engine.draws import Floats
from kimi_k3.engine.engine import Engine
from kimi_k3.engine.options import EngineConfig
from kimi_k3.engine.request import Request, Sampling
from kimi_k3.engine.results import FinishReason
from kimi_k3.engine.speculation import NO_SPECULATION, Speculation, ngram, synthetic
from kimi_k3.ranks import Communicator, SingleRank, run_ranks
from kimi_k3.reference.context import Context
from kimi_k3.reference.model import Model
from kimi_k3.reference.state import CacheShape, allocate
from kimi_k3.rounding import exact
from kimi_k3.weights import ModelWeights
from tests.kimi_k3.engine.alone import alone
from tests.kimi_k3.engine.reference_backend import ReferenceBackend
from tests.kimi_k3.reference.builders import widened

EXACT = exact(torch.float64)
REQUESTS = [
    Request((1, 2, 3), 6),
    Request((5, 6, 5, 6, 5), 6, Sampling(0.8, top_p=0.9, seed=7)),
    Request((9,), 5),
    Request((1, 2, 3), 5, Sampling(1.5, top_k=50, seed=8)),
]


@pytest.fixture(scope="module")
def model(tiny_weights: ModelWeights) -> Model:
    return Model(Context(tiny(), EXACT), widened(tiny_weights, torch.float64))


@pytest.fixture(scope="module")
def expected(model: Model) -> list[tuple[int, ...]]:
    """From fresh passes; the two largest logits are never within 1e-9 of each other."""

    @cache
    def fresh(tokens: tuple[int, ...]) -> Floats:
        caches = allocate(tiny(), model.weights, EXACT, CacheShape(2, 1, len(tokens), 0))
        output = model.prefill(torch.tensor(tokens), caches, 1, torch.tensor([0]))
        first, second = output.logits[0].topk(2).values.tolist()
        assert first - second > 1e-9
        return output.logits[0].numpy()

    def logits(tokens: Sequence[int]) -> Floats:
        return fresh(tuple(tokens))

    return [alone(request, logits) for request in REQUESTS]


SETTINGS: dict[str, EngineConfig] = {
    "one at a time": EngineConfig(max_requests=1),
    "batched": EngineConfig(),
    "chunked and mixed": EngineConfig(prefill_budget=2, page_size=2),
    "chunked and in turns": EngineConfig(prefill_budget=3, mixed=False, page_size=3),
    "with drafts from the text": EngineConfig(speculation=ngram(3), page_size=4),
    "with drafts, chunks and padding": EngineConfig(
        max_requests=3,
        prefill_budget=3,
        page_size=2,
        speculation=ngram(2),
        padding=lambda live, rows: -(-live // 2) * 2,
    ),
}


@pytest.mark.parametrize("name", SETTINGS)
def test_every_request_gives_the_tokens_of_the_model_alone(
    name: str, model: Model, expected: list[tuple[int, ...]]
) -> None:
    options = SETTINGS[name].sized_for(tiny(), REQUESTS)
    engine = Engine(tiny(), ReferenceBackend.allocate(model, options.cache_shape), options)
    results = engine.generate(REQUESTS)
    assert [result.tokens for result in results] == expected
    if options.speculation is not NO_SPECULATION:
        assert engine.metrics.speculation.drafts > 0


@pytest.mark.parametrize("moment", [1, 3, 5])
def test_an_abort_leaves_the_others_and_their_successors_alone(
    moment: int, model: Model, expected: list[tuple[int, ...]]
) -> None:
    """The freed slots and pages go to the request that waited."""
    options = replace(EngineConfig(max_requests=2, page_size=2), speculation=ngram(2))
    options = options.sized_for(tiny(), REQUESTS)
    engine = Engine(tiny(), ReferenceBackend.allocate(model, options.cache_shape), options)
    for request in REQUESTS:
        engine.add(request)
    for _ in range(moment):
        engine.step()
    assert engine.abort(1)
    results = {result.request: result for result in engine.run_all()}
    assert results[1].reason is FinishReason.ABORTED
    assert results[1].tokens == expected[1][: len(results[1].tokens)]
    for index in (2, 3):
        assert results[index].tokens == expected[index]


@pytest.mark.parametrize(
    ("tp", "dcp", "speculation"),
    [(2, 1, ngram(2)), (4, 4, ngram(3)), (2, 2, NO_SPECULATION)],
    ids=["tp 2", "tp 4, dcp 4", "tp 2, dcp 2, no drafts"],
)
def test_ranks_that_share_model_and_cache_decide_alike(
    tp: int,
    dcp: int,
    speculation: Speculation,
    tiny_weights: ModelWeights,
    expected: list[tuple[int, ...]],
) -> None:
    """One token a page: each rank fills the pages it needs, and only those."""
    requests = REQUESTS[:2]
    options = EngineConfig(page_size=1, dcp=dcp, interleave=2 if dcp > 1 else 1)
    options = replace(options, speculation=speculation).sized_for(tiny(), requests)

    def rank(comm: Communicator) -> list[tuple[int, ...]]:
        share = widened(shard(tiny_weights, tiny(), tp, comm.rank), torch.float64)
        ctx = Context(tiny(), EXACT, comm, comm if dcp > 1 else SingleRank())
        backend = ReferenceBackend.allocate(
            Model(ctx, share), options.cache_shape, options.interleave
        )
        return [result.tokens for result in Engine(tiny(), backend, options).generate(requests)]

    assert run_ranks(tp, rank) == [expected[:2]] * tp


def test_synthetic_drafts_that_stand_are_what_the_model_goes_on_from(model: Model) -> None:
    """After text of random drafts, the next token is the model's word on that text."""
    speculation = synthetic(2, tiny().vocab_size, acceptance_length=2.0)
    options = EngineConfig(speculation=speculation)
    engine = Engine(tiny(), ReferenceBackend.allocate(model, options.cache_shape), options)
    engine.add(Request((1, 2, 3), 9))
    text = [1, 2, 3]
    for _ in range(3):
        (event,) = engine.step()
        text.extend(event.tokens)
    caches = allocate(tiny(), model.weights, EXACT, CacheShape(2, 1, len(text), 0))
    fresh = model.prefill(torch.tensor(text[:-1]), caches, 1, torch.tensor([0])).logits[0]
    assert text[-1] == int(fresh.argmax())
    assert len(text) == 3 + 1 + 2 + 2
