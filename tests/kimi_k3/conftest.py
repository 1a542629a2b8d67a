# SPDX-License-Identifier: Apache-2.0
"""One thread for small tensors, and weights that several tests read and none changes."""

import pytest
import torch

from kimi_k3.config import mini, tiny, tiny16
from kimi_k3.random_init import random_weights
from kimi_k3.weights import ModelWeights


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
