# SPDX-License-Identifier: Apache-2.0
"""Serves the residual mixes of planned steps with the kernel, instead of the reference.

A step meets the forms in this order: `first` in layer 0; in every other layer `add` or `block`,
which saves the prefix as a block, before attention; then `add`, or `plain` right after a block was
written; `last` at the end. What attention and the FFN leave is a plain tensor: the reference adds
it up over the ranks.

The residual stream is BF16 here, as the kernel wants it. What the other operators read and write
keeps the dtype that they compute in; both hold the same values, as every point of the stream is
rounded to BF16.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

import torch

from fasttrack.errors import InputError, Problem
from kimi_k3.config import K3Config
from kimi_k3.decode.executor import Executor
from kimi_k3.decode.providers import Pair, Provider, attention_sum
from kimi_k3.packed import PackedMix
from kimi_k3.reference.context import Context
from kimi_k3.rounding import Rounding, bf16

NAME = "attn-res"
"""How `Executor.served` names the provider."""
STREAM = torch.bfloat16
POINTS = ("embedding", "prefix_add", "mixed", "reduced", "ffn_out")
"""Rounding points of the residual stream."""


class Launcher(Protocol):
    """Launches the variant of a form that serves some rows: a kernel, or a stand-in for one."""

    def __call__(self, form: str, values: Mapping[str, torch.Tensor | int], rows: int) -> None:
        """Runs `attn-res-FORM` over operands by name, and writes its outputs."""


def with_residual_mixes(executor: Executor, ctx: Context, launch: Launcher) -> Executor:
    """The same executor with every residual mix of a planned step launched.

    Args:
        executor: one rank's.
        ctx: what its other operators compute with.
        launch: what launches.

    Raises:
        InputError: the stream of this rounding is not BF16.
    """
    if problems := _problems(ctx.rounding):
        raise InputError(problems)
    mixes = ResidualMixes(ctx, launch)

    def attention_out(
        o_proj: torch.Tensor,
        heads: torch.Tensor,
        w: PackedMix,
        prefix: torch.Tensor | None,
        blocks: torch.Tensor,
    ) -> Pair:
        total = attention_sum(ctx, executor.comm, o_proj, heads)
        if prefix is None:
            return mixes.mix(w, total, None, blocks, None)
        return mixes.mix(w, prefix, total, blocks, None)

    operators = replace(
        executor.operators,
        mix=Provider(NAME, mixes.mix),
        attention_out=Provider(NAME, attention_out),
    )
    return replace(executor, operators=operators, compute=STREAM)


def _problems(rounding: Rounding) -> list[Problem]:
    return [
        Problem(f"rounding {rounding.name}", f"`{point}` that is not BF16", "a BF16 stream")
        for point in POINTS
        if getattr(rounding, point) is not bf16
    ]


@dataclass(frozen=True)
class ResidualMixes:
    """The mixes of one rank.

    Attributes:
        ctx: what the other operators compute with.
        launch: what launches.
    """

    ctx: Context
    launch: Launcher

    def mix(
        self,
        w: PackedMix,
        prefix: torch.Tensor,
        delta: torch.Tensor | None,
        blocks: torch.Tensor,
        block: torch.Tensor | None,
    ) -> Pair:
        """See `Providers.mix`."""
        rows, saved = blocks.shape[:2]
        p = _stream(prefix)
        out = torch.empty_like(p)
        values: dict[str, Any] = {"prefix": p, "blocks": blocks, "saved": saved, "out": out}
        values |= {"score": w.score, "norm": w.norm}
        form, new = form_of(w, delta, saved, block), p
        if delta is not None:
            values["delta"] = _stream(delta)
        if block is not None:
            new = values["block_out"] = block
        elif delta is not None:
            new = values["prefix_out"] = torch.empty_like(p)
        self.launch(form, values, rows)
        return out.to(self.ctx.rounding.compute), new


def form_of(
    w: PackedMix, delta: torch.Tensor | None, saved: int, block: torch.Tensor | None
) -> str:
    """The form that computes a mix.

    Raises:
        ValueError: there is none: no step of the model meets it.
    """
    met = {
        (False, False, True, True): "first",
        (True, True, False, True): "add",
        (True, True, True, True): "block",
        (False, True, False, True): "plain",
        (True, True, False, False): "last",
    }
    asked = (delta is not None, saved > 0, block is not None, w.norm is not None)
    if asked not in met:
        words = ("delta", "saved blocks", "a block write", "an output norm")
        told = ", ".join(word for word, holds in zip(words, asked, strict=True) if holds)
        raise ValueError(f"no residual mix of a step has just {told or 'nothing'}")
    return met[asked]


def _stream(x: torch.Tensor) -> torch.Tensor:
    """BF16 values as BF16, rows contiguous but for a block's own stride."""
    return x.to(STREAM).contiguous()


def require_model(config: K3Config, parameters: Mapping[str, Any]) -> None:
    """Refuses a model that variants were not compiled for.

    Raises:
        InputError: with every difference.
    """
    want = {"hidden": config.hidden_size, "room": config.num_blocks, "eps": config.rms_norm_eps}
    if differing := [
        Problem(f"{NAME} {name}", str(parameters[name]), f"{value}, as the model has")
        for name, value in want.items()
        if parameters[name] != value
    ]:
        raise InputError(differing)
