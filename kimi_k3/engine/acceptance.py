# SPDX-License-Identifier: Apache-2.0
"""Which draft tokens stand, and which token follows them.

**Greedy.** A draft token stands while it is the most likely one; the first that is not is replaced
by the one that is; after a draft that stood whole comes one more token.

**Sampling a draft that was not drawn.** Let P be what plain sampling would draw from at a position.
The token x of that position is drawn from P, with plain sampling's own draw; the draft token stands
if it is x. It stands with probability P(d), and what replaces it is distributed as P without d:
this is rejection sampling against a point mass. Since x never depends on the draft, a request
gets the same tokens with and without speculation.

**Sampling a draft that was drawn from Q.** The draft token d stands with probability
min(1, P(d) / Q(d)); otherwise the token is drawn from max(P - Q, 0), scaled to add up to 1. The
result is distributed as P, but the tokens depend on how the draft was cut into windows.

**Synthetic.** Draft tokens stand with set rates, whatever the model says of them. The caches hold
them, so the text does too; the token after them is the model's. Such text means nothing.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from kimi_k3.engine.drafters import Draft
from kimi_k3.engine.draws import Floats, Stream, uniforms
from kimi_k3.engine.request import Sampling
from kimi_k3.engine.sampler import StepLogits, choose

MEANINGLESS = "meaningless text"
"""The note on every result whose draft tokens were accepted by rate."""


@dataclass(frozen=True)
class Window:
    """The logits of one request's window: row i is the model's word on the token after row i.

    Attributes:
        logits: of the step.
        start: the window's first row among them.
        draft: the tokens of rows 1 and later.
        sampling: of the request.
        position: of the token that the first row decides.
        request: its id.
    """

    logits: StepLogits
    start: int
    draft: Draft
    sampling: Sampling
    position: int
    request: int

    @property
    def rows(self) -> int:
        """How many tokens the window can decide at most."""
        return 1 + len(self.draft.tokens)

    @cached_property
    def token_draws(self) -> Floats:
        """[rows] decide which tokens stand."""
        return uniforms(self.sampling.seed, Stream.TOKEN, self.position, self.rows)

    @cached_property
    def accept_draws(self) -> Floats:
        """[rows] decide which drawn draft tokens stand."""
        return uniforms(self.sampling.seed, Stream.ACCEPT, self.position, self.rows)

    def finite(self, row: int) -> bool:
        """Whether the logits of `row` are numbers."""
        return self.logits.finite[self.start + row]

    def pick(self, row: int) -> int:
        """The token that plain decoding picks from `row`."""
        at = self.start + row
        if self.sampling.greedy:
            return self.logits.best[at]
        return choose(self.logits.probabilities(at, self.sampling), self.token_draws[row])


@dataclass(frozen=True)
class Verdict:
    """What one window gives.

    Attributes:
        tokens: draft tokens that stood, then the token after them. As many tokens of the window
            survive: the one that was known before, and the draft tokens that stood.
        failed: the logits after `tokens` are no numbers, and the request can not go on.
    """

    tokens: tuple[int, ...]
    failed: bool = False


class Acceptance(Protocol):
    """Judges windows; one of a plain step or of a prompt has one row and no draft."""

    @property
    def notes(self) -> tuple[str, ...]:
        """What must be said of every result."""

    def judge(self, window: Window) -> Verdict:
        """Decides the window's tokens."""


@dataclass(frozen=True)
class RejectionSampling:
    """Keeps the distribution that plain decoding has."""

    @property
    def notes(self) -> tuple[str, ...]:
        """Nothing."""
        return ()

    def judge(self, window: Window) -> Verdict:
        """See `Acceptance`."""
        tokens: list[int] = []
        for row, drafted in enumerate([*window.draft.tokens, None]):
            if not window.finite(row):
                return Verdict(tuple(tokens), failed=True)
            tokens.append(_decide(window, row, drafted))
            if tokens[-1] != drafted:
                break
        return Verdict(tuple(tokens))


def _decide(window: Window, row: int, drafted: int | None) -> int:
    """The token after `row`: `drafted` if that stands; None is the end of the draft."""
    q = window.draft.probabilities
    if drafted is None or q is None or window.sampling.greedy:
        return window.pick(row)
    p = window.logits.probabilities(window.start + row, window.sampling)
    draws = window.accept_draws[row], window.token_draws[row]
    return rejection(p, q[row], drafted, *draws)


def rejection(p: Floats, q: Floats, drafted: int, accept_draw: float, token_draw: float) -> int:
    """The token of a position whose draft was drawn from `q`; `drafted` if the draft stands.

    Args:
        p: [V] what the model draws from.
        q: [V] what the drafter drew from; q[drafted] is above 0.
        drafted: the draft token.
        accept_draw: in (0, 1), decides whether the draft stands.
        token_draw: in (0, 1), decides what replaces it.
    """
    if accept_draw * q[drafted] < p[drafted]:
        return drafted
    residual = np.maximum(p - q, 0.0)
    # Nothing is left where P and Q differ by less than the rounding of their sums.
    return choose(residual, token_draw) if residual.any() else drafted


@dataclass(frozen=True)
class SyntheticAcceptance:
    """Accepts by rate.

    Attributes:
        rates: how often draft token i stands, together with all before it (`resolve_rates`).
        seed: of the decisions.
    """

    rates: tuple[float, ...]
    seed: int = 0

    @property
    def notes(self) -> tuple[str, ...]:
        """That the text means nothing."""
        return (MEANINGLESS,)

    def judge(self, window: Window) -> Verdict:
        """See `Acceptance`."""
        stands = uniforms(
            self.seed, Stream.SYNTHETIC_ACCEPT, window.position, window.rows, window.request
        )
        tokens: list[int] = []
        before = 1.0
        for row, drafted in enumerate(window.draft.tokens):
            # Given that all before stand; rates fall, so the quotient is at most 1.
            if not window.finite(row) or not stands[row] * before < self.rates[row]:
                break
            before = self.rates[row]
            tokens.append(drafted)
        if not window.finite(len(tokens)):
            return Verdict(tuple(tokens), failed=True)
        return Verdict((*tokens, window.pick(len(tokens))))
