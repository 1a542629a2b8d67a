# SPDX-License-Identifier: Apache-2.0
"""Tensors as 32-bit words, of which one value is the *sentinel*: "not yet written".

A reader knows that a word has come because it is no longer the sentinel, so no word that is sent
may equal it. Two sentinels:

* `ALL_ONES`: a NaN of FP32 and a pair of NaNs of 16-bit floats. Every NaN is made the dtype's
  default one before it is sent; all other values, -0.0 among them, keep their bits.
* `NEGATIVE_ZERO`: -0.0 of FP32, and the pair +0.0, -0.0 of 16-bit floats. Every -0.0 is made +0.0
  before it is sent.

FP32, BF16 and FP16 are sent as they are. Every word value is legal in the halves of FP64 and in
integers, and of FP8 nothing is reserved here, so tensors of these dtypes go as 16 bits in 32-bit
words; kernels do not send them this way.
"""

from enum import Enum

import torch

from kimi_k3.rounding import positive_zero

DENSE = frozenset({torch.float32, torch.bfloat16, torch.float16})
"""Dtypes that are sent as they are."""

WORD_BYTES = 4


class Sentinel(Enum):
    """The word that says "not yet written"; the value is its bits as a signed number."""

    ALL_ONES = -1
    NEGATIVE_ZERO = -(2**31)


def words_for(elements: int, dtype: torch.dtype) -> int:
    """Words of a row of `elements` numbers."""
    row_bytes = elements * dtype.itemsize
    return -(-row_bytes // WORD_BYTES) if dtype in DENSE else -(-row_bytes // 2)


def sanitised(x: torch.Tensor, sentinel: Sentinel) -> torch.Tensor:
    """`x` with no value of which the sentinel could be made."""
    if x.dtype not in DENSE:
        return x
    if sentinel is Sentinel.NEGATIVE_ZERO:
        return positive_zero(x)
    return torch.where(x.isnan(), torch.full_like(x, torch.nan), x)


def to_words(x: torch.Tensor) -> torch.Tensor:
    """The rows [n, elements] of `x` as words [n, words_for(elements)], int32, in new memory."""
    unit = x.dtype.itemsize if x.dtype in DENSE else 1
    count = (WORD_BYTES if x.dtype in DENSE else 2) // unit
    parts = x.contiguous() if unit > 1 else x.contiguous().view(torch.uint8)
    padding = parts.new_zeros(len(parts), -parts.shape[1] % count)
    whole = torch.cat([parts, padding], dim=1)  # new memory, so that it is aligned
    if x.dtype in DENSE:
        return whole.view(torch.int32)
    return whole.view(torch.int16).to(torch.int32) & 0xFFFF


def from_words(words: torch.Tensor, elements: int, dtype: torch.dtype) -> torch.Tensor:
    """The rows [n, elements] of `dtype` that `to_words` made `words` [n, w] of."""
    if dtype in DENSE:
        return words.contiguous().view(dtype)[:, :elements]
    row = words.to(torch.int16).view(torch.uint8)[:, : elements * dtype.itemsize]
    return row.contiguous().view(dtype)
