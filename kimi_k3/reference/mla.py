# SPDX-License-Identifier: Apache-2.0
"""Multi-head latent attention, absorbed: all heads attend to one cached latent row per token.

Spec 2.5 and 3.3. There is no rotary embedding: the "rope" columns are cached and enter the dot
product as they are.

    qa | c | kr = W_a x;   gate = W_g x
    qa          = bf16(RMSNorm(qa));  c = bf16(RMSNorm(c));  kr unchanged
    qn | qr     = W_qb qa                                    per head
    ql          = W_UK^T qn                                  W_UK: the key half of kv_b
    cache row   = c | kr                                     appended before anything is read
    score_j     = scale * ( ql . c_j + qr . kr_j )           j <= the row's own position
    p           = softmax(score);   z = sum_j p_j c_j
    o           = W_UV z                                     W_UV: the value half of kv_b
    out         = W_o [ concat_h( o * sigmoid(gate) ) ]

| symbol | shape (M rows, h this rank's heads) | dtype |
|---|---|---|
| x, out | [M, H] | BF16 values |
| qa, c, kr | [M, q_lora], [M, kv_lora], [M, rope] | BF16 values |
| qn, qr, ql | [M, h, nope], [M, h, rope], [M, h, kv_lora] | BF16 values |
| z, lse | [M, h, kv_lora], [M, h] | compute |

Rounding points: `projection`, `mla_normed`, `mla_query`, `mla_absorbed`, `mla_latent`,
`mla_value`, `attn_out`, `o_partial`, `reduced`. With an FP8 cache the row is fp8(row / k_scale)
and the query fp8(q / q_scale); the scales return in the softmax scale and in z.

Under decode context parallelism each rank holds some of the tokens. It attends with *all* heads'
queries to what it holds; the owner of a head merges the parts by their log-sum-exp. With a single
rank the merge is the identity, so there is one code path.
"""

from dataclasses import dataclass

import torch

from kimi_k3.config import K3Config
from kimi_k3.reference.context import Context
from kimi_k3.reference.functions import exp2, log2, ordered_sum, sigmoid
from kimi_k3.reference.linear import linear
from kimi_k3.reference.norm import rms_norm
from kimi_k3.reference.state import KvCache, PageWindow
from kimi_k3.weights import MlaWeights

EMPTY_LSE = -1.0e30  # of a shard that holds no token: finite, so that no inf - inf can arise
LOG2_E = 1.4426950408889634


@dataclass(frozen=True)
class Latents:
    """The projections of a row that attention reads."""

    ql: torch.Tensor  # [M, h, kv_lora]
    qr: torch.Tensor  # [M, h, rope]
    c: torch.Tensor  # [M, kv_lora]
    kr: torch.Tensor  # [M, rope]
    gate: torch.Tensor  # [M, h v]


def split_kv_b(config: K3Config, kv_b: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """W_UK [h, nope, kv_lora] and W_UV [h, v, kv_lora]: of each head, key rows, then value rows."""
    nope, value = config.qk_nope_head_dim, config.v_head_dim
    by_head = kv_b.unflatten(0, (-1, nope + value))  # [h, nope + v, kv_lora]
    w_uk, w_uv = by_head.split([nope, value], dim=1)
    return w_uk, w_uv


def absorb(qn: torch.Tensor, w_uk: torch.Tensor) -> torch.Tensor:
    """The absorbed query ql = W_UK^T qn, since qn . (W_UK c) = ql . c; returns [M, h, kv_lora]."""
    return torch.stack([(row[:, :, None] * w_uk).sum(1) for row in qn])  # [M, h, kv_lora]


def attend(
    q: torch.Tensor, keys: torch.Tensor, scale: float, kv_lora: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """Softmax attention of one row over cached rows, all heads at once.

    Args:
        q: [h, kv_lora + rope].
        keys: [n, kv_lora + rope]; n may be 0.
        scale: of the scores.
        kv_lora: the leading columns of a key are also the value.

    Returns:
        z [h, kv_lora], and the log2 of the softmax denominator [h].
    """
    if len(keys) == 0:
        return q.new_zeros(len(q), kv_lora), q.new_full((len(q),), EMPTY_LSE)
    scores = scale * (q @ keys.T)  # [h, n]
    z = torch.softmax(scores, dim=1) @ keys[:, :kv_lora]  # [h, kv_lora]
    return z, torch.logsumexp(scores, dim=1) * LOG2_E  # [h]


def merge(z: torch.Tensor, lse: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Merge parts over disjoint keys: z [parts, M, h, kv_lora] and lse [parts, M, h]."""
    top = lse.amax(0)  # [M, h]
    share = exp2(lse - top)  # [parts, M, h]
    total = ordered_sum(share)  # [M, h]
    merged = ordered_sum(z * (share / total)[..., None])  # [M, h, kv_lora]
    return merged, top + log2(total)


def latents(ctx: Context, w: MlaWeights, x: torch.Tensor) -> Latents:
    """Everything before the cache is touched."""
    c, r, tap = ctx.config, ctx.rounding, ctx.tap
    eps, nope, rope = c.rms_norm_eps, c.qk_nope_head_dim, c.qk_rope_head_dim
    qa = r.projection(linear(x, w.q_a_proj))  # [M, q_lora]
    kv, kr = r.projection(linear(x, w.kv_a_proj)).split([c.kv_lora_rank, rope], dim=1)
    gate = tap("mla.gate", r.projection(linear(x, w.g_proj)))  # [M, h v]
    tap("mla.projected", torch.cat([qa, kv, kr, gate], dim=1))  # [M, q_lora + kv_row + h v]
    qa = tap("mla.qa", r.mla_normed(rms_norm(qa, w.q_a_layernorm, eps)))  # [M, q_lora]
    kv = tap("mla.c", r.mla_normed(rms_norm(kv, w.kv_a_layernorm, eps)))  # [M, kv_lora]
    kr = tap("mla.kr", kr)  # [M, rope]
    heads = r.mla_query(linear(qa, w.q_b_proj)).unflatten(1, (-1, nope + rope))
    qn, qr = heads.split([nope, rope], dim=2)  # [M, h, nope], [M, h, rope]
    w_uk, _ = split_kv_b(c, w.kv_b_proj.to(r.compute))
    ql = tap("mla.ql", r.mla_absorbed(absorb(tap("mla.qn", qn), w_uk)))  # [M, h, kv_lora]
    return Latents(ql, tap("mla.qr", qr), kv, kr, gate)


def attend_rows(
    ctx: Context, query: torch.Tensor, cache: KvCache, window: PageWindow
) -> torch.Tensor:
    """The z [M, h, kv_lora] of this rank's heads from all ranks' tokens; zeros for padding.

    `query` [M, h, kv_lora + rope] is in the units of the cache, and so is z until the last line.
    """
    c, r, dcp = ctx.config, ctx.rounding, ctx.dcp
    scale = c.mla_softmax_scale * cache.q_scale * cache.k_scale
    all_heads = dcp.all_gather(query, dim=1)  # [M, h of all dcp ranks, kv_row]
    z = query.new_zeros(*all_heads.shape[:2], c.kv_lora_rank)  # [M, all h, kv_lora]
    lse = query.new_full(all_heads.shape[:2], EMPTY_LSE)  # [M, all h]
    for row, request, position in window.live_rows():
        seen = cache.held(position + 1, dcp)  # causal, in positions of the whole sequence
        keys = cache.read(window.block_table[request], seen, r.compute)  # [seen, kv_row]
        z[row], lse[row] = attend(all_heads[row], keys, scale, c.kv_lora_rank)
    parts = dcp.all_gather(r.mla_latent(z * cache.k_scale)[None], dim=0)  # [ranks, M, all h, ...]
    lses = dcp.all_gather(lse[None], dim=0)  # [ranks, M, all h]
    own = slice(dcp.rank * query.shape[1], (dcp.rank + 1) * query.shape[1])
    merged, lse = merge(parts[:, :, own], lses[:, :, own])  # [M, h, kv_lora], [M, h]
    ctx.tap("mla.lse", lse)
    return ctx.tap("mla.z", r.mla_latent(merged))


def mla(
    ctx: Context, w: MlaWeights, x: torch.Tensor, cache: KvCache, window: PageWindow
) -> torch.Tensor:
    """The attention block: x [M, H] to a [M, H], summed over ranks; appends to `cache`."""
    r, tap = ctx.rounding, ctx.tap
    y = latents(ctx, w, x)
    cache.append(torch.cat([y.c, y.kr], dim=1), window, ctx.dcp)
    query = tap("mla.query", cache.encode(torch.cat([y.ql, y.qr], dim=2), cache.q_scale))
    z = attend_rows(ctx, query, cache, window)  # [M, h, kv_lora]
    _, w_uv = split_kv_b(ctx.config, w.kv_b_proj.to(r.compute))  # [h, v, kv_lora]
    o = r.mla_value(torch.stack([(row[:, None, :] * w_uv).sum(2) for row in z]))  # [M, h, v]
    attn = r.attn_out(o.flatten(1) * sigmoid(y.gate))  # [M, h v]
    live = window.live.repeat_interleave(window.q)[:, None]  # [M, 1]
    attn = tap("mla.attn", torch.where(live, attn, torch.zeros_like(attn)))  # [M, h v]
    partial = tap("attention.partial", r.o_partial(linear(attn, w.o_proj)))  # [M, H]
    return tap("attention", r.reduced(ctx.comm.all_reduce(partial)))  # [M, H]


def attend_unabsorbed(
    config: K3Config, w: MlaWeights, qn: torch.Tensor, qr: torch.Tensor, rows: torch.Tensor
) -> torch.Tensor:
    """The o [h, v] of one row from per-head keys and values, as prefill computes it.

    The same function as `absorb`, `attend` and W_UV together, with kv_b applied to the cached
    latents instead of to the query. Args: qn [h, nope], qr [h, rope], rows [n, kv_lora + rope].
    """
    w_uk, w_uv = split_kv_b(config, w.kv_b_proj.to(rows.dtype))
    c, kr = rows.split([config.kv_lora_rank, config.qk_rope_head_dim], dim=1)
    key = torch.einsum("hdl,nl->hnd", w_uk, c)  # [h, n, nope]
    value = torch.einsum("hvl,nl->hnv", w_uv, c)  # [h, n, v]
    scores = torch.einsum("hd,hnd->hn", qn, key) + qr @ kr.T  # [h, n]
    p = torch.softmax(config.mla_softmax_scale * scores, dim=1)  # [h, n]
    return torch.einsum("hn,hnv->hv", p, value)  # [h, v]
