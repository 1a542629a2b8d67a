# SPDX-License-Identifier: Apache-2.0
"""A program of exchanges that ranks play over mailboxes or over plain collectives."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import torch
from torch import Tensor

from kimi_k3.decode.comm.communicator import Exchanges
from kimi_k3.decode.comm.interface import DecodeCommunicator, Site
from kimi_k3.decode.comm.local import LocalGroup, Skew
from kimi_k3.decode.comm.mailbox import MailboxSpec, Rearm
from kimi_k3.decode.comm.words import DENSE, Sentinel, words_for
from kimi_k3.ranks import Communicator, Operation, run_ranks
from kimi_k3.rounding import positive_zero

LIMIT_S = 0.05
ROWS = 8
SIZE = 3
ALL_ONES_NAN = torch.tensor([-1], dtype=torch.int32).view(torch.float32)
SPECIAL = torch.cat(
    [
        torch.tensor([-0.0, 0.0, torch.nan, torch.inf, -torch.inf, 1e-40, -1e-45, 3.4e38]),
        ALL_ONES_NAN,
    ]
)


@dataclass(frozen=True)
class Exchange:
    """One collective of a step; each row carries `columns` numbers."""

    site: Site
    operation: Operation
    columns: int
    dtype: torch.dtype = torch.float32

    def of(self, comm: Communicator, x: Tensor) -> Tensor:
        if self.operation == "all_reduce":
            return comm.all_reduce(x)
        if self.operation == "all_gather":
            return comm.all_gather(x, 1)
        return comm.reduce_scatter(x, 1)


STEP = (
    Exchange(Site.EMBED, "all_reduce", 5, torch.bfloat16),
    Exchange(Site.O_PROJ, "all_reduce", 4),
    Exchange(Site.LATENT, "all_reduce", 3, torch.bfloat16),
    Exchange(Site.O_PROJ, "reduce_scatter", 2 * SIZE),
    Exchange(Site.DCP, "all_gather", 3, torch.float64),
    Exchange(Site.LATENT, "all_reduce", 2),
    Exchange(Site.O_PROJ, "all_reduce", 4, torch.float16),
    Exchange(Site.LOGITS, "all_gather", 2),
)
"""Sites with one, two and three exchanges per step, re-armed in both ways, in several dtypes."""

DEFERRED = {Site.LATENT, Site.LOGITS}


def exchanges(
    sentinel: Sentinel = Sentinel.ALL_ONES,
    start: int = 0,
    size: int = SIZE,
    step: Sequence[Exchange] = STEP,
) -> Exchanges:
    """What a group that plays `step` agrees on."""
    specs = []
    for site in dict.fromkeys(e.site for e in step):
        here = [e for e in step if e.site is site]
        words = max(words_for(e.columns, e.dtype) for e in here)
        rearm = Rearm.AT_NEXT if site in DEFERRED else Rearm.AT_ONCE
        specs.append(MailboxSpec(site, words, len(here), rearm, sentinel))
    return Exchanges(size, ROWS, tuple(specs), LIMIT_S, start)


def payload(rank: int, number: int, index: int, rows: int, exchange: Exchange) -> Tensor:
    """What `rank` brings to exchange `index` of step `number`: many binades and special values."""
    g = torch.Generator().manual_seed(((rank * 1000 + number) * 100 + index) * 100 + rows)
    shape = (rows, exchange.columns)
    x = torch.randn(shape, generator=g) * torch.exp2(torch.randint(-9, 10, shape, generator=g))
    special = SPECIAL[torch.randint(len(SPECIAL), shape, generator=g)]
    x = torch.where(torch.rand(shape, generator=g) < 0.2, special, x)
    if exchange.dtype is torch.float64:
        x = x.double() * (1 - 2.0**-52)  # low halves of all ones
    return x.to(exchange.dtype)


@dataclass(frozen=True)
class Program:
    """Steps of the given rows; 0 rows is a step that falls back, of 4 rows."""

    rows: tuple[int, ...]
    step: tuple[Exchange, ...] = STEP

    @cache  # noqa: B019  (few programs, and every rank asks again)
    def inputs(self, rank: int, number: int, sentinel: Sentinel) -> list[Tensor]:
        rows = self.rows[number]
        xs = [payload(rank, number, i, rows or 4, e) for i, e in enumerate(self.step)]
        if sentinel is Sentinel.NEGATIVE_ZERO and rows:  # what the mailboxes make of them
            return [positive_zero(x) if x.dtype in DENSE else x for x in xs]
        return xs

    @cache  # noqa: B019
    def plain(self, size: int, sentinel: Sentinel) -> list[list[Tensor]]:
        """Per rank: every result, over plain collectives."""

        def one_rank(comm: Communicator) -> list[Tensor]:
            return [
                e.of(comm, x)
                for number in range(len(self.rows))
                for e, x in zip(self.step, self.inputs(comm.rank, number, sentinel), strict=True)
            ]

        return run_ranks(size, one_rank)

    def play(self, comm: DecodeCommunicator) -> list[Tensor]:
        """This rank's results over mailboxes, from unsanitised inputs."""
        results: list[Tensor] = []
        for number, rows in enumerate(self.rows):
            xs = self.inputs(comm.rank, number, Sentinel.ALL_ONES)
            if not rows:
                results += [e.of(comm.stock, x) for e, x in zip(self.step, xs, strict=True)]
                continue
            comm.begin_step(rows)
            results += [e.of(comm.at(e.site), x) for e, x in zip(self.step, xs, strict=True)]
            comm.end_step()
        return results


def same_bits(a: Tensor, b: Tensor) -> bool:
    """Equal shape, dtype and bits; NaNs count as equal whatever their payload."""
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    integer = {2: torch.int16, 4: torch.int32, 8: torch.int64}[a.dtype.itemsize]
    equal = a.contiguous().view(integer) == b.contiguous().view(integer)
    return bool((equal | (a.isnan() & b.isnan())).all())


def check(
    group_type: type[LocalGroup],
    program: Program,
    skew: Skew,
    sentinel: Sentinel = Sentinel.ALL_ONES,
    start: int = 0,
) -> LocalGroup:
    """Plays the program and compares every result of every rank; AssertionError on a difference."""
    agreed = exchanges(sentinel, start, step=program.step)
    group = group_type(agreed, skew=skew)
    ended = group.run(program.play)
    assert [e.failure for e in ended] == [None] * SIZE
    for mine, want in zip(ended, program.plain(SIZE, sentinel), strict=True):
        assert mine.value is not None
        assert all(same_bits(a, b) for a, b in zip(mine.value, want, strict=True))
    return group
