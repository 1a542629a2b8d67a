# SPDX-License-Identifier: Apache-2.0
"""A prompt continued token by token, on the CPU, with the reference model on every rank.

One request, no draft tokens, no batching: this shows that a checkpoint and its ranks work. Each
rank picks the next token from the gathered logits on its own; that all picked alike is checked
after the last one. Generation ends after `max_tokens`: a configuration names no end token.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from math import ceil
from pathlib import Path

import numpy as np
import torch

from fasttrack.errors import InputError, Problem
from kimi_k3.activations import Load
from kimi_k3.assembly import shard
from kimi_k3.checkpoint import load_weights
from kimi_k3.config import K3Config
from kimi_k3.random_init import philox, random_weights
from kimi_k3.ranks import Communicator, RankError, SingleRank, run_ranks
from kimi_k3.reference.context import Context
from kimi_k3.reference.model import Model
from kimi_k3.reference.state import CacheShape, allocate
from kimi_k3.resident import resident, sums
from kimi_k3.rounding import Rounding, stock
from kimi_k3.sharding import Sharding
from kimi_k3.weights import ModelWeights

PROVIDERS = ("reference",)
"""What computed the tokens. There are no decode kernels yet."""
PAGE_SIZE = 16
SLOT = 1  # slot 0 is the null slot
MAX_BYTES = 16 << 30
"""Weights, state and cache of all ranks together; the reference is for small models."""

WeightsOf = Callable[[int], ModelWeights]
"""One rank's weights."""


@dataclass(frozen=True)
class Request:
    """What to continue, and how.

    Attributes:
        prompt: token ids, at least one.
        max_tokens: tokens to generate, at least one.
        temperature: 0 picks the most likely token, the lowest id among equals; above 0 samples
            from softmax(logits / temperature).
        seed: of sampling; the same seed gives the same tokens.
    """

    prompt: tuple[int, ...]
    max_tokens: int
    temperature: float = 0.0
    seed: int = 0

    @property
    def positions(self) -> int:
        """Positions that are computed: the last generated token is not fed back."""
        return len(self.prompt) + self.max_tokens - 1

    def check(self, config: K3Config) -> None:
        """Refuses what the model can not continue.

        Raises:
            InputError: every reason.
        """
        problems = [*self._problems(config)]
        if problems:
            raise InputError(problems)

    def _problems(self, config: K3Config) -> Iterator[Problem]:
        if not self.prompt:
            yield Problem("--prompt-ids", "no token", "at least one")
        outside = [token for token in self.prompt if not 0 <= token < config.vocab_size]
        if outside:
            saw = ", ".join(map(str, outside[:5])) + (", ..." if len(outside) > 5 else "")
            want = f"ids from 0 to {config.vocab_size - 1}, the model's vocabulary"
            yield Problem("--prompt-ids", saw, want)
        if self.max_tokens < 1:
            yield Problem("--max-tokens", str(self.max_tokens), "at least 1")
        elif self.positions > config.max_positions:
            saw = f"{len(self.prompt)} prompt tokens and {self.max_tokens} more"
            most = config.max_positions - len(self.prompt) + 1
            want = f"at most {config.max_positions} positions"
            fix = f"--max-tokens {most}" if most > 0 else "a shorter prompt"
            yield Problem("--max-tokens", saw, want, fix)
        if not 0.0 <= self.temperature <= 100.0:
            yield Problem("--temperature", str(self.temperature), "a number from 0 to 100")


def weights_source(config: K3Config, tp: int, path: Path | None, seed: int) -> WeightsOf:
    """Each rank's share of a checkpoint, or of random weights when `path` is None."""
    if path is not None:
        return lambda rank: load_weights(path, config, tp, rank)
    whole = lru_cache(maxsize=1)(lambda: random_weights(config, seed))
    return lambda rank: shard(whole(), config, tp, rank)


def generate(
    config: K3Config,
    weights_of: WeightsOf,
    request: Request,
    *,
    tp: int = 1,
    dcp: int = 1,
    rounding: Rounding | None = None,
) -> tuple[int, ...]:
    """Token ids that continue a prompt.

    Args:
        config: the model.
        weights_of: called once for each rank.
        request: what to continue.
        tp: ranks, all in this process.
        dcp: ranks that share the tokens of the KV cache: 1 or `tp`.
        rounding: `stock()` when None, as the `auto` backend serves.

    Raises:
        InputError: the request, the division or the size is impossible, or the weights compute
            logits that are not numbers.
        RankError: ranks disagree; with one model on all ranks that is a fault of ours.
    """
    Sharding(config, tp, 0, dcp)
    request.check(config)
    _check_size(config, request, tp, dcp)
    policy = rounding or stock()

    def one_rank(comm: Communicator) -> tuple[int, ...]:
        context = Context(config, policy, comm, comm if dcp > 1 else SingleRank())
        return _decode(Model(context, weights_of(comm.rank)), request)

    first, *others = run_ranks(tp, one_rank)
    for rank, tokens in enumerate(others, start=1):
        if tokens != first:
            raise RankError(f"rank 0 generated {first}, rank {rank} {tokens}")
    return first


def _check_size(config: K3Config, request: Request, tp: int, dcp: int) -> None:
    """Refuses what does not fit before anything is allocated.

    Raises:
        InputError: see above.
    """
    total = sums(resident(Sharding(config, tp, 0, dcp), Load()))
    cache = total.cache * request.positions // config.max_positions
    needed = tp * (total.weights + total.padding + total.state + cache)
    if needed > MAX_BYTES:
        saw = f"{needed / 1e9:,.1f} GB of weights, state and cache"
        want = f"at most {MAX_BYTES / 1e9:,.1f} GB, because the only provider is the reference"
        raise InputError.one("--config", saw, want, "--config tiny")


def _decode(model: Model, request: Request) -> tuple[int, ...]:
    """The loop of one rank: prefill by token, then one token per step."""
    ctx = model.ctx
    pages = ceil(request.positions / PAGE_SIZE)
    shape = CacheShape(slots=SLOT + 1, pages=pages, page_size=PAGE_SIZE, draft=0)
    caches = allocate(ctx.config, model.weights, ctx.rounding, shape)
    table = torch.arange(pages)
    one = torch.ones(1, dtype=torch.long)
    logits = model.prefill(torch.tensor(request.prompt), caches, SLOT, table).logits
    tokens = [pick(logits[0], request, 0)]
    for step in range(1, request.max_tokens):
        logits = model.step(
            torch.tensor(tokens[-1:]),
            1,
            caches,
            slots=one[None] * SLOT,
            accepted=one,
            block_table=table[None],
            lengths=one * (len(request.prompt) + step),
        ).logits
        tokens.append(pick(logits[0], request, step))
    return tuple(tokens)


def pick(logits: torch.Tensor, request: Request, step: int) -> int:
    """The next token of logits [V].

    Raises:
        InputError: a logit is NaN or infinite.
    """
    if not bool(torch.isfinite(logits).all()):
        saw = f"logits that are no finite numbers at token {step}"
        raise InputError.one("--weights", saw, "weights of which every tensor is finite")
    if request.temperature == 0:
        return int((logits == logits.max()).nonzero()[0, 0])
    # The largest becomes 0 before the division, so that no temperature makes it infinite.
    wide = (logits.double() - logits.max()) / request.temperature  # [V]
    below = torch.softmax(wide, dim=0).cumsum(0)  # [V]
    word = philox(request.seed, np.array([step], dtype=np.uint64))[0, 0]
    drawn = (int(word) + 0.5) / 2**32  # in (0, 1)
    return int((below > drawn * below[-1]).nonzero()[0, 0])
