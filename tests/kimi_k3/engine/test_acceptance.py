# SPDX-License-Identifier: Apache-2.0
"""Acceptance: the distribution stays what plain sampling has, and synthetic rates are met.

Exactness is shown on distributions whose probabilities are multiples of 1/8, by enumerating the
middles of equal parts of the unit interval as draws: every share of draws is then a probability.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from kimi_k3.engine import acceptance
from kimi_k3.engine.acceptance import (
    RejectionSampling,
    SyntheticAcceptance,
    Verdict,
    Window,
    rejection,
)
from kimi_k3.engine.drafters import Draft, Drafter, NgramDrafter, NoDrafter
from kimi_k3.engine.draws import Floats, Stream, uniforms
from kimi_k3.engine.request import GREEDY, Sampling
from kimi_k3.engine.sampler import StepLogits, choose, probabilities
from tests.kimi_k3.engine.alone import distribution
from tests.kimi_k3.engine.chi_square import deviation

NAN = float("nan")


def window(
    rows: Sequence[Sequence[float]], draft: Draft, sampling: Sampling = GREEDY, position: int = 5
) -> Window:
    """A window whose rows stand after two rows of other requests."""
    strange = [[9.0] + [0.0] * (len(rows[0]) - 1)] * 2
    logits = StepLogits(torch.tensor([*strange, *rows], dtype=torch.float64))
    return Window(logits, 2, draft, sampling, position, request=0)


def says(*tokens: int) -> list[list[float]]:
    """Logits whose most likely tokens are `tokens`, of four."""
    return [[float(token == best) for token in range(4)] for best in tokens]


GREEDY_CASES: dict[str, tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]] = {
    "no draft": ((), (2,), (2,)),
    "the first is wrong": ((1, 1), (2, 1, 1), (2,)),
    "the second is wrong": ((2, 0), (2, 1, 3), (2, 1)),
    "a later hit after a miss does not count": ((0, 1, 3), (2, 1, 3, 0), (2,)),
    "all are right and one more follows": ((2, 1, 3), (2, 1, 3, 0), (2, 1, 3, 0)),
}


@pytest.mark.parametrize("case", GREEDY_CASES)
@pytest.mark.parametrize("drawn", [False, True], ids=["not drawn", "drawn"])
def test_greedy_takes_the_prefix_that_is_most_likely_and_one_more(case: str, drawn: bool) -> None:
    draft, best, wanted = GREEDY_CASES[case]
    q = np.full((len(draft), 4), 0.25) if drawn else None
    assert RejectionSampling().judge(window(says(*best), Draft(draft, q))) == Verdict(wanted)


def eighths(*numerators: int) -> Floats:
    assert sum(numerators) == 8
    return np.array(numerators) / 8


PAIRS: dict[str, tuple[Floats, Floats]] = {
    "different": (eighths(1, 4, 3), eighths(4, 1, 3)),
    "disjoint": (eighths(8, 0, 0), eighths(0, 3, 5)),
    "the same": (eighths(2, 5, 1), eighths(2, 5, 1)),
    "a target of one token": (eighths(0, 8, 0), eighths(1, 2, 5)),
    "a draft of one token": (eighths(2, 3, 3), eighths(0, 0, 8)),
    "a token that is never drafted": (eighths(3, 3, 2), eighths(4, 4, 0)),
}
PARTS = 840
"""Divisible by every 1 to 8: thresholds p/q and shares of residuals fall between two draws."""


@pytest.mark.parametrize("case", PAIRS)
def test_rejection_of_a_drawn_draft_gives_exactly_the_target(case: str) -> None:
    """Sum over drafts of q(d) times the shares of the two draws, in fractions.

    The token draw matters only after a rejection, which the largest accept draw brings if any does.
    """
    p, q = PAIRS[case]
    law = dict.fromkeys(range(3), Fraction(0))
    middles = [(place + 0.5) / PARTS for place in range(PARTS)]
    for drafted in np.flatnonzero(q).tolist():
        share = Fraction(q[drafted]) / PARTS
        stood = sum(rejection(p, q, drafted, accept, 0.5) == drafted for accept in middles)
        law[drafted] += share * stood
        if stood < PARTS:
            for draw in middles:
                token = rejection(p, q, drafted, middles[-1], draw)
                law[token] += share * Fraction(PARTS - stood, PARTS)
    assert [law[token] for token in range(3)] == [Fraction(x) for x in p]


@pytest.mark.parametrize("case", PAIRS)
def test_a_draft_that_was_not_drawn_leaves_exactly_the_target(
    case: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For each possible draft token, over all draws: the first token of the verdict."""
    p, _ = PAIRS[case]
    with np.errstate(divide="ignore"):
        rows = np.maximum(np.log(p), -800.0)  # exp(-800) is 0 beside the others
    for drafted in range(3):
        counts = [0, 0, 0]
        for place in range(80):
            draw = np.array([(place + 0.5) / 80, 0.5])
            monkeypatch.setattr(acceptance, "uniforms", lambda *_, own=draw: own)
            verdict = RejectionSampling().judge(
                window([rows.tolist(), [0.0, 1.0, 0.0]], Draft((drafted,)), Sampling(1.0))
            )
            counts[verdict.tokens[0]] += 1
            assert len(verdict.tokens) == 1 + (verdict.tokens[0] == drafted)
        assert (np.array(counts) == p * 80).all()


def test_distributions_that_differ_by_rounding_alone_accept_the_draft() -> None:
    """No residual is left to draw from."""
    p = eighths(1, 4, 3)
    assert rejection(p, p * (1 + 1e-12), 1, 1 - 0.5 / 2**48, 0.5) == 1


BIGRAM = np.array([[0.0, 1.2, -0.4], [0.9, 0.1, 0.3], [-1.0, 0.2, 1.5]])
"""Logits of a next token given the last one."""
LENGTH = 3


class Drawn:
    """Draws from a bigram law that is not the model's."""

    def propose(self, tokens: Sequence[int], n: int, sampling: Sampling) -> Draft:
        draws = uniforms(sampling.seed, Stream.DRAFT, len(tokens), n)
        text, laws = [tokens[-1]], []
        for place in range(n):
            laws.append(probabilities(-0.5 * BIGRAM[text[-1]], Sampling(1.0)))
            text.append(choose(laws[-1], draws[place]))
        return Draft(tuple(text[1:]), np.stack(laws))


def speculate(drafter: Drafter, sampling: Sampling) -> tuple[int, ...]:
    """Tokens of the bigram model after the prompt 0, 1, 0, in windows of up to two drafts."""
    tokens = [0, 1, 0]
    while len(tokens) < 3 + LENGTH:
        draft = drafter.propose(tokens, 2, sampling)
        rows = [BIGRAM[token].tolist() for token in (tokens[-1], *draft.tokens)]
        verdict = RejectionSampling().judge(window(rows, draft, sampling, len(tokens)))
        tokens.extend(verdict.tokens)
    return tuple(tokens[3 : 3 + LENGTH])


def expected(sampling: Sampling) -> dict[tuple[int, ...], float]:
    """The law of three tokens by the chain rule."""
    law = {}
    for text in product(range(3), repeat=LENGTH):
        probability = 1.0
        for last, token in zip((0, *text), text, strict=False):
            probability *= distribution(BIGRAM[last], sampling)[token]
        law[text] = probability
    return law


def chi_square(sampling: Sampling, run: Callable[[Sampling], tuple[int, ...]]) -> float:
    """How far the tokens of 800 seeds are from `expected`, in standard deviations."""
    counts = Counter(run(replace(sampling, seed=seed)) for seed in range(800))
    return deviation(counts, expected(sampling))


SAMPLINGS = [Sampling(0.7), Sampling(1.0), Sampling(2.5), Sampling(1.3, top_k=2)]
DRAFTERS: dict[str, Drafter] = {"drawn": Drawn(), "ngram": NgramDrafter(), "none": NoDrafter()}


@pytest.mark.parametrize("name", DRAFTERS)
@pytest.mark.parametrize("sampling", SAMPLINGS, ids=str)
def test_speculation_keeps_the_distribution(name: str, sampling: Sampling) -> None:
    """Twelve fixed sets of seeds: one of them passes 3.5 with probability 0.003."""
    assert chi_square(sampling, lambda own: speculate(DRAFTERS[name], own)) < 3.5


def test_the_statistic_finds_a_replacement_that_ignores_the_draft(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The usual mistake: after a rejection, drawing from P instead of what is left of it."""

    def wrong(p: Floats, q: Floats, drafted: int, accept: float, token: float) -> int:
        return drafted if accept * q[drafted] < p[drafted] else choose(p, token)

    monkeypatch.setattr(acceptance, "rejection", wrong)
    assert chi_square(Sampling(1.0), lambda own: speculate(Drawn(), own)) > 6


def test_what_replaces_a_draft_does_not_depend_on_why_it_fell() -> None:
    """One draw for both decisions would never replace token 0 by token 1, whose share is first."""
    q = np.array([0.93, *[0.01] * 7])
    counts: Counter[tuple[int, ...]] = Counter()
    for seed in range(1000):
        sampling = Sampling(1.0, seed=seed)
        drafted = choose(q, float(uniforms(seed, Stream.DRAFT, 5, 1)[0]))
        own = window([[0.0] * 8] * 2, Draft((drafted,), q[None]), sampling, position=5)
        counts[RejectionSampling().judge(own).tokens[:1]] += 1
    assert deviation(counts, {(token,): 1 / 8 for token in range(8)}) < 3.5


@given(seed=st.integers(0, 2**64 - 1), temperature=st.sampled_from([0.0, 0.5, 1.5]))
def test_drafts_that_were_not_drawn_change_no_token(seed: int, temperature: float) -> None:
    sampling = Sampling(temperature, seed=seed)
    assert speculate(NgramDrafter(), sampling) == speculate(NoDrafter(), sampling)


def test_a_drafted_token_that_top_k_leaves_out_never_stands() -> None:
    rows = [[3.0, 2.0, 1.0], [0.0, 0.0, 0.0]]
    q = np.array([[0.0, 0.0, 1.0]])
    for seed in range(50):
        sampling = Sampling(1.0, top_k=2, seed=seed)
        for draft in (Draft((2,)), Draft((2,), q)):
            assert RejectionSampling().judge(window(rows, draft, sampling)).tokens in {(0,), (1,)}


BROKEN: dict[str, tuple[int, tuple[int, ...], bool]] = {
    "the first row": (0, (), True),
    "a row after a token that stood": (1, (2,), True),
    "the row after the draft": (2, (2, 1), True),
    "a row behind a token that fell": (3, (2, 1, 3), False),
}


@pytest.mark.parametrize("case", BROKEN)
@pytest.mark.parametrize("acceptance", [RejectionSampling(), SyntheticAcceptance((1.0, 1.0, 0.0))])
def test_tokens_before_the_first_bad_row_that_matters_count(
    case: str, acceptance: RejectionSampling | SyntheticAcceptance
) -> None:
    """The draft is 2, 1, 0, and the model says 2, 1, 3: the third token falls."""
    bad, tokens, failed = BROKEN[case]
    rows = says(2, 1, 3, 0)
    rows[bad][1] = NAN
    assert acceptance.judge(window(rows, Draft((2, 1, 0)))) == Verdict(tokens, failed)


def test_synthetic_rates_are_unconditional_per_position() -> None:
    """8,000 windows: each place within five standard deviations of its binomial law."""
    rates, n = (0.9, 0.6, 0.6, 0.1), 8_000
    judge = SyntheticAcceptance(rates, seed=1).judge
    rows = says(0, 0, 0, 0, 3)
    base = window(rows, Draft((1, 2, 3, 1)))
    stood = [0] * 4
    for position in range(n):
        tokens = judge(replace(base, position=position)).tokens
        assert tokens[:-1] == (1, 2, 3, 1)[: len(tokens) - 1]
        assert tokens[-1] == (3 if len(tokens) == 5 else 0)
        for place in range(len(tokens) - 1):
            stood[place] += 1
    for count, rate in zip(stood, rates, strict=True):
        assert abs(count - n * rate) < 5 * (n * rate * (1 - rate)) ** 0.5
    assert stood[1] == stood[2]  # the conditional rate is 1


def test_synthetic_acceptance_is_no_lockstep_of_equal_requests() -> None:
    judge = SyntheticAcceptance((0.5,), seed=1).judge
    base = window(says(0, 0), Draft((1,)))
    lengths = [len(judge(replace(base, request=request)).tokens) for request in range(40)]
    assert {1, 2} == set(lengths)
    assert lengths == [len(judge(replace(base, request=request)).tokens) for request in range(40)]


def test_a_shorter_draft_is_judged_by_the_first_rates() -> None:
    judge = SyntheticAcceptance((1.0, 1.0, 0.0)).judge
    assert judge(window(says(0, 3), Draft((1,)))) == Verdict((1, 3))
    assert judge(window(says(2), Draft())) == Verdict((2,))
