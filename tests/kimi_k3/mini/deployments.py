# SPDX-License-Identifier: Apache-2.0
"""Deployments to ask the gate about, and the scope a second time, in other words."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import torch

from kimi_k3.config import mini, tiny
from kimi_k3.decode.deployment import Deployment, Features, Formats

SOUND = Deployment(
    decode_backend="latency_specialized",
    config=mini(),
    hardware="cpu",
    tp=2,
    dcp=1,
    max_requests=4,
    draft_tokens=3,
    max_context=512,
    graph_mode="eager",
    formats=Formats("mxfp4", "bf16", "bf16", "bf16", "fp32"),
    features=Features.absent(),
    virtual_ranks=True,
)
"""Nothing about it is out of scope."""


def drawn(seed: int, tp: int) -> Iterator[Deployment]:
    """Deployments around the scope, most of them outside by one fact."""
    g = torch.Generator().manual_seed(seed)

    def one_of(*values: Any) -> Any:
        return values[int(torch.randint(len(values), (), generator=g))]

    for _ in range(60):
        yield replace(
            SOUND,
            tp=tp,
            config=one_of(*[mini()] * 8, tiny()),
            hardware=one_of(*["cpu"] * 8, "gb300", None),
            dcp=one_of(*[1] * 8, 2),
            draft_tokens=one_of(*range(8), 8),
            max_requests=one_of(1, 8, 64, 65, 1000),
            max_context=one_of(1, 4096, 4097),
            virtual_ranks=one_of(*[True] * 8, False),
            features=replace(
                Features.absent(),
                **{name: one_of(*[False] * 30, True, None) for name in ("lora", "state_replay")},
            ),
            formats=replace(SOUND.formats, kv_cache=one_of(*["bf16", "fp8_e4m3"] * 4, "fp32")),
        )


def may_run(d: Deployment) -> bool:
    """The scope in other words: written from the design of the path."""
    return (
        d.config == mini()
        and (d.hardware, d.dcp, d.graph_mode, d.virtual_ranks) == ("cpu", 1, "eager", True)
        and d.tp in {1, 2, 4}
        and d.draft_tokens in range(8)
        and d.formats.kv_cache in {"bf16", "fp8_e4m3"}
        and d.features.lora is False
    )
