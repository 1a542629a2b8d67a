# SPDX-License-Identifier: Apache-2.0
"""The engine's flow: admission, chunks, windows, events, failures, and what it counts."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, replace
from itertools import product
from typing import cast

import numpy as np
import pytest
import torch

from fasttrack.errors import FasttrackError, Problem
from kimi_k3.engine.acceptance import MEANINGLESS, RejectionSampling
from kimi_k3.engine.drafters import Draft, Drafter, NgramDrafter
from kimi_k3.engine.draws import Stream, uniforms
from kimi_k3.engine.engine import Engine
from kimi_k3.engine.metrics import StepKind
from kimi_k3.engine.options import EngineConfig
from kimi_k3.engine.request import Request, Sampling
from kimi_k3.engine.results import EngineStoppedError, Event, FinishReason
from kimi_k3.engine.sampler import choose, probabilities
from kimi_k3.engine.speculation import Speculation, ngram, synthetic
from kimi_k3.ranks import Communicator, run_ranks
from kimi_k3.step import Kind, Step, StepOutput
from tests.kimi_k3.engine.alone import Oracle, alone, distribution
from tests.kimi_k3.engine.chi_square import deviation
from tests.kimi_k3.engine.toy import VOCABULARY, Toy, logits_after, toy_config

PROMPT = (1, 2, 3)


def serve(options: EngineConfig, toy: Toy | None = None) -> tuple[Engine, Toy]:
    toy = toy or Toy(options)
    return Engine(toy_config(), toy, options), toy


def speculating(drafter: Drafter, draft: int = 3, **changes: int) -> EngineConfig:
    options = EngineConfig(speculation=Speculation(draft, drafter, RejectionSampling()))
    return replace(options, **changes)  # type: ignore[arg-type]


def shapes(toy: Toy) -> list[str]:
    """`w 2x4` for a group of two windows of four rows, `p` for prefills."""
    return [
        ", ".join(f"{group.kind[0]} {group.requests}x{group.rows}" for group in step.shape.groups)
        for step in toy.steps
    ]


def test_a_request_streams_its_tokens_and_ends_with_a_result() -> None:
    engine, toy = serve(EngineConfig())
    assert engine.add(Request(PROMPT, 3)) == 0
    events = [engine.step() for _ in range(3)]
    expected = alone(Request(PROMPT, 3))
    assert [event.tokens for (event,) in events] == [(token,) for token in expected]
    result = events[-1][0].result
    assert result is not None
    assert (result.tokens, result.reason, result.notes) == (expected, FinishReason.LENGTH, ())
    assert shapes(toy) == ["p 1x3", "w 1x1", "w 1x1"]
    assert engine.idle
    assert engine.step() == []
    assert len(toy.steps) == 3


def test_a_prompt_of_one_token_starts_from_empty_state_in_used_slots() -> None:
    engine, _ = serve(EngineConfig(max_requests=1, pages=4, page_size=2))
    for token in (4, 5):
        (result,) = engine.generate([Request((token,), 6)])
        assert result.tokens == alone(Request((token,), 6))


def test_prompts_are_taken_in_by_chunks_within_the_budget_the_earliest_first() -> None:
    engine, toy = serve(EngineConfig(prefill_budget=5))
    engine.generate([Request((1,) * 7, 2), Request((2,) * 2, 2), Request((3,) * 6, 2)])
    assert shapes(toy) == [
        "p 1x5",
        "p 1x1, p 2x2",
        "w 2x1, p 1x5",
        "w 1x1",
    ]


def test_without_mixed_steps_windows_and_prompts_take_turns() -> None:
    engine, toy = serve(EngineConfig(prefill_budget=2, mixed=False))
    engine.generate([Request((1,), 4), Request((2,) * 6, 2)])
    assert shapes(toy) == ["p 2x1", "w 1x1", "p 1x2", "w 1x1", "p 1x2", "w 1x1", "p 1x1", "w 1x1"]
    assert engine.metrics.steps[StepKind.MIXED] == 0


def test_requests_wait_in_line_until_slots_and_pages_are_free() -> None:
    """Pages for two short requests or one long; the long one also holds back the one behind it."""
    engine, toy = serve(EngineConfig(max_requests=3, pages=4, page_size=4))
    short, long = Request((1,), 8), Request((2,), 12)
    results = engine.generate([short, long, replace(short, prompt=(3,))])
    assert [result.tokens for result in results] == [
        alone(request) for request in (short, long, replace(short, prompt=(3,)))
    ]
    assert shapes(toy) == [
        *["p 1x1", *["w 1x1"] * 7],
        *["p 1x1", *["w 1x1"] * 11],
        *["p 1x1", *["w 1x1"] * 7],
    ]


def test_a_freed_place_is_taken_in_the_next_step() -> None:
    engine, toy = serve(EngineConfig(max_requests=2, pages=99))
    engine.generate([Request((1,), 2), Request((2,), 4), Request((3,), 2)])
    assert shapes(toy) == ["p 2x1", "w 2x1", "w 1x1, p 1x1", "w 2x1"]


def test_a_window_brings_the_newest_token_and_its_draft_and_columns_stay() -> None:
    engine, toy = serve(speculating(Oracle()))
    (result,) = engine.generate([Request(PROMPT, 12)])
    assert result.tokens == alone(Request(PROMPT, 12))
    windows = toy.steps[1:]
    assert all(step.shape.groups[0].rows == 4 for step in windows)
    assert {tuple(step.slots[0].tolist()) for step in toy.steps} == {(1, 2, 3, 4)}
    lengths = [3, *(int(step.lengths[0]) - 4 for step in windows)]
    for before, step, after in zip(lengths[1:], windows, windows[1:], strict=False):
        survived = int(after.accepted[0])
        assert int(after.lengths[0]) - 4 == before + survived
        assert step.token_ids[0] == [*PROMPT, *result.tokens][before]
    assert {int(step.accepted[0]) for step in toy.steps} > {1}


def test_windows_keep_their_length_up_to_the_end_of_a_request() -> None:
    """They run past `max_tokens`, into pages that were reserved; what they decide there drops."""
    engine, toy = serve(speculating(Oracle(), pages=3, page_size=3, max_requests=1))
    (result,) = engine.generate([Request(PROMPT, 4)])  # 6 positions and 3 more
    assert result.tokens == alone(Request(PROMPT, 4))
    assert {step.shape.groups[0].rows for step in toy.steps[1:]} == {4}


def test_the_last_windows_of_the_models_last_positions_are_shorter() -> None:
    engine, toy = serve(speculating(Oracle()))
    request = Request((1,) * 30, 11)  # all 40 positions
    (result,) = engine.generate([request])
    assert result.tokens == alone(request)
    assert max(step.shape.context for step in toy.steps) == 40
    assert {step.shape.groups[0].rows for step in toy.steps[1:]} > {4}


def test_shorter_drafts_are_groups_of_their_own() -> None:
    engine, toy = serve(speculating(Oracle(partial=True)))
    requests = [Request((number,), 9) for number in range(6)]
    results = engine.generate(requests)
    assert [result.tokens for result in results] == [alone(request) for request in requests]
    assert any(len(step.shape.groups) >= 3 for step in toy.steps)
    assert engine.metrics.steps[StepKind.RAGGED] > 0


def test_padding_goes_by_live_requests_and_rows_and_changes_no_token() -> None:
    options = replace(speculating(Oracle()), padding=lambda live, rows: live + rows)
    engine, toy = serve(options)
    requests = [Request((number,), 6) for number in range(3)]
    results = engine.generate(requests)
    assert [result.tokens for result in results] == [alone(request) for request in requests]
    assert shapes(toy)[:2] == ["p 3x1", "w 7x4"]
    assert engine.metrics.null_requests == 4 * engine.metrics.steps[StepKind.DECODE]


STOPS: dict[str, tuple[Request, FinishReason]] = {
    "a stop id": (Request(PROMPT, 20, stop_ids=frozenset({5, 6})), FinishReason.STOP),
    "the end token": (Request(PROMPT, 20, eos_id=0), FinishReason.STOP),
    "enough tokens": (Request(PROMPT, 2, eos_id=0), FinishReason.LENGTH),
}


@pytest.mark.parametrize("case", STOPS)
@pytest.mark.parametrize("drafter", [NgramDrafter(), Oracle()], ids=["ngram", "oracle"])
def test_a_request_ends_with(case: str, drafter: Drafter) -> None:
    request, reason = STOPS[case]
    engine, _ = serve(speculating(drafter, 4))
    (result,) = engine.generate([request])
    assert (result.tokens, result.reason) == (alone(request), reason)
    assert request.ends_at(result.tokens[-1]) == (reason is FinishReason.STOP)
    assert not any(request.ends_at(token) for token in result.tokens[:-1])


def test_an_abort_frees_at_once_and_the_next_step_tells_of_it() -> None:
    engine, toy = serve(EngineConfig(max_requests=1, pages=9))
    running, waiting = engine.add(Request(PROMPT, 9)), engine.add(Request(PROMPT, 2))
    engine.step()
    assert engine.abort(running)
    assert engine.scheduler.memory.pages.free == 9
    (aborted, first) = engine.step()
    assert (aborted.request, aborted.tokens) == (running, ())
    assert aborted.result is not None
    assert aborted.result.reason is FinishReason.ABORTED
    assert aborted.result.tokens == alone(Request(PROMPT, 1))
    assert (first.request, first.tokens) == (waiting, alone(Request(PROMPT, 1)))
    assert engine.abort(waiting)
    assert engine.idle
    assert [event.request for event in engine.step()] == [waiting]
    assert engine.step() == []
    assert len(toy.steps) == 2


def test_abort_tells_ended_requests_from_unknown_ones() -> None:
    engine, _ = serve(EngineConfig())
    engine.generate([Request(PROMPT, 1)])
    assert not engine.abort(0)
    with pytest.raises(ValueError, match="abort of request 1; ids so far are below 1"):
        engine.abort(1)
    queued = engine.add(Request(PROMPT, 1))
    assert engine.abort(queued)
    assert not engine.abort(queued)


def test_logits_that_are_no_numbers_end_their_request_and_no_other() -> None:
    """Token 6 breaks the toy; requests run on until they meet it, drafts of it do no harm."""
    options = speculating(Oracle())
    engine, _ = serve(options, Toy(options, broken=frozenset({6})))
    requests = [Request((number, 1), 1 + 2 * number) for number in range(6)]
    results = engine.generate([*requests, Request((6,), 3)])
    reasons = []
    for request, result in zip(requests, results[:-1], strict=True):
        expected = alone(replace(request, stop_ids=frozenset({6})))
        assert result.tokens == expected
        broken = 6 in expected[:-1] or (expected[-1] == 6 and len(expected) < request.max_tokens)
        assert result.reason is (FinishReason.ERROR if broken else FinishReason.LENGTH)
        reasons.append(result.reason)
    assert set(reasons) == {FinishReason.ERROR, FinishReason.LENGTH}
    assert results[-1].tokens == ()
    assert results[-1].problem == Problem(
        "request 6",
        "logits that are no finite numbers at token 0",
        "weights of which every tensor is finite",
    )
    assert engine.idle
    engine.scheduler.memory.check_all_free()


def test_a_failing_window_counts_the_draft_tokens_that_stood_before() -> None:
    """Every window gives its accepted drafts and one more token; the failing one no more."""
    options = speculating(Oracle())
    engine, _ = serve(options, Toy(options, broken=frozenset({6})))
    results = engine.generate([Request((number, 1), 30) for number in range(6)])
    assert {result.reason for result in results} == {FinishReason.ERROR}
    for result in results:
        counts = result.metrics.speculation
        assert counts.accepted == (len(result.tokens) - 1) - (counts.windows - 1)
    assert any(result.metrics.speculation.accepted for result in results)


def test_a_request_that_ends_in_a_window_does_not_care_for_the_bad_row_behind() -> None:
    """A drafted 6 ends the request and breaks the row after it, which nobody asks for."""
    options = speculating(Oracle())
    engine, _ = serve(options, Toy(options, broken=frozenset({6})))
    requests = [Request((number, 1), 30, eos_id=6) for number in range(6)]
    results = engine.generate(requests)
    assert [result.tokens for result in results] == [alone(request) for request in requests]
    assert {result.reason for result in results} == {FinishReason.STOP}


class CommunicatorDownError(FasttrackError):
    """What a decode communicator raises when a rank is lost."""


ERRORS: dict[str, tuple[BaseException, type[FasttrackError], str]] = {
    "a failure of the ranks": (
        CommunicatorDownError("rank 3 is silent"),
        CommunicatorDownError,
        "rank 3 is silent",
    ),
    "an error that is none of ours": (
        RuntimeError("out of memory"),
        EngineStoppedError,
        "an earlier step ended in RuntimeError: out of memory",
    ),
    "an interrupt": (
        KeyboardInterrupt(),
        EngineStoppedError,
        "an earlier step ended in KeyboardInterrupt",
    ),
}


def test_an_abort_before_a_failing_step_is_still_told() -> None:
    options = EngineConfig()
    toy = Toy(options)
    engine, _ = serve(options, toy)
    first, second = engine.add(Request(PROMPT, 4)), engine.add(Request(PROMPT, 4))
    engine.step()
    assert engine.abort(first)

    def lost(step: Step) -> StepOutput:
        raise CommunicatorDownError("rank 1 is lost")

    toy.step = lost  # type: ignore[method-assign]
    with pytest.raises(CommunicatorDownError):
        engine.step()
    (event,) = engine.step()
    assert (event.request, event.result and event.result.reason) == (first, FinishReason.ABORTED)
    assert [one.request for one in engine.unfinished()] == [second]
    with pytest.raises(CommunicatorDownError):
        engine.step()


@pytest.mark.parametrize("case", ERRORS)
def test_after_a_failed_step_nothing_of_it_is_released_and_every_call_raises(case: str) -> None:
    error, later, words = ERRORS[case]
    options = speculating(Oracle())
    toy = Toy(options, fail_at=frozenset({3}), error=error)
    engine, _ = serve(options, toy)
    requests = [Request((number, 1), 20, Sampling(1.0, seed=number)) for number in range(3)]
    for request in requests:
        engine.add(request)
    seen: dict[int, list[int]] = {0: [], 1: [], 2: []}
    for _ in range(3):
        for event in engine.step():
            seen[event.request].extend(event.tokens)
    with pytest.raises(type(error)):
        engine.step()
    for call in (
        engine.step,
        engine.run_all,
        lambda: engine.add(requests[0]),
        lambda: engine.abort(0),
        lambda: engine.generate(requests[:1]),
    ):
        with pytest.raises(later, match=words):
            call()
    assert len(toy.steps) == 4
    left = engine.unfinished()
    assert {rest.request: [*rest.tokens] for rest in left} == seen
    again, _ = serve(options)
    for rest, result in zip(left, again.generate([r.rest for r in left]), strict=True):
        assert (*rest.tokens, *result.tokens) == alone(requests[rest.request])


def test_a_failure_while_tokens_are_judged_also_stops_the_engine() -> None:
    class Wrong(RejectionSampling):
        def judge(self, window: object) -> object:  # type: ignore[override]
            raise ZeroDivisionError

    options = EngineConfig(
        speculation=Speculation(0, NgramDrafter(), cast("RejectionSampling", Wrong()))
    )
    engine, _ = serve(options)
    engine.add(Request(PROMPT, 1))
    with pytest.raises(ZeroDivisionError):
        engine.step()
    with pytest.raises(EngineStoppedError, match="ended in ZeroDivisionError"):
        engine.step()
    assert engine.unfinished()[0].tokens == ()


def test_a_backend_that_returns_other_rows_of_logits_is_an_error() -> None:
    class All(Toy):
        def step(self, step: Step) -> StepOutput:
            output = super().step(step)
            return replace(output, logits=torch.cat([output.logits, output.logits]))

    options = EngineConfig()
    engine, _ = serve(options, All(options))
    engine.add(Request(PROMPT, 1))
    with pytest.raises(ValueError, match="the backend returned 2 rows of logits, not 1"):
        engine.step()


@pytest.mark.parametrize(
    "tokens", [(1, 2, 3, 4), (VOCABULARY,), (-1,)], ids=["too many", "too large", "negative"]
)
def test_a_drafter_that_answers_what_it_may_not_is_an_error(tokens: tuple[int, ...]) -> None:
    class Wild:
        def propose(self, text: Sequence[int], n: int, sampling: Sampling) -> Draft:
            return Draft(tokens)

    engine, _ = serve(speculating(Wild()))
    engine.add(Request(PROMPT, 9))
    engine.step()
    with pytest.raises(ValueError, match="the drafter proposed"):
        engine.step()


def test_a_leak_is_found_when_nothing_runs() -> None:
    engine, _ = serve(EngineConfig())
    engine.scheduler.memory.slots.take(1)
    with pytest.raises(ValueError, match=r"state slots \[1\] were never given back"):
        engine.generate([Request(PROMPT, 1)])


def test_generate_wants_an_engine_of_its_own() -> None:
    engine, _ = serve(EngineConfig())
    engine.add(Request(PROMPT, 1))
    with pytest.raises(ValueError, match="an engine without requests"):
        engine.generate([Request(PROMPT, 1)])


def test_what_is_counted() -> None:
    options = replace(speculating(Oracle(), prefill_budget=4), padding=lambda live, rows: live + 1)
    engine, toy = serve(options)
    results = engine.generate([Request((1,) * 6, 8), Request((2, 5), 3)])
    metrics = engine.metrics
    assert metrics.prompt_tokens == 8
    assert metrics.generated_tokens == sum(len(result.tokens) for result in results) == 11
    assert sum(metrics.steps.values()) == len(toy.steps)
    assert metrics.steps[StepKind.PREFILL] == 2
    assert results[0].metrics.prefill_steps == 2
    assert results[1].metrics.prefill_steps == 1
    total = asdict(metrics)["speculation"]
    own = [asdict(result.metrics)["speculation"] for result in results]
    for name in ("windows", "drafts", "drafted", "accepted"):
        assert total[name] == sum(counts[name] for counts in own)
    assert total["windows"] == sum(
        int((step.lengths > 0).sum())
        for step in toy.steps
        if step.shape.groups[0].rows == 4 and step.shape.groups[0].kind is Kind.WINDOW
    )
    assert total["drafted"] == 3 * total["drafts"] == 3 * total["windows"]
    assert sum(total["accepted_at"]) == total["accepted"]
    assert metrics.speculation.acceptance_length == 1 + total["accepted"] / total["drafts"]


def test_without_drafts_there_is_no_acceptance_length() -> None:
    engine, _ = serve(EngineConfig())
    (result,) = engine.generate([Request(PROMPT, 3)])
    assert result.metrics.speculation.windows == 2
    assert result.metrics.speculation.acceptance_length is None


class Drawn:
    """Draws its tokens from the toy model at another temperature."""

    def propose(self, tokens: Sequence[int], n: int, sampling: Sampling) -> Draft:
        draws = uniforms(sampling.seed, Stream.DRAFT, len(tokens), n)
        text, laws = list(tokens), []
        for place in range(n):
            laws.append(probabilities(logits_after(text), Sampling(3.0)))
            text.append(choose(laws[-1], draws[place]))
        return Draft(tuple(text[len(tokens) :]), np.stack(laws))


def test_drafts_that_were_drawn_keep_the_distribution() -> None:
    """The last two of three tokens over 700 seeds, against the chain rule."""
    sampling = Sampling(1.2)
    law: Counter[tuple[int, ...]] = Counter()
    for text in product(range(VOCABULARY), repeat=3):
        probability, tokens = 1.0, list(PROMPT)
        for token in text:
            probability *= distribution(logits_after(tokens), sampling)[token]
            tokens.append(token)
        law[text[1:]] += probability  # type: ignore[assignment]
    engine, _ = serve(speculating(Drawn(), draft=2, pages=40))
    requests = [Request(PROMPT, 3, replace(sampling, seed=seed)) for seed in range(700)]
    counts = Counter(result.tokens[1:] for result in engine.generate(requests))
    assert deviation(counts, law) < 3.5
    assert 0 < engine.metrics.speculation.accepted < engine.metrics.speculation.drafted


def test_greedy_requests_do_not_care_how_a_draft_was_made() -> None:
    engine, _ = serve(speculating(Drawn()))
    (result,) = engine.generate([Request(PROMPT, 9)])
    assert result.tokens == alone(Request(PROMPT, 9))


@pytest.mark.parametrize("length", [1.0, 2.6, 4.0])
def test_synthetic_acceptance_meets_its_length_and_its_text_is_marked(length: float) -> None:
    """The fraction is one Bernoulli draw a window: five standard deviations of its mean."""
    speculation = synthetic(3, VOCABULARY, acceptance_length=length)
    options = EngineConfig(speculation=speculation, pages=999)
    engine, _ = serve(options)
    results = engine.generate([Request((number % VOCABULARY,), 30) for number in range(40)])
    assert {result.notes for result in results} == {(MEANINGLESS,)}
    assert {len(result.tokens) for result in results} == {30}
    counts = engine.metrics.speculation
    fraction = length % 1
    bound = 5 * (fraction * (1 - fraction) / counts.drafts) ** 0.5
    assert counts.acceptance_length == pytest.approx(length, abs=bound + 1e-9)


def test_a_synthetic_draft_that_stands_is_what_the_caches_hold() -> None:
    """The text that comes out is the text that was computed: its last token follows from it."""
    options = EngineConfig(speculation=synthetic(3, VOCABULARY, acceptance_length=3.0))
    engine, _ = serve(options)
    engine.add(Request(PROMPT, 30))
    text = list(PROMPT)
    events = [event for _ in range(6) for event in engine.step()]
    for event in events:
        text.extend(event.tokens[:-1])
        assert alone(Request(tuple(text), 1)) == event.tokens[-1:]
        text.append(event.tokens[-1])
    assert [len(event.tokens) for event in events] == [1, *[3] * 5]


def test_backends_that_agree_get_the_same_steps_from_the_same_objects() -> None:
    class Other(Toy):
        def providers(self) -> tuple[str, ...]:
            return ("another",)

    requests = [Request((number, 2), 9, Sampling(0.8, seed=number)) for number in range(5)]
    engines, toys = [], []
    for kind in (Toy, Other):
        options = replace(speculating(NgramDrafter()), max_requests=2)
        engine, toy = serve(options, kind(options))
        engine.generate(requests)
        engines.append(engine)
        toys.append(toy)
    one, other = engines
    assert type(one.scheduler) is type(other.scheduler)
    assert type(one.scheduler.memory) is type(other.scheduler.memory)
    assert one.metrics == other.metrics
    for first, second in zip(toys[0].steps, toys[1].steps, strict=True):
        assert first.shape == second.shape
        for name in ("token_ids", "slots", "accepted", "block_table", "lengths"):
            assert torch.equal(getattr(first, name), getattr(second, name))


def test_engines_of_several_ranks_decide_alike() -> None:
    """Each rank computes one column of the logits and gathers the rest; each has its own engine."""

    class Share(Toy):
        comm: Communicator

        def step(self, step: Step) -> StepOutput:
            output = super().step(step)
            share = output.logits.tensor_split(self.comm.size, dim=1)[self.comm.rank]
            return replace(output, logits=self.comm.all_gather(share, 1))

    requests = [Request((number, 2), 8, Sampling(0.9, seed=number)) for number in range(4)]
    options = replace(EngineConfig(speculation=ngram(3), max_requests=2), pages=64)

    def rank(comm: Communicator) -> list[tuple[int, ...]]:
        backend = Share(options)
        backend.comm = comm
        return [
            result.tokens for result in Engine(toy_config(), backend, options).generate(requests)
        ]

    ranks = VOCABULARY
    assert run_ranks(ranks, rank) == [[alone(request) for request in requests]] * ranks


def test_events_are_plain_data() -> None:
    engine, _ = serve(EngineConfig())
    engine.add(Request(PROMPT, 5))
    assert engine.step() == [Event(0, alone(Request(PROMPT, 1)))]
