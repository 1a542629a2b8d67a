# SPDX-License-Identifier: Apache-2.0
"""The engine's flow: admission, chunks, windows, events, and what it counts."""

from dataclasses import asdict, replace

import pytest
import torch

from kimi_k3.engine.drafters import Drafter, NgramDrafter
from kimi_k3.engine.engine import Engine
from kimi_k3.engine.metrics import StepKind
from kimi_k3.engine.options import EngineConfig
from kimi_k3.engine.request import Request, Sampling
from kimi_k3.engine.results import Event, FinishReason
from kimi_k3.engine.speculation import ngram
from kimi_k3.ranks import Communicator, run_ranks
from kimi_k3.step import Kind, Step, StepOutput
from tests.kimi_k3.engine.alone import Oracle, alone
from tests.kimi_k3.engine.serving import PROMPT, serve, shapes, speculating
from tests.kimi_k3.engine.toy import VOCABULARY, Toy, toy_config


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
