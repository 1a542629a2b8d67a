# SPDX-License-Identifier: Apache-2.0
"""Multi-head latent attention of the stock path between its two projections (spec 2.5, 3.3).

Windows are absorbed: all heads attend to one cached row per token. Prefills give each head keys and
values of its own, from the cached rows, and use PyTorch's fused attention.
"""

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention

from kimi_k3.operators.mla_prefill import cached_rows
from kimi_k3.packed import PackedMla
from kimi_k3.reference.context import Context
from kimi_k3.reference.mla import merge
from kimi_k3.reference.state import KvCache
from kimi_k3.stock.cuda.mla import Workspace, attend, gate_values, splits_for
from kimi_k3.stock.cuda.mla_insert import Shard, insert
from kimi_k3.stock.cuda.prepared import Part


def window(
    ctx: Context,
    w: PackedMla,
    projected: torch.Tensor,
    cache: KvCache,
    part: Part,
    out: torch.Tensor,
) -> None:
    """This rank's heads of windows, gated; appends to the cache.

    Args:
        ctx: constants and ranks.
        w: the layer's weights.
        projected: [M, in_proj rows] BF16.
        cache: pages; the positions of the live requests of `part` are written.
        part: R requests of M / R rows each.
        out: [M, A U] BF16, written; zero for padding.
    """
    c, nope = ctx.config, ctx.config.qk_nope_head_dim
    heads = _queries(ctx, w, projected, cache, part)  # [M, A, P + R]
    query = heads.new_empty(*heads.shape[:2], c.kv_row)  # [M, A, C + R]
    torch.bmm(
        heads[..., :nope].transpose(0, 1),
        w.w_uk,
        out=query[..., : c.kv_lora_rank].transpose(0, 1),
    )
    query[..., c.kv_lora_rank :] = heads[..., nope:]
    z = _attend(ctx, query, cache, part)  # [M, A, C]
    o = torch.bmm(z.transpose(0, 1), w.w_uv.transpose(1, 2)).transpose(0, 1)  # [M, A, U]
    gate_values(o, _gate(ctx, w, projected), part.lengths, part.group.rows, out)


def prefill(
    ctx: Context,
    w: PackedMla,
    projected: torch.Tensor,
    cache: KvCache,
    part: Part,
    out: torch.Tensor,
) -> None:
    """The same for prefills; earlier chunks are read from the cache."""
    c, rows, requests = ctx.config, part.group.rows, part.group.requests
    heads = _queries(ctx, w, projected, cache, part)  # [M, A, P + R]
    cached = cached_rows(ctx, cache, part, heads.dtype)[:, : part.context]  # [R, n, C + R]
    latent, extra = cached.split([c.kv_lora_rank, c.qk_rope_head_dim], dim=2)
    key, value = (
        (latent @ half.flatten(0, 1).T).unflatten(2, half.shape[:2]).transpose(1, 2)
        for half in (w.w_uk, w.w_uv)
    )  # [R, A, n, P], [R, A, n, U]
    key = torch.cat([key, extra[:, None].expand(-1, key.shape[1], -1, -1)], dim=3)
    query = heads.unflatten(0, (requests, rows)).transpose(1, 2)  # [R, A, T, P + R]
    token = torch.arange(cached.shape[1], device=out.device)  # [n]
    last = part.lengths[:, None] - rows + torch.arange(rows, device=out.device)  # [R, T]
    seen = token <= last[:, None, :, None]  # [R, 1, T, n]
    with sdpa_kernel(SDPBackend.EFFICIENT_ATTENTION):  # another one would store all scores
        o = scaled_dot_product_attention(query, key, value, seen, scale=c.mla_softmax_scale)
    gate_values(o.transpose(1, 2).flatten(0, 1), _gate(ctx, w, projected), part.lengths, rows, out)


def _queries(
    ctx: Context, w: PackedMla, projected: torch.Tensor, cache: KvCache, part: Part
) -> torch.Tensor:
    """The query heads [M, A, P + R]; inserts the step's rows into the cache."""
    qa = projected.new_empty(len(projected), len(w.q_a_layernorm))
    insert(
        projected,
        w.q_a_layernorm,
        w.kv_a_layernorm,
        qa,
        cache.pages,
        part.block_table,
        part.lengths,
        part.group.rows,
        eps=ctx.config.rms_norm_eps,
        k_scale=cache.k_scale,
        shard=_shard(ctx, cache),
    )
    return (qa @ w.q_b_proj.T).unflatten(1, (-1, ctx.config.qk_head_dim))


def _attend(ctx: Context, query: torch.Tensor, cache: KvCache, part: Part) -> torch.Tensor:
    """The z [M, A, C] of this rank's heads, from all ranks' tokens."""
    dcp, own = ctx.dcp, query.shape[1]
    everyone = dcp.all_gather(query, dim=1) if dcp.size > 1 else query  # [M, heads, C + R]
    m, heads, _ = everyone.shape
    latent = ctx.config.kv_lora_rank
    z, lse = query.new_empty(m, heads, latent), query.new_empty(m, heads, dtype=torch.float32)
    processors = torch.cuda.get_device_properties(query.device).multi_processor_count
    held = -(-part.context // dcp.size)
    splits = splits_for(part.group.requests, part.group.rows * heads, held, processors)
    attend(
        everyone,
        cache.pages,
        part.block_table,
        part.lengths,
        part.group.rows,
        z,
        lse,
        Workspace.empty(splits, everyone, cache.pages, latent),
        scale=ctx.config.mla_softmax_scale,
        q_scale=cache.q_scale,
        k_scale=cache.k_scale,
        shard=_shard(ctx, cache),
    )
    if dcp.size == 1:
        return z
    mine = slice(dcp.rank * own, (dcp.rank + 1) * own)
    parts = dcp.all_gather(z[None], dim=0)[:, :, mine]  # [ranks, M, A, C]
    lses = dcp.all_gather(lse[None], dim=0)[:, :, mine]
    return merge(parts.float(), lses)[0].to(z.dtype)


def _shard(ctx: Context, cache: KvCache) -> Shard:
    """Which tokens are in this rank's cache."""
    return Shard(ctx.dcp.size, ctx.dcp.rank, cache.interleave)


def _gate(ctx: Context, w: PackedMla, projected: torch.Tensor) -> torch.Tensor:
    """The output gate's logits [M, A U]."""
    before = len(w.q_a_layernorm) + ctx.config.kv_row
    return projected[:, before : before + w.o_proj.shape[1]]
