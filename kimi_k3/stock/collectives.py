# SPDX-License-Identifier: Apache-2.0
"""The stock path's collectives between processes: `torch.distributed`, NCCL on GPUs.

Sums run in the dtype of their terms and in the library's order: BF16, as the stock column of spec
2.8 says. Ranks hold equal bits because each library sums an element once and sends the result.
"""

from dataclasses import dataclass

import torch
import torch.distributed as dist


@dataclass(frozen=True)
class TorchDistributed:
    """A `kimi_k3.ranks.Communicator` over an initialised process group.

    Attributes:
        group: the tensor-parallel group; None is the default one.
    """

    group: dist.ProcessGroup | None = None

    @property
    def rank(self) -> int:
        """This rank, 0-based."""
        return dist.get_rank(self.group)

    @property
    def size(self) -> int:
        """Number of ranks."""
        return dist.get_world_size(self.group)

    def all_reduce(self, x: torch.Tensor) -> torch.Tensor:
        """The sum over ranks of `x`, on every rank, in the memory of `x`.

        A copy would be one more GPU operation for each of the three sums of a layer.
        """
        dist.all_reduce(x, group=self.group)
        return x

    def all_gather(self, x: torch.Tensor, dim: int) -> torch.Tensor:
        """All ranks' `x` concatenated along `dim`, in rank order."""
        own = x.contiguous()
        parts = [torch.empty_like(own) for _ in range(self.size)]
        dist.all_gather(parts, own, group=self.group)
        return torch.cat(parts, dim=dim)

    def reduce_scatter(self, x: torch.Tensor, dim: int) -> torch.Tensor:
        """The `rank`-th of `size` equal slices along `dim` of the sum.

        Raises:
            ValueError: `dim` can not be divided.
        """
        if x.shape[dim] % self.size:
            raise ValueError(f"{x.shape[dim]} elements are no {self.size} equal slices")
        return self.all_reduce(x.clone()).chunk(self.size, dim=dim)[self.rank].contiguous()
