# SPDX-License-Identifier: Apache-2.0
"""What the stock path's layer loop asks of a device: eight operations, collectives included.

`torch_ops.TorchOps` answers on a CPU, `cuda.ops.CudaOps` on a GPU. M rows, H hidden width.
"""

from dataclasses import dataclass
from typing import Protocol, TypeVar, runtime_checkable

import torch

from kimi_k3.packed import PackedFfn, PackedKda, PackedMix, PackedMla, PackedMoe
from kimi_k3.reference.state import KdaState, KvCache
from kimi_k3.step import Step

P = TypeVar("P")
"""What a device's layers need of a step."""


@dataclass(frozen=True)
class Residual:
    """The residual stream between two operations.

    Attributes:
        prefix: [M, H] the running sum since the last block write.
        pending: [M, H] each: what is still to be added, as one rounded sum; none, the output of
            attention or of a dense FFN, or the routed and the shared half of a mixture of experts.
        blocks: [M, blocks, H] memory of the saved blocks.
        saved: how many of them are valid.
    """

    prefix: torch.Tensor
    pending: tuple[torch.Tensor, ...]
    blocks: torch.Tensor
    saved: int


@runtime_checkable
class SumsAndNorms(Protocol):
    """A communicator that can norm a sum in the operation that computes it."""

    def all_reduce_norm(self, x: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
        """RMSNorm of the sum over ranks of `x` [M, W], with weight [W]."""


class StockOps(Protocol[P]):
    """The operations, in the order of a step."""

    def embed(self, token_ids: torch.Tensor) -> torch.Tensor:
        """Embedding rows [M, H] of ids [M]."""

    def blocks(self, rows: int) -> torch.Tensor:
        """Memory [rows, blocks, H] for the saved blocks of one step."""

    def mix(
        self, w: PackedMix, stream: Residual, *, write: bool
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Adds what is pending and mixes all sources.

        Args:
            w: score and norm weights.
            stream: before the sum.
            write: also save the updated prefix as the next block; it joins later mixes only.

        Returns:
            x [M, H], and the updated prefix [M, H].
        """

    def prepare(self, step: Step) -> P:
        """What every layer needs of a step, made once."""

    def attention(
        self, w: PackedKda | PackedMla, x: torch.Tensor, state: KdaState | KvCache, prepared: P
    ) -> torch.Tensor:
        """The attention block [M, H] of x [M, H], summed over ranks; advances `state`."""

    def ffn(
        self, w: PackedFfn | PackedMoe, y: torch.Tensor, prepared: P
    ) -> tuple[torch.Tensor, ...]:
        """The FFN's addends [M, H] of y [M, H], each summed over ranks."""

    def logits(self, hidden: torch.Tensor) -> torch.Tensor:
        """Logits [n, V] over all ranks' vocabulary, of h [n, H] before the last norm."""
