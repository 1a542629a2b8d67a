# SPDX-License-Identifier: Apache-2.0
"""The stock path on a GPU: cuBLAS, fla-core's recurrence, fused Triton kernels around them.

Values are BF16 between operations, as the stock column of spec 2.8 says. All of a decode step can
be captured into a CUDA graph; prefills allocate and are not captured. The shared experts run on a
side stream beside the routed ones.
"""

from dataclasses import dataclass, field
from functools import cached_property

import torch

from kimi_k3.operators.ends import stored_rows
from kimi_k3.packed import PackedFfn, PackedKda, PackedMix, PackedMla, PackedModel, PackedMoe
from kimi_k3.reference.context import Context
from kimi_k3.reference.state import KdaState, KvCache
from kimi_k3.sharding import Sharding
from kimi_k3.step import Kind, Step
from kimi_k3.stock.cuda import expert_plan, expert_sum, experts, kda, mla_layer
from kimi_k3.stock.cuda.expert_tiles import tiles_for
from kimi_k3.stock.cuda.mix import mix
from kimi_k3.stock.cuda.norm import rms_norm
from kimi_k3.stock.cuda.prepared import Prepared, prepare
from kimi_k3.stock.cuda.route import route
from kimi_k3.stock.cuda.situ import situ
from kimi_k3.stock.ops import Residual, SumsAndNorms

DECODE_ROWS = 64
"""Up to here experts are planned in one launch that can be captured."""


@dataclass(frozen=True)
class CudaOps:
    """See `StockOps`.

    Attributes:
        ctx: configuration and ranks; the rounding is the stock path's, whatever `ctx` says.
        weights: this rank's, on the GPU.
    """

    ctx: Context
    weights: PackedModel
    _wide: dict[int, bool] = field(default_factory=dict)

    def __post_init__(self) -> None:
        # Whether scales are extreme is read once here: a captured step can not look.
        for layer in self.weights.layers:
            if isinstance(layer.ffn, PackedMoe):
                w = layer.ffn.experts
                wide = experts.has_wide_scales(w.w13_scale) or experts.has_wide_scales(w.w2_scale)
                self._wide[id(w)] = wide

    @cached_property
    def _sharding(self) -> Sharding:
        return Sharding(self.ctx.config, self.ctx.comm.size, self.ctx.comm.rank)

    @cached_property
    def _side(self) -> torch.cuda.Stream:
        return torch.cuda.Stream(self.weights.final_mix.score.device)

    def prepare(self, step: Step) -> Prepared:
        """See `StockOps`."""
        return prepare(step)

    def embed(self, token_ids: torch.Tensor) -> torch.Tensor:
        """See `StockOps`."""
        return self.ctx.comm.all_reduce(stored_rows(self.ctx, self.weights, token_ids))

    def blocks(self, rows: int) -> torch.Tensor:
        """See `StockOps`."""
        c = self.ctx.config
        size = (rows, c.num_blocks, c.hidden_size)
        return torch.empty(size, dtype=torch.bfloat16, device=self.weights.final_mix.score.device)

    def mix(
        self, w: PackedMix, stream: Residual, *, write: bool
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """See `StockOps`."""
        x, prefix = torch.empty_like(stream.prefix), stream.prefix
        updated = torch.empty_like(prefix) if stream.pending else None
        mix(
            x,
            prefix,
            stream.pending,
            stream.blocks,
            stream.saved,
            score=w.score,
            norm=w.norm,
            eps=self.ctx.config.rms_norm_eps,
            prefix_out=updated,
            write=write,
        )
        return x, prefix if updated is None else updated

    def attention(
        self,
        w: PackedKda | PackedMla,
        x: torch.Tensor,
        state: KdaState | KvCache,
        prepared: Prepared,
    ) -> torch.Tensor:
        """See `StockOps`."""
        projected = x @ w.in_proj.T  # [M, rows]
        attn = x.new_empty(len(x), w.o_proj.shape[1])  # [M, h d]
        for part in prepared.parts:
            window = part.group.kind is Kind.WINDOW
            own, out = projected[part.rows], attn[part.rows]
            match w, state:
                case PackedKda(), KdaState():
                    (kda.window if window else kda.prefill)(
                        self.ctx.config, w, own, state, part, out
                    )
                case PackedMla(), KvCache():
                    (mla_layer.window if window else mla_layer.prefill)(
                        self.ctx, w, own, state, part, out
                    )
                case _:
                    raise ValueError("the caches were allocated for another model")
        return self.ctx.comm.all_reduce(attn @ w.o_proj.T)

    def ffn(
        self, w: PackedFfn | PackedMoe, y: torch.Tensor, prepared: Prepared
    ) -> tuple[torch.Tensor, ...]:
        """See `StockOps`."""
        if isinstance(w, PackedFfn):
            return (self._gated(w, y),)
        here = torch.cuda.current_stream(y.device)
        self._side.wait_stream(here)
        with torch.cuda.stream(self._side):
            shared = self._gated(w.shared, y)
        routed = self._routed(w, y, prepared)
        # What the side stream does next waits for this stream, so that nothing takes the memory
        # of `shared` before it is read.
        here.wait_stream(self._side)
        return routed, shared

    def _gated(self, w: PackedFfn, y: torch.Tensor) -> torch.Tensor:
        """A gated FFN [M, H] of y [M, H], summed over ranks."""
        c = self.ctx.config
        gate_up = y @ w.gate_up.T  # [M, 2 F]
        hidden = y.new_empty(len(y), w.down.shape[1])  # [M, F]
        situ(hidden, gate_up, c.situ_beta, c.situ_linear_beta)
        return self.ctx.comm.all_reduce(hidden @ w.down.T)

    def _routed(self, w: PackedMoe, y: torch.Tensor, prepared: Prepared) -> torch.Tensor:
        """The routed half [M, H]."""
        c, rows = self.ctx.config, len(y)
        # One product for router and latent, in FP32: the router's logits must not be rounded.
        front = torch.mm(y, w.front.T, out_dtype=torch.float32)  # [M, E + L]
        ids = torch.empty(rows, c.num_experts_per_tok, dtype=torch.int32, device=y.device)
        weights = torch.empty_like(ids, dtype=torch.float32)  # [M, k]
        z = y.new_empty(rows, c.routed_expert_hidden_size)  # [M, L]
        route(
            ids,
            weights,
            front[:, : c.num_experts],
            w.correction_bias,
            scaling=c.routed_scaling_factor,
            normalize=c.norm_topk_prob,
            latent=front[:, c.num_experts :],
            latent_out=z,
        )
        partial = self._experts(w, ids, weights, z, prepared)  # [M, L]
        return self._latent_sum(w, partial) @ w.latent_up.T

    def _experts(
        self,
        w: PackedMoe,
        ids: torch.Tensor,
        weights: torch.Tensor,
        z: torch.Tensor,
        prepared: Prepared,
    ) -> torch.Tensor:
        """This rank's weighted latent [M, L]."""
        c, rows, pairs = self.ctx.config, len(z), ids.numel()
        wide, live = self._wide[id(w.experts)], self._sharding.expert_width
        tiles = tiles_for(rows, live)
        if tiles.by_pair:
            plan = expert_plan.ExpertPlan.by_pair(ids, tiles.tokens)
        elif rows <= DECODE_ROWS:
            plan = expert_plan.ExpertPlan.empty(pairs, tiles.tokens, z.device)
            expert_plan.plan_pairs(ids, prepared.row_lengths, 1, plan)
        else:
            plan = expert_plan.plan_sorted(ids, c.num_experts, tiles.tokens)
        hidden = z.new_empty(pairs, self._sharding.expert_partition)
        experts.gate_up(
            z,
            w.experts,
            plan,
            hidden,
            tiles.gate_up[0],
            live=live,
            beta=c.situ_beta,
            linear_beta=c.situ_linear_beta,
            wide=wide,
        )
        partial, down_tile = torch.empty_like(z), tiles.down[0]
        if tiles.by_pair:
            expert_sum.down_sum(
                weights,
                hidden,
                w.experts,
                ids,
                prepared.row_lengths,
                partial,
                down_tile,
                live=live,
                wide=wide,
            )
        else:
            out = z.new_empty(pairs, z.shape[1])
            experts.down(hidden, w.experts, plan, out, down_tile, live=live, wide=wide)
            expert_sum.weighted_sum(weights, out, prepared.row_lengths, 1, partial)
        return partial

    def _latent_sum(self, w: PackedMoe, partial: torch.Tensor) -> torch.Tensor:
        """RMSNorm of the latent [M, L] summed over ranks."""
        comm, eps = self.ctx.comm, self.ctx.config.rms_norm_eps
        if isinstance(comm, SumsAndNorms):
            return comm.all_reduce_norm(partial, w.latent_norm, eps)
        normed = torch.empty_like(partial)
        rms_norm(normed, comm.all_reduce(partial), w.latent_norm, eps)
        return normed

    def logits(self, hidden: torch.Tensor) -> torch.Tensor:
        """See `StockOps`."""
        normed = torch.empty_like(hidden)
        rms_norm(normed, hidden, self.weights.norm, self.ctx.config.rms_norm_eps)
        return self.ctx.comm.all_gather(normed @ self.weights.lm_head.T, dim=1)
