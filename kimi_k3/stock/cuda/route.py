# SPDX-License-Identifier: Apache-2.0
"""Exact routing in one launch: which experts a row visits, and with which weights (spec 2.6).

One program owns a row. Its warps share the experts out; each warp takes the best of its own, one
after another, with two integer reductions inside the warp and no barrier. What they found, k
experts of every warp, is ranked by counting: a candidate's rank is the number of candidates that
beat it. The order is total, so every rank below k occurs once.
"""

import torch
import triton
import triton.language as tl

from kimi_k3.stock.cuda.early import let_next_start
from kimi_k3.stock.cuda.stacking import stack

ONE_WARP = 256
"""Up to so many experts one warp takes all; beyond, four share them."""
MAX_PICKS = 32
TAKEN = tl.constexpr(-(2**31))
"""The order of an expert that is already picked, or that does not exist."""
NOBODY = tl.constexpr(2**31 - 1)
"""An id above every expert's."""
NAN = tl.constexpr(-(2**31) + 1)
"""The order of a NaN: below minus infinity, above what does not exist."""


def route(
    ids: torch.Tensor,
    weights: torch.Tensor,
    logits: torch.Tensor,
    bias: torch.Tensor,
    *,
    scaling: float,
    normalize: bool = True,
    latent: torch.Tensor | None = None,
    latent_out: torch.Tensor | None = None,
) -> None:
    """The k best experts of each row, best first, and their weights.

        sc       = sigmoid(logit)       from float64, one rounding to FP32
        key      = sc + bias            one FP32 addition
        ids      = the k largest keys   equal keys: the lower id; NaN after everything
        weight_e = sc_e * scaling / (sum of the k sc + 1e-20), or sc_e * scaling

    The float64 sigmoid is wrong by about one unit of 2^-52; it rounds to another FP32 number than
    the exact one for about one logit in 10^7. Moves E FP32 logits and the bias in, 2 k values out
    per row. No host read, no allocation.

    Args:
        ids: [M, k] int32, contiguous, written.
        weights: [M, k] FP32, contiguous, written.
        logits: [M, E] FP32.
        bias: [E] FP32.
        scaling: factor of the weights.
        normalize: whether the weights are divided by the sum of the picked scores.
        latent: [M, L] FP32 to be rounded on the way (`latent`): it comes out of the same product as
            the logits, which must not be rounded. None leaves it out.
        latent_out: [M, L] BF16, written when `latent` is given.

    Raises:
        ValueError: shapes that do not fit, or more than 32 experts to pick.
    """
    if latent is not None and (
        latent_out is None or latent.shape != latent_out.shape or latent.stride(1) != 1
    ):
        raise ValueError(f"a latent of {tuple(latent.shape)} to round, and nowhere to store it")
    width = 0 if latent is None else latent.shape[1]
    rows, experts = logits.shape
    picks = ids.shape[1]
    fits = ids.shape == weights.shape == (rows, picks) and bias.shape == (experts,)
    if not (fits and ids.is_contiguous() and weights.is_contiguous() and logits.stride(1) == 1):
        raise ValueError(f"ids {tuple(ids.shape)}, weights {tuple(weights.shape)} of {experts}")
    if not 1 <= picks <= min(experts, MAX_PICKS):
        raise ValueError(f"{picks} of {experts} experts; at most {MAX_PICKS}")
    warps = 1 if experts <= ONE_WARP else 4
    _route[(rows,)](
        ids,
        weights,
        logits,
        bias,
        logits.stride(0),
        latent,
        latent_out,
        0 if latent is None else latent.stride(0),
        scaling=scaling,
        normalize=normalize,
        experts=experts,
        picks=picks,
        rounds=triton.next_power_of_2(picks),
        groups=warps,
        chunks=triton.next_power_of_2(triton.cdiv(experts, warps * 32 * 4)),
        latent_width=width,
        latent_block=triton.next_power_of_2(width) if width else 1,
        compiled=logits.is_cuda,
        num_warps=warps,
    )


@triton.jit
def _route(
    ids,
    weights,
    logits,
    bias,
    logits_stride,
    latent,
    latent_out,
    latent_stride,
    scaling: tl.constexpr,
    normalize: tl.constexpr,
    experts: tl.constexpr,
    picks: tl.constexpr,
    rounds: tl.constexpr,
    groups: tl.constexpr,
    chunks: tl.constexpr,
    latent_width: tl.constexpr,
    latent_block: tl.constexpr,
    compiled: tl.constexpr,
):
    let_next_start(compiled)  # the experts' first product, which waits by itself
    row = tl.program_id(0).to(tl.int64)
    if latent_width > 0:
        column = tl.arange(0, latent_block)
        wide = tl.load(latent + row * latent_stride + column, column < latent_width)
        target = latent_out + row * latent_width + column
        tl.store(target, wide.to(tl.bfloat16), column < latent_width)
    expert = _experts(groups, chunks)  # [lane, group, chunk, vector]
    known = expert < experts
    logit = tl.load(logits + row * logits_stride + expert, known, other=0.0)
    key = _sigmoid(logit) + tl.load(bias + expert, known, other=0.0)
    order = tl.where(known, _order(key), TAKEN)

    best, found = _take_best(order, expert, rounds)
    candidates: tl.constexpr = groups * rounds
    key_a = tl.reshape(stack(best), (candidates,))
    id_a = tl.reshape(stack(found), (candidates,))
    rank = _rank(key_a, id_a)  # [candidates]

    picked = rank < picks
    score = _sigmoid(tl.load(logits + row * logits_stride + id_a, picked, other=0.0))
    weight = score * scaling
    if normalize:
        weight = weight / (tl.sum(tl.where(picked, score, 0.0), 0) + 1e-20)
    tl.store(ids + row * picks + rank, id_a, picked)
    tl.store(weights + row * picks + rank, weight, picked)


@triton.jit
def _experts(groups, chunks):
    """[32, groups, chunks, 4] expert ids: a warp has a group, a lane whole 16-byte vectors."""
    lane = tl.arange(0, 32)[:, None, None, None]
    group = tl.arange(0, groups)[None, :, None, None]
    chunk = tl.arange(0, chunks)[None, None, :, None]
    element = tl.arange(0, 4)[None, None, None, :]
    return ((chunk * groups + group) * 32 + lane) * 4 + element


@triton.jit
def _take_best(order, expert, rounds):
    """Orders and ids of each row's best, `rounds` tensors [groups] each, one after another."""
    best = ()
    found = ()
    for _ in tl.static_range(rounds):
        top = tl.max(tl.max(tl.max(order, 3), 2), 0)  # [groups]
        best_ids = tl.where(order == top[None, :, None, None], expert, NOBODY)
        pick = tl.min(tl.min(tl.min(best_ids, 3), 2), 0)  # [groups]
        order = tl.where(expert == pick[None, :, None, None], TAKEN, order)
        best += (top,)
        found += (pick,)
    return best, found


@triton.jit
def _sigmoid(x):
    """1 / (1 + e^-x), FP32 through float64."""
    return (1.0 / (1.0 + tl.exp(-x.to(tl.float64)))).to(tl.float32)


@triton.jit
def _order(key):
    """An int32 that is ordered as the FP32 keys are, NaN below all.

    A key is never -0.0, which would come before +0.0: its score is never negative.
    """
    bits = key.to(tl.int32, bitcast=True)
    return tl.where(key == key, bits ^ ((bits >> 31) & 0x7FFFFFFF), NAN)  # noqa: PLR0124


@triton.jit
def _rank(key, expert):
    """How many others beat each candidate: a larger key, or an equal one with a lower id."""
    more = key[None, :] > key[:, None]
    tie = (key[None, :] == key[:, None]) & (expert[None, :] < expert[:, None])
    return tl.sum((more | tie).to(tl.int32), 1)
