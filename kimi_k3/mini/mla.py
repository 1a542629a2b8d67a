# SPDX-License-Identifier: Apache-2.0
"""Latent attention over prepared weights: `mla_in`, `mla_query`, `mla_core` and `mla_value`.

The equations are those of `operators.mla` for one rank that holds all tokens, so that nothing is
merged. Prepared are all matrices and norms; which pages are read and written is found once a step.
Rounding points: `projection`, `mla_normed`, `mla_query`, `mla_absorbed`, `mla_latent`,
`mla_value`, `attn_out`.
"""

import torch
from torch.nn.functional import linear

from kimi_k3.mini.windows import Pages, Window, store
from kimi_k3.packed import PackedMla
from kimi_k3.reference.context import Context
from kimi_k3.reference.norm import rms_norm
from kimi_k3.reference.state import KvCache


def project(ctx: Context, w: PackedMla, x: torch.Tensor) -> torch.Tensor:
    """All that reads x [M, H]: qa, c, kr and gate before any norm, [M, rows of `in_proj`]."""
    return ctx.rounding.projection(linear(x, w.in_proj))


def query(
    ctx: Context, w: PackedMla, projected: torch.Tensor, cache: KvCache, pages: Pages
) -> tuple[torch.Tensor, torch.Tensor]:
    """The absorbed query [M, A, kv_row] and the gate [M, A U]; inserts the rows c | kr."""
    c, r = ctx.config, ctx.rounding
    sizes = [c.q_lora_rank, c.kv_lora_rank, c.qk_rope_head_dim]
    qa, kv, kr, gate = projected.split([*sizes, projected.shape[1] - sum(sizes)], dim=1)
    qa = r.mla_normed(rms_norm(qa, w.q_a_layernorm, c.rms_norm_eps))  # [M, Q]
    kv = r.mla_normed(rms_norm(kv, w.kv_a_layernorm, c.rms_norm_eps))  # [M, C]
    heads = r.mla_query(linear(qa, w.q_b_proj)).unflatten(1, (-1, c.qk_head_dim))
    qn, qr = heads.split([c.qk_nope_head_dim, c.qk_rope_head_dim], dim=2)
    _insert(torch.cat([kv, kr], dim=1), cache, pages)
    ql = (qn.transpose(0, 1) @ w.w_uk).transpose(0, 1)  # [M, A, C]
    return torch.cat([r.mla_absorbed(ql), qr], dim=2), gate


def core(ctx: Context, query: torch.Tensor, cache: KvCache, pages: Pages) -> torch.Tensor:
    """Attention z [M, A, C] of each row over its request's cached rows; zeros for padding."""
    c, requests = ctx.config, len(pages.table)
    heads = cache.encode(query, cache.q_scale)  # [M, A, kv_row]
    keys = _read(cache, pages, query.dtype)  # [R, n, kv_row]
    scale = c.mla_softmax_scale * cache.q_scale * cache.k_scale
    by_request = heads.unflatten(0, (requests, -1)).flatten(1, 2)  # [R, q A, kv_row]
    scores = scale * (by_request @ keys.mT)  # [R, q A, n]
    scores = scores.unflatten(1, (-1, query.shape[1])).masked_fill(pages.unseen, -torch.inf)
    p = torch.softmax(scores, dim=3).flatten(1, 2)  # [R, q A, n]
    z = (p @ keys[..., : c.kv_lora_rank]).flatten(0, 1).unflatten(0, query.shape[:2])
    if pages.blind is not None:
        z = torch.where(pages.blind, 0.0, z)  # [M, A, C]
    return ctx.rounding.mla_latent(z * cache.k_scale)


def value(
    ctx: Context, w: PackedMla, z: torch.Tensor, gate: torch.Tensor, window: Window
) -> torch.Tensor:
    """The gated output [M, A U] of z [M, A, C] and gate [M, A U]; zeros for padding."""
    r = ctx.rounding
    o = r.mla_value((z.transpose(0, 1) @ w.w_uv.mT).transpose(0, 1))  # [M, A, U]
    return window.silent(r.attn_out(o.flatten(1) * torch.sigmoid(gate)))


def _insert(row: torch.Tensor, cache: KvCache, pages: Pages) -> None:
    """Writes `row` [M, kv_row] at the rows' places."""
    encoded = cache.encode(row, cache.k_scale).to(cache.pages.dtype)
    # As bytes: not every device indexes FP8.
    store(_bytes(cache.pages), pages.places, _bytes(encoded), pages.live)


def _read(cache: KvCache, pages: Pages, dtype: torch.dtype) -> torch.Tensor:
    """Each request's rows [R, n, kv_row] in the units of the cache, then zeros."""
    raw = cache.pages.view(torch.uint8)[pages.table].view(cache.pages.dtype)
    return raw.flatten(1, 2).to(dtype).masked_fill(pages.empty, 0.0)


def _bytes(rows: torch.Tensor) -> torch.Tensor:
    """The bytes [rows, bytes of a row] of contiguous rows, without a copy."""
    return rows.view(-1, rows.shape[-1]).view(torch.uint8)
