# SPDX-License-Identifier: Apache-2.0
"""Prompts through MLA, unabsorbed, against the reference, absorbed and token by token."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from kimi_k3.operators import mla_prefill
from kimi_k3.operators.mla import project
from kimi_k3.packed import PackedMla
from kimi_k3.ranks import Communicator, run_ranks
from kimi_k3.reference import mla as reference
from kimi_k3.reference.context import Context
from kimi_k3.reference.state import FP8, KvCache, PageWindow
from kimi_k3.rounding import exact
from kimi_k3.step import Group, Kind
from kimi_k3.weights import MlaWeights
from tests.kimi_k3.operators.builders import (
    GARBAGE,
    MLA,
    Case,
    bits,
    case,
    close,
    context,
    gridded,
    mla_block,
    packed,
    weights,
)
from tests.kimi_k3.reference.builders import PAGE

F32 = exact(torch.float32)
QUANTISED = KvCache(torch.empty(0, dtype=FP8), q_scale=0.5, k_scale=0.25)


def run(ctx: Context, one: Case, cache: KvCache | None = None) -> tuple[torch.Tensor, KvCache]:
    cache = cache or one.memory.copy().cache
    w = packed(ctx.rounding.compute).layers[MLA].attention
    assert isinstance(w, PackedMla)
    return mla_block(ctx, w, one.x, cache, one.part), cache


def by_token(ctx: Context, one: Case) -> tuple[torch.Tensor, KvCache]:
    """The reference on the same rows: a causal window of them all."""
    w, cache = weights(ctx.rounding.compute).layers[MLA].attention, one.memory.copy().cache
    assert isinstance(w, MlaWeights)
    window = PageWindow(one.part.group.rows, one.part.block_table, one.part.lengths)
    return reference.mla(ctx, w, one.x, cache, window), cache


def check(ctx: Context, one: Case, tolerance: float = 1e-12) -> None:
    (got, own), (want_a, want) = run(ctx, one), by_token(ctx, one)
    close(got, want_a, tolerance)
    close(own.pages.double(), want.pages.double(), tolerance)
    window = PageWindow(one.part.group.rows, one.part.block_table, one.part.lengths)
    written = torch.zeros(own.pages.shape[:2], dtype=torch.bool)
    for _, request, position in window.live_rows():
        written[one.part.block_table[request, position // PAGE], position % PAGE] = True
    assert torch.equal(bits(own.pages[~written]), bits(one.memory.cache.pages[~written]))


@pytest.mark.parametrize("tokens", [1, 2, 3, 15, 16, 17, 63, 64, 65, 130, 200])
def test_a_prompt_equals_the_reference_token_by_token(tokens: int) -> None:
    one = case([True, True, False], tokens, kind=Kind.PREFILL, history=[0, 7, 0], pages=52)
    check(context(), one)


@settings(max_examples=20, deadline=None)
@given(
    tokens=st.integers(1, 30),
    alive=st.lists(st.booleans(), min_size=1, max_size=4),
    seed=st.integers(0, 1000),
)
def test_prompts_of_equal_length_equal_the_reference_with_padding_anywhere(
    tokens: int, alive: list[bool], seed: int
) -> None:
    check(context(), case(alive, tokens, seed=seed, kind=Kind.PREFILL, pages=12))


@settings(max_examples=20, deadline=None)
@given(cuts=st.lists(st.integers(1, 69), min_size=1, max_size=2, unique=True).map(sorted))
def test_a_prompt_may_be_split_anywhere(cuts: list[int]) -> None:
    one = case([True, True], 70, kind=Kind.PREFILL, history=[0, 5], pages=20)
    cache, outs = one.memory.copy().cache, []
    x, before = one.x.unflatten(0, (2, 70)), one.part.lengths - 70
    for start, stop in zip((0, *cuts), (*cuts, 70), strict=True):
        group, rows = Group(Kind.PREFILL, 2, stop - start), slice(0, 2 * (stop - start))
        part = replace(one.part, group=group, rows=rows, lengths=before + stop)
        piece = replace(one, part=part, x=x[:, start:stop].flatten(0, 1))
        outs.append(run(context(), piece, cache)[0].unflatten(0, (2, -1)))
    want, whole = run(context(), one)
    close(torch.cat(outs, 1).flatten(0, 1), want)
    close(cache.pages, whole.pages)


def test_a_prompt_in_fp32_equals_float64_to_the_roundings_of_its_products() -> None:
    """Dot products over 40 inputs, 14 latents, 10 columns of a head and 200 keys."""
    one = case([True], 200, kind=Kind.PREFILL, history=[0], rounding=F32, pages=50)
    wide = case([True], 200, kind=Kind.PREFILL, history=[0], pages=50)
    bound = 4 * (40 + 14 + 10 + 200) ** 0.5 * 2.0**-24
    close(run(context(F32), one)[0].double(), run(context(), wide)[0], bound)


def test_keys_and_values_are_rounded_like_other_projections() -> None:
    """All of `projection` but W_a: its grid already holds what the reference projects."""
    one = case([True], 9, kind=Kind.PREFILL, history=[0])
    ctx, w = context(gridded("projection")), packed(torch.float64).layers[MLA].attention
    assert isinstance(w, PackedMla)
    projected = project(ctx, w, one.x)
    got = mla_prefill.prefill(ctx, w, projected, one.memory.copy().cache, one.part)
    unrounded = mla_prefill.prefill(context(), w, projected, one.memory.copy().cache, one.part)
    assert 1e-6 < (got - unrounded).abs().max() < 1 / 64


@pytest.mark.parametrize("point", ["mla_normed", "mla_query", "mla_value", "attn_out"])
def test_each_rounding_point_stands_where_the_reference_has_it(point: str) -> None:
    one = case([True, False], 9, kind=Kind.PREFILL, history=[4, 0])
    check(context(gridded(point)), one, 1e-11)
    assert (run(context(gridded(point)), one)[0] - run(context(), one)[0]).abs().max() > 1e-6


def test_a_quantised_cache_is_read_as_decode_reads_it_but_for_the_query() -> None:
    """The rows agree bit by bit; the outputs to the precision of the quantised query."""
    one = case([True], 9, kind=Kind.PREFILL, history=[6], form=QUANTISED)
    (got, own), (want, theirs) = run(context(), one), by_token(context(), one)
    assert torch.equal(bits(own.pages), bits(theirs.pages))
    # e4m3 has 4 significant bits: each of the 16 products of a score is off by at most 2^-4, at
    # random, and a softmax moves its weights by no more than the scores move.
    assert 0 < (got - want).abs().max() < 16**0.5 * 2.0**-4 * want.abs().max()


@pytest.mark.parametrize("ranks", [2, 4])
@pytest.mark.parametrize("turn", [1, 3])
@pytest.mark.parametrize("form", [None, QUANTISED], ids=["plain", "fp8"])
def test_ranks_that_share_the_tokens_equal_one_that_holds_all(
    ranks: int, turn: int, form: KvCache | None
) -> None:
    first = case([True, False, True], 9, kind=Kind.PREFILL, history=[9, 0, 9], form=form)
    table = torch.where(first.part.block_table == GARBAGE, 0, first.part.block_table)
    zeros = replace(first.memory.cache, pages=torch.zeros_like(first.memory.cache.pages))
    then = replace(first.part, block_table=table)
    begin = replace(then, lengths=then.lengths // 2)
    alone = replace(zeros, pages=zeros.pages.clone())
    want = [run(context(), replace(first, part=part), alone)[0] for part in (begin, then)]

    def rank(comm: Communicator) -> list[torch.Tensor]:
        ctx = replace(context(), dcp=comm)
        own = replace(zeros, pages=zeros.pages.clone(), interleave=turn)
        return [run(ctx, replace(first, part=part), own)[0] for part in (begin, then)]

    for outs in run_ranks(ranks, rank):
        for got, expected in zip(outs, want, strict=True):
            close(got, expected)


def test_a_last_turn_that_a_page_cuts_off_is_read() -> None:
    """Two ranks, turns of 3, two pages: of 14 tokens rank 0 holds 8, which are all it has room for.

    Its last two are a turn of which the pages could not hold the third.
    """
    one = case([True], 14, kind=Kind.PREFILL, history=[0])
    pages = torch.zeros_like(one.memory.cache.pages)
    narrow = replace(one.part, block_table=one.part.block_table[:, :2])

    def rank(comm: Communicator) -> torch.Tensor:
        cache = replace(one.memory.cache, pages=pages.clone(), interleave=3)
        return run(replace(context(), dcp=comm), replace(one, part=narrow), cache)[0]

    for got in run_ranks(2, rank):
        close(got, run(context(), one)[0])


def test_padding_is_written_nowhere() -> None:
    one = case([False, False], 20, kind=Kind.PREFILL)
    got, cache = run(context(), one)
    assert not got.any()
    assert torch.equal(bits(cache.pages), bits(one.memory.cache.pages))


@pytest.mark.parametrize("width", [3, 8, 12])
def test_values_may_be_narrower_or_wider_than_keys(width: int) -> None:
    g = torch.Generator().manual_seed(width)
    q, k = (torch.randn(2, 3, n, 8, generator=g, dtype=torch.float64) for n in (4, 6))
    v = torch.randn(2, 3, 6, width, generator=g, dtype=torch.float64)
    lengths = torch.tensor([6, 5])
    got = mla_prefill.causal(q, k, v, lengths)
    assert got.shape == (2, 3, 4, width)
    for b, length in enumerate(lengths.tolist()):
        for t in range(4):
            seen = length - 4 + t + 1
            p = torch.softmax(torch.einsum("ad,and->an", q[b, :, t], k[b, :, :seen]), dim=1)
            want = torch.einsum("an,anu->au", p, v[b, :, :seen])
            assert torch.allclose(got[b, :, t], want, rtol=1e-12, atol=1e-12)
