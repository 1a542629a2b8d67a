# SPDX-License-Identifier: Apache-2.0
"""MLA: absorbed against expanded, pages and lengths, FP8 caches, shards and their merge."""

import numpy as np
import pytest
import torch
from torch import Tensor

from kimi_k3.config import tiny
from kimi_k3.reference.context import Context
from kimi_k3.reference.hooks import Recorder
from kimi_k3.reference.mla import (
    EMPTY_LSE,
    absorb,
    attend,
    attend_unabsorbed,
    merge,
    mla,
    split_kv_b,
)
from kimi_k3.reference.state import FP8, KvCache, PageWindow
from kimi_k3.rounding import exact
from kimi_k3.weights import MlaWeights
from tests.kimi_k3.reference import second
from tests.kimi_k3.reference.builders import Draw, mla_weights, odd, widened

F64 = exact(torch.float64)


def block(rows: int = 24) -> tuple[MlaWeights, Tensor]:
    d = Draw(1)
    return widened(mla_weights(odd(), d), torch.float64), d.normal(rows, 40, dtype=torch.float64)


def pages(page_size: int, count: int = 12, dtype: torch.dtype = torch.float64) -> Tensor:
    return torch.full((count, page_size, odd().kv_row), torch.nan, dtype=torch.float64).to(dtype)


def table(count: int = 12) -> Tensor:
    return torch.randperm(count, generator=torch.Generator().manual_seed(count))[None]


@pytest.mark.parametrize("page_size", [2, 3, 8, 16])
@pytest.mark.parametrize("q", [1, 3, 8])
def test_the_block_equals_full_attention_over_expanded_keys(q: int, page_size: int) -> None:
    """Unwritten cache rows hold NaN: a row that looks past its position would show it."""
    w, x = block()
    want = second.mla(odd(), w, x.numpy())
    cache = KvCache(pages(page_size))
    for first in range(0, 24, q):
        window = PageWindow(q, table(), torch.tensor([first + q]))
        got = mla(Context(odd(), F64), w, x[first : first + q], cache, window)
        np.testing.assert_allclose(got, want.out[first : first + q], rtol=1e-10, atol=1e-12)
    rows = cache.read(table()[0], 24, torch.float64)
    np.testing.assert_allclose(rows, want.rows, rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("n", [1, 2, 17, 1000])
def test_absorbed_and_unabsorbed_attention_are_the_same_function(n: int) -> None:
    c, d = odd(), Draw(n, torch.float64)
    w = widened(mla_weights(c, d), torch.float64)
    qn, qr = d.normal(c.mla_num_heads, 6), d.normal(c.mla_num_heads, 4)
    rows = d.normal(n, c.kv_row)
    w_uk, w_uv = split_kv_b(c, w.kv_b_proj)
    query = torch.cat([absorb(qn[None], w_uk)[0], qr], dim=1)
    z, lse = attend(query, rows, c.mla_softmax_scale, c.kv_lora_rank)
    got = torch.einsum("hl,hvl->hv", z, w_uv)
    want = attend_unabsorbed(c, w, qn, qr, rows)
    assert torch.allclose(got, want, rtol=1e-10, atol=1e-12)
    total = np.exp(c.mla_softmax_scale * (query @ rows.T).numpy()).sum(1)
    np.testing.assert_allclose(lse.exp2(), total, rtol=1e-11)


def test_the_extra_columns_score_without_norm_or_rotation() -> None:
    """Two keys that differ only there: the log-ratio of their weights is the score difference."""
    c, d = odd(), Draw(3, torch.float64)
    query = d.normal(2, c.kv_row)
    key = d.normal(1, c.kv_row).repeat(2, 1)
    key[1, c.kv_lora_rank :] += 7.0
    _, both = attend(query, key, 0.5, c.kv_lora_rank)
    _, first = attend(query, key[:1], 0.5, c.kv_lora_rank)
    ratio = (both - first).exp2() - 1
    np.testing.assert_allclose(ratio.log(), 0.5 * 7.0 * query[:, c.kv_lora_rank :].sum(1))


@pytest.mark.parametrize("length", [1024, 65536, 131_072, 1_048_576])
def test_a_long_context_equals_a_streamed_softmax(length: int) -> None:
    """Keys in chunks with a running maximum, in numpy; page boundaries and both neighbours."""
    c, page = tiny(), 256
    g = torch.Generator().manual_seed(length)
    store = torch.randn(length // page, page, c.kv_row, generator=g)
    order = torch.randperm(length // page, generator=g)
    cache = KvCache(store)
    query = 8 * torch.randn(c.mla_num_heads, c.kv_row, generator=g, dtype=torch.float64)
    scale, lora = c.mla_softmax_scale, c.kv_lora_rank
    near = (length, length - page, length - page + 1, length - page - 1)
    for n in near if length < 100_000 else near[-1:]:
        z, lse = attend(query, cache.read(order, n, torch.float64), scale, lora)
        top, total = np.full(4, -np.inf), np.zeros(4)
        mixed = np.zeros((4, lora))
        for first in range(0, n, 3 * page):
            ids = order[first // page : first // page + 3]
            keys = store[ids].numpy().reshape(-1, c.kv_row)[: n - first].astype(np.float64)
            scores = scale * query.numpy() @ keys.T
            new = np.maximum(top, scores.max(1))
            p = np.exp(scores - new[:, None])
            shrink = np.exp(top - new)
            total, mixed = total * shrink + p.sum(1), mixed * shrink[:, None] + p @ keys[:, :lora]
            top = new
        np.testing.assert_allclose(z, mixed / total[:, None], rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(lse, (top + np.log(total)) / np.log(2), rtol=1e-12)


@pytest.mark.parametrize("shards", [[20], [7, 13], [1, 0, 19], [0, 0, 20, 0], [5, 5, 5, 5]])
def test_shards_merge_to_the_whole_whatever_they_hold(shards: list[int]) -> None:
    c, d = odd(), Draw(4, torch.float64)
    query, keys = d.normal(2, c.kv_row, scale=6.0), d.normal(20, c.kv_row)
    parts = [attend(query, part, 0.4, 12) for part in keys.split(shards)]
    z, lse = (torch.stack(side)[:, None] for side in zip(*parts, strict=True))
    got, got_lse = merge(z, lse)
    want, want_lse = attend(query, keys, 0.4, 12)
    assert torch.allclose(got[0], want, rtol=1e-11, atol=1e-13)
    assert torch.allclose(got_lse[0], want_lse, rtol=1e-12)


@pytest.mark.parametrize("splits", [1, 2, 7, 64, 255, 256])
def test_any_number_of_splits_of_a_long_context_merges_to_the_whole(splits: int) -> None:
    """As a split-KV kernel does; the last splits of 1,000 keys may be short or empty."""
    c, d = tiny(), Draw(6, torch.float64)
    query, keys = d.normal(4, c.kv_row, scale=4.0), d.normal(1000, c.kv_row)
    size = -(-1000 // splits)
    parts = [attend(query, keys[i * size : (i + 1) * size], 0.4, 32) for i in range(splits)]
    z, lse = (torch.stack(side)[:, None] for side in zip(*parts, strict=True))
    want, want_lse = attend(query, keys, 0.4, 32)
    got, got_lse = merge(z, lse)
    assert torch.allclose(got[0], want, rtol=1e-11, atol=1e-13)
    assert torch.allclose(got_lse[0], want_lse, rtol=1e-12)


def test_an_empty_shard_has_weight_zero_and_all_empty_is_zero_not_nan() -> None:
    z = torch.stack([torch.full((1, 2, 3), 5.0), torch.zeros(1, 2, 3)])
    lse = torch.stack([torch.full((1, 2), -3.0e4), torch.full((1, 2), EMPTY_LSE)])
    assert (merge(z, lse)[0] == 5.0).all()
    empty, _ = merge(torch.zeros(4, 1, 2, 3), torch.full((4, 1, 2), EMPTY_LSE))
    assert (empty == 0).all()


def test_padding_rows_are_exact_zeros_and_write_nothing() -> None:
    w, x = block(6)
    x[2:4] = torch.nan
    cache = KvCache(pages(4))
    window = PageWindow(
        2, torch.cat([table(), table() * 0 - 1, table() * 0]), torch.tensor([2, 0, 0])
    )
    got = mla(Context(odd(), F64), w, x, cache, window)
    np.testing.assert_allclose(got[:2], second.mla(odd(), w, x[:2].numpy()).out, atol=1e-12)
    assert (got[2:] == 0).all()
    written = (~cache.pages.isnan()).any(2).nonzero().tolist()
    assert written == [[int(table()[0, 0]), 0], [int(table()[0, 0]), 1]]


@pytest.mark.parametrize(("q_scale", "k_scale"), [(1.0, 1.0), (0.5, 0.25), (0.013, 0.07)])
def test_an_fp8_cache_attends_to_what_its_bytes_say(q_scale: float, k_scale: float) -> None:
    """Second form: decode bytes and query to real numbers first, then attend without scales."""
    c = odd()
    w, x = block(9)
    cache = KvCache(pages(4, dtype=FP8), q_scale, k_scale)
    tap = Recorder()
    window = PageWindow(9, table(), torch.tensor([9]))
    mla(Context(c, F64, tap=tap), w, x, cache, window)
    exact_rows = torch.cat([tap.values["mla.c"], tap.values["mla.kr"]], 1)
    keys = k_scale * cache.read(table()[0], 9, torch.float64)
    assert torch.equal(keys, k_scale * (exact_rows / k_scale).float().to(FP8).double())
    queries = torch.cat([tap.values["mla.ql"], tap.values["mla.qr"]], 2)
    queries = q_scale * (queries / q_scale).float().to(FP8).double()
    for t in range(9):
        scores = queries[t] @ keys[: t + 1].T / np.sqrt(10)
        want = torch.softmax(scores, 1) @ keys[: t + 1, :12]
        assert torch.allclose(tap.values["mla.z"][t], want, rtol=1e-10, atol=1e-12)


def test_an_fp8_cache_saturates_in_silence() -> None:
    w, x = block(1)
    cache = KvCache(pages(4, dtype=FP8), k_scale=2.0**-12)
    mla(Context(odd(), F64), w, x, cache, PageWindow(1, table(), torch.tensor([1])))
    row = cache.read(table()[0], 1, torch.float64)
    assert row.abs().max() == 448.0
    assert torch.isfinite(row).all()


def test_queries_are_scaled_by_nope_and_extra_columns_together() -> None:
    assert odd().mla_softmax_scale == pytest.approx((6 + 4) ** -0.5)
