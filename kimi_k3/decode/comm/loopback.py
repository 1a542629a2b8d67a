# SPDX-License-Identifier: Apache-2.0
"""One rank alone that plays its group: it stores its own partial into the slots of all ranks.

So the reader polls, sums and re-arms as many slots as in a real group, with the right number of
local bytes. Every sum is the rank-order sum of `size` equal terms and every gather `size` equal
parts: right in shape, wrong as a model. It serves to measure one rank's share of a layer on one
device. It says nothing about an interconnect, and no number from it is a statement about several
GPUs.
"""

import torch

from kimi_k3.decode.comm.communicator import (
    Calls,
    Exchanges,
    MailboxCommunicator,
    RankMemory,
    combined,
)
from kimi_k3.decode.comm.health import HealthRecord, spread
from kimi_k3.decode.comm.mailbox import Mailbox
from kimi_k3.ranks import Communicator, Operation, SingleRank


class LoopbackCommunicator(MailboxCommunicator):
    """A rank whose peers are all itself.

    Args:
        exchanges: what the group would agree on.
        rank: which rank of it to be.
        device: where the mailboxes live.
    """

    def __init__(
        self, exchanges: Exchanges, rank: int = 0, device: torch.device | None = None
    ) -> None:
        if not 0 <= rank < exchanges.size:
            raise ValueError(f"rank {rank}; want 0 to {exchanges.size - 1}")
        super().__init__(rank, exchanges, RankMemory(exchanges, device), SingleRank())

    @property
    def stock(self) -> Communicator:
        """The same group of equal ranks, without mailboxes."""
        return Calls(self.rank, self.size, self._stock)

    def _stock(self, operation: Operation, x: torch.Tensor, dim: int | None) -> torch.Tensor:
        self._stop_if_failed()
        return combined(operation, [x] * self.size, dim, self.rank)

    def _publish(self, mailbox: Mailbox, ordinal: int, words: torch.Tensor) -> None:
        rows, width = words.shape
        parity = mailbox.parity(self._memory.counter.step, ordinal)
        mailbox.slots[parity, :, :rows, :width] = words

    def _report(self, record: HealthRecord) -> None:
        spread(record, [self._memory.health], lambda: None)
