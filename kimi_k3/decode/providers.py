# SPDX-License-Identifier: Apache-2.0
"""The operators of a planned step, and who provides each.

An operator is what one fused kernel computes. Its provider is the reference, plain PyTorch on any
device, or a kernel; kernels replace references one by one:

    dataclasses.replace(
        reference_providers(ctx, weights, comm), kda_core=Provider("kda-decode", run)
    )

Whoever provides an operator obeys its signature here and the semantics of the function of
`kimi_k3.operators` that its reference calls. R requests, q rows each, M = R q; H hidden width.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields
from typing import Generic, ParamSpec, TypeVar

import torch

from kimi_k3.decode.comm.interface import DecodeCommunicator, Site
from kimi_k3.operators import ends, ffn, kda, mla, moe, residual
from kimi_k3.packed import PackedFfn, PackedKda, PackedMix, PackedMla, PackedModel, PackedMoe
from kimi_k3.reference.attn_res import update_prefix
from kimi_k3.reference.context import Context
from kimi_k3.reference.state import KdaState, KvCache
from kimi_k3.step import GroupTensors

REFERENCE = "reference"

P = ParamSpec("P")
R = TypeVar("R")
Tensor = torch.Tensor
Pair = tuple[torch.Tensor, torch.Tensor]


@dataclass(frozen=True)
class Provider(Generic[P, R]):
    """Who computes an operator; called like the operator.

    Attributes:
        name: `reference`, or the kernel's name.
        run: the computation, see `Providers`.
    """

    name: str
    run: Callable[P, R]
    _calls: list[int] = field(default_factory=lambda: [0])

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Compute, and count the call."""
        self._calls[0] += 1
        return self.run(*args, **kwargs)

    @property
    def calls(self) -> int:
        """How often it has computed; replays of a captured graph are not calls."""
        return self._calls[0]


@dataclass(frozen=True)
class Providers:
    """One provider for each operator, in the order in which a step meets them."""

    embed: Provider[[Tensor], Tensor]
    """(ids [M]) -> [M, H], summed over ranks."""
    mix: Provider[[PackedMix, Tensor, Tensor | None, Tensor, Tensor | None], Pair]
    """(w, prefix [M, H], delta [M, H] or None, blocks [M, n, H], block [M, H] or None) -> x [M, H],
    new prefix [M, H]. Before attention, and once after the last layer; a layer that saves the new
    prefix as a block gives the place for it."""
    kda_in: Provider[[PackedKda, Tensor], Tensor]
    """(w, x [M, H]) -> projected [M, in_proj rows]."""
    kda_core: Provider[[PackedKda, Tensor, KdaState, GroupTensors], Tensor]
    """(w, projected, state, part) -> this rank's heads [M, W], gated; advances the state."""
    mla_in: Provider[[PackedMla, Tensor], Tensor]
    """(w, x [M, H]) -> projected [M, in_proj rows]."""
    mla_query: Provider[[PackedMla, Tensor, KvCache, GroupTensors], Pair]
    """(w, projected, cache, part) -> absorbed query [M, A, C + R], gate [M, A U]; inserts the
    step's KV rows."""
    mla_core: Provider[[Tensor, KvCache, GroupTensors], Tensor]
    """(query, cache, part) -> z [M, A, C], merged over the ranks that share the tokens."""
    mla_value: Provider[[PackedMla, Tensor, Tensor, GroupTensors], Tensor]
    """(w, z, gate, part) -> this rank's heads [M, A U], gated."""
    attention_out: Provider[[Tensor, Tensor, PackedMix, Tensor | None, Tensor], Pair]
    """(o_proj [H, h], heads [M, h], w, prefix [M, H] or None, blocks [M, n, H]) -> y [M, H], new
    prefix [M, H]: the projection, its sum over ranks, the prefix add (None right after a block
    write: the sum itself is the prefix) and the mix before the FFN."""
    dense: Provider[[PackedFfn, Tensor], Tensor]
    """(w, y [M, H]) -> delta [M, H], summed over ranks."""
    moe_front: Provider[[PackedMoe, Tensor], Pair]
    """(w, y [M, H]) -> router logits [M, E], z [M, L]."""
    moe_route: Provider[[PackedMoe, Tensor], Pair]
    """(w, logits) -> ids [M, k], weights [M, k]."""
    moe_experts: Provider[[PackedMoe, Tensor, Tensor, Tensor], Tensor]
    """(w, ids, weights, z) -> this rank's weighted latent [M, L]."""
    moe_shared: Provider[[PackedMoe, Tensor], Tensor]
    """(w, y) -> this rank's share of the shared experts [M, H]."""
    moe_tail: Provider[[PackedMoe, Tensor, Tensor], Tensor]
    """(w, latent partial, shared partial) -> delta [M, H]: both sums over ranks, the latent norm,
    the up-projection, and routed + shared."""
    head: Provider[[Tensor], Tensor]
    """(h [M, H]) -> logits [M, V] of all ranks' vocabulary: the last norm and the LM head."""

    def ran(self) -> Iterator[tuple[str, str]]:
        """Each operator that has computed, with the name of its provider."""
        for one in fields(self):
            provider = getattr(self, one.name)
            if provider.calls:
                yield one.name, provider.name


def attention_sum(ctx: Context, comm: DecodeCommunicator, o_proj: Tensor, heads: Tensor) -> Tensor:
    """What attention leaves [M, H]: the projection of heads [M, h], summed over ranks."""
    r = ctx.rounding
    partial = r.o_partial(heads @ o_proj.to(r.compute).T)
    return r.reduced(comm.at(Site.O_PROJ).all_reduce(partial))


def reference_providers(ctx: Context, weights: PackedModel, comm: DecodeCommunicator) -> Providers:
    """Plain PyTorch for every operator.

    Args:
        ctx: configuration and rounding, and this rank's place; what its operators exchange under
            context parallelism goes through `ctx.dcp`.
        weights: this rank's.
        comm: the ranks of planned steps.
    """
    r = ctx.rounding

    def embed(ids: Tensor) -> Tensor:
        return r.embedding(comm.at(Site.EMBED).all_reduce(ends.embed(ctx, weights, ids)))

    def mix(
        w: PackedMix, prefix: Tensor, delta: Tensor | None, blocks: Tensor, block: Tensor | None
    ) -> Pair:
        updated = update_prefix(r, prefix, delta)
        if block is not None:
            block.copy_(updated)
        return residual.mix(ctx, w, updated, blocks), updated

    def mla_query(w: PackedMla, projected: Tensor, cache: KvCache, part: GroupTensors) -> Pair:
        query, row, gate = mla.query(ctx, w, projected)
        mla.insert(ctx, row, cache, part)
        return query, gate

    def attention_out(
        o_proj: Tensor, heads: Tensor, w: PackedMix, prefix: Tensor | None, blocks: Tensor
    ) -> Pair:
        total = attention_sum(ctx, comm, o_proj, heads)
        if prefix is None:
            return mix(w, total, None, blocks, None)
        return mix(w, prefix, total, blocks, None)

    def dense(w: PackedFfn, y: Tensor) -> Tensor:
        return r.reduced(comm.at(Site.FFN).all_reduce(ffn.gated(ctx, w, y)))

    def moe_tail(w: PackedMoe, latent: Tensor, shared: Tensor) -> Tensor:
        total = r.reduced_latent(comm.at(Site.LATENT).all_reduce(latent))
        everywhere = r.reduced(comm.at(Site.SHARED).all_reduce(shared))
        return moe.finish(ctx, w, total, everywhere)

    def head(hidden: Tensor) -> Tensor:
        own = ends.final_norm_logits(ctx, weights, hidden)
        return comm.at(Site.LOGITS).all_gather(own, dim=1)

    return Providers(
        embed=Provider(REFERENCE, embed),
        mix=Provider(REFERENCE, mix),
        kda_in=Provider(REFERENCE, lambda w, x: kda.project(ctx, w, x)),
        kda_core=Provider(REFERENCE, lambda w, p, state, part: kda.window(ctx, w, p, state, part)),
        mla_in=Provider(REFERENCE, lambda w, x: mla.project(ctx, w, x)),
        mla_query=Provider(REFERENCE, mla_query),
        mla_core=Provider(REFERENCE, lambda query, cache, part: mla.core(ctx, query, cache, part)),
        mla_value=Provider(REFERENCE, lambda w, z, gate, part: mla.value(ctx, w, z, gate, part)),
        attention_out=Provider(REFERENCE, attention_out),
        dense=Provider(REFERENCE, dense),
        moe_front=Provider(REFERENCE, lambda w, y: (moe.logits(ctx, w, y), moe.latent(ctx, w, y))),
        moe_route=Provider(REFERENCE, lambda w, logits: moe.route(ctx, w, logits)),
        moe_experts=Provider(
            REFERENCE, lambda w, ids, weights, z: moe.experts(ctx, w.experts, ids, weights, z)
        ),
        moe_shared=Provider(REFERENCE, lambda w, y: ffn.gated(ctx, w.shared, y)),
        moe_tail=Provider(REFERENCE, moe_tail),
        head=Provider(REFERENCE, head),
    )
