# SPDX-License-Identifier: Apache-2.0
"""A language model of a few lines that keeps its state as the real one does: by slot and by page.

A row's logits are a hash of three things that a backend keeps apart, and that all come from the
tokens so far: a running hash (the recurrent state, in slots), the last three tokens (the
convolution window, in column 0's slot), and all tokens (the KV cache, in pages). A wrong slot,
accepted count, page, length or token changes the hash, and with it what the model says next.

`logits_after` says the same from a plain list of tokens, without a `Step`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

import numpy as np
import torch

from kimi_k3.config import K3Config, tiny
from kimi_k3.engine.draws import Floats
from kimi_k3.engine.options import EngineConfig
from kimi_k3.step import GroupTensors, Kind, Step, StepOutput

VOCABULARY = 7
POSITIONS = 40
PRIME = 2**61 - 1
TAPS = 3
EMPTY = 1


def toy_config() -> K3Config:
    """What an engine reads of a configuration: vocabulary and positions."""
    return replace(tiny(), vocab_size=VOCABULARY, max_positions=POSITIONS)


def chain(state: int, token: int) -> int:
    """A running hash that depends on the order of tokens."""
    return (state * 6364136223846793005 + token + 1) % PRIME


def logits_of(state: int, taps: Sequence[int], context: Sequence[int]) -> Floats:
    """The successor of the last token is likely, so that drafts are right now and then."""
    total = state
    for token in [*taps, 99, *context]:
        total = chain(total, token)
    logits = np.array(noise(total))
    logits[(context[-1] + 1) % VOCABULARY] += 2.5
    return logits


@lru_cache(maxsize=1 << 14)
def noise(seed: int) -> tuple[float, ...]:
    """[V] numbers from 0 to 4."""
    return tuple((np.random.default_rng(seed).random(VOCABULARY) * 4).tolist())


def logits_after(tokens: Sequence[int]) -> Floats:
    """The model's word [V] on what follows `tokens`."""
    state = EMPTY
    for token in tokens:
        state = chain(state, token)
    return logits_of(state, [*[0] * TAPS, *tokens][-TAPS:], tokens)


@dataclass
class Toy:
    """A backend; its caches start as garbage, and padding returns NaN.

    Attributes:
        options: of the engine it serves.
        steps: every step it was given.
        fail_at: the steps, by number, at which it raises `error` after advancing its caches.
        broken: requests' last tokens after which the logits are NaN.
    """

    options: EngineConfig
    steps: list[Step] = field(default_factory=list)
    fail_at: frozenset[int] = frozenset()
    error: BaseException = field(default_factory=lambda: RuntimeError("out of luck"))
    broken: frozenset[int] = frozenset()

    def __post_init__(self) -> None:
        shape, garbage = self.options.cache_shape, np.random.default_rng(5)
        self.state = garbage.integers(2, PRIME, shape.slots).tolist()
        taps = (shape.slots, TAPS + shape.draft)
        self.conv = garbage.integers(0, VOCABULARY, taps).tolist()
        cache = (self.options.dcp, shape.pages, shape.page_size)
        self.cache = garbage.integers(0, VOCABULARY, cache).tolist()

    def providers(self) -> tuple[str, ...]:
        return ("toy",)

    def step(self, step: Step) -> StepOutput:
        self.steps.append(step)
        rows: list[Floats] = []
        for part in step.parts():
            for index in range(part.group.requests):
                own = self._request(part, index, step.token_ids[part.rows].tolist())
                rows.extend(own if part.group.kind is Kind.WINDOW else own[-1:])
        if len(self.steps) - 1 in self.fail_at:
            raise self.error
        logits = torch.from_numpy(np.stack(rows))
        return StepOutput(torch.empty(0), (), logits)

    def _request(self, part: GroupTensors, index: int, tokens: list[int]) -> list[Floats]:
        q = part.group.rows
        tokens = tokens[index * q : (index + 1) * q]
        slots, length = part.slots[index].tolist(), int(part.lengths[index])
        if length == 0:
            assert not any(slots)
            return [np.full(VOCABULARY, np.nan)] * q
        assert slots[0] > 0
        start = int(part.accepted[index]) - 1
        if part.group.kind is Kind.PREFILL:
            slots = slots[:1]
        if part.group.kind is Kind.PREFILL and length == q:
            state, line = EMPTY, [0] * TAPS
        else:
            state, line = self.state[slots[start]], self.conv[slots[0]][start : start + TAPS]
        rows = []
        for place, token in enumerate(tokens):
            state, line = chain(state, token), [*line, token]
            if part.group.kind is Kind.WINDOW:
                self.state[slots[place]] = state
            table, position = part.block_table[index].tolist(), length - q + place
            self._write(table, position, token)
            context = [self._read(table, p) for p in range(position + 1)]
            row = logits_of(state, line[-TAPS:], context)
            rows.append(np.full(VOCABULARY, np.nan) if token in self.broken else row)
        if part.group.kind is Kind.PREFILL:
            self.state[slots[0]], line = state, line[-TAPS:]
        else:
            line = line[1:]
        self.conv[slots[0]][: len(line)] = line
        return rows

    def _place(self, table: list[int], position: int) -> tuple[int, int, int]:
        """Rank, page and offset of a position, counted token by token."""
        share, dcp = self.options.interleave, self.options.dcp
        rank = position // share % dcp
        earlier = sum(1 for p in range(position) if p // share % dcp == rank)
        page, offset = divmod(earlier, self.options.page_size)
        return rank, table[page], offset

    def _write(self, table: list[int], position: int, token: int) -> None:
        rank, page, offset = self._place(table, position)
        self.cache[rank][page][offset] = token

    def _read(self, table: list[int], position: int) -> int:
        rank, page, offset = self._place(table, position)
        token: int = self.cache[rank][page][offset]
        return token
