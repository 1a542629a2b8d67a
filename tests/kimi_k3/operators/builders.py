# SPDX-License-Identifier: Apache-2.0
"""Groups of requests in memory full of NaN, and blocks composed of operators as a caller does."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache

import torch
from torch import Tensor

from kimi_k3.config import K3Config
from kimi_k3.operators import ffn, kda, kda_prefill, mla, mla_prefill, moe
from kimi_k3.operators.linear import linear
from kimi_k3.packed import PackedFfn, PackedKda, PackedMla, PackedModel, PackedMoe, pack
from kimi_k3.reference.context import Context
from kimi_k3.reference.state import KdaState, KvCache
from kimi_k3.rounding import Rounding, exact
from kimi_k3.step import Group, GroupTensors, Kind
from kimi_k3.weights import ModelWeights
from tests.kimi_k3.reference.builders import PAGE, Draw, model_weights, odd, widened

F64 = exact(torch.float64)
KDA, MLA, DENSE, MOE = 1, 3, 0, 1
"""Layers of `odd()` with a block of that kind."""
COLUMNS = 8
GARBAGE = 1 << 40
"""What stands where nothing may be read."""


@cache
def weights(dtype: torch.dtype = torch.bfloat16) -> ModelWeights:
    """The weights of `odd()`: BF16 numbers, held in `dtype`."""
    return widened(model_weights(odd(), seed=3), dtype)


@cache
def packed(dtype: torch.dtype = torch.bfloat16) -> PackedModel:
    return pack(odd(), weights(dtype))


def context(rounding: Rounding = F64, config: K3Config | None = None) -> Context:
    return Context(config or odd(), rounding)


@dataclass(frozen=True)
class Memory:
    """State of one KDA and one MLA layer."""

    state: KdaState
    cache: KvCache

    def copy(self) -> "Memory":
        state = KdaState(self.state.recurrent.clone(), self.state.conv.clone())
        return Memory(state, replace(self.cache, pages=self.cache.pages.clone()))

    def tensors(self) -> tuple[Tensor, Tensor, Tensor]:
        return self.state.recurrent, self.state.conv, self.cache.pages


@dataclass(frozen=True)
class Case:
    """A group with its memory.

    Attributes:
        part: the group; padding has null slots, garbage counts and garbage pages.
        memory: NaN wherever the group's requests have nothing.
        x: [M, H] block inputs; NaN in padding rows.
    """

    part: GroupTensors
    memory: Memory
    x: Tensor

    @property
    def live(self) -> Tensor:
        return self.part.lengths > 0


def case(
    alive: Sequence[bool],
    rows: int,
    *,
    seed: int = 0,
    kind: Kind = Kind.WINDOW,
    rounding: Rounding = F64,
    history: Sequence[int] | None = None,
    form: KvCache | None = None,
    pages: int = 6,
) -> Case:
    """Requests with `history` tokens before their `rows` new ones; random when None."""
    c, d = odd(), Draw(seed)
    count, g = len(alive), d.generator
    live = torch.tensor(alive)
    if history is None:
        history = torch.randint(0, pages * PAGE - rows + 1, (count,), generator=g).tolist()
    past = torch.where(live, torch.tensor(history), 0)
    lengths = torch.where(live, past + rows, 0)
    slots = 1 + torch.randperm(count * COLUMNS, generator=g).view(count, COLUMNS)
    slots = torch.where(live[:, None], slots, -torch.randint(0, 2, slots.shape, generator=g))
    accepted = torch.randint(1, COLUMNS + 1, (count,), generator=g)
    accepted = torch.where(past > 0, accepted, 1)
    table = torch.randperm(count * pages, generator=g).view(count, pages)
    used = (lengths + PAGE - 1) // PAGE
    table = torch.where(torch.arange(pages) < used[:, None], table, GARBAGE)
    part = GroupTensors(
        Group(kind, count, rows),
        slice(0, count * rows),
        slots,
        torch.where(live, accepted, GARBAGE),
        table,
        lengths,
    )
    form = form or KvCache(torch.empty(0, dtype=rounding.stored))
    head = (c.kda_num_heads, c.kda_head_dim, c.kda_head_dim)
    size = (count * COLUMNS + 1, c.conv_channels, c.conv_window(COLUMNS - 1))
    state = KdaState(
        torch.full((size[0], *head), torch.nan, dtype=rounding.recurrent),
        torch.full(size, torch.nan, dtype=rounding.stored),
    )
    kv = torch.full((count * pages + 1, PAGE, c.kv_row), torch.nan).to(form.pages.dtype)
    memory = Memory(state, replace(form, pages=kv))
    for b in range(count):
        if alive[b] and (past[b] > 0 or kind is Kind.WINDOW):
            start = slots[b, part.accepted[b] - 1]
            state.recurrent[start] = d.normal(*head, scale=0.5).to(rounding.recurrent)
            state.conv[slots[b, 0]] = d.normal(*size[1:]).to(rounding.stored)
        for position in range(int(past[b])):
            row = d.normal(c.kv_row, scale=0.7)
            page = table[b, position // PAGE]
            memory.cache.pages[page, position % PAGE] = row.to(form.pages.dtype)
    x = d.normal(count * rows, c.hidden_size).to(rounding.compute)  # BF16 numbers
    x = torch.where(live.repeat_interleave(rows)[:, None], x, torch.nan)
    return Case(part, memory, x)


def out_projection(ctx: Context, o_proj: Tensor, attn: Tensor) -> Tensor:
    """What the caller does after an attention operator: a [M, H]."""
    r = ctx.rounding
    return r.reduced(ctx.comm.all_reduce(r.o_partial(linear(attn, o_proj))))


def kda_block(ctx: Context, w: PackedKda, x: Tensor, state: KdaState, part: GroupTensors) -> Tensor:
    run = kda.window if part.group.kind is Kind.WINDOW else kda_prefill.prefill
    return out_projection(ctx, w.o_proj, run(ctx, w, kda.project(ctx, w, x), state, part))


def mla_block(ctx: Context, w: PackedMla, x: Tensor, cache: KvCache, part: GroupTensors) -> Tensor:
    run = mla.window if part.group.kind is Kind.WINDOW else mla_prefill.prefill
    return out_projection(ctx, w.o_proj, run(ctx, w, mla.project(ctx, w, x), cache, part))


def ffn_block(ctx: Context, w: PackedFfn, y: Tensor) -> Tensor:
    return ctx.rounding.reduced(ctx.comm.all_reduce(ffn.gated(ctx, w, y)))


def moe_block(ctx: Context, w: PackedMoe, y: Tensor) -> Tensor:
    ids, picked = moe.route(ctx, w, moe.logits(ctx, w, y))
    partial = moe.experts(ctx, w.experts, ids, picked, moe.latent(ctx, w, y))
    total = ctx.rounding.reduced_latent(ctx.comm.all_reduce(partial))
    return moe.finish(ctx, w, total, ffn_block(ctx, w.shared, y))


def bits(x: Tensor) -> Tensor:
    """The bytes of `x`, so that a NaN equals itself."""
    return x.contiguous().view(torch.uint8)


def gridded(point: str) -> Rounding:
    """Float64 with one point on a coarse grid: a wrong place of the point then shows."""
    return replace(F64, name=point, **{point: lambda x: torch.round(x * 64) / 64})  # type: ignore[arg-type]


def close(got: Tensor, want: Tensor, tolerance: float = 1e-12) -> None:
    """Equal to `tolerance` relative to the largest number; NaN equals NaN."""
    scale = want.nan_to_num().abs().max().clamp(min=1.0)
    torch.testing.assert_close(
        got, want, rtol=0, atol=float(tolerance * scale), equal_nan=True, check_dtype=False
    )
