# SPDX-License-Identifier: Apache-2.0
"""Every intermediate of a step under a stable name, so that a kernel is tested against one hook.

A block says `beta = tap("kda.beta", sigmoid(bh))`; the model puts the layer in front, and a
`Recorder` holds `layer.3.kda.beta`. Around a block alone it holds `kda.beta`.

Symbols: M rows, h this rank's heads, d the KDA head dimension, v the MLA value dimension, I this
rank's FFN width, E experts, k picked experts, H hidden width, V vocabulary, n mixed sources.
"""

import re
from dataclasses import dataclass, field
from typing import Protocol

import torch

LAYER_HOOKS = {
    "attn_res.prefix": "[M, H] prefix + delta before attention; what a block write stores",
    "attn_res.logit": "[M, n] scores of the saved blocks, then of the prefix",
    "attn_res.mix": "[M, H] softmax(logit) over the raw sources, before the output norm",
    "attn_res.x": "[M, H] what attention reads",
    "kda.projected": "[M, 4 h d + d + h] q~ | k~ | v~ | gate | f | bh, one packed GEMM of x",
    "kda.qkv": "[M, 3 h d] W_q x | W_k x | W_v x, the raw inputs of the convolution",
    "kda.gate": "[M, h d] W_g x",
    "kda.f": "[M, d] W_fa x",
    "kda.conv": "[M, 3 h d] q | k | v after the convolution and SiLU",
    "kda.q": "[M, h, d] normalised and scaled",
    "kda.k": "[M, h, d] normalised",
    "kda.v": "[M, h, d]",
    "kda.raw": "[M, h d] W_fb f",
    "kda.log_decay": "[M, h, d] g, in (gate_lower_bound, 0)",
    "kda.beta": "[M, h]",
    "kda.u": "[M, h, d] beta (v - S k), the delta written into the state",
    "kda.o": "[M, h, d] S q with the updated state",
    "kda.attn": "[M, h d] gated and normalised; zero in padding rows",
    "mla.projected": "[M, q_lora + kv_lora + rope + h v] qa | c | kr | gate before any norm",
    "mla.qa": "[M, q_lora] RMSNorm of the query latent",
    "mla.c": "[M, kv_lora] RMSNorm of the KV latent",
    "mla.kr": "[M, rope] the extra key columns, neither normed nor rotated",
    "mla.gate": "[M, h v] W_g x",
    "mla.qn": "[M, h, nope] W_qb qa",
    "mla.qr": "[M, h, rope] W_qb qa",
    "mla.ql": "[M, h, kv_lora] W_UK qn",
    "mla.query": "[M, h, kv_lora + rope] ql | qr in the units of the cache (FP8: divided by scale)",
    "mla.lse": "[M, h] log2 of the softmax denominator over all shards",
    "mla.z": "[M, h, kv_lora] sum of p_j c_j",
    "mla.attn": "[M, h v] W_UV z times sigmoid(gate); zero in padding rows",
    "attention.partial": "[M, H] this rank's share of W_o",
    "attention": "[M, H] a: the sum over ranks",
    "ffn_res.prefix": "[M, H] prefix + a before the FFN; a itself after a block write",
    "ffn_res.logit": "[M, n] scores of the saved blocks, then of the prefix",
    "ffn_res.mix": "[M, H] softmax(logit) over the raw sources, before the output norm",
    "ffn_res.y": "[M, H] what the FFN reads",
    "dense.gate_up": "[M, 2, I] W_g y, then W_u y",
    "dense.hidden": "[M, I] situ(W_g y, W_u y)",
    "dense.partial": "[M, H] this rank's share of W_d",
    "moe.logits": "[M, E] W_r y",
    "moe.ids": "[M, k] picked experts, best first",
    "moe.weights": "[M, k] their weights",
    "moe.z": "[M, latent] W_down y",
    "moe.hidden": "[M, k, I] h of this rank's slice of each picked expert",
    "moe.rows": "[M, k, latent] r_e of this rank's slice of each picked expert",
    "moe.latent_partial": "[M, latent] this rank's weighted sum of rows",
    "moe.latent": "[M, latent] L: the sum over ranks",
    "moe.normed": "[M, latent] RMSNorm(L)",
    "moe.routed": "[M, H] W_up n",
    "shared.gate_up": "[M, 2, I] W_sg y, then W_su y",
    "shared.hidden": "[M, I] situ(W_sg y, W_su y)",
    "shared.partial": "[M, H] this rank's share of W_sd",
    "moe.shared": "[M, H] the shared experts: the sum over ranks",
    "delta": "[M, H] the FFN's output, added to the prefix by the next AttnRes",
}
"""Hooks of one layer; in a recording `layer.N.` stands before each."""

STEP_HOOKS = {
    "embedding": "[M, H] the embedding rows",
    "final.prefix": "[M, H] prefix + the last FFN output",
    "final.logit": "[M, n] scores of all blocks, then of the prefix",
    "final.mix": "[M, H] before rounding",
    "final.hidden": "[M, H] h, before the last norm; what a drafter reads",
    "final.normed": "[M, H] RMSNorm(h)",
    "logits": "[M, V] all ranks' vocabulary",
}
"""Hooks outside the layers."""

_LAYER = re.compile(r"^layer\.\d+\.")


class Tap(Protocol):
    """What a block tells its intermediates to."""

    def __call__(self, name: str, value: torch.Tensor) -> torch.Tensor:
        """Look at `value`; returns it, so that a tap can stand in an equation."""

    def under(self, prefix: str) -> "Tap":
        """A tap that puts `prefix.` in front of each name."""


class NoTap:
    """Looks at nothing."""

    def __call__(self, name: str, value: torch.Tensor) -> torch.Tensor:
        """`value`."""
        return value

    def under(self, prefix: str) -> "NoTap":
        """Itself."""
        return self


@dataclass(frozen=True)
class Recorder:
    """Keeps a copy of every intermediate of one step in `values`, by full name."""

    values: dict[str, torch.Tensor] = field(default_factory=dict)
    prefix: str = ""

    def __call__(self, name: str, value: torch.Tensor) -> torch.Tensor:
        """Record `value`.

        Raises:
            KeyError: the name is not documented above.
            ValueError: the name was recorded before; a recorder is for one step.
        """
        full = self.prefix + name
        if _LAYER.sub("", full, count=1) not in LAYER_HOOKS and full not in STEP_HOOKS:
            raise KeyError(full)
        if full in self.values:
            raise ValueError(f"{full} was recorded before; use one Recorder per step")
        self.values[full] = value.detach().clone()
        return value

    def under(self, prefix: str) -> "Recorder":
        """A recorder into the same `values` that puts `prefix.` in front of each name."""
        return Recorder(self.values, f"{self.prefix}{prefix}.")
