# SPDX-License-Identifier: Apache-2.0
"""Weights, windows and memory of one rank of the mini model, fresh for every seed.

Three roundings are compared. `EXACT` rounds nothing: the equations. `WIDE` computes in float64 and
rounds where planned steps do: the rounding points. `SERVED` is what runs: there the prepared
operators must give the bits of the reference providers.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import torch
from torch import Tensor

from fasttrack.pytest_plugin import Recorder
from kimi_k3.assembly import shard
from kimi_k3.backends import specialized_rounding
from kimi_k3.config import mini
from kimi_k3.packed import PackedModel, pack
from kimi_k3.reference.context import Context
from kimi_k3.reference.state import FP8, KdaState, KvCache
from kimi_k3.rounding import Rounding, exact
from kimi_k3.step import Group, GroupTensors, Kind
from kimi_k3.weights import ModelWeights
from tests.kimi_k3.reference.builders import Draw, model_weights

KDA, MLA, DENSE, MOE = 1, 3, 0, 1
"""Layers of `mini()` with a block of that kind."""
EXACT = exact(torch.float64)
SERVED = specialized_rounding("bf16", 1)
# States at rest stay in float64: an FP32 boundary is crossed too often to be left to chance.
WIDE = replace(SERVED, compute=torch.float64, recurrent=torch.float64)
COLUMNS = 8
PAGE = 16
GARBAGE = 1 << 40
"""What stands where nothing may be read."""
SUMS = 2.0**-40
"""2^13 units of float64: sums have at most 2^9 products, may be added in another order, and no more
than a dozen follow one another. That a value within it falls on another side of a BF16 boundary
happens once in 2^31 values."""


@cache
def weights(seed: int, tp: int = 1, rank: int = 0) -> ModelWeights:
    """One rank's share of a model drawn from a seed."""
    if tp == 1:
        return model_weights(mini(), seed)
    return shard(weights(seed), mini(), tp, rank)


@cache
def packed(seed: int, tp: int = 1, rank: int = 0) -> PackedModel:
    return pack(mini(), weights(seed, tp, rank))


def context(rounding: Rounding) -> Context:
    return Context(mini(), rounding)


@dataclass(frozen=True)
class Case:
    """A group of windows with its memory.

    Attributes:
        part: the group; padding has null slots, garbage counts and garbage pages.
        state: of one KDA layer; NaN wherever the group's requests have nothing.
        cache: of one MLA layer; NaN there too.
        x: [M, H] block inputs; NaN in padding rows.
    """

    part: GroupTensors
    state: KdaState
    cache: KvCache
    x: Tensor

    def copy(self) -> "Case":
        state = KdaState(self.state.recurrent.clone(), self.state.conv.clone())
        cache = replace(self.cache, pages=self.cache.pages.clone())
        return replace(self, state=state, cache=cache)


@dataclass(frozen=True)
class Size:
    """Requests and rows of each, as a cell says them."""

    requests: int
    rows: int

    @classmethod
    def of(cls, cell: Mapping[str, Any]) -> "Size":
        return cls(int(cell["requests"]), 1 + int(cell["draft_tokens"]))

    @property
    def total(self) -> int:
        return self.requests * self.rows

    def lives(self, seed: int) -> Iterator[list[bool]]:
        """All requests alive, and some of them: none where there is one."""
        yield [True] * self.requests
        g = torch.Generator().manual_seed(seed)
        some = torch.rand(self.requests, generator=g) < 0.7
        some[int(torch.randint(self.requests, (), generator=g))] = False
        yield some.tolist()


def case(
    alive: Sequence[bool],
    rows: int,
    rounding: Rounding,
    seed: int,
    tp: int = 1,
    kv: str = "bf16",
    longest: int = 3 * PAGE,
) -> Case:
    """Requests of up to `longest` tokens, their `rows` new ones included."""
    c, d = mini(), Draw(seed)
    count, g = len(alive), d.generator
    live = torch.tensor(alive)
    past = torch.randint(0, longest - rows + 1, (count,), generator=g)
    past[0] = longest - rows
    past = torch.where(live, past, 0)
    lengths = torch.where(live, past + rows, 0)
    slots = 1 + torch.randperm(count * COLUMNS, generator=g).view(count, COLUMNS)
    slots = torch.where(live[:, None], slots, -torch.randint(0, 2, slots.shape, generator=g))
    accepted = torch.randint(1, COLUMNS + 1, (count,), generator=g)
    pages = -(-longest // PAGE)
    table = torch.randperm(count * pages, generator=g).view(count, pages)
    used = (lengths + PAGE - 1) // PAGE
    part = GroupTensors(
        Group(Kind.WINDOW, count, rows),
        slice(0, count * rows),
        slots,
        torch.where(live, torch.where(past > 0, accepted, 1), GARBAGE),
        torch.where(torch.arange(pages) < used[:, None], table, GARBAGE),
        lengths,
    )
    state = _state(part, d, rounding, tp)
    cache = _cache(part, past, d, rounding, kv)
    x = d.normal(count * rows, c.hidden_size).to(rounding.compute)  # BF16 numbers
    x = torch.where(live.repeat_interleave(rows)[:, None], x, torch.nan)
    return Case(part, state, cache, x)


def _state(part: GroupTensors, d: Draw, rounding: Rounding, tp: int) -> KdaState:
    c, count = mini(), len(part.slots)
    head = (c.kda_num_heads // tp, c.kda_head_dim, c.kda_head_dim)
    line = (c.conv_channels // tp, c.conv_window(COLUMNS - 1))
    recurrent = torch.full((count * COLUMNS + 1, *head), torch.nan, dtype=rounding.recurrent)
    conv = torch.full((count * COLUMNS + 1, *line), torch.nan, dtype=rounding.stored)
    for b in (part.lengths > 0).nonzero()[:, 0].tolist():
        start = part.slots[b, part.accepted[b] - 1]
        recurrent[start] = d.normal(*head, scale=0.5, dtype=torch.float32).to(rounding.recurrent)
        conv[part.slots[b, 0]] = d.normal(*line).to(rounding.stored)
    return KdaState(recurrent, conv)


def _cache(part: GroupTensors, past: Tensor, d: Draw, rounding: Rounding, kv: str) -> KvCache:
    c, (count, pages) = mini(), part.block_table.shape
    fp8 = kv == "fp8_e4m3"
    dtype = FP8 if fp8 else rounding.stored
    rows = torch.full((count * pages + 1, PAGE, c.kv_row), torch.nan)
    for b, tokens in enumerate(past.tolist()):
        token = torch.arange(tokens)
        page = part.block_table[b, token // PAGE]
        rows[page, token % PAGE] = d.normal(tokens, c.kv_row, scale=0.7).float()
    scales = (0.5, 0.25) if fp8 else (1.0, 1.0)
    return KvCache(rows.to(dtype), *scales)


def near(record: Recorder, name: str, got: Tensor, want: Tensor) -> None:
    """Equal but for the order of sums; NaN equals NaN."""
    reason = "sums in another order, relative to the largest value"
    _, rtol = record.tolerance(name, "fp64", rtol=SUMS, reason=reason)
    scale = float(want.double().nan_to_num().abs().max().clamp(min=1.0))
    torch.testing.assert_close(
        got.double(), want.double(), rtol=0, atol=rtol * scale, equal_nan=True
    )


def same(record: Recorder, name: str, got: Tensor, want: Tensor) -> None:
    """The same bits, signs of zeros included; any NaN equals any other."""
    record.tolerance(name, str(got.dtype).removeprefix("torch."), reason="the same operations")
    assert got.dtype == want.dtype
    both = got.double().isnan() & want.double().isnan()
    equal = got.contiguous().view(torch.uint8) == want.contiguous().view(torch.uint8)
    assert bool((equal.view(*got.shape, -1).all(-1) | both).all()), name
