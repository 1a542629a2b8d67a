# SPDX-License-Identifier: Apache-2.0
"""What a rank leaves behind when a wait was in vain, and the one error that all ranks raise.

Every rank owns a *health record* and a sticky word `fail`, which its peers write. A rank whose
wait reaches the deadline offers its record to the ranks one after the other, rank 0 first, and sets
their `fail`. A record is claimed by compare-and-swap: who comes second takes over the record that
stands there and offers that one to the remaining ranks. Since all begin at the same rank, one
record wins everywhere, also when several ranks time out together. Once a rank's `fail` is set, none
of its waits waits.
"""

from collections.abc import Callable, Sequence
from dataclasses import astuple, dataclass

import torch

from fasttrack.errors import FasttrackError
from kimi_k3.decode.comm.interface import Site

_SITES = tuple(Site)


@dataclass(frozen=True)
class HealthRecord:
    """A wait that was in vain.

    Attributes:
        rank: who waited.
        site: where in the step.
        ordinal: which exchange of the site.
        step: the device step counter.
        slot: the first source rank whose words were missing.
        expected: words that the slot should have got.
        seen: how many of them had come.
    """

    rank: int
    site: Site
    ordinal: int
    step: int
    slot: int
    expected: int
    seen: int

    def __str__(self) -> str:
        return (
            f"rank {self.rank} waited in vain at {self.site} {self.ordinal} of step {self.step}: "
            f"{self.seen} of {self.expected} words of rank {self.slot} came"
        )


class DecodeFailure(FasttrackError):  # noqa: N818  (what has failed is the step, for good)
    """A rank of the decode path is lost or went another way; raised on every rank that is left."""

    def __init__(self, record: HealthRecord) -> None:
        self.record = record
        super().__init__(f"{record}; no rank goes on until all are rebuilt")


class Health:
    """One rank's health as its peers see it: `fail` int32 [1]; `words` int64 [8], the claim first.

    Attributes:
        reachable: whether peers can still write here; a dead rank's memory is gone.
    """

    def __init__(self, device: torch.device | None = None) -> None:
        self.fail = torch.zeros(1, dtype=torch.int32, device=device)
        self.words = torch.zeros(8, dtype=torch.int64, device=device)
        self.reachable = True

    @property
    def failed(self) -> bool:
        """Whether `fail` is set."""
        return bool(self.fail)

    @property
    def record(self) -> HealthRecord:
        """The record that was claimed first; ValueError when there is none."""
        claimed, rank, site, *rest = self.words.tolist()
        if not claimed:
            raise ValueError("the health record is empty")
        return HealthRecord(rank, _SITES[site], *rest)

    def claim(self, record: HealthRecord) -> HealthRecord:
        """Leaves `record` here unless another stands here; returns the one that stands."""
        if not self.words[0]:
            rank, site, *rest = astuple(record)
            self.words.copy_(torch.tensor([1, rank, _SITES.index(site), *rest]))
        return self.record

    def set_failed(self) -> None:
        """Sets `fail`, for good."""
        self.fail.fill_(1)


def spread(record: HealthRecord, ranks: Sequence[Health], pause: Callable[[], None]) -> None:
    """Tells every rank that can be reached of a wait in vain.

    Args:
        record: what this rank would leave.
        ranks: all ranks' health, rank 0 first.
        pause: called after each rank; the simulation lets others run there.
    """
    for health in ranks:
        if health.reachable:
            record = health.claim(record)
            health.set_failed()
            pause()
