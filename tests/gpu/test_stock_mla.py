# SPDX-License-Identifier: Apache-2.0
"""The MLA kernels against float64 and the reference's cache, from the kernels' own inputs."""

import math
from dataclasses import dataclass

import pytest
import torch

from kimi_k3.ranks import Solo
from kimi_k3.reference.state import FP8, KvCache, PageWindow, to_fp8
from kimi_k3.stock.cuda.mla import (
    MOST_SPLITS,
    Workspace,
    attend,
    gate_values,
    splits_for,
    tile_for,
)
from kimi_k3.stock.cuda.mla_insert import WHOLE, Shard, insert
from tests.gpu.packed_oracle import DEVICE, ON_GPU, POISONS, ROUNDING, int32, launch, normal
