# SPDX-License-Identifier: Apache-2.0
"""The residual mix: `kimi_k3.reference.attn_res` in float64, and how far FP32 may be from it.

The bound. A logit is a sum of H products; whoever adds them in threads first, then in a tree, has
at most `TERMS` roundings on the way to any of them, so it is off by `TERMS` units of the sum of
absolute products. A softmax whose logits are off by d is off by a factor of exp(2 d), the mix by
that of the sum of absolute terms, and the norm of the mix by its relative length. Then comes the
one rounding to BF16. Nothing here knows how wide the tested kernel's blocks are.
"""

from dataclasses import replace

import torch

from kimi_k3.config import tiny
from kimi_k3.operators import residual
from kimi_k3.packed import PackedMix
from kimi_k3.reference.attn_res import mix, normed_mix, score, stack_sources
from kimi_k3.reference.context import Context
from kimi_k3.rounding import exact, stock
from kimi_k3.validation.case import Case, Content, Expected
from kimi_k3.validation.operators.base import (
    BF16_UNIT,
    FP32_UNIT,
    LEAST_NORMAL,
    drawn,
    generator,
    schema_of,
    spread,
    written,
)
from kimi_k3.validation.operators.mailbox import armed, arrived, mailbox_content

TERMS = 256
"""Roundings between a product and the sum of a row: 224 in a thread, and a tree of 32 blocks."""
EXPONENTIAL = 16
"""Units of a fast exponential and of its argument, per unit of the argument."""


class AttnRes:
    """See `base.Operator`."""

    name = "attn-res"
    schema = schema_of("attn_res.yaml")
    places: tuple[str, ...] = ()

    def content(self, case: Case) -> Content:
        """See `base.Operator`."""
        rng, rows, hidden = generator(case), case.rows, case.shape("out")[1]
        values = "normal" if case.family in {"peaked", "equal"} else case.family
        weights = "shifted" if case.family == "shifted" else "normal"
        found = {"prefix": drawn(values, rng, rows, hidden)}
        if case.has("blocks"):
            blocks = drawn(values, rng, rows, case.scalars["saved"], hidden, scale=2.0)
            same = found["prefix"][:, None].expand_as(blocks)
            found["blocks"] = same if case.family == "equal" else blocks
        if case.has("score"):
            sharp = 40.0 if case.family == "peaked" else 1.0
            found["score"] = drawn(weights, rng, hidden, scale=sharp * hidden**-0.5)
        if case.has("norm"):
            found["norm"] = drawn(weights, rng, hidden)
        if case.has("delta") or (case.has("mailbox") and case.has("prefix")):
            found["delta"] = drawn(values, rng, rows, hidden, scale=0.3)
        came = mailbox_content(case, found, rng) if case.has("mailbox") else {}
        return {name: spread(case, name, value) for name, value in found.items()} | came

    def expected(self, case: Case, content: Content) -> dict[str, Expected]:
        """See `base.Operator`."""
        p, sources, w, norm = _read(case, content)
        eps = case.candidate.constants["eps"]
        m = mix(score(sources, w, eps), sources)
        x = normed_mix(exact(torch.float64), m, norm, eps)
        found = {"out": written(case, "out", x, _bound(sources, w, norm, eps, x))}
        for name in ("prefix_out", "block_out"):
            if case.has(name):
                found[name] = written(case, name, p, torch.zeros_like(p))
        return found | (armed(case, content) if case.has("mailbox") else {})

    def stock(self, case: Case, content: Content) -> dict[str, torch.Tensor]:
        """See `base.Operator`."""
        p, sources, w, norm = _read(case, content)
        config = replace(tiny(), rms_norm_eps=case.candidate.constants["eps"])
        packed = PackedMix(w.float(), None if norm is None else norm.float())
        blocks = sources[:, :-1].float()
        out = torch.zeros(case.shape("out"), dtype=torch.bfloat16)
        out[: case.rows] = residual.mix(Context(config, stock()), packed, p.float(), blocks)
        return {"out": out}

    def bytes_moved(self, case: Case) -> int:
        """See `base.Operator`."""
        names = ("prefix", "delta", "out", "prefix_out", "block_out")
        per_row = sum(case.has(name) for name in names) + 2 * case.has("mailbox")
        per_row += case.scalars.get("saved", 0)
        weights = 2 * case.has("score") + case.has("norm")
        return 2 * case.shape("out")[1] * (case.rows * per_row + weights)

    def tolerances(self) -> tuple[tuple[str, str, float, str], ...]:
        """See `base.Operator`."""
        exact_ = "the sum of two BF16 values, rounded once as it is stored: bit for bit"
        return (
            (
                "out",
                "bf16",
                BF16_UNIT,
                f"one rounding, and sums with at most {TERMS} FP32 roundings",
            ),
            ("prefix_out", "bf16", 0.0, exact_),
            ("block_out", "bf16", 0.0, exact_),
        )


def _read(
    case: Case, content: Content
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor | None]:
    """The updated prefix [M, H], all sources [M, n, H], score [H] and norm [H], in float64."""
    rows = case.rows
    came = arrived(case, content) if case.has("mailbox") else None
    prefix = content["prefix"][:rows] if case.has("prefix") else came
    delta = content["delta"][:rows] if case.has("delta") else came if case.has("prefix") else None
    assert prefix is not None
    if delta is not None:  # rounded where it is stored, and read as it was rounded
        prefix = (prefix.float() + delta.float()).to(torch.bfloat16)
    p = prefix.double()
    blocks: tuple[torch.Tensor, ...] = ()
    if "blocks" in content:
        blocks = content["blocks"][:rows, : case.scalars["saved"]].double().unbind(1)
    norm = content["norm"].double() if "norm" in content else None
    # Without blocks the mix is the prefix, whatever its score.
    w = content["score"].double() if "score" in content else torch.zeros_like(p[0])
    return p, stack_sources(blocks, p), w, norm


def _bound(
    sources: torch.Tensor,
    w: torch.Tensor,
    norm: torch.Tensor | None,
    eps: float,
    x: torch.Tensor,
) -> torch.Tensor:
    """How far each value of `x` [M, H] may be from what is written."""
    rms = torch.rsqrt((sources**2).mean(-1) + eps)  # [M, n]
    logit = score(sources, w, eps)  # [M, n]
    off = TERMS * FP32_UNIT * ((sources * w).abs().sum(-1) * rms).amax(1)  # [M]
    off = off + TERMS * FP32_UNIT * logit.abs().amax(1)  # the mean of squares, half of it
    off = off + EXPONENTIAL * FP32_UNIT * (1 + logit.amax(1) - logit.amin(1))
    alpha = torch.softmax(logit, 1)[:, :, None]  # [M, n, 1]
    size = (alpha * sources.abs()).sum(1)  # [M, H]
    mixed = (torch.expm1(2 * off)[:, None] + 32 * FP32_UNIT) * size  # [M, H]
    if norm is None:
        return mixed + BF16_UNIT * x.abs()
    m = (alpha * sources).sum(1)  # [M, H]
    length = (m**2).sum(-1, keepdim=True).sqrt().clamp(min=LEAST_NORMAL)
    scale = torch.rsqrt((m**2).mean(-1, keepdim=True) + eps)
    relative = (mixed**2).sum(-1, keepdim=True).sqrt() / length + TERMS * FP32_UNIT
    return (mixed * scale * norm).abs() + (relative + BF16_UNIT) * x.abs()
