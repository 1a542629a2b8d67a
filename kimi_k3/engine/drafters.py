# SPDX-License-Identifier: Apache-2.0
"""Who proposes the tokens of a verify window: nobody, the text itself, or a synthetic stand-in."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from kimi_k3.engine.draws import Floats, Stream, uniforms
from kimi_k3.engine.request import Sampling


@dataclass(frozen=True)
class Draft:
    """Proposed tokens.

    Attributes:
        tokens: at most as many as were asked for; none is an answer.
        probabilities: [tokens, V] what each was drawn from, given those before it; None when they
            were not drawn.
    """

    tokens: tuple[int, ...] = ()
    probabilities: Floats | None = None


class Drafter(Protocol):
    """Proposes tokens. It keeps nothing: what it proposes follows from what it is given."""

    def propose(self, tokens: Sequence[int], n: int, sampling: Sampling) -> Draft:
        """Proposes what may follow.

        Args:
            tokens: of the request, prompt and generated; not to be changed.
            n: at most this many, at least 1.
            sampling: how the request picks tokens. A drafter that draws does so with
                `Stream.DRAFT` at each token's position.
        """


class NoDrafter:
    """Proposes nothing."""

    def propose(self, tokens: Sequence[int], n: int, sampling: Sampling) -> Draft:
        """See `Drafter`."""
        return Draft()


@dataclass(frozen=True)
class NgramDrafter:
    """Looks the last tokens up in the text before them, and proposes what followed there.

    The longest match counts, and the most recent among equals. A copy that reaches the end of the
    text goes on into itself, so that a match always gives a full draft.

    Attributes:
        longest: tokens that are looked up at first.
        shortest: fewer than this are not looked up.
    """

    longest: int = 3
    shortest: int = 1

    def __post_init__(self) -> None:
        if not 1 <= self.shortest <= self.longest:
            raise ValueError(f"n-grams of {self.shortest} to {self.longest} tokens")

    def propose(self, tokens: Sequence[int], n: int, sampling: Sampling) -> Draft:
        """See `Drafter`."""
        start = self._continuation(np.asarray(tokens, dtype=np.int64))
        if start is None:
            return Draft()
        line = [*tokens[start:]][:n]
        period = len(line)
        line.extend(line[place % period] for place in range(period, n))
        return Draft(tuple(line))

    def _continuation(self, text: NDArray[np.int64]) -> int | None:
        """Where the text goes on that has been seen before; None when nothing has."""
        for size in range(self.longest, self.shortest - 1, -1):
            starts = len(text) - size  # of n-grams that something follows
            if starts < 1:
                continue
            match = np.ones(starts, dtype=np.bool_)
            for offset in range(size):
                match &= text[offset : offset + starts] == text[starts + offset]
            found = np.flatnonzero(match)
            if len(found):
                return int(found[-1]) + size
        return None


@dataclass(frozen=True)
class SyntheticDrafter:
    """Proposes random tokens, always a full draft: for measurements with a set acceptance.

    Spread over the vocabulary they reach as many experts as text does.

    Attributes:
        vocab_size: of the model.
        seed: of the tokens.
    """

    vocab_size: int
    seed: int = 0

    def propose(self, tokens: Sequence[int], n: int, sampling: Sampling) -> Draft:
        """See `Drafter`."""
        drawn = uniforms(self.seed, Stream.SYNTHETIC_DRAFT, len(tokens), n, lane=tokens[-1])
        return Draft(tuple((drawn * self.vocab_size).astype(np.int64).tolist()))
