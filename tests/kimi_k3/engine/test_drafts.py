# SPDX-License-Identifier: Apache-2.0
"""Drafts that were drawn, looked up or made up, through the whole engine."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from kimi_k3.engine.acceptance import MEANINGLESS
from kimi_k3.engine.drafters import Draft
from kimi_k3.engine.draws import Stream, uniforms
from kimi_k3.engine.options import EngineConfig
from kimi_k3.engine.request import Request, Sampling
from kimi_k3.engine.sampler import choose, probabilities
from kimi_k3.engine.speculation import synthetic
from tests.kimi_k3.engine.alone import alone, distribution
from tests.kimi_k3.engine.chi_square import deviation
from tests.kimi_k3.engine.serving import PROMPT, serve, speculating
from tests.kimi_k3.engine.toy import VOCABULARY, logits_after


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
