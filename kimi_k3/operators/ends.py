# SPDX-License-Identifier: Apache-2.0
"""The two ends of a step (spec 2.1, 2.7); the vocabulary is split over `ctx.comm`.

The equations are those of `reference.head`. Rounding points: `final_normed`, `logits`; `embedding`
follows the sum over ranks, which is the caller's.
"""

import torch

from kimi_k3.operators.linear import linear
from kimi_k3.packed import PackedModel
from kimi_k3.reference.context import Context
from kimi_k3.reference.norm import rms_norm


def embed(ctx: Context, w: PackedModel, token_ids: torch.Tensor) -> torch.Tensor:
    """This rank's part [M, H] of the embedding rows of ids [M], zeros for what others hold.

    An id outside the vocabulary gives zeros on every rank: who accepts requests refuses it.
    """
    return stored_rows(ctx, w, token_ids).to(ctx.rounding.compute)


def stored_rows(ctx: Context, w: PackedModel, token_ids: torch.Tensor) -> torch.Tensor:
    """The same in the dtype of the table."""
    table = w.embed_tokens
    local = token_ids.long() - ctx.comm.rank * len(table)  # [M]
    held = (local >= 0) & (local < len(table))  # [M]
    return torch.where(held[:, None], table[torch.where(held, local, 0)], 0.0)  # [M, H]


def final_norm_logits(ctx: Context, w: PackedModel, hidden: torch.Tensor) -> torch.Tensor:
    """This rank's logits [n, V of the rank] of h [n, H], which is not yet normed."""
    r = ctx.rounding
    normed = r.final_normed(rms_norm(hidden, w.norm, ctx.config.rms_norm_eps))  # [n, H]
    return r.logits(linear(normed, w.lm_head))
