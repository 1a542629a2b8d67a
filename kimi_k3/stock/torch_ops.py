# SPDX-License-Identifier: Apache-2.0
"""The stock path in plain PyTorch: the operators of `kimi_k3.operators`, on any device.

This is `auto` on a CPU, with the rounding of the stock path or with any other. A GPU runs it too,
slowly; there it is what the fused operations are compared with.
"""

from dataclasses import dataclass

import torch

from kimi_k3.operators import ends, ffn, kda, kda_prefill, mla, mla_prefill, moe, residual
from kimi_k3.packed import PackedFfn, PackedKda, PackedMix, PackedMla, PackedModel, PackedMoe
from kimi_k3.reference.attn_res import update_prefix
from kimi_k3.reference.context import Context
from kimi_k3.reference.state import KdaState, KvCache
from kimi_k3.step import GroupTensors, Kind, Step
from kimi_k3.stock.ops import Residual


@dataclass(frozen=True)
class TorchOps:
    """See `StockOps`.

    Attributes:
        ctx: configuration, rounding and ranks.
        weights: this rank's.
    """

    ctx: Context
    weights: PackedModel

    def embed(self, token_ids: torch.Tensor) -> torch.Tensor:
        """See `StockOps`."""
        rows = ends.embed(self.ctx, self.weights, token_ids)  # [M, H]
        return self.ctx.rounding.embedding(self.ctx.comm.all_reduce(rows))

    def blocks(self, rows: int) -> torch.Tensor:
        """See `StockOps`."""
        size = (rows, self.ctx.config.num_blocks, self.ctx.config.hidden_size)
        device = self.weights.norm.device
        return torch.empty(size, dtype=self.ctx.rounding.compute, device=device)

    def mix(
        self, w: PackedMix, stream: Residual, *, write: bool
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """See `StockOps`."""
        r = self.ctx.rounding
        first, *second = stream.pending or (None,)
        delta = r.ffn_out(first + second[0]) if first is not None and second else first
        prefix = update_prefix(r, stream.prefix, delta)  # [M, H]
        x = residual.mix(self.ctx, w, prefix, stream.blocks[:, : stream.saved])  # [M, H]
        if write:
            stream.blocks[:, stream.saved] = prefix
        return x, prefix

    def prepare(self, step: Step) -> tuple[GroupTensors, ...]:
        """See `StockOps`."""
        return tuple(step.parts())

    def attention(
        self,
        w: PackedKda | PackedMla,
        x: torch.Tensor,
        state: KdaState | KvCache,
        prepared: tuple[GroupTensors, ...],
    ) -> torch.Tensor:
        """See `StockOps`."""
        r = self.ctx.rounding
        attn = self._attend(w, x, state, prepared)  # [M, h d]
        partial = r.o_partial(attn @ w.o_proj.to(r.compute).T)  # [M, H]
        return r.reduced(self.ctx.comm.all_reduce(partial))

    def _attend(
        self,
        w: PackedKda | PackedMla,
        x: torch.Tensor,
        state: KdaState | KvCache,
        parts: tuple[GroupTensors, ...],
    ) -> torch.Tensor:
        """This rank's heads [M, h d], gated; each group by the form that suits it."""
        done = []
        match w, state:
            case PackedKda(), KdaState():
                projected = kda.project(self.ctx, w, x)
                for part in parts:
                    run = kda.window if part.group.kind is Kind.WINDOW else kda_prefill.prefill
                    done.append(run(self.ctx, w, projected[part.rows], state, part))
            case PackedMla(), KvCache():
                projected = mla.project(self.ctx, w, x)
                for part in parts:
                    attend = mla.window if part.group.kind is Kind.WINDOW else mla_prefill.prefill
                    done.append(attend(self.ctx, w, projected[part.rows], state, part))
            case _:
                raise ValueError("the caches were allocated for another model")
        return torch.cat(done)

    def ffn(
        self, w: PackedFfn | PackedMoe, y: torch.Tensor, prepared: tuple[GroupTensors, ...]
    ) -> tuple[torch.Tensor, ...]:
        """See `StockOps`."""
        ctx, r, comm = self.ctx, self.ctx.rounding, self.ctx.comm
        if isinstance(w, PackedFfn):
            return (r.reduced(comm.all_reduce(ffn.gated(ctx, w, y))),)
        ids, weights = moe.route(ctx, w, moe.logits(ctx, w, y))
        z = moe.latent(ctx, w, y)
        partial = moe.experts(ctx, w.experts, ids, weights, z)
        total = r.reduced_latent(comm.all_reduce(partial))
        shared = r.reduced(comm.all_reduce(ffn.gated(ctx, w.shared, y)))
        return moe.routed(ctx, w, total), shared

    def logits(self, hidden: torch.Tensor) -> torch.Tensor:
        """See `StockOps`."""
        own = ends.final_norm_logits(self.ctx, self.weights, hidden)  # [n, V / tp]
        return self.ctx.comm.all_gather(own, dim=1)
