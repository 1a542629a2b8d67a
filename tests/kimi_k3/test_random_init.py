# SPDX-License-Identifier: Apache-2.0
"""Random weights: the same bits everywhere, from a published generator, distributed as stated."""

import math
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
import pytest
import torch

from kimi_k3.assembly import disassemble
from kimi_k3.checkpoint import digest
from kimi_k3.config import mini, tiny
from kimi_k3.mxfp4 import decode_mxfp4
from kimi_k3.random_init import natural_log, normal, philox_block, random_weights, uniform
from kimi_k3.sharding import Sharding
from kimi_k3.weights import KdaWeights, ModelWeights
from tests.kimi_k3.builders import moe_of

TINY_DIGEST = "sha256:d176d9528acfb5699fd9137ae3a25ebe6a067cfa7bb4e3261dc435416dd4efa8"


def test_random_weights_have_the_same_bits_on_every_machine(tiny_weights: ModelWeights) -> None:
    assert digest(tiny_weights, tiny()) == TINY_DIGEST


def test_another_seed_gives_other_weights_in_every_tensor(tiny_weights: ModelWeights) -> None:
    other = random_weights(tiny(), seed=1)
    sharding = Sharding(tiny(), 1, 0)
    pairs = zip(disassemble(tiny_weights, sharding), disassemble(other, sharding), strict=True)
    assert [e.name for (e, a), (_, b) in pairs if torch.equal(a, b)] == []


def test_the_digest_sees_a_single_bit(tiny_weights: ModelWeights) -> None:
    norm = tiny_weights.norm.clone()
    norm.view(torch.int16)[77] ^= 1
    assert digest(replace(tiny_weights, norm=norm), tiny()) != TINY_DIGEST


def words(text: str) -> list[int]:
    return [int(word, 16) for word in text.split()]


@pytest.mark.parametrize(
    ("counter", "key", "want"),
    [
        ("0 0 0 0", "0 0", "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
        (" ".join(["ffffffff"] * 4), "ffffffff ffffffff", "408f276d 41c83b0e a20bc7c6 6d5451fd"),
        (
            "243f6a88 85a308d3 13198a2e 03707344",
            "a4093822 299f31d0",
            "d16cfe09 94fdcceb 5001e420 24126ea1",
        ),
    ],
)
def test_philox_gives_the_published_answers(counter: str, key: str, want: str) -> None:
    low, high = words(key)
    block = np.array(words(counter), dtype=np.uint64)[:, None]
    assert philox_block(low | high << 32, block)[:, 0].tolist() == words(want)


def test_the_logarithm_is_right_to_the_last_bits() -> None:
    x = np.concatenate([np.linspace(1, 16, 10_001), np.geomspace(1e-300, 1e300, 5_001)])
    want = np.array([math.log(v) for v in x])
    assert np.all(np.abs(natural_log(x) - want) <= 4e-16 * np.maximum(1, np.abs(want)))


def distribution(mean: float, deviation: float) -> Callable[[np.ndarray], bool]:
    """Whether a sample fits: mean within five standard errors, deviation within five percent."""

    def fits(sample: np.ndarray) -> bool:
        near = abs(sample.mean() - mean) < 5 * deviation / math.sqrt(sample.size)
        return bool(near and abs(sample.std() / deviation - 1) < 0.05)

    return fits


def test_elementary_distributions_have_their_moments() -> None:
    sample = normal(7, (200, 500))
    assert distribution(0, 1)(sample)
    assert np.mean(np.abs(sample) < 1) == pytest.approx(0.6827, abs=0.01)
    assert np.mean(np.abs(sample) > 3) == pytest.approx(0.0027, abs=0.002)
    assert np.corrcoef(sample.flatten()[:-1], sample.flatten()[1:])[0, 1] == pytest.approx(
        0, abs=0.02
    )
    flat = uniform(7, (100_000,), -2, 2)
    assert distribution(0, 4 / math.sqrt(12))(flat)
    assert -2 < flat.min() < -1.99
    assert 1.99 < flat.max() < 2


def samples(weights: ModelWeights) -> Iterator[tuple[str, np.ndarray, float, float]]:
    """Name, values, and the mean and deviation that the table of distributions promises."""
    for entry, value in disassemble(weights, Sharding(mini(), 1, 0)):
        name, x = entry.name, value.double().numpy()
        if name.endswith("dt_bias"):
            yield name, x, 0.0, 4 / math.sqrt(12)
        elif "embed" in name:
            yield name, x, 0.0, 1.0
        elif "norm" in name and "proj" not in name:
            yield name, x, 1.0, 0.1
        elif "A_log" not in name and "bias" not in name and value.dtype != torch.uint8:
            yield name, x, 0.0, 1 / math.sqrt(math.prod(x.shape[1:]))


def test_each_tensor_has_its_distribution(mini_weights: ModelWeights) -> None:
    checked = 0
    for name, sample, mean, deviation in samples(mini_weights):
        if sample.size >= 5000:
            assert distribution(mean, deviation)(sample), name
            checked += 1
        else:
            assert abs(sample.mean() - mean) < 6 * deviation / math.sqrt(sample.size), name
    assert checked > 50
    experts = moe_of(mini_weights, 1).experts
    w13 = decode_mxfp4(experts.w13_packed, experts.w13_scale, torch.float64)
    assert float(w13.std()) * math.sqrt(96) == pytest.approx(1, abs=0.05)
    for layer in mini_weights.layers:
        if isinstance(layer.attention, KdaWeights):
            assert ((layer.attention.a_log > 0) & (layer.attention.a_log < math.log(16))).all()


def test_the_last_expert_ties_with_the_first_one(tiny_weights: ModelWeights) -> None:
    for layer in range(1, 6):
        moe = moe_of(tiny_weights, layer)
        assert torch.equal(moe.router[-1], moe.router[0])
        assert moe.correction_bias[-1] == moe.correction_bias[0] != 0
        assert not torch.equal(moe.router[1], moe.router[0])
