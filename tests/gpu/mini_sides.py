# SPDX-License-Identifier: Apache-2.0
"""The mini model on a GPU with caches of its own, and steps for it."""

from dataclasses import dataclass, replace

import torch

from kimi_k3.backends import moved
from kimi_k3.config import K3Config
from kimi_k3.packed import PackedModel, pack
from kimi_k3.random_init import random_weights
from kimi_k3.reference.context import Context
from kimi_k3.reference.state import FP8, Caches, CacheShape, KdaState, KvCache
from kimi_k3.rounding import Rounding, stock
from kimi_k3.step import Group, Kind, Step, StepShape
from kimi_k3.stock.cuda.ops import CudaOps
from kimi_k3.stock.model import StockModel

GPU = torch.device("cuda")
DRAFT = 3
COLUMNS = 1 + DRAFT
PAGES_EACH = 12
PAGE = 16
REQUESTS = 4


def untied(config: K3Config) -> PackedModel:
    """Random weights without the exact tie of two experts, which either may win."""
    model = pack(config, random_weights(config))
    for layer in model.layers:
        if hasattr(layer.ffn, "correction_bias"):
            layer.ffn.correction_bias[-1] += 0.25
    return moved(model, GPU)


def caches_for(config: K3Config, rounding: Rounding, *, fp8: bool) -> Caches:
    """Caches full of numbers that would show."""
    shape = CacheShape(1 + REQUESTS * COLUMNS, 1 + REQUESTS * PAGES_EACH, PAGE, DRAFT)
    layers: list[KdaState | KvCache] = []
    for index in range(config.num_layers):
        if config.is_kda(index):
            head = (config.kda_num_heads, config.kda_head_dim, config.kda_head_dim)
            window = (shape.slots, config.conv_channels, config.conv_window(DRAFT))
            layers.append(
                KdaState(
                    torch.full((shape.slots, *head), 5.0, dtype=rounding.recurrent, device=GPU),
                    torch.full(window, 5.0, dtype=rounding.stored, device=GPU),
                )
            )
        else:
            size = (shape.pages, PAGE, config.kv_row)
            pages = torch.full(size, 5.0, device=GPU)
            form = (FP8, 0.5, 0.25) if fp8 else (rounding.stored, 1.0, 1.0)
            layers.append(KvCache(pages.to(form[0]), form[1], form[2]))
    return Caches(tuple(layers))


@dataclass
class Side:
    """One backend with caches of its own."""

    model: StockModel
    caches: Caches


def fused(config: K3Config, weights: PackedModel, *, fp8: bool) -> Side:
    caches = caches_for(config, stock(), fp8=fp8)
    ops = CudaOps(Context(config, stock()), weights)
    return Side(StockModel(config, weights, caches, ops, (1, 4)), caches)


def tensor(values: list[int] | list[list[int]]) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.int32, device=GPU)


def step_of(
    groups: list[tuple[Kind, list[int], int]],
    lengths: list[int],
    accepted: list[int],
    seed: int,
    vocab: int,
    null: int = 0,
) -> Step:
    """Groups of (kind, requests, rows); `null` padding requests behind the last group."""
    requests = [r for _, members, _ in groups for r in members]
    shapes = [Group(kind, len(members), rows) for kind, members, rows in groups]
    shapes[-1] = replace(shapes[-1], requests=shapes[-1].requests + null)
    shape = StepShape(tuple(shapes), max(lengths))
    random = torch.Generator().manual_seed(seed)
    return Step(
        shape,
        torch.randint(0, vocab, (shape.rows,), generator=random).to(GPU, torch.int32),
        tensor(
            [[1 + r * COLUMNS + t for t in range(COLUMNS)] for r in requests]
            + [[0] * COLUMNS] * null
        ),
        tensor(accepted + [1] * null),
        tensor(
            [[1 + r * PAGES_EACH + p for p in range(PAGES_EACH)] for r in requests]
            + [[0] * PAGES_EACH] * null
        ),
        tensor(lengths + [0] * null),
    )


def every(caches: Caches) -> list[torch.Tensor]:
    found = []
    for layer in caches.layers:
        found += [layer.recurrent, layer.conv] if isinstance(layer, KdaState) else [layer.pages]
    return found
