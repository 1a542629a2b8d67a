# SPDX-License-Identifier: Apache-2.0
"""What a request gives when nothing is batched, cached or drafted; and drafters for tests."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import exp

import numpy as np

from kimi_k3.engine.drafters import Draft
from kimi_k3.engine.draws import Floats, Stream, uniforms
from kimi_k3.engine.request import Request, Sampling
from tests.kimi_k3.engine.toy import VOCABULARY, logits_after

LogitsAfter = Callable[[Sequence[int]], Floats]


def distribution(logits: Floats, sampling: Sampling) -> list[float]:
    """The law of one token, written from the words of `Sampling`, token by token."""
    ranked = sorted(range(len(logits)), key=lambda token: (-logits[token], token))
    weight = [exp((x - max(logits)) / sampling.temperature) for x in logits]
    kept = ranked[: sampling.top_k] if sampling.top_k else ranked
    total, reached, nucleus = sum(weight[token] for token in kept), 0.0, []
    for token in kept:
        nucleus.append(token)
        reached += weight[token]
        if reached >= sampling.top_p * total:
            break
    return [weight[t] / reached if t in nucleus else 0.0 for t in range(len(logits))]


def next_token(logits: Floats, sampling: Sampling, position: int) -> int:
    if sampling.temperature == 0:
        return [float(x) for x in logits].index(max(logits))
    left = float(uniforms(sampling.seed, Stream.TOKEN, position, 1)[0])
    law = distribution(logits, sampling)
    for token, probability in enumerate(law):
        left -= probability
        if left < 0:
            return token
    raise AssertionError(law)


def alone(request: Request, logits: LogitsAfter = logits_after) -> tuple[int, ...]:
    """The tokens of a request from a fresh look at the whole text each time."""
    tokens = list(request.prompt)
    while len(tokens) < len(request.prompt) + request.max_tokens:
        tokens.append(next_token(logits(tokens), request.sampling, len(tokens)))
        if tokens[-1] in request.stop_ids or tokens[-1] == request.eos_id:
            break
    return tuple(tokens[len(request.prompt) :])


@dataclass(frozen=True)
class Oracle:
    """Drafts what the toy model says, with a wrong token or an early end now and then."""

    partial: bool = False

    def propose(self, tokens: Sequence[int], n: int, sampling: Sampling) -> Draft:
        dice = np.random.default_rng([len(tokens), *tokens])
        text = list(tokens)
        for _ in range(n):
            guess = next_token(logits_after(text), sampling, len(text))
            text.append(guess if dice.random() < 0.8 else int(dice.integers(VOCABULARY)))
        count = int(dice.integers(n + 1)) if self.partial else n
        return Draft(tuple(text[len(tokens) :][:count]))
