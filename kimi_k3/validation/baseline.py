# SPDX-License-Identifier: Apache-2.0
"""The stock path's operators as programs, to be timed beside candidates; they are not judged."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import torch

from kimi_k3.config import tiny
from kimi_k3.operators import residual
from kimi_k3.packed import PackedMix
from kimi_k3.reference.context import Context
from kimi_k3.rounding import stock
from kimi_k3.validation.launcher import Launcher

Operands = Mapping[str, Any]


class FusedMix:
    """The stock path's residual mix on a GPU."""

    def __init__(self, eps: float) -> None:
        from kimi_k3.stock.cuda.mix import mix  # noqa: PLC0415  (it needs Triton)

        self._mix, self._eps = mix, eps
        self.name, self.digest = "stock-mix", ""

    def run(self, launcher: Launcher, operands: Operands, rows: int) -> None:
        """See `launcher.Program`."""
        launcher.launch(self, operands, rows)

    def __call__(self, operands: Operands, rows: int) -> None:
        """See `launcher.Kernel`."""
        o = {n: t[:rows] if n in _ROWS else t for n, t in operands.items()}
        none = o["prefix"][:, None][:, :0]
        self._mix(
            o["out"],
            o["prefix"],
            [o["delta"]] if "delta" in o else [],
            o.get("blocks", none),
            o.get("saved", 0),
            score=o.get("score", o["prefix"][0]),
            norm=o.get("norm"),
            eps=self._eps,
            prefix_out=o.get("prefix_out", o.get("block_out")),
        )


class PlainMix:
    """The stock path's residual mix in PyTorch."""

    def __init__(self, eps: float) -> None:
        self._ctx = Context(replace(tiny(), rms_norm_eps=eps), stock())
        self.name, self.digest = "plain-mix", ""

    def run(self, launcher: Launcher, operands: Operands, rows: int) -> None:
        """See `launcher.Program`."""
        launcher.launch(self, operands, rows)

    def __call__(self, operands: Operands, rows: int) -> None:
        """See `launcher.Kernel`."""
        o = {n: t[:rows] if n in _ROWS else t for n, t in operands.items()}
        p = o["prefix"].float()
        if "delta" in o:
            p = (p + o["delta"].float()).to(torch.bfloat16).float()
        blocks = o["blocks"][:, : o["saved"]].float() if "blocks" in o else None
        norm = o["norm"].float() if "norm" in o else None
        o["out"].copy_(residual.mix(self._ctx, PackedMix(o["score"], norm), p, blocks))
        for name in ("prefix_out", "block_out"):
            if name in o:
                o[name].copy_(p)


_ROWS = {"prefix", "delta", "blocks", "out", "prefix_out", "block_out"}


def attn_res(eps: float, device: str) -> FusedMix | PlainMix:
    """The program of the residual mix.

    Args:
        eps: of both norms.
        device: `cpu` or `cuda`.
    """
    return FusedMix(eps) if device == "cuda" else PlainMix(eps)
