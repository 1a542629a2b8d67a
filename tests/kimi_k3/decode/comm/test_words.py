# SPDX-License-Identifier: Apache-2.0
"""Tensors as words: everything comes back, and no word that is sent is the sentinel."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from kimi_k3.decode.comm.words import DENSE, Sentinel, from_words, sanitised, to_words, words_for

DTYPES = [
    torch.float32,
    torch.bfloat16,
    torch.float16,
    torch.float64,
    torch.float8_e4m3fn,
    torch.int64,
    torch.int32,
    torch.uint8,
    torch.bool,
]
BAD = [0x00, 0xFF, 0x80, 0x7F, 0x01]
"""Bytes that sentinels, NaNs, zeros of either sign and denormals are made of."""


def raw(dtype: torch.dtype, rows: int, columns: int, seed: int) -> Tensor:
    """Any bits; half of the bytes are `BAD`."""
    draw = np.random.default_rng(seed)
    shape = (rows, columns * dtype.itemsize)
    if dtype is torch.bool:
        return torch.from_numpy(draw.integers(0, 2, shape).astype(np.bool_))
    some = np.where(draw.random(shape) < 0.5, draw.choice(BAD, shape), draw.integers(0, 256, shape))
    return torch.from_numpy(some.astype(np.uint8)).view(dtype)


def bits(x: Tensor) -> Tensor:
    return x.contiguous().view(torch.uint8)


@given(
    dtype=st.sampled_from(DTYPES),
    rows=st.integers(1, 4),
    columns=st.integers(1, 9),
    seed=st.integers(0, 2**32),
)
def test_words_give_back_every_bit(dtype: torch.dtype, rows: int, columns: int, seed: int) -> None:
    x = raw(dtype, rows, columns, seed)
    words = to_words(x)
    assert words.shape == (rows, words_for(columns, dtype))
    assert words.dtype == torch.int32
    assert torch.equal(bits(from_words(words, columns, dtype)), bits(x))


@given(
    dtype=st.sampled_from(DTYPES),
    sentinel=st.sampled_from(Sentinel),
    rows=st.integers(1, 4),
    columns=st.integers(1, 9),
    seed=st.integers(0, 2**32),
)
def test_no_sanitised_word_is_the_sentinel_and_values_stay(
    dtype: torch.dtype, sentinel: Sentinel, rows: int, columns: int, seed: int
) -> None:
    x = raw(dtype, rows, columns, seed)
    y = sanitised(x, sentinel)
    assert not (to_words(y) == sentinel.value).any()
    if dtype not in DENSE:
        assert torch.equal(bits(y), bits(x))
        return
    assert torch.equal(y.isnan(), x.isnan())
    touched = x.isnan() if sentinel is Sentinel.ALL_ONES else x == 0
    kept = [t.masked_fill(touched, 1.0).view(torch.uint8) for t in (x, y)]
    assert torch.equal(*kept)  # -0.0, denormals and infinities included
    assert torch.equal(y.masked_fill(y.isnan(), 0), x.masked_fill(x.isnan(), 0))


@pytest.mark.parametrize(
    ("sentinel", "dtype", "values"),
    [
        (Sentinel.NEGATIVE_ZERO, torch.float32, [-0.0]),
        (Sentinel.NEGATIVE_ZERO, torch.bfloat16, [0.0, -0.0]),
        (Sentinel.NEGATIVE_ZERO, torch.float16, [0.0, -0.0]),
    ],
)
def test_the_negative_zero_sentinel_is_a_value_that_only_sanitising_keeps_away(
    sentinel: Sentinel, dtype: torch.dtype, values: list[float]
) -> None:
    x = torch.tensor([values], dtype=dtype)
    assert to_words(x).tolist() == [[sentinel.value]]
    assert to_words(sanitised(x, sentinel)).tolist() == [[0]]


@pytest.mark.parametrize("dtype", sorted(DENSE, key=str))
def test_the_all_ones_sentinel_is_a_nan_that_is_made_the_default_one(dtype: torch.dtype) -> None:
    x = torch.tensor([[-1]], dtype=torch.int32).view(dtype)
    assert x.isnan().all()
    assert to_words(x).tolist() == [[Sentinel.ALL_ONES.value]]
    assert (
        to_words(sanitised(x, Sentinel.ALL_ONES)).tolist()
        == to_words(torch.full_like(x, torch.nan)).tolist()
    )
    assert from_words(to_words(sanitised(x, Sentinel.ALL_ONES)), x.shape[1], dtype).isnan().all()


def test_rows_that_are_views_at_odd_places_are_sent_right() -> None:
    whole = torch.arange(1, 40, dtype=torch.bfloat16)
    x = whole[1:37].view(4, 9)[:, 1:8]
    assert torch.equal(from_words(to_words(x), 7, torch.bfloat16), x)
    y = torch.arange(40, dtype=torch.uint8)[1:37].view(4, 9)[:, ::2]
    assert torch.equal(from_words(to_words(y), 5, torch.uint8), y)
