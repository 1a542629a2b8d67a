# SPDX-License-Identifier: Apache-2.0
"""What goes wrong in a step, and what of it anybody gets to see."""

from collections.abc import Sequence
from dataclasses import replace
from typing import cast

import pytest
import torch

from fasttrack.errors import FasttrackError, Problem
from kimi_k3.engine.acceptance import RejectionSampling
from kimi_k3.engine.drafters import Draft, NgramDrafter
from kimi_k3.engine.options import EngineConfig
from kimi_k3.engine.request import Request, Sampling
from kimi_k3.engine.results import FinishReason
from kimi_k3.engine.speculation import Speculation
from kimi_k3.step import Step, StepOutput, StepStoppedError
from tests.kimi_k3.engine.alone import Oracle, alone
from tests.kimi_k3.engine.serving import PROMPT, serve, speculating
from tests.kimi_k3.engine.toy import VOCABULARY, Toy


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
        StepStoppedError,
        "an earlier step ended in RuntimeError: out of memory",
    ),
    "an interrupt": (
        KeyboardInterrupt(),
        StepStoppedError,
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
    with pytest.raises(StepStoppedError, match="ended in ZeroDivisionError"):
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
