# SPDX-License-Identifier: Apache-2.0
"""The KDA recurrence over many tokens: 64 at a time, with matrix products.

Within a chunk, with L_t = g_1 + ... + g_t per key channel and u_t the delta of token t:

    S_t   = S_0 Diag(e^{L_t}) + sum_{i<=t} u_i (k_i * e^{L_t - L_i})^T
    u_t   = beta_t ( v_t - S_0 (k_t * e^{L_t}) - sum_{i<t} A_ti u_i )
    o_t   = S_0 (q_t * e^{L_t}) + sum_{i<=t} B_ti u_i
    A_ti  = k_t . (k_i * e^{L_t - L_i}),    B_ti = q_t . (k_i * e^{L_t - L_i})

so U solves (I + Diag(beta) A) U = Diag(beta) (V - (K e^L) S_0^T), a unit lower triangle. All but
the products with S_0 is computed for all chunks at once; S then goes from chunk to chunk.

A gate of -5 brings e^{L} of 64 tokens to e^-320, and an unbounded gate anywhere, so no e^{L_t}
is divided by e^{L_i}. Every decay is e^{L_t - L_i} with i <= t, which only ever underflows, to
the zero that it stands for. In blocks of 16 tokens it is split at a block's start m, i <= m <= t:

    e^{L_t - L_i} = e^{L_t - L_m} e^{L_m - L_i}             t and i in different blocks
    e^{L_t - L_i} = product of e^{g_j} for i < j <= t       in one block: one row after another

Each difference is formed as the sum of the logs between the two tokens, so that no digits cancel
when a long decay is followed by none. Tokens that fill up the last chunk have k = v = q = 0,
beta = 0 and g = 0, which leaves S as it is.
"""

from dataclasses import dataclass

import torch

from kimi_k3.reference.kda import Inputs

CHUNK = 64
BLOCK = 16


@dataclass(frozen=True)
class Chunks:
    """What is known of n chunks of C tokens before S is: leading dimensions [n, R, N]."""

    q: torch.Tensor  # [..., C, key]    q_t e^{L_t}
    solved_v: torch.Tensor  # [..., C, value]  (I + beta A)^-1 beta V
    solved_k: torch.Tensor  # [..., C, key]    (I + beta A)^-1 beta K e^L
    weights: torch.Tensor  # [..., C, C]      B
    k: torch.Tensor  # [..., C, key]    k_i e^{L_C - L_i}
    decay: torch.Tensor  # [..., key]       e^{L_C}


def delta_rule(x: Inputs, s: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """All tokens of R requests.

    Args:
        x: T tokens each, T >= 1.
        s: [R, N, value, key] before the first.

    Returns:
        o [R, T, N, value], and S [R, N, value, key] after the last.
    """
    chunks, outs = prepare(x), []
    for n in range(len(chunks.q)):
        u = chunks.solved_v[n] - chunks.solved_k[n] @ s.mT  # [R, N, C, value]
        outs.append(chunks.q[n] @ s.mT + chunks.weights[n] @ u)
        s = s * chunks.decay[n][..., None, :] + u.mT @ chunks.k[n]
    o = torch.stack(outs, dim=1).transpose(2, 3)  # [R, n, C, N, value]
    return o.flatten(1, 2)[:, : x.q.shape[1]], s


def prepare(x: Inputs) -> Chunks:
    """All that does not need S."""
    q, k, v, g = (_blocks(y) for y in (x.q, x.k, x.v, x.g))  # [n, R, N, blocks, BLOCK, D]
    beta = _blocks(x.beta[..., None]).flatten(-3, -2)  # [n, R, N, C, 1]
    begun, left = _block_decays(g)  # [..., BLOCK, key] each
    both = torch.stack([k, q], dim=-2)  # [..., BLOCK, 2, key]
    inner = _within_blocks(both, k, torch.exp(g))  # [..., BLOCK, 2, BLOCK]
    weights, k_out = _across_blocks(both * begun[..., None, :], inner, k * left, begun[..., -1, :])
    entry = _products_before(begun[..., -1, :])  # [..., blocks + 1, key] e^{L} before each block
    into = begun * entry[..., :-1, None, :]  # [..., BLOCK, key] e^{L_t}
    k_in, q_in = (k * into).flatten(-3, -2), (q * into).flatten(-3, -2)  # [..., C, key]
    right = torch.cat([v.flatten(-3, -2), k_in], dim=-1) * beta  # [..., C, value + key]
    solved = torch.linalg.solve_triangular(
        weights[..., 0, :] * beta, right, upper=False, unitriangular=True
    )
    solved_v, solved_k = solved.split([v.shape[-1], k.shape[-1]], dim=-1)
    return Chunks(q_in, solved_v, solved_k, weights[..., 1, :], k_out, entry[..., -1, :])


def _blocks(y: torch.Tensor) -> torch.Tensor:
    """[R, T, N, d] in chunks of blocks, filled up with zeros: [n, R, N, blocks, BLOCK, d]."""
    tokens = y.shape[1]
    chunk = min(CHUNK, -(-tokens // BLOCK) * BLOCK)
    padded = torch.nn.functional.pad(y, (0, 0, 0, 0, 0, -tokens % chunk))
    by_block: torch.Tensor = padded.unflatten(1, (-1, chunk // BLOCK, BLOCK))
    return by_block.permute(1, 0, 4, 2, 3, 5).contiguous()


def _block_decays(g: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The decays of log `g` [..., BLOCK, key] within blocks.

    Returns:
        [..., BLOCK, key] each: from the block's start through each token, and from after each
        token to the block's end.
    """
    ones = g.new_ones(BLOCK, BLOCK)
    begun, left = torch.exp(torch.cat([ones.tril(), ones.triu(1)]) @ g).chunk(2, dim=-2)
    return begun, left


def _products_before(total: torch.Tensor) -> torch.Tensor:
    """[..., blocks + 1, key]: the product of the `total` [..., blocks, key] before each block."""
    return torch.nn.functional.pad(total, (0, 0, 1, 0), value=1.0).cumprod(-2)


def _within_blocks(both: torch.Tensor, k: torch.Tensor, decay: torch.Tensor) -> torch.Tensor:
    """Rows t and columns i of A and B with both tokens in one block.

    Args:
        both: [..., BLOCK, 2, key] k_t and q_t.
        k: [..., BLOCK, key].
        decay: [..., BLOCK, key] e^{g_t}.

    Returns:
        [..., BLOCK, 2, BLOCK]; columns after t are zero.
    """
    kept = torch.zeros_like(k)  # k_i e^{L_t - L_i} of the tokens so far
    dots = both.new_zeros(*both.shape[:-1], BLOCK)
    for t in range(BLOCK):
        kept[..., :t, :] *= decay[..., t, None, :]
        kept[..., t, :] = k[..., t, :]
        seen = kept[..., : t + 1, :]
        dots[..., t, :, : t + 1] = both[..., t, :, :] @ seen.mT
    return dots


def _across_blocks(
    both: torch.Tensor, inner: torch.Tensor, k: torch.Tensor, total: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """A and B of a whole chunk, and the keys as its end sees them.

    Args:
        both: [..., blocks, BLOCK, 2, key] k_t and q_t, decayed from their block's start.
        inner: [..., blocks, BLOCK, 2, BLOCK] within blocks.
        k: [..., blocks, BLOCK, key] k_i, decayed to their block's end.
        total: [..., blocks, key] decay of a whole block.

    Returns:
        [..., C, 2, C] and [..., C, key].
    """
    blocks = both.shape[-4]
    whole = both.new_zeros(*both.shape[:-1], blocks * BLOCK)  # [..., blocks, BLOCK, 2, C]
    earlier = k[..., 0, :0, :]  # k_i of the blocks before, decayed to this block's start
    for b in range(blocks):
        own = slice(b * BLOCK, (b + 1) * BLOCK)
        whole[..., b, :, :, own] = inner[..., b, :, :, :]
        if b:
            rows = both[..., b, :, :, :].flatten(-3, -2)  # [..., 2 BLOCK, key]
            whole[..., b, :, :, : own.start] = (rows @ earlier.mT).unflatten(-2, (BLOCK, 2))
        earlier = torch.cat([earlier * total[..., b, None, :], k[..., b, :, :]], dim=-2)
    return whole.flatten(-4, -3), earlier
