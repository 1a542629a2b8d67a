# SPDX-License-Identifier: Apache-2.0
"""One thread for small tensors, and weights that several tests read and none changes."""

from dataclasses import replace

import pytest
import torch

from kimi_k3.config import mini, tiny, tiny16
from kimi_k3.random_init import random_weights
from kimi_k3.weights import ModelWeights, MoeWeights


@pytest.fixture(autouse=True, scope="session")
def _one_thread_for_small_tensors() -> None:
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def tiny_weights() -> ModelWeights:
    return random_weights(tiny())


@pytest.fixture(scope="session")
def tiny16_weights() -> ModelWeights:
    return random_weights(tiny16())


@pytest.fixture(scope="session")
def mini_weights() -> ModelWeights:
    return random_weights(mini())


@pytest.fixture(scope="session")
def untied_weights(tiny_weights: ModelWeights) -> ModelWeights:
    """Without the exact tie between the first and the last expert.

    Which of the two wins follows from the last bits of two equal sums, and those from how a matrix
    product is divided: two formulations may then visit different experts, both rightly.
    """
    layers = []
    for layer in tiny_weights.layers:
        if isinstance(layer.ffn, MoeWeights):
            bias = layer.ffn.correction_bias.clone()
            bias[-1] += 0.25
            layer = replace(layer, ffn=replace(layer.ffn, correction_bias=bias))  # noqa: PLW2901
        layers.append(layer)
    return replace(tiny_weights, layers=tuple(layers))
