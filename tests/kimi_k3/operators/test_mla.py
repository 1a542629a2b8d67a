# SPDX-License-Identifier: Apache-2.0
"""Windows of MLA against the reference, in pages where everything unaddressed is NaN."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from kimi_k3.operators import mla
from kimi_k3.packed import PackedMla
from kimi_k3.ranks import Communicator, run_ranks
from kimi_k3.reference import mla as reference
from kimi_k3.reference.state import FP8, KvCache, PageWindow
from kimi_k3.rounding import Rounding
from kimi_k3.weights import MlaWeights
from tests.kimi_k3.operators.builders import (
    F64,
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

POINTS = (
    "projection",
    "mla_normed",
    "mla_query",
    "mla_absorbed",
    "mla_latent",
    "mla_value",
    "attn_out",
)
QUANTISED = KvCache(torch.empty(0, dtype=FP8), q_scale=0.5, k_scale=0.25)


def both(one: Case, rounding: Rounding = F64) -> torch.Tensor:
    """Run operators and reference on copies of the memory; returns the block's output."""
    ctx, w = context(rounding), weights(rounding.compute).layers[MLA].attention
    p = packed(rounding.compute).layers[MLA].attention
    own, want = one.memory.copy().cache, one.memory.copy().cache
    assert isinstance(w, MlaWeights)
    assert isinstance(p, PackedMla)
    got_a = mla_block(ctx, p, one.x, own, one.part)
    pages = PageWindow(one.part.group.rows, one.part.block_table, one.part.lengths)
    close(got_a, reference.mla(ctx, w, one.x, want, pages))
    close(own.pages.double(), want.pages.double())
    written = torch.zeros(own.pages.shape[:2], dtype=torch.bool)
    for _, request, position in pages.live_rows():
        written[one.part.block_table[request, position // PAGE], position % PAGE] = True
    assert torch.equal(bits(own.pages[~written]), bits(one.memory.cache.pages[~written]))
    return got_a


@settings(max_examples=40, deadline=None)
@given(
    rows=st.integers(1, 8),
    alive=st.lists(st.booleans(), min_size=1, max_size=4),
    seed=st.integers(0, 1000),
    quantised=st.booleans(),
)
def test_a_window_equals_the_reference_with_padding_anywhere(
    rows: int, alive: list[bool], seed: int, quantised: bool
) -> None:
    both(case(alive, rows, seed=seed, form=QUANTISED if quantised else None))


@pytest.mark.parametrize("length", [1, PAGE - 1, PAGE, PAGE + 1, 6 * PAGE])
def test_lengths_at_the_edges_of_pages_equal_the_reference(length: int) -> None:
    both(case([True, True], 1, history=[length - 1, 0]))


@pytest.mark.parametrize("point", POINTS)
def test_each_rounding_point_stands_where_the_reference_has_it(point: str) -> None:
    one = case([True, False, True], 3, seed=2)
    assert (both(one, gridded(point)) - both(one)).abs().max() > 1e-6


def test_padding_gives_zeros_and_writes_to_no_page() -> None:
    """Page 0 is a page like any other, and no live row says what a padding row may repeat."""
    one = case([False, False], 2)
    cache, w = one.memory.copy().cache, packed(torch.float64).layers[MLA].attention
    assert isinstance(w, PackedMla)
    attn = mla.window(context(), w, mla.project(context(), w, one.x), cache, one.part)
    assert not attn.any()
    assert torch.equal(bits(cache.pages), bits(one.memory.cache.pages))


@pytest.mark.parametrize("first", [True, False])
def test_a_padding_row_does_not_undo_the_write_of_a_live_row_in_page_0(first: bool) -> None:
    one = case([first, not first], 1, history=[0, 0])
    one.part.block_table[0 if first else 1, 0] = 0
    both(one)


def test_what_later_rows_of_a_window_hold_does_not_reach_earlier_ones() -> None:
    one = case([True], 4, history=[5])
    x = one.x.clone()
    x[3] = 17.0
    close(both(replace(one, x=x))[:3], both(one)[:3])


@pytest.mark.parametrize("ranks", [2, 4])
@pytest.mark.parametrize("turn", [1, 3])
@pytest.mark.parametrize("form", [None, QUANTISED], ids=["plain", "fp8"])
def test_ranks_that_share_the_tokens_equal_the_reference(
    ranks: int, turn: int, form: KvCache | None
) -> None:
    """All ranks hold the same heads here: what they gather is as many heads as there are ranks."""
    one = case([True, False, True], 3, history=[9, 0, 0], form=form)
    table = torch.where(one.part.block_table == GARBAGE, 0, one.part.block_table)
    part = replace(one.part, block_table=table)
    pages = torch.zeros_like(one.memory.cache.pages)
    w, p = weights(torch.float64).layers[MLA].attention, packed(torch.float64).layers[MLA].attention
    assert isinstance(w, MlaWeights)
    assert isinstance(p, PackedMla)

    def rank(comm: Communicator) -> None:
        ctx = replace(context(), comm=comm, dcp=comm)
        own, want = (replace(one.memory.cache, pages=pages.clone(), interleave=turn) for _ in "ab")
        window = PageWindow(3, table, part.lengths)
        for step in range(2):  # the second finds rows of the first in other ranks' pages
            x = one.x + step
            close(mla_block(ctx, p, x, own, part), reference.mla(ctx, w, x, want, window))
            close(own.pages.double(), want.pages.double())

    run_ranks(ranks, rank)
