# SPDX-License-Identifier: Apache-2.0
"""What a caller asks for: a prompt to continue, how long, and how tokens are picked."""

from collections.abc import Iterator
from dataclasses import dataclass

from fasttrack.errors import Problem
from kimi_k3.config import K3Config
from kimi_k3.engine.draws import MAX_SEED

MAX_TEMPERATURE = 100.0


@dataclass(frozen=True)
class Sampling:
    """How a token is picked from logits.

    Temperature comes first, then `top_k`, then `top_p`.

    Attributes:
        temperature: 0 picks the most likely token, the lowest id among equals; above 0 samples
            from softmax(logits / temperature).
        top_k: only the k most likely tokens, lower ids first among equals; 0 keeps all.
        top_p: only the fewest most likely tokens whose probability reaches this, lower ids first
            among equals; 1 keeps all.
        seed: a draw follows from the seed and the token's position alone.
    """

    temperature: float = 0.0
    top_k: int = 0
    top_p: float = 1.0
    seed: int = 0

    @property
    def greedy(self) -> bool:
        """Whether nothing is drawn."""
        return self.temperature == 0.0

    def problems(self) -> Iterator[Problem]:
        """Every value out of its range."""
        if not 0.0 <= self.temperature <= MAX_TEMPERATURE:
            want = f"a number from 0 to {MAX_TEMPERATURE:g}"
            yield Problem("temperature", str(self.temperature), want)
        if self.top_k < 0:
            yield Problem("top_k", str(self.top_k), "0 for all tokens, or how many to keep")
        if not 0.0 < self.top_p <= 1.0:
            yield Problem("top_p", str(self.top_p), "a number above 0, at most 1")
        if not 0 <= self.seed <= MAX_SEED:
            yield Problem("seed", str(self.seed), f"an integer from 0 to {MAX_SEED}")


GREEDY = Sampling()


@dataclass(frozen=True)
class Request:
    """One prompt and how to continue it.

    Attributes:
        prompt: token ids, at least one.
        max_tokens: tokens to generate, at least one.
        sampling: how tokens are picked.
        stop_ids: tokens that end the request; the one that did is its last token.
        eos_id: the model's end token, if it has one; ends a request as a stop id does.
    """

    prompt: tuple[int, ...]
    max_tokens: int
    sampling: Sampling = GREEDY
    stop_ids: frozenset[int] = frozenset()
    eos_id: int | None = None

    @property
    def positions(self) -> int:
        """Positions that are computed: the last generated token is not fed back."""
        return len(self.prompt) + self.max_tokens - 1

    def ends_at(self, token: int) -> bool:
        """Whether `token` is the last one."""
        return token in self.stop_ids or token == self.eos_id

    def problems(self, config: K3Config) -> Iterator[Problem]:
        """Everything that keeps `config`'s model from continuing this."""
        if not self.prompt:
            yield Problem("prompt", "no token", "at least one")
        outside = [token for token in self.prompt if not 0 <= token < config.vocab_size]
        if outside:
            saw = ", ".join(map(str, outside[:5])) + (", ..." if len(outside) > 5 else "")
            want = f"ids from 0 to {config.vocab_size - 1}, the model's vocabulary"
            yield Problem("prompt", saw, want)
        if self.max_tokens < 1:
            yield Problem("max_tokens", str(self.max_tokens), "at least 1")
        elif self.positions > config.max_positions:
            saw = f"{len(self.prompt)} prompt tokens and {self.max_tokens} more"
            most = config.max_positions - len(self.prompt) + 1
            fix = f"max_tokens {most}" if most > 0 else "a shorter prompt"
            yield Problem("max_tokens", saw, f"at most {config.max_positions} positions", fix)
        yield from self.sampling.problems()
