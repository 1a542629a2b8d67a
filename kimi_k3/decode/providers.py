# SPDX-License-Identifier: Apache-2.0
"""The operators of a planned step, and who provides each.

An operator is what one fused kernel computes. Its provider is the reference, plain PyTorch on any
device, or a kernel; kernels replace references one by one:

    dataclasses.replace(reference_providers(ctx, weights), kda_core=Provider("kda-decode", run))

Whoever provides an operator obeys its signature here and the semantics of the function of
`kimi_k3.operators` that its reference calls. R requests, q rows each, M = R q; H hidden width.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from typing import Generic, TypeVar

import torch

from kimi_k3.operators import ends, ffn, kda, mla, moe, residual
from kimi_k3.packed import PackedFfn, PackedKda, PackedMix, PackedMla, PackedModel, PackedMoe
from kimi_k3.reference.context import Context
from kimi_k3.reference.state import KdaState, KvCache
from kimi_k3.step import GroupTensors

REFERENCE = "reference"

Run = TypeVar("Run", bound=Callable[..., object])
Tensor = torch.Tensor
Pair = tuple[torch.Tensor, torch.Tensor]


@dataclass(frozen=True)
class Provider(Generic[Run]):
    """Who computes an operator.

    Attributes:
        name: `reference`, or the kernel's name.
        run: the computation, see `Providers`.
    """

    name: str
    run: Run


@dataclass(frozen=True)
class Providers:
    """One provider for each operator, in the order in which a step meets them."""

    embed: Provider[Callable[[Tensor], Tensor]]
    """(ids [M]) -> [M, H], summed over ranks."""
    mix: Provider[Callable[[PackedMix, Tensor, Tensor | None, Tensor], Pair]]
    """(w, prefix [M, H], delta [M, H] or None, blocks [M, n, H]) -> x [M, H], new prefix [M, H].
    Before attention, and once after the last layer."""
    kda_in: Provider[Callable[[PackedKda, Tensor], Tensor]]
    """(w, x [M, H]) -> projected [M, in_proj rows]."""
    kda_core: Provider[Callable[[PackedKda, Tensor, KdaState, GroupTensors], Tensor]]
    """(w, projected, state, part) -> this rank's heads [M, W], gated; advances the state."""
    mla_in: Provider[Callable[[PackedMla, Tensor], Tensor]]
    """(w, x [M, H]) -> projected [M, in_proj rows]."""
    mla_query: Provider[Callable[[PackedMla, Tensor, KvCache, GroupTensors], Pair]]
    """(w, projected, cache, part) -> absorbed query [M, A, C + R], gate [M, A U]; inserts the
    step's KV rows."""
    mla_core: Provider[Callable[[Tensor, KvCache, GroupTensors], Tensor]]
    """(query, cache, part) -> z [M, A, C], merged over the ranks that share the tokens."""
    mla_value: Provider[Callable[[PackedMla, Tensor, Tensor, GroupTensors], Tensor]]
    """(w, z, gate, part) -> this rank's heads [M, A U], gated."""
    attention_out: Provider[
        Callable[[Tensor, Tensor, PackedMix, Tensor | None, Tensor], Pair]
    ]
    """(o_proj [H, h], heads [M, h], w, prefix [M, H] or None, blocks [M, n, H]) -> y [M, H], new
    prefix [M, H]: the projection, its sum over ranks, the prefix add (None right after a block
    write: the sum itself is the prefix) and the mix before the FFN."""
    dense: Provider[Callable[[PackedFfn, Tensor], Tensor]]
    """(w, y [M, H]) -> delta [M, H], summed over ranks."""
    moe_front: Provider[Callable[[PackedMoe, Tensor], Pair]]
    """(w, y [M, H]) -> router logits [M, E], z [M, L]."""
    moe_route: Provider[Callable[[PackedMoe, Tensor], Pair]]
    """(w, logits) -> ids [M, k], weights [M, k]."""
    moe_experts: Provider[Callable[[PackedMoe, Tensor, Tensor, Tensor], Tensor]]
    """(w, ids, weights, z) -> this rank's weighted latent [M, L]."""
    moe_shared: Provider[Callable[[PackedMoe, Tensor], Tensor]]
    """(w, y) -> this rank's share of the shared experts [M, H]."""
    moe_tail: Provider[Callable[[PackedMoe, Tensor, Tensor], Tensor]]
    """(w, latent partial, shared partial) -> delta [M, H]: both sums over ranks, the latent norm,
    the up-projection, and routed + shared."""
    head: Provider[Callable[[Tensor], Tensor]]
    """(h [M, H]) -> logits [M, V] of all ranks' vocabulary: the last norm and the LM head."""

    def items(self) -> Iterator[tuple[str, str]]:
        """Each operator with the name of its provider."""
        for field in fields(self):
            yield field.name, getattr(self, field.name).name


def reference_providers(ctx: Context, weights: PackedModel) -> Providers:
    """Plain PyTorch for every operator.

    Args:
        ctx: configuration, rounding, and the communicator of planned steps.
        weights: this rank's.
    """
    r, comm = ctx.rounding, ctx.comm

    def embed(ids: Tensor) -> Tensor:
        return r.embedding(comm.all_reduce(ends.embed(ctx, weights, ids)))

    def mix(w: PackedMix, prefix: Tensor, delta: Tensor | None, blocks: Tensor) -> Pair:
        updated = residual.update_prefix(r, prefix, delta)
        return residual.mix(ctx, w, updated, blocks), updated

    def mla_query(w: PackedMla, projected: Tensor, cache: KvCache, part: GroupTensors) -> Pair:
        query, row, gate = mla.query(ctx, w, projected)
        mla.insert(ctx, row, cache, part)
        return query, gate

    def attention_out(
        o_proj: Tensor, heads: Tensor, w: PackedMix, prefix: Tensor | None, blocks: Tensor
    ) -> Pair:
        partial = r.o_partial(heads @ o_proj.to(r.compute).T)
        total = r.reduced(comm.all_reduce(partial))
        return mix(w, total, None, blocks) if prefix is None else mix(w, prefix, total, blocks)

    def dense(w: PackedFfn, y: Tensor) -> Tensor:
        return r.reduced(comm.all_reduce(ffn.gated(ctx, w, y)))

    def moe_tail(w: PackedMoe, latent: Tensor, shared: Tensor) -> Tensor:
        total = r.reduced_latent(comm.all_reduce(latent))
        return moe.finish(ctx, w, total, r.reduced(comm.all_reduce(shared)))

    def head(hidden: Tensor) -> Tensor:
        return comm.all_gather(ends.final_norm_logits(ctx, weights, hidden), dim=1)

    return Providers(
        embed=Provider(REFERENCE, embed),
        mix=Provider(REFERENCE, mix),
        kda_in=Provider(REFERENCE, lambda w, x: kda.project(ctx, w, x)),
        kda_core=Provider(REFERENCE, lambda w, p, state, part: kda.window(ctx, w, p, state, part)),
        mla_in=Provider(REFERENCE, lambda w, x: mla.project(ctx, w, x)),
        mla_query=Provider(REFERENCE, mla_query),
        mla_core=Provider(REFERENCE, lambda query, cache, part: mla.core(ctx, query, cache, part)),
        mla_value=Provider(
            REFERENCE, lambda w, z, gate, part: mla.value(ctx, w, z, gate, part)
        ),
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
