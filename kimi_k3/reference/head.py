# SPDX-License-Identifier: Apache-2.0
"""The two ends: token ids to rows, and rows to logits. The vocabulary is split over ranks.

Spec 2.1 and 2.7:

    row    = embed_tokens[token]
    normed = bf16(RMSNorm(h; norm))
    logits = W_lm_head normed

Rounding points: `embedding`, `final_normed`, `logits`.
"""

import torch

from kimi_k3.reference.context import Context
from kimi_k3.reference.linear import linear
from kimi_k3.reference.norm import rms_norm
from kimi_k3.weights import ModelWeights


def embed(ctx: Context, w: ModelWeights, token_ids: torch.Tensor) -> torch.Tensor:
    """The embedding rows [M, H] of token ids [M]: a rank adds zeros for what others hold.

    Raises:
        ValueError: an id outside the vocabulary, which every rank would take for another's.
    """
    if not bool(((token_ids >= 0) & (token_ids < ctx.config.vocab_size)).all()):
        raise ValueError(f"a token id lies outside the vocabulary of {ctx.config.vocab_size}")
    local = token_ids.long() - ctx.comm.rank * len(w.embed_tokens)  # [M]
    held = (local >= 0) & (local < len(w.embed_tokens))  # [M]
    rows = w.embed_tokens[torch.where(held, local, 0)].to(ctx.rounding.compute)  # [M, H]
    own = torch.where(held[:, None], rows, torch.zeros_like(rows))  # [M, H]
    return ctx.rounding.embedding(ctx.comm.all_reduce(own))  # [M, H]


def head(ctx: Context, w: ModelWeights, h: torch.Tensor) -> torch.Tensor:
    """Logits [M, V] over all ranks' vocabulary, for h [M, H] before the last norm."""
    r = ctx.rounding
    normed = r.final_normed(rms_norm(h, w.norm, ctx.config.rms_norm_eps))  # [M, H]
    ctx.tap("final.normed", normed)
    return ctx.comm.all_gather(r.logits(linear(normed, w.lm_head)), dim=1)  # [M, V]
