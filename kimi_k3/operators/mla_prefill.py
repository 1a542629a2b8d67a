# SPDX-License-Identifier: Apache-2.0
"""Multi-head latent attention of prompts, unabsorbed: each head has keys and values of its own.

    key_j | value_j = W_UK c_j | W_UV c_j           per head, from the *cached* row c_j | kr_j
    score_tj        = scale ( qn_t . key_j + qr_t . kr_j )      j <= t
    o_t             = sum_j softmax(score)_tj value_j

This is the algebra of `mla` with fewer products per pair of tokens. Keys come from the cache also
for the prompt's own tokens, so that a prompt may be split anywhere and decode sees the same rows.
Rounding differs from decode: here keys and values are rounded (`projection`), there ql and z
(`mla_absorbed`, `mla_latent`). An FP8 cache quantises rows alike in both, but only decode
quantises the query: prefill is then the more exact of the two, and they agree to FP8's precision.

Rounding points: `projection`, `mla_normed`, `mla_query`, `mla_value`, `attn_out`.
"""

import torch
from torch.nn.functional import pad, scaled_dot_product_attention

from kimi_k3.operators.linear import linear
from kimi_k3.operators.mla import gated_output, held, insert, latents, read_rows
from kimi_k3.packed import PackedMla
from kimi_k3.reference.context import Context
from kimi_k3.reference.state import KvCache
from kimi_k3.step import GroupTensors


def prefill(
    ctx: Context,
    w: PackedMla,
    projected: torch.Tensor,
    cache: KvCache,
    part: GroupTensors,
) -> torch.Tensor:
    """The gated output of this rank's heads for a group of prompts; appends to `cache`.

    Args:
        ctx: constants and rounding.
        w: the layer's weights.
        projected: [M, rows of `in_proj`] of the group's own rows.
        cache: earlier chunks are read from it.
        part: the group. Columns of the block table bound the work, as in `mla`.

    Returns:
        [M, A U]; zeros for padding.
    """
    c, r = ctx.config, ctx.rounding
    y = latents(ctx, w, projected)
    insert(ctx, y.row, cache, part)
    latent, extra = cached_rows(ctx, cache, part, y.row.dtype).split(
        [c.kv_lora_rank, c.qk_rope_head_dim], dim=2
    )
    key, values = (
        r.projection(linear(latent, half.flatten(0, 1)))
        .unflatten(2, half.shape[:2])
        .transpose(1, 2)
        .contiguous()
        for half in (w.w_uk, w.w_uv)
    )  # [R, A, n, nope], [R, A, n, U]
    keys = torch.cat([key, extra[:, None].expand(-1, key.shape[1], -1, -1)], dim=3)
    heads = torch.cat([y.qn, y.qr], dim=2) * c.mla_softmax_scale  # [M, A, nope + extra]
    queries = heads.unflatten(0, (-1, part.group.rows)).transpose(1, 2)  # [R, A, T, nope + extra]
    o = causal(queries, keys, values, part.lengths)  # [R, A, T, U]
    return gated_output(ctx, o.transpose(1, 2).flatten(0, 1), y.gate, part)


def cached_rows(
    ctx: Context, cache: KvCache, part: GroupTensors, dtype: torch.dtype
) -> torch.Tensor:
    """The c | kr of all tokens of each request in order, then zeros: [R, n, kv_row].

    Under decode context parallelism all ranks' rows are gathered first.
    """
    dcp, turn = ctx.dcp, cache.interleave
    counts = held(cache, part.lengths.long(), dcp)  # [R]
    rows = read_rows(cache, part.block_table, counts, dtype) * cache.k_scale  # [R, n, kv_row]
    if dcp.size == 1:
        return rows
    shards = dcp.all_gather(rows[None], dim=0).transpose(0, 1)  # [R, ranks, n, kv_row]
    room = rows.shape[1]
    position = torch.arange(-(-room // turn) * turn * dcp.size, device=rows.device)
    local = position // (turn * dcp.size) * turn + position % turn
    # What the table has no room for lies beyond every request's end.
    index = position // turn % dcp.size * room + local.clamp(max=room - 1)
    return shards.flatten(1, 2)[:, index]


def causal(
    queries: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, lengths: torch.Tensor
) -> torch.Tensor:
    """Attention of each request's newest T tokens over all its tokens up to each of them.

    Args:
        queries: [R, A, T, d] of the newest tokens, with the softmax scale in them.
        keys: [R, A, n, d], n at least the longest request.
        values: [R, A, n, U].
        lengths: [R] tokens of each request; what padding (0) gets is undefined.

    Returns:
        [R, A, T, U].
    """
    tokens, (room, d), width = queries.shape[2], keys.shape[2:], values.shape[3]
    row = torch.arange(tokens, device=keys.device)
    last = lengths.long()[:, None] - tokens + row  # [R, T] position of each query
    seen = torch.arange(room, device=keys.device) <= last[:, None, :, None]  # [R, 1, T, n]
    # The fused kernels want values as wide as keys; without them the scores would fill memory.
    common = max(d, width)
    queries, keys, values = (pad(x, (0, common - x.shape[3])) for x in (queries, keys, values))
    return scaled_dot_product_attention(queries, keys, values, seen, scale=1.0)[..., :width]
