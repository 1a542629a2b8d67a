# SPDX-License-Identifier: Apache-2.0
"""Whatever is added, aborted and stepped in whatever order: each request's tokens are its own."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from kimi_k3.engine.acceptance import RejectionSampling
from kimi_k3.engine.drafters import Drafter, NgramDrafter, NoDrafter
from kimi_k3.engine.engine import Engine
from kimi_k3.engine.options import EngineConfig
from kimi_k3.engine.request import GREEDY, Request, Sampling
from kimi_k3.engine.results import FinishReason, Result
from kimi_k3.engine.speculation import Speculation
from kimi_k3.step import Kind
from tests.kimi_k3.engine.alone import Oracle, alone
from tests.kimi_k3.engine.toy import VOCABULARY, Toy, toy_config

DRAFTERS: Sequence[Drafter] = [NoDrafter(), NgramDrafter(), Oracle(), Oracle(partial=True)]
SAMPLINGS = st.one_of(
    st.just(GREEDY),
    st.builds(
        Sampling,
        temperature=st.sampled_from([0.3, 1.0, 2.0]),
        top_k=st.sampled_from([0, 1, 3]),
        top_p=st.sampled_from([1.0, 0.9, 0.4]),
        seed=st.integers(0, 2**64 - 1),
    ),
)
TOKENS = st.integers(0, VOCABULARY - 1)
REQUESTS = st.builds(
    Request,
    prompt=st.lists(TOKENS, min_size=1, max_size=12).map(tuple),
    max_tokens=st.integers(1, 12),
    sampling=SAMPLINGS,
    stop_ids=st.frozensets(TOKENS, max_size=1),
    eos_id=st.none() | TOKENS,
)


@st.composite
def option_sets(draw: st.DrawFn) -> EngineConfig:
    page_size = draw(st.integers(1, 5))
    dcp = draw(st.sampled_from([1, 1, 2, 4]))
    drafter = draw(st.sampled_from(DRAFTERS))
    most = draw(st.integers(1, 4))
    step = draw(st.integers(1, 3))
    return EngineConfig(
        max_requests=most,
        pages=draw(st.integers(-(-32 // page_size), 64)),  # the largest request fits, few more do
        page_size=page_size,
        prefill_budget=draw(st.integers(1, 20)),
        mixed=draw(st.booleans()),
        speculation=Speculation(draw(st.integers(0, 4)), drafter, RejectionSampling()),
        padding=lambda live, rows: -(-live // step) * step,
        dcp=dcp,
        interleave=draw(st.integers(1, 3)) if dcp > 1 else 1,
    )


ACTIONS = st.lists(
    st.one_of(REQUESTS, st.integers(0, 9), st.just("step"), st.just("step"), st.just("step")),
    min_size=1,
    max_size=40,
)
"""A request is added, a number aborts one of those added so far."""


def check_order(toy: Toy) -> None:
    """Windows first and by rows, then prefills and by rows, no two groups alike."""
    for step in toy.steps:
        keys = [(group.kind is Kind.PREFILL, group.rows) for group in step.shape.groups]
        assert all(earlier < later for earlier, later in pairwise(keys))


@settings(max_examples=150, deadline=None)
@given(options=option_sets(), actions=ACTIONS)
def test_any_interleaving_gives_each_request_the_tokens_of_running_alone(
    options: EngineConfig, actions: list[Request | int | str]
) -> None:
    toy = Toy(options)
    engine = Engine(toy_config(), toy, options)
    asked: list[Request] = []
    streamed: dict[int, list[int]] = {}
    results: dict[int, Result] = {}

    def step() -> None:
        for event in engine.step():
            assert event.request not in results
            streamed.setdefault(event.request, []).extend(event.tokens)
            if event.result is not None:
                results[event.request] = event.result

    for action in actions:
        if isinstance(action, Request):
            assert engine.add(action) == len(asked)
            asked.append(action)
        elif isinstance(action, int) and asked:
            engine.abort(action % len(asked))
        else:
            step()
    while len(results) < len(asked):
        step()
    assert engine.idle
    engine.scheduler.memory.check_all_free()
    check_order(toy)
    for index, request in enumerate(asked):
        expected, got = alone(request), results[index]
        if got.reason is FinishReason.ABORTED:
            assert got.tokens == expected[: len(got.tokens)]
        else:
            assert got.tokens == expected
            stopped = request.ends_at(expected[-1])
            assert got.reason is (FinishReason.STOP if stopped else FinishReason.LENGTH)
        assert got.tokens == tuple(streamed.get(index, []))


@settings(max_examples=40, deadline=None)
@given(
    options=option_sets(),
    requests=st.lists(REQUESTS, min_size=1, max_size=5),
    lives=st.lists(st.integers(0, 8), min_size=1, max_size=6),
)
def test_restarts_at_any_moment_change_no_token(
    options: EngineConfig, requests: list[Request], lives: list[int]
) -> None:
    """What an engine leaves unfinished, the next one continues; draws go by position."""
    done: list[list[int]] = [[] for _ in requests]
    left = dict(enumerate(requests))
    for life in [*lives, 10_000]:
        engine = Engine(toy_config(), Toy(options), options)
        ids = {engine.add(request): index for index, request in left.items()}
        for _ in range(life):
            if engine.idle:
                break
            for event in engine.step():
                done[ids[event.request]].extend(event.tokens)
        left = {}
        for rest in engine.unfinished():
            index = ids[rest.request]
            left[index] = rest.rest
            before = replace(rest.rest, max_tokens=requests[index].max_tokens)
            assert before == replace(requests[index], prompt=rest.rest.prompt)
            assert rest.rest.prompt == (*requests[index].prompt, *done[index])
            assert tuple(done[index][len(done[index]) - len(rest.tokens) :]) == rest.tokens
    assert not left
    assert [tuple(tokens) for tokens in done] == [alone(request) for request in requests]


@settings(max_examples=10, deadline=None)
@given(moments=st.lists(st.integers(0, 6), min_size=100, max_size=100))
def test_a_hundred_aborts_and_restarts_leak_no_slot_and_no_page(moments: list[int]) -> None:
    speculation = Speculation(3, Oracle(), RejectionSampling())
    options = EngineConfig(max_requests=3, pages=40, page_size=2, speculation=speculation)
    engine = Engine(toy_config(), Toy(options), options)
    memory = engine.scheduler.memory
    for number, steps in enumerate(moments):
        request = Request((number % VOCABULARY, 2, 3), 9)
        names = [engine.add(request) for _ in range(2)]
        for _ in range(steps):
            engine.step()
        aborted = [engine.abort(name) for name in names]
        ended = {event.request for event in engine.step() if event.result is not None}
        assert ended == {name for name, was in zip(names, aborted, strict=True) if was}
        assert engine.idle
        assert (memory.slots.free, memory.pages.free) == (12, 40)
