# SPDX-License-Identifier: Apache-2.0
"""Random weights with the same bits on every machine (spec 7).

Bits come from Philox4x32-10, keyed by seed and tensor name and indexed by element, in integer
arithmetic. From there on only exact operations and correctly rounded IEEE additions,
multiplications and divisions follow, no library function whose last bit may differ.

| tensor | distribution |
|---|---|
| matrices, convolutions | N(0, 1 / fan-in) |
| embedding | N(0, 1): a lookup has fan-in 1 |
| norm weights | 1 + 0.1 N(0, 1) |
| A_log | log of U(1, 16) |
| dt_bias | U(-2, 2) |
| correction bias | U(-0.1, 0.1) |
| experts | N(0, 1 / fan-in), rounded to MXFP4 |

The last expert repeats the first one's router row and bias, so that exact ties occur.
"""

import hashlib
from collections.abc import Callable, Mapping
from functools import lru_cache
from math import prod, sqrt

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from kimi_k3.assembly import TORCH_DTYPES, Entry, assemble, take
from kimi_k3.config import K3Config
from kimi_k3.mxfp4 import quantize_mxfp4
from kimi_k3.sharding import Part, Sharding
from kimi_k3.weights import ModelWeights

Floats = NDArray[np.float64]
Words = NDArray[np.uint64]

PHILOX_MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
PHILOX_KEY_STEPS = (0x9E3779B9, 0xBB67AE85)
PHILOX_ROUNDS = 10
LOW_32 = np.uint64(0xFFFFFFFF)
CHUNK = 1 << 15
"""Elements that are made at a time; their words stay in a core's cache."""
HALVES = 8
"""A normal value is the sum of this many uniform 16-bit integers, centred and scaled."""


def random_weights(config: K3Config, seed: int = 0, tp: int = 1, rank: int = 0) -> ModelWeights:
    """Random weights of one rank; those of all ranks together are the weights of one model.

    Args:
        config: the model.
        seed: 0 to 2^63.
        tp: tensor parallelism.
        rank: this rank.

    Raises:
        InputError: the model can not be divided so.
    """

    @lru_cache(maxsize=1)
    def expert_matrix(prefix: str, rows: int, columns: int) -> tuple[Tensor, Tensor]:
        values = normal(_key(seed, prefix), (rows, columns)) * (1 / sqrt(columns))
        return quantize_mxfp4(torch.from_numpy(values))

    def fetch(entry: Entry, part: Part) -> Tensor:
        if not entry.tensor.is_expert:
            return take(_plain(config, seed, entry), part)
        prefix, kind = entry.name.rsplit(".", 1)
        rows, per_row = entry.tensor.shape
        columns = per_row * (2 if kind == "weight_packed" else config.mx_group)
        packed, scale = expert_matrix(prefix, rows, columns)
        return take(packed if kind == "weight_packed" else scale, part)

    return assemble(Sharding(config, tp, rank), fetch)


def _plain(config: K3Config, seed: int, entry: Entry) -> Tensor:
    """A tensor that is stored as numbers."""
    tensor = entry.tensor
    kind = tensor.place.rsplit(".", 1)[-1]
    draw = DISTRIBUTIONS.get(kind, norm_weight if "norm" in kind and "proj" not in kind else matrix)
    values = draw(_key(seed, entry.name), tensor.live)
    if kind in {"router", "correction_bias"} and config.num_experts > config.num_experts_per_tok:
        values[-1] = values[0]
    single = torch.from_numpy(values.astype(np.float32))
    return single.to(TORCH_DTYPES[tensor.dtype])


def matrix(key: int, shape: tuple[int, ...]) -> Floats:
    """N(0, 1 / fan-in); the fan-in is what one output element reads."""
    return normal(key, shape) * (1 / sqrt(prod(shape[1:])))


def norm_weight(key: int, shape: tuple[int, ...]) -> Floats:
    """1 + 0.1 N(0, 1)."""
    return 1 + 0.1 * normal(key, shape)


def a_log(key: int, shape: tuple[int, ...]) -> Floats:
    """The log of U(1, 16)."""
    return natural_log(uniform(key, shape, 1.0, 16.0))


def dt_bias(key: int, shape: tuple[int, ...]) -> Floats:
    """U(-2, 2)."""
    return uniform(key, shape, -2.0, 2.0)


def correction_bias(key: int, shape: tuple[int, ...]) -> Floats:
    """U(-0.1, 0.1): enough to change which experts are picked."""
    return uniform(key, shape, -0.1, 0.1)


def normal(key: int, shape: tuple[int, ...]) -> Floats:
    """N(0, 1) to about four standard deviations, from sums of uniform integers."""
    mean = HALVES * 65535 / 2
    scale = 1 / sqrt(HALVES * (65536**2 - 1) / 12)

    def values(words: Words) -> Floats:
        total = ((words & np.uint64(0xFFFF)) + (words >> np.uint64(16))).sum(axis=0)
        return np.asarray((total.astype(np.float64) - mean) * scale)

    return _elements(key, shape, values)


def uniform(key: int, shape: tuple[int, ...], low: float, high: float) -> Floats:
    """U(low, high), never either end."""

    def values(words: Words) -> Floats:
        fraction = (words[0].astype(np.float64) + 0.5) / 2**32
        return np.asarray(low + fraction * (high - low))

    return _elements(key, shape, values)


def _elements(key: int, shape: tuple[int, ...], values: Callable[[Words], Floats]) -> Floats:
    """One value for each element from the four words at its index."""
    count = prod(shape)
    result = np.empty(count, dtype=np.float64)
    for start in range(0, count, CHUNK):
        stop = min(start + CHUNK, count)
        result[start:stop] = values(philox(key, np.arange(start, stop, dtype=np.uint64)))
    return result.reshape(shape)


def philox(key: int, index: Words) -> Words:
    """Philox4x32-10 (Salmon and others, 2011) of counters below 2^64.

    Args:
        key: 64 bits.
        index: [n] the lower 64 bits of each 128-bit counter.

    Returns:
        [4, n] words of 32 bits.
    """
    zero = np.zeros_like(index)
    return philox_block(key, np.stack([index & LOW_32, index >> np.uint64(32), zero, zero]))


def philox_block(key: int, counter: Words) -> Words:
    """Philox4x32-10 of whole counters, [4, n] words of 32 bits each way."""
    c0, c1, c2, c3 = counter
    k0, k1 = key & 0xFFFFFFFF, key >> 32
    for _ in range(PHILOX_ROUNDS):
        p0 = c0 * np.uint64(PHILOX_MULTIPLIERS[0])
        p1 = c2 * np.uint64(PHILOX_MULTIPLIERS[1])
        c0, c1, c2, c3 = (
            (p1 >> np.uint64(32)) ^ c1 ^ np.uint64(k0),
            p1 & LOW_32,
            (p0 >> np.uint64(32)) ^ c3 ^ np.uint64(k1),
            p0 & LOW_32,
        )
        k0 = (k0 + PHILOX_KEY_STEPS[0]) & 0xFFFFFFFF
        k1 = (k1 + PHILOX_KEY_STEPS[1]) & 0xFFFFFFFF
    return np.stack([c0, c1, c2, c3])


def natural_log(x: Floats) -> Floats:
    """The log within 1e-15 for positive x, from additions, multiplications and divisions alone.

    x = m 2^e with m in [2/3, 4/3), log m = 2 artanh((m - 1) / (m + 1)).
    """
    m, e = np.frexp(x)  # m in [0.5, 1)
    small = m < 2 / 3
    m, e = np.where(small, 2 * m, m), np.where(small, e - 1, e)
    s = (m - 1) / (m + 1)  # at most 0.2 in size
    square, series = s * s, np.zeros_like(s)
    for power in range(27, 0, -2):
        series = series * square + 1 / power
    ln2 = 0.6931471805599453
    return np.asarray(2 * s * series + e * ln2, dtype=np.float64)


def _key(seed: int, name: str) -> int:
    digest = hashlib.sha256(f"{seed}:{name}".encode()).digest()
    return int.from_bytes(digest[:8], "little")


DISTRIBUTIONS: Mapping[str, Callable[[int, tuple[int, ...]], Floats]] = {
    "embed_tokens": normal,
    "a_log": a_log,
    "dt_bias": dt_bias,
    "correction_bias": correction_bias,
}
"""By the last part of a tensor's place; all others are norm weights or matrices."""
