# SPDX-License-Identifier: Apache-2.0
"""All ranks in one process, on the CPU: the protocol of the kernels, simulated.

The ranks take turns (`kimi_k3.ranks`), every rank's mailboxes are tensors that the others write,
and a wait lasts on a simulated clock. With a seed, turns go to random ranks; with `pieces` above 1,
a publication is stored in that many pieces per direction, in random order, and others may run
between any two stores. It stands in for peers in what they compute and in how they fail, never in
how long they take.
"""

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import ClassVar, Generic, TypeVar

import torch

from kimi_k3.decode.comm.communicator import Calls, Exchanges, MailboxCommunicator, RankMemory
from kimi_k3.decode.comm.faults import Fault, Place, RankFaults, RankKilled
from kimi_k3.decode.comm.health import DecodeFailure, HealthRecord, spread
from kimi_k3.decode.comm.interface import Site
from kimi_k3.decode.comm.mailbox import COUNTER_WRAP, Mailbox
from kimi_k3.ranks import Communicator, Operation, Rank, RankError, run_ranks

T = TypeVar("T")


@dataclass(frozen=True)
class Skew:
    """How ranks run against each other.

    Attributes:
        seed: of the orders of turns and stores; None for ranks in turn.
        pieces: in how many pieces rows, and words of a row, are stored, with a turn after each;
            0 to store everything in one turn.
    """

    seed: int | None = None
    pieces: int = 0


@dataclass(frozen=True)
class Ended(Generic[T]):
    """How a rank ended.

    Attributes:
        value: what its function returned; None after a failure.
        failure: the failure that it raised.
        killed: whether a planted fault ended it.
        time_s: when, on the simulated clock.
    """

    value: T | None
    failure: DecodeFailure | None
    killed: bool
    time_s: float


class LocalGroup:
    """The memory of all ranks; a new one is a rebuild.

    Args:
        exchanges: what the ranks agree on.
        faults: what goes wrong.
        skew: how the ranks run against each other.
    """

    mailbox: ClassVar[type[Mailbox]] = Mailbox

    def __init__(
        self, exchanges: Exchanges, faults: Sequence[Fault] = (), skew: Skew | None = None
    ) -> None:
        self.exchanges = exchanges
        self.faults = tuple(faults)
        self.skew = skew or Skew()
        self.memories = [RankMemory(exchanges, mailbox=self.mailbox) for _ in range(exchanges.size)]

    def communicator(self, rank: Rank) -> "LocalCommunicator":
        """The communicator of a rank of `run_ranks`; one per rank and group.

        Raises:
            ValueError: the group of `rank` has another size.
        """
        if rank.size != self.exchanges.size:
            raise ValueError(f"a group of {rank.size} ranks; want {self.exchanges.size}")
        return LocalCommunicator(self, rank)

    def run(self, function: Callable[["LocalCommunicator"], T]) -> list[Ended[T]]:
        """Runs `function` once per rank; returns how each ended, rank 0 first.

        Raises:
            RankError: ranks did different things, and no failure told all that are left of it.
        """
        ended: dict[int, Ended[T]] = {}

        def one_rank(rank: Rank) -> None:
            value, failure, killed = None, None, False
            try:
                value = function(self.communicator(rank))
            except DecodeFailure as error:
                failure = error
            except RankKilled:
                killed = True
            ended[rank.rank] = Ended(value, failure, killed, rank.now())

        try:
            run_ranks(self.exchanges.size, one_rank, seed=self.skew.seed)
        except RankError:
            if len(ended) < self.exchanges.size:
                raise
        return [ended[rank] for rank in range(self.exchanges.size)]


class LocalCommunicator(MailboxCommunicator):
    """One rank of a `LocalGroup`."""

    def __init__(self, group: LocalGroup, rank: Rank) -> None:
        super().__init__(rank.rank, group.exchanges, group.memories[rank.rank], rank)
        self._group = group
        self._rank = rank
        self._faults = RankFaults(group.faults, rank.rank)
        self._falls_back = False
        self._random = random.Random(f"{group.skew.seed} {self.rank}")  # noqa: S311  (no secret)

    @property
    def stock(self) -> Communicator:
        """The collectives of `run_ranks`; an error there is the failure, when there is one."""
        return Calls(self.rank, self.size, self._stock)

    def now(self) -> float:
        """Seconds on the simulated clock."""
        return self._rank.now()

    def begin_step(self, rows: int) -> None:
        """See `DecodeCommunicator`."""
        self._stop_if_failed()
        self._falls_back = self._faults.falls_back((self._memory.counter.step + 1) % COUNTER_WRAP)
        if not self._falls_back:
            super().begin_step(rows)

    def end_step(self) -> None:
        """See `DecodeCommunicator`."""
        if self._falls_back:
            self._stop_if_failed()
        else:
            super().end_step()

    def _exchange(
        self, site: Site, operation: Operation, x: torch.Tensor, dim: int | None
    ) -> torch.Tensor:
        if self._falls_back:
            return self._stock(operation, x, dim)
        return super()._exchange(site, operation, x, dim)

    def _stock(self, operation: Operation, x: torch.Tensor, dim: int | None) -> torch.Tensor:
        self._stop_if_failed()
        with self._failure_first():
            if operation == "all_reduce":
                return self._rank.all_reduce(x)
            if operation == "all_gather":
                return self._rank.all_gather(x, dim or 0)
            return self._rank.reduce_scatter(x, dim or 0)

    @contextmanager
    def _failure_first(self) -> Iterator[None]:
        """Peers that gave up are missing in a collective: what they gave up for is the error."""
        try:
            yield
        except RankError:
            self._stop_if_failed()
            raise

    def _publish(self, mailbox: Mailbox, ordinal: int, words: torch.Tensor) -> None:
        place = Place(self._memory.counter.step, mailbox.spec.site, ordinal)
        if seconds := self._faults.delay_s(place):
            self._rank.sleep(seconds)
        last = self._faults.kill(place)
        for peer, memory in enumerate(self._group.memories):
            if peer == last:
                break
            drop = self._faults.drop(place, peer)
            if drop is None:
                self._store(memory.mailboxes[place.site], ordinal, words)
            elif drop.word is not None:
                torn = words.clone()
                torn.view(-1)[drop.word] = mailbox.spec.sentinel.value  # as if never stored
                self._store(memory.mailboxes[place.site], ordinal, torn)
        if last is not None:
            self._memory.health.reachable = False
            raise RankKilled

    def _store(self, mailbox: Mailbox, ordinal: int, words: torch.Tensor) -> None:
        """Stores into one peer's mailbox, in pieces if the skew says so."""
        rows, width = words.shape
        slot = mailbox.slots[mailbox.parity(self._memory.counter.step, ordinal), self.rank]
        if not self._group.skew.pieces:
            slot[:rows, :width] = words
            return
        pieces = [(r, w) for r in self._pieces(rows) for w in self._pieces(width)]
        self._random.shuffle(pieces)
        for piece in pieces:
            slot[piece] = words[piece]
            self._pause()

    def _pieces(self, length: int) -> list[slice]:
        step = -(-length // self._group.skew.pieces)
        return [slice(start, min(start + step, length)) for start in range(0, length, step)]

    def _pause(self) -> None:
        if self._group.skew.pieces:
            self._rank.sleep(0)

    def _report(self, record: HealthRecord) -> None:
        spread(record, [memory.health for memory in self._group.memories], self._pause)
