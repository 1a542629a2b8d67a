# SPDX-License-Identifier: Apache-2.0
"""What a planned step of a model exchanges between its ranks: how often, and how much per row."""

import torch

from kimi_k3.config import K3Config
from kimi_k3.decode.comm.communicator import LIMIT_S, Exchanges
from kimi_k3.decode.comm.interface import Site
from kimi_k3.decode.comm.mailbox import MailboxSpec
from kimi_k3.decode.comm.words import words_for

DCP_EXCHANGES = 3
"""Of one MLA layer under context parallelism: queries, latents, log-sum-exps."""


def exchanges_of(
    config: K3Config,
    tp: int,
    dcp: int,
    rows: int,
    dtype: torch.dtype,
    *,
    limit_s: float = LIMIT_S,
) -> Exchanges:
    """What `tp` ranks agree on before the first step.

    Args:
        config: the model.
        tp: ranks.
        dcp: ranks that share the tokens of a KV cache: 1 or `tp`.
        rows: rows of the largest step.
        dtype: of what is exchanged.
        limit_s: seconds that a wait may last.
    """
    layers = range(config.num_layers)
    dense = sum(config.is_dense(layer) for layer in layers)
    moe = config.num_layers - dense
    hidden, heads = config.hidden_size, config.mla_num_heads
    widths = {
        Site.EMBED: (hidden, 1),
        Site.O_PROJ: (hidden, config.num_layers),
        Site.FFN: (hidden, dense),
        Site.LATENT: (config.routed_expert_hidden_size, moe),
        Site.SHARED: (hidden, moe),
        Site.LOGITS: (config.vocab_size // tp, 1),
        Site.DCP: (
            heads * config.kv_row,
            DCP_EXCHANGES * len(config.mla_layers) if dcp > 1 else 0,
        ),
    }
    mailboxes = tuple(
        MailboxSpec(site, words_for(width, dtype), per_step)
        for site, (width, per_step) in widths.items()
        if per_step
    )
    return Exchanges(tp, rows, mailboxes, limit_s)
