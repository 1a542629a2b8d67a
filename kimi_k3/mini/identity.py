# SPDX-License-Identifier: Apache-2.0
"""The digest by which the manifest names weights that no repository serves."""

import hashlib

import torch

from kimi_k3.assembly import disassemble
from kimi_k3.config import K3Config
from kimi_k3.sharding import Sharding
from kimi_k3.weights import ModelWeights

SEED = 0
"""Of `random_weights`, until there are trained ones."""


def weights_digest(config: K3Config, weights: ModelWeights) -> str:
    """`sha256:` and SHA-256 over every stored tensor of whole weights, in checkpoint order.

    Of each tensor `<name> <dtype> <shape> NUL` and its bytes, least significant first.
    """
    digest = hashlib.sha256()
    for entry, value in disassemble(weights, Sharding(config, 1, 0)):
        shape = "x".join(map(str, value.shape))
        digest.update(f"{entry.name} {entry.tensor.dtype.value} {shape}\0".encode())
        digest.update(value.contiguous().view(torch.uint8).numpy().tobytes())
    return f"sha256:{digest.hexdigest()}"
