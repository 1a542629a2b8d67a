# SPDX-License-Identifier: Apache-2.0
"""An engine over a toy model, and what its steps looked like."""

from dataclasses import replace

from kimi_k3.engine.acceptance import RejectionSampling
from kimi_k3.engine.drafters import Drafter
from kimi_k3.engine.engine import Engine
from kimi_k3.engine.options import EngineConfig
from kimi_k3.engine.speculation import Speculation
from tests.kimi_k3.engine.toy import Toy, toy_config

PROMPT = (1, 2, 3)


def serve(options: EngineConfig, toy: Toy | None = None) -> tuple[Engine, Toy]:
    toy = toy or Toy(options)
    return Engine(toy_config(), toy, options), toy


def speculating(drafter: Drafter, draft: int = 3, **changes: int) -> EngineConfig:
    options = EngineConfig(speculation=Speculation(draft, drafter, RejectionSampling()))
    return replace(options, **changes)  # type: ignore[arg-type]


def shapes(toy: Toy) -> list[str]:
    """`w 2x4` for a group of two windows of four rows, `p` for prefills."""
    return [
        ", ".join(f"{group.kind[0]} {group.requests}x{group.rows}" for group in step.shape.groups)
        for step in toy.steps
    ]
