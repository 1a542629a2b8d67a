# SPDX-License-Identifier: Apache-2.0
"""Which blocks of (row, slot) pairs the routed experts' kernels work on.

Rows that picked the same expert share one read of its weights. A *pair* p = row * k + slot is one
picked expert of one row; a *block* is one expert with up to `tokens` of its pairs. The kernels of
`experts` run over a fixed number of blocks, so that nothing is read on the host, and leave the
unused ones at once.

Three plans:

* a row or two (`by_pair`, nothing is computed): every pair is a block of its own. The ids of a row
  are distinct; if two rows picked the same expert, its weights are read twice, the second time most
  likely out of the L2 cache;
* decode (`plan_pairs`, one launch, capturable): block p exists if pair p is number 0, tokens,
  2 tokens, ... among the pairs of its expert, and takes that pair and those after it;
* prefill (`plan_sorted`, a few torch operations, allocates): pairs sorted by expert, so that
  blocks are few and full.

Pairs of padding rows (length 0) belong to no block of the other two. By pair they are computed, out
of whatever such a row holds, and it is for the sum to leave them out.
"""

from dataclasses import dataclass

import torch
import triton
import triton.language as tl


@dataclass(frozen=True)
class ExpertPlan:
    """Blocks of pairs, for kernels that run over `len(experts)` blocks.

    Attributes:
        tokens: most pairs of one block, the width of the kernels' token tile.
        experts: [B] int32 expert of each block.
        counts: [B] int32 pairs of each block, 0 for a block that does not exist; None when block p
            is exactly pair p (`by_pair`).
        members: [B, tokens] int32 the pairs of each block, the first `counts` valid; None likewise.
    """

    tokens: int
    experts: torch.Tensor
    counts: torch.Tensor | None = None
    members: torch.Tensor | None = None

    @classmethod
    def empty(cls, pairs: int, tokens: int, device: torch.device) -> "ExpertPlan":
        """Memory for the decode plan of `pairs` pairs, to be filled by `plan_pairs`."""
        one = torch.empty(pairs, dtype=torch.int32, device=device)
        members = torch.empty(pairs, tokens, dtype=torch.int32, device=device)
        return cls(tokens, one, torch.empty_like(one), members)

    @classmethod
    def by_pair(cls, ids: torch.Tensor, tokens: int) -> "ExpertPlan":
        """The plan of few rows with contiguous ids [M, k]: no launch, the ids are the blocks."""
        return cls(tokens, ids.view(-1))


@triton.jit
def _plan_kernel(
    ids,
    lengths,
    experts,
    counts,
    members,
    PAIRS: tl.constexpr,
    PAIRS_PADDED: tl.constexpr,
    PAIRS_PER_REQUEST: tl.constexpr,
    TOKENS: tl.constexpr,
):
    own = tl.program_id(0)
    pair = tl.arange(0, PAIRS_PADDED)
    inside = pair < PAIRS
    expert = tl.load(ids + pair, mask=inside, other=-1)
    alive = tl.load(lengths + pair // PAIRS_PER_REQUEST, mask=inside, other=0) > 0
    own_expert = tl.load(ids + own)
    same = alive & (expert == own_expert)
    before = tl.sum((same & (pair < own)).to(tl.int32), 0)
    ahead = same & (pair >= own)
    leads = (tl.load(lengths + own // PAIRS_PER_REQUEST) > 0) & (before % TOKENS == 0)
    place = tl.cumsum(ahead.to(tl.int32), 0) - 1
    tl.store(members + own * TOKENS + place, pair, mask=leads & ahead & (place < TOKENS))
    tl.store(experts + own, own_expert)
    count = tl.minimum(tl.sum(ahead.to(tl.int32), 0), TOKENS)
    tl.store(counts + own, tl.where(leads, count, 0))


def plan_pairs(ids: torch.Tensor, lengths: torch.Tensor, q: int, plan: ExpertPlan) -> None:
    """Fills a decode plan: block p is led by pair p, or does not exist.

    Each of the M k programs compares its expert with all others: O((M k)^2) comparisons, spread
    over the device, which is right for a decode step (M <= 64) and wrong for a prefill.
    Moves 4 (M k + R) bytes per program out of L2, and M k (8 + 4 tokens) bytes at most to it.

    Args:
        ids: [M, k] int32, contiguous.
        lengths: [R] int32, 0 for padding; request of a row: row // q.
        q: rows per request, M = R q.
        plan: from `ExpertPlan.empty(M k, tokens, device)`; overwritten.

    Raises:
        ValueError: sizes that do not fit.
    """
    if plan.counts is None or plan.members is None or len(plan.experts) != ids.numel():
        raise ValueError(f"a plan of {len(plan.experts)} blocks for {ids.numel()} pairs")
    if len(lengths) * q != len(ids):
        raise ValueError(f"{len(lengths)} requests of {q} rows; ids have {len(ids)} rows")
    _plan_kernel[(ids.numel(),)](
        ids,
        lengths,
        plan.experts,
        plan.counts,
        plan.members,
        PAIRS=ids.numel(),
        PAIRS_PADDED=triton.next_power_of_2(ids.numel()),
        PAIRS_PER_REQUEST=q * ids.shape[1],
        TOKENS=plan.tokens,
        num_warps=4 if ids.numel() > 128 else 1,
    )


def plan_sorted(ids: torch.Tensor, experts: int, tokens: int) -> ExpertPlan:
    """The plan of many rows: pairs sorted by expert and cut into blocks of `tokens`.

    Allocates, and is not meant for capture; reads nothing on the host. Blocks that exist come
    first. Their number is bounded by `M k // tokens + min(experts, M k)`, which is how many blocks
    the plan has.

    Args:
        ids: [M, k] int32 of live rows only.
        experts: how many experts there are; ids are below.
        tokens: most pairs of a block.
    """
    pairs, device = ids.numel(), ids.device
    blocks = pairs // tokens + min(experts, pairs)
    by_expert, order = torch.sort(ids.flatten(), stable=True)  # [P] each
    load = torch.zeros(experts, dtype=torch.int64, device=device)
    load.scatter_add_(0, by_expert.long(), torch.ones_like(order))  # [E] pairs of each expert
    last_pair = load.cumsum(0)  # [E] exclusive end among the sorted pairs
    last_block = ((load + tokens - 1) // tokens).cumsum(0)  # [E] exclusive end among the blocks
    block = torch.arange(blocks, device=device)
    expert = torch.searchsorted(last_block, block, right=True)  # [B]; `experts` past the last
    exists = expert < experts
    expert = expert.clamp(max=experts - 1)
    within = block - (last_block - (load + tokens - 1) // tokens)[expert]  # [B]
    first = (last_pair - load)[expert] + within * tokens  # [B] in the sorted order
    counts = torch.where(exists, (last_pair[expert] - first).clamp(0, tokens), 0)
    at = (first[:, None] + torch.arange(tokens, device=device)).clamp(0, pairs - 1)  # [B, tokens]
    return ExpertPlan(tokens, expert.int(), counts.int(), order.int()[at])
