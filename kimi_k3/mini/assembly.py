# SPDX-License-Identifier: Apache-2.0
"""A rank with prepared weights: every operator but the embedding is replaced, unit by unit.

The executor, its caches, its planner and the stock path under it stay as they are; the stock path
goes on reading the packed weights.
"""

from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import TypeVar

import torch

from kimi_k3.decode.comm.interface import DecodeCommunicator, Site
from kimi_k3.decode.executor import Executor
from kimi_k3.decode.providers import Pair, Provider, Providers
from kimi_k3.mini import experts, ffn, head, kda, mla, residual, router
from kimi_k3.mini.cast import cast
from kimi_k3.mini.windows import Pages, Windows
from kimi_k3.packed import (
    PackedFfn,
    PackedKda,
    PackedLayer,
    PackedMix,
    PackedMla,
    PackedModel,
    PackedMoe,
)
from kimi_k3.reference.context import Context
from kimi_k3.reference.state import KdaState, KvCache
from kimi_k3.step import GroupTensors

T = TypeVar("T")


@dataclass(frozen=True)
class PreparedMoe(PackedMoe):
    """A MoE layer; `front`, `experts` and the latent's weights are the packed ones, not copies."""

    y_reader: router.Front
    routed: experts.Experts


@dataclass(frozen=True)
class PreparedModel(PackedModel):
    """A rank's weights; the table of the embedding and `lm_head` are the packed ones."""

    last: head.Head


def prepared(executor: Executor, ctx: Context) -> Executor:
    """The same executor over prepared weights and operators.

    Args:
        executor: one rank's, with reference providers.
        ctx: what its reference providers compute with.

    Raises:
        ValueError: the tokens of a cache are spread over ranks, which the gate refuses.
    """
    if ctx.dcp.size > 1:
        raise ValueError(f"prepared operators hold all tokens; saw dcp {ctx.dcp.size}")
    weights = prepare(executor.weights, executor.compute)
    operators = prepared_providers(ctx, weights, executor.comm, executor.operators)
    return replace(executor, weights=weights, operators=operators)


def prepare(weights: PackedModel, dtype: torch.dtype) -> PreparedModel:
    """Everything that a step would otherwise convert or decode."""
    return PreparedModel(
        weights.embed_tokens,
        tuple(_layer(layer, dtype) for layer in weights.layers),
        cast(weights.final_mix, dtype),
        weights.norm,
        weights.lm_head,
        head.prepare(weights, dtype),
    )


def _layer(w: PackedLayer, dtype: torch.dtype) -> PackedLayer:
    attention = w.attention
    return PackedLayer(
        cast(w.attention_mix, dtype),
        kda.prepare(attention, dtype)
        if isinstance(attention, PackedKda)
        else cast(attention, dtype),
        cast(w.ffn_mix, dtype),
        _moe(w.ffn, dtype) if isinstance(w.ffn, PackedMoe) else cast(w.ffn, dtype),
    )


def _moe(w: PackedMoe, dtype: torch.dtype) -> PreparedMoe:
    return PreparedMoe(
        w.front,
        w.correction_bias,
        w.latent_norm,
        w.latent_up,
        cast(w.shared, dtype),
        w.experts,
        router.prepare(w, dtype),
        experts.prepare(w, dtype),
    )


def prepared_providers(
    ctx: Context, weights: PreparedModel, comm: DecodeCommunicator, others: Providers
) -> Providers:
    """Every operator that has something to prepare.

    Args:
        ctx: constants and rounding.
        weights: this rank's; planned steps must read the same.
        comm: the ranks of planned steps.
        others: who provides the rest.
    """
    windows = Windows(ctx.config)
    residuals = _residual(ctx, comm, others)
    attention = _mla(ctx, windows, _kda(ctx, windows, residuals))
    return _head(ctx, weights, comm, _ffn(ctx, comm, attention))


def _residual(ctx: Context, comm: DecodeCommunicator, others: Providers) -> Providers:
    r, name = ctx.rounding, "prepared-residual"

    def attention_out(
        o_proj: torch.Tensor,
        heads: torch.Tensor,
        w: PackedMix,
        prefix: torch.Tensor | None,
        blocks: torch.Tensor,
    ) -> Pair:
        share = residual.out_partial(ctx, o_proj, heads)
        total = r.reduced(comm.at(Site.O_PROJ).all_reduce(share))
        if prefix is None:
            return residual.mix(ctx, w, total, None, blocks)
        return residual.mix(ctx, w, prefix, total, blocks)

    def mix(
        w: PackedMix,
        prefix: torch.Tensor,
        delta: torch.Tensor | None,
        blocks: torch.Tensor,
        block: torch.Tensor | None,
    ) -> Pair:
        mixed, updated = residual.mix(ctx, w, prefix, delta, blocks)
        if block is not None:
            block.copy_(updated)
        return mixed, updated

    return replace(
        others,
        mix=Provider(name, mix),
        attention_out=Provider(name, attention_out),
    )


def _kda(ctx: Context, windows: Windows, others: Providers) -> Providers:
    name, kind = "prepared-kda", kda.PreparedKda

    def core(
        w: PackedKda, projected: torch.Tensor, state: KdaState, part: GroupTensors
    ) -> torch.Tensor:
        return kda.core(ctx, of(kind, w), projected, state, windows.of(part))

    return replace(
        others,
        kda_in=Provider(name, lambda w, x: kda.project(ctx, of(kind, w), x)),
        kda_core=Provider(name, core),
    )


def _mla(ctx: Context, windows: Windows, others: Providers) -> Providers:
    name = "prepared-mla"

    def pages(cache: KvCache, part: GroupTensors) -> Pages:
        return windows.pages_of(part, cache.pages.shape[1])

    def query(w: PackedMla, projected: torch.Tensor, cache: KvCache, part: GroupTensors) -> Pair:
        return mla.query(ctx, w, projected, cache, pages(cache, part))

    def core(query: torch.Tensor, cache: KvCache, part: GroupTensors) -> torch.Tensor:
        return mla.core(ctx, query, cache, pages(cache, part))

    def value(
        w: PackedMla, z: torch.Tensor, gate: torch.Tensor, part: GroupTensors
    ) -> torch.Tensor:
        return mla.value(ctx, w, z, gate, windows.of(part))

    return replace(
        others,
        mla_in=Provider(name, lambda w, x: mla.project(ctx, w, x)),
        mla_query=Provider(name, query),
        mla_core=Provider(name, core),
        mla_value=Provider(name, value),
    )


def _ffn(ctx: Context, comm: DecodeCommunicator, others: Providers) -> Providers:
    r = ctx.rounding

    def dense(w: PackedFfn, y: torch.Tensor) -> torch.Tensor:
        return r.reduced(comm.at(Site.FFN).all_reduce(ffn.gated(ctx, w, y)))

    def front(w: PackedMoe, y: torch.Tensor) -> Pair:
        return router.front(ctx, of(PreparedMoe, w).y_reader, y)

    def routed(
        w: PackedMoe, ids: torch.Tensor, picked: torch.Tensor, z: torch.Tensor
    ) -> torch.Tensor:
        return experts.experts(ctx, of(PreparedMoe, w).routed, ids, picked, z)

    def tail(w: PackedMoe, latent: torch.Tensor, shared: torch.Tensor) -> torch.Tensor:
        total = r.reduced_latent(comm.at(Site.LATENT).all_reduce(latent))
        everywhere = r.reduced(comm.at(Site.SHARED).all_reduce(shared))
        return experts.tail(ctx, of(PreparedMoe, w).routed, total, everywhere)

    return replace(
        others,
        dense=Provider("prepared-ffn", dense),
        moe_front=Provider("prepared-router", front),
        moe_route=Provider(
            "prepared-router", lambda w, logits: router.route(ctx, w.correction_bias, logits)
        ),
        moe_experts=Provider("prepared-experts", routed),
        moe_shared=Provider("prepared-ffn", lambda w, y: ffn.gated(ctx, w.shared, y)),
        moe_tail=Provider("prepared-experts", tail),
    )


def _head(
    ctx: Context, weights: PreparedModel, comm: DecodeCommunicator, others: Providers
) -> Providers:
    def last(hidden: torch.Tensor) -> torch.Tensor:
        own = head.logits(ctx, weights.last, hidden)
        return comm.at(Site.LOGITS).all_gather(own, dim=1)

    return replace(others, head=Provider("prepared-head", last))


def of(kind: type[T], w: object) -> T:
    """`w`, which preparation has made a `kind`.

    Raises:
        TypeError: it is not prepared.
    """
    if not isinstance(w, kind):
        raise TypeError(f"{type(w).__name__} is not prepared; want {kind.__name__}")
    return w


def tensors(record: object) -> Iterator[torch.Tensor]:
    """Every tensor of a record of weights."""
    if isinstance(record, torch.Tensor):
        yield record
    elif isinstance(record, tuple):
        for item in record:
            yield from tensors(item)
    elif is_dataclass(record):
        for field in fields(record):
            yield from tensors(getattr(record, field.name))


def added_bytes(weights: PackedModel, ready: PreparedModel) -> int:
    """What preparation costs: bytes that the prepared weights hold beside the packed ones."""
    seen = {tensor.untyped_storage().data_ptr() for tensor in tensors(weights)}
    added: dict[int, int] = {}
    for tensor in tensors(ready):
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in seen:
            added[storage.data_ptr()] = storage.nbytes()
    return sum(added.values())
