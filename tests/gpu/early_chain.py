# SPDX-License-Identifier: Apache-2.0
"""The chain of a step of few rows: `route`, `gate_up` (early), `down_sum` (early).

What is not written yet is NaN, or, where a wrong value would be an address, what another step left:
stale and plausible. The right answer is a run in which the device is waited for after every launch.
"""

from dataclasses import dataclass
from itertools import pairwise

import torch

from kimi_k3.stock.cuda.expert_plan import ExpertPlan, plan_pairs
from kimi_k3.stock.cuda.expert_sum import down_sum, weighted_sum
from kimi_k3.stock.cuda.expert_tiles import PAIR_TOKENS, tiles_for
from kimi_k3.stock.cuda.experts import down, gate_up
from kimi_k3.stock.cuda.route import route
from kimi_k3.weights import ExpertWeights
from tests.gpu.launching import one_at_a_time
from tests.gpu.packed_oracle import DEVICE, TP8, TP16, Experts, generator, int32, random_experts

CHAINS = ((TP8, 1), (TP16, 1), (TP16, 2))
"""One rank's share, and rows. At TP 16 `down_sum` ends with half a tile; at one row it starts in
the room that `gate_up` leaves it, at two rows when the last programs of `gate_up` have begun."""
CASES = 6
"""Rows that come in, one after another; each leaves other things than the one before it."""
ALIGNMENT = 128
"""Words between the starts of two buffers are a multiple of this."""


@dataclass(frozen=True)
class Buffers:
    """What a chain of M rows writes, views of one memory.

    Attributes:
        memory: all of it, int32 words.
        ids: [M, k] int32.
        weights: [M, k] FP32.
        z: [M, L] BF16.
        hidden: [M k, I] BF16.
        partial: [M, L] BF16.
        routed: words of `ids`, `weights` and `z`, all that `route` writes.
        hidden_words: `hidden` as words.
        partial_words: `partial` as words.
    """

    memory: torch.Tensor
    ids: torch.Tensor
    weights: torch.Tensor
    z: torch.Tensor
    hidden: torch.Tensor
    partial: torch.Tensor
    routed: torch.Tensor
    hidden_words: torch.Tensor
    partial_words: torch.Tensor

    @classmethod
    def zeros(cls, shape: Experts, rows: int) -> "Buffers":
        pairs, latent = rows * shape.k, rows * shape.latent // 2
        sizes = (pairs, pairs, latent, pairs * shape.width // 2, latent)
        starts = [0]
        for size in sizes:
            starts.append(-(-(starts[-1] + size) // ALIGNMENT) * ALIGNMENT)
        memory = torch.zeros(starts[-1], dtype=torch.int32, device=DEVICE)
        ids, weights, z, hidden, partial = (
            memory[start : start + size] for start, size in zip(starts[:-1], sizes, strict=True)
        )
        return cls(
            memory,
            ids.view(rows, -1),
            weights.view(torch.float32).view(rows, -1),
            z.view(torch.bfloat16).view(rows, -1),
            hidden.view(torch.bfloat16).view(pairs, -1),
            partial.view(torch.bfloat16).view(rows, -1),
            memory[: starts[3]],
            hidden,
            partial,
        )

    def forget(self) -> None:
        """No numbers where the products write theirs."""
        self.hidden.fill_(torch.nan)
        self.partial.fill_(torch.nan)


@dataclass(frozen=True)
class Chain:
    """Experts, rows that come in, and what each leaves if nothing overlaps.

    Attributes:
        shape: one rank's share.
        w: the experts.
        bias: [E] FP32 of the router.
        fronts: [CASES, M, E + L] FP32, the product that `route` reads.
        lengths: [M] int32.
        right: what each of `fronts` leaves.
    """

    shape: Experts
    w: ExpertWeights
    bias: torch.Tensor
    fronts: torch.Tensor
    lengths: torch.Tensor
    right: list[Buffers]

    @classmethod
    def random(cls, shape: Experts, rows: int) -> "Chain":
        g, width = generator(1), shape.experts + shape.latent
        fronts = torch.randn(CASES, rows, width, generator=g, device=DEVICE)
        bias = torch.rand(shape.experts, generator=g, device=DEVICE) * 0.1
        chain = cls(shape, random_experts(shape, seed=1), bias, fronts, int32([1] * rows), [])
        for front in fronts:
            b = chain.buffers()
            b.forget()
            with one_at_a_time():
                chain.run(front, b)
            assert bool(b.partial.isfinite().all())
            chain.right.append(b)
        for a, b in pairwise([*chain.right, chain.right[0]]):  # what is stale has to show
            assert not torch.equal(a.ids, b.ids)
            assert not torch.equal(a.partial, b.partial)
        return chain

    def buffers(self) -> Buffers:
        """Memory of its own for one chain."""
        return Buffers.zeros(self.shape, len(self.lengths))

    @property
    def partials(self) -> torch.Tensor:
        """[CASES, words] of the right sums."""
        return torch.stack([want.partial_words for want in self.right])

    def spoil(self, b: Buffers, case: int) -> None:
        """Leaves the routing of a case, of them in turn, and no numbers behind it."""
        b.routed.copy_(self.right[case % CASES].routed)
        b.forget()

    def check(self, b: Buffers, case: int) -> None:
        """Waits for the device; `b` is what the case leaves, bit for bit."""
        torch.cuda.synchronize()
        want, live = self.right[case], self.shape.live
        assert torch.equal(b.routed, want.routed)
        assert torch.equal(b.hidden[:, :live], want.hidden[:, :live])
        assert torch.equal(b.partial, want.partial)

    def run(self, front: torch.Tensor, b: Buffers) -> None:
        """The three launches."""
        self.route(front, b.ids, b.weights, b.z)
        self.experts(b)

    def experts(self, b: Buffers) -> None:
        """The two launches that start early."""
        self.gate_up(b.z, ExpertPlan.by_pair(b.ids, PAIR_TOKENS), b.hidden)
        self.down_sum(b)

    def route(
        self, front: torch.Tensor, ids: torch.Tensor, weights: torch.Tensor, z: torch.Tensor
    ) -> None:
        logits, latent = front[:, : self.shape.experts], front[:, self.shape.experts :]
        route(ids, weights, logits, self.bias, scaling=2.5, latent=latent, latent_out=z)

    def gate_up(self, z: torch.Tensor, plan: ExpertPlan, hidden: torch.Tensor) -> None:
        gate_up(
            z,
            self.w,
            plan,
            hidden,
            tiles_for(len(z), self.shape.live).gate_up[0],
            live=self.shape.live,
            beta=4.0,
            linear_beta=25.0,
            wide=False,
        )

    def down_sum(self, b: Buffers) -> None:
        self._down_sum(b.weights, b.hidden, b.ids, self.lengths, b.partial)

    def _down_sum(
        self,
        weights: torch.Tensor,
        hidden: torch.Tensor,
        ids: torch.Tensor,
        lengths: torch.Tensor,
        partial: torch.Tensor,
    ) -> None:
        live = self.shape.live
        tile = tiles_for(len(ids), live).down[0]
        down_sum(weights, hidden, self.w, ids, lengths, partial, tile, live=live, wide=False)

    def step(self, front: torch.Tensor) -> torch.Tensor:
        """The sums [M, L] of rows [M, E + L], all in memory that is allocated as a step does it."""
        shape, rows = self.shape, len(front)
        ids = torch.empty(rows, shape.k, dtype=torch.int32, device=DEVICE)
        weights = torch.empty_like(ids, dtype=torch.float32)
        z = torch.empty(rows, shape.latent, dtype=torch.bfloat16, device=DEVICE)
        lengths = torch.ones(rows, dtype=torch.int32, device=DEVICE)
        tiles = tiles_for(rows, shape.live)
        self.route(front, ids, weights, z)
        if tiles.by_pair:
            plan = ExpertPlan.by_pair(ids, tiles.tokens)
        else:
            plan = ExpertPlan.empty(ids.numel(), tiles.tokens, DEVICE)
            plan_pairs(ids, lengths, 1, plan)
        hidden = z.new_empty(ids.numel(), shape.width)
        self.gate_up(z, plan, hidden)
        partial = torch.empty_like(z)
        if tiles.by_pair:
            self._down_sum(weights, hidden, ids, lengths, partial)
        else:
            out, tile = z.new_empty(ids.numel(), shape.latent), tiles.down[0]
            down(hidden, self.w, plan, out, tile, live=shape.live, wide=False)
            weighted_sum(weights, out, lengths, 1, partial)
        return partial
