# SPDX-License-Identifier: Apache-2.0
"""Multi-head latent attention of decode and verify windows, absorbed (spec 2.5, 3.3).

The equations are those of `reference.mla`. The keys of all requests are read at once, as many as
the block table has room for: a caller narrows the table to the pages that `StepShape.context`
needs. What lies behind a request's end is selected to zero, because memory never written may hold
NaN. `o_proj` is the caller's.

Rounding points: `projection`, `mla_normed`, `mla_query`, `mla_absorbed`, `mla_latent`,
`mla_value`, `attn_out`.
"""

from dataclasses import dataclass

import torch

from kimi_k3.operators.addresses import positions, select_live, starts, write_rows
from kimi_k3.operators.linear import linear
from kimi_k3.packed import PackedMla
from kimi_k3.ranks import Communicator
from kimi_k3.reference.context import Context
from kimi_k3.reference.mla import EMPTY_LSE, LOG2_E, merge
from kimi_k3.reference.norm import rms_norm
from kimi_k3.reference.state import KvCache
from kimi_k3.step import GroupTensors


@dataclass(frozen=True)
class Latents:
    """What the projections of M rows become before anything is absorbed."""

    qn: torch.Tensor  # [M, A, nope]
    qr: torch.Tensor  # [M, A, extra]
    row: torch.Tensor  # [M, kv_row]  c | kr, to be cached
    gate: torch.Tensor  # [M, A U]


def project(ctx: Context, w: PackedMla, x: torch.Tensor) -> torch.Tensor:
    """All that reads x [M, H]: qa, c, kr and gate before any norm, [M, rows of `in_proj`]."""
    return ctx.rounding.projection(linear(x, w.in_proj))


def latents(ctx: Context, w: PackedMla, projected: torch.Tensor) -> Latents:
    """The query of each head, the row to cache and the gate, of projected [M, rows]."""
    c, r = ctx.config, ctx.rounding
    sizes = [c.q_lora_rank, c.kv_lora_rank, c.qk_rope_head_dim]
    qa, kv, kr, gate = projected.split([*sizes, projected.shape[1] - sum(sizes)], dim=1)
    qa = r.mla_normed(rms_norm(qa, w.q_a_layernorm, c.rms_norm_eps))  # [M, Q]
    kv = r.mla_normed(rms_norm(kv, w.kv_a_layernorm, c.rms_norm_eps))  # [M, C]
    heads = r.mla_query(linear(qa, w.q_b_proj)).unflatten(1, (-1, c.qk_head_dim))
    qn, qr = heads.split([c.qk_nope_head_dim, c.qk_rope_head_dim], dim=2)
    return Latents(qn, qr, torch.cat([kv, kr], dim=1), gate)


def query(
    ctx: Context, w: PackedMla, projected: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """What attention reads of projected [M, rows].

    Returns:
        The absorbed query [M, A, kv_row] ql | qr, not yet in the units of a cache; the row
        [M, kv_row] c | kr to insert; the gate [M, A U].
    """
    y = latents(ctx, w, projected)
    ql = (y.qn.transpose(0, 1) @ w.w_uk.to(y.qn.dtype)).transpose(0, 1)  # [M, A, C]
    return torch.cat([ctx.rounding.mla_absorbed(ql), y.qr], dim=2), y.row, y.gate


def insert(ctx: Context, row: torch.Tensor, cache: KvCache, part: GroupTensors) -> None:
    """Writes `row` [M, kv_row] at the rows' positions, where this rank holds them."""
    dcp, turn = ctx.dcp, cache.interleave
    position = positions(part)  # [R, q]
    held = starts(part).live[:, None] & (position // turn % dcp.size == dcp.rank)  # [R, q]
    index = position // (turn * dcp.size) * turn + position % turn  # [R, q] among those held
    index = torch.where(held, index, 0)
    size = cache.pages.shape[1]
    page = part.block_table.long().gather(1, index // size)  # [R, q]
    place = page * size + index % size
    encoded = cache.encode(row, cache.k_scale).to(cache.pages.dtype)  # [M, kv_row]
    # As bytes: not every device indexes FP8.
    write_rows(_bytes(cache.pages), place.flatten(), _bytes(encoded), held.flatten())


def core(ctx: Context, query: torch.Tensor, cache: KvCache, part: GroupTensors) -> torch.Tensor:
    """Attention of each row over its request's cached rows, its own included.

    Args:
        ctx: constants, rounding, and the ranks among which the tokens are spread.
        query: [M, A, kv_row] as `query` returns it; an FP8 cache quantises it here.
        cache: holds the group's rows already.
        part: the group.

    Returns:
        z [M, A, kv_lora] of this rank's heads; zeros for padding.
    """
    r, dcp, live = ctx.rounding, ctx.dcp, starts(part).live
    heads = dcp.all_gather(cache.encode(query, cache.q_scale), dim=1)  # [M, all A, kv_row]
    seen = torch.where(live[:, None], held(cache, positions(part) + 1, dcp), 0)  # [R, q]
    keys = read_rows(cache, part.block_table, seen[:, -1], query.dtype)  # [R, n, kv_row]
    scale = ctx.config.mla_softmax_scale * cache.q_scale * cache.k_scale
    z, lse = _attend(heads, keys, seen, scale, ctx.config.kv_lora_rank)
    z = r.mla_latent(z * cache.k_scale)  # [M, all A, kv_lora]
    if dcp.size == 1:
        return z
    own = slice(dcp.rank * query.shape[1], (dcp.rank + 1) * query.shape[1])
    parts, lses = dcp.all_gather(z[None], dim=0), dcp.all_gather(lse[None], dim=0)
    return r.mla_latent(merge(parts[:, :, own], lses[:, :, own])[0])


def value(
    ctx: Context, w: PackedMla, z: torch.Tensor, gate: torch.Tensor, part: GroupTensors
) -> torch.Tensor:
    """The gated output [M, A U] of z [M, A, kv_lora] and gate [M, A U]; zeros for padding."""
    o = (z.transpose(0, 1) @ w.w_uv.to(z.dtype).mT).transpose(0, 1)  # [M, A, U]
    return gated_output(ctx, o, gate, part)


def gated_output(
    ctx: Context, o: torch.Tensor, gate: torch.Tensor, part: GroupTensors
) -> torch.Tensor:
    """[M, A U] of o [M, A, U] and gate [M, A U]; zeros for padding."""
    r = ctx.rounding
    attn = r.attn_out(r.mla_value(o).flatten(1) * torch.sigmoid(gate))  # [M, A U]
    return select_live(starts(part).live, attn)


def window(
    ctx: Context,
    w: PackedMla,
    projected: torch.Tensor,
    cache: KvCache,
    part: GroupTensors,
) -> torch.Tensor:
    """The gated output [M, A U] of projected [M, rows], the group's own; appends to `cache`."""
    absorbed, row, gate = query(ctx, w, projected)
    insert(ctx, row, cache, part)
    return value(ctx, w, core(ctx, absorbed, cache, part), gate, part)


def held(cache: KvCache, tokens: torch.Tensor, dcp: Communicator) -> torch.Tensor:
    """How many of each request's first `tokens` tokens this rank holds."""
    turn = cache.interleave
    rest = tokens % (turn * dcp.size) - turn * dcp.rank
    return tokens // (turn * dcp.size) * turn + rest.clamp(0, turn)


def read_rows(
    cache: KvCache, table: torch.Tensor, counts: torch.Tensor, dtype: torch.dtype
) -> torch.Tensor:
    """The first `counts` [R] rows of each request in the units of the cache, then zeros.

    Args:
        cache: this rank's pages.
        table: [R, pages]; entries behind a request's end are not read.
        counts: [R].
        dtype: of the result.

    Returns:
        [R, pages x page size, kv_row].
    """
    size = cache.pages.shape[1]
    first = torch.arange(table.shape[1], device=table.device) * size  # [pages]
    page = torch.where(first < counts[:, None], table.long(), 0)  # [R, pages]
    raw = cache.pages.view(torch.uint8)[page].view(cache.pages.dtype)
    rows = raw.flatten(1, 2).to(dtype)  # [R, n, kv_row]
    token = torch.arange(rows.shape[1], device=table.device)  # [n]
    return torch.where((token < counts[:, None])[..., None], rows, 0.0)


def _attend(
    heads: torch.Tensor, keys: torch.Tensor, seen: torch.Tensor, scale: float, kv_lora: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """Softmax attention over the first keys of a request.

    Args:
        heads: [M, A, kv_row].
        keys: [R, n, kv_row]; the leading `kv_lora` columns are also the values.
        seen: [R, q] how many keys each row sees.
        scale: of the scores.
        kv_lora: width of a value.

    Returns:
        z [M, A, kv_lora] and the log2 of the softmax denominator [M, A]; zeros and `EMPTY_LSE`
        for a row that sees nothing.
    """
    requests, rows = seen.shape
    by_request = heads.unflatten(0, (requests, rows)).flatten(1, 2)  # [R, q A, kv_row]
    scores = (scale * (by_request @ keys.mT)).unflatten(1, (rows, -1))  # [R, q, A, n]
    token = torch.arange(keys.shape[1], device=keys.device)  # [n]
    unseen = token >= seen[:, :, None, None]  # [R, q, 1, n]
    scores = scores.masked_fill(unseen, -torch.inf)
    p = torch.softmax(scores, dim=3).flatten(1, 2)  # [R, q A, n]
    z = (p @ keys[..., :kv_lora]).unflatten(1, (rows, -1))  # [R, q, A, kv_lora]
    lse = torch.logsumexp(scores, dim=3) * LOG2_E  # [R, q, A]
    some = (seen > 0)[:, :, None]  # [R, q, 1]
    z = torch.where(some[..., None], z, 0.0)
    return z.flatten(0, 1), torch.where(some, lse, EMPTY_LSE).flatten(0, 1)


def _bytes(rows: torch.Tensor) -> torch.Tensor:
    """The bytes [rows, bytes of a row] of contiguous rows, without a copy."""
    return rows.view(-1, rows.shape[-1]).view(torch.uint8)
