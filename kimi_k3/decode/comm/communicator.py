# SPDX-License-Identifier: Apache-2.0
"""One rank's exchanges over mailboxes, whoever the peers are.

`MailboxCommunicator` holds what all stand-ins share: the order of publish, poll and re-arm, the
bounded wait, and the way a step ends. A stand-in says where publications go (`_publish`), whom a
failure is told (`_report`) and what computes the collectives of stock steps (`stock`).

**End of a step.** The last exchange, `Site.END`, carries nothing: that a rank's word has come says
that its step is over, and a rank that gave up has set `fail` on all peers before it publishes that
word. So when `end_step` returns, no rank's wait at another site was in vain, and the step's tokens
may be released. No protocol can say as much of its own last message: if a word of `Site.END` itself
is lost, the ranks that got theirs release this step and stop in the next one.
"""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import torch

from kimi_k3.decode.comm.health import DecodeFailure, Health, HealthRecord
from kimi_k3.decode.comm.interface import Site
from kimi_k3.decode.comm.mailbox import COUNTER_WRAP, Mailbox, MailboxSpec, StepCounter
from kimi_k3.decode.comm.words import WORD_BYTES, from_words
from kimi_k3.ranks import Communicator, Operation, Waiter, impossible, rank_order_sum

LIMIT_S = 10.0
"""How long a wait may last."""


@dataclass(frozen=True)
class Exchanges:
    """What all ranks of a group agree on before the first step.

    Attributes:
        size: number of ranks.
        rows: rows of the largest step.
        mailboxes: one per site that is used; `Site.END` is added.
        limit_s: seconds that a wait may last.
        start: the step counter before the first step.

    Raises:
        ValueError: a group that can exchange nothing, or a site declared twice.
    """

    size: int
    rows: int
    mailboxes: tuple[MailboxSpec, ...]
    limit_s: float = LIMIT_S
    start: int = 0

    @property
    def rank_bytes(self) -> int:
        """Memory of one rank's mailboxes."""
        return sum(
            spec.rearm.value * self.size * self.rows * spec.words * WORD_BYTES
            for spec in self.mailboxes
        )

    def __post_init__(self) -> None:
        if self.size < 1 or self.rows < 1 or self.limit_s <= 0:
            raise ValueError(
                f"{self.size} ranks, {self.rows} rows, limit {self.limit_s} s; want more than 0"
            )
        if not 0 <= self.start < COUNTER_WRAP:
            raise ValueError(f"step counter {self.start}; want 0 to {COUNTER_WRAP - 1}")
        counts = Counter([spec.site for spec in self.mailboxes] + [Site.END])
        if twice := [site for site, count in counts.items() if count > 1]:
            raise ValueError(f"mailboxes declared twice: {', '.join(twice)}")


class RankMemory:
    """What one rank allocates at build: counter, mailboxes and health; peers write into it.

    Args:
        exchanges: what to allocate.
        device: where.
        mailbox: what to allocate per site.
    """

    def __init__(
        self,
        exchanges: Exchanges,
        device: torch.device | None = None,
        mailbox: type[Mailbox] = Mailbox,
    ) -> None:
        end = MailboxSpec(Site.END, words=1, per_step=1)
        self.counter = StepCounter(exchanges.start, device)
        self.health = Health(device)
        self.mailboxes = {
            spec.site: mailbox(spec, exchanges.size, exchanges.rows, device)
            for spec in (*exchanges.mailboxes, end)
        }


def combined(
    operation: Operation, parts: Sequence[torch.Tensor], dim: int | None, rank: int
) -> torch.Tensor:
    """What `rank` gets from a collective of all ranks' `parts`, rank 0 first."""
    if operation == "all_gather":
        return torch.cat(list(parts), dim=dim or 0)
    total = rank_order_sum(parts)
    if operation == "all_reduce":
        return total
    return total.chunk(len(parts), dim=dim or 0)[rank].clone()


class Calls:
    """A communicator whose three operations are one function."""

    def __init__(
        self,
        rank: int,
        size: int,
        call: Callable[[Operation, torch.Tensor, int | None], torch.Tensor],
    ) -> None:
        self.rank = rank
        self.size = size
        self._call = call

    def all_reduce(self, x: torch.Tensor) -> torch.Tensor:
        """See `kimi_k3.ranks.Communicator`."""
        return self._call("all_reduce", x, None)

    def reduce_scatter(self, x: torch.Tensor, dim: int) -> torch.Tensor:
        """See `kimi_k3.ranks.Communicator`."""
        return self._call("reduce_scatter", x, dim)

    def all_gather(self, x: torch.Tensor, dim: int) -> torch.Tensor:
        """See `kimi_k3.ranks.Communicator`."""
        return self._call("all_gather", x, dim)


class MailboxCommunicator(Calls, ABC):
    """A `DecodeCommunicator` over mailboxes.

    Args:
        rank: this rank.
        exchanges: what the group agreed on.
        memory: this rank's memory.
        waiter: how this rank waits.
    """

    def __init__(self, rank: int, exchanges: Exchanges, memory: RankMemory, waiter: Waiter) -> None:
        super().__init__(rank, exchanges.size, partial(self._exchange, Site.STEP))
        self._exchanges = exchanges
        self._memory = memory
        self._waiter = waiter
        self._done: Counter[Site] | None = None  # exchanges of the running step
        self._failure: HealthRecord | None = None

    @abstractmethod
    def _publish(self, mailbox: Mailbox, ordinal: int, words: torch.Tensor) -> None:
        """Stores `words` [rows, n] wherever a rank polls for this rank's."""

    @abstractmethod
    def _report(self, record: HealthRecord) -> None:
        """Sets `fail` on this rank and on every peer that can be reached."""

    @property
    @abstractmethod
    def stock(self) -> Communicator:
        """See `DecodeCommunicator`."""

    @property
    def failed(self) -> bool:
        """See `DecodeCommunicator`."""
        return self._memory.health.failed

    def at(self, site: Site) -> Communicator:
        """See `DecodeCommunicator`."""
        return Calls(self.rank, self.size, partial(self._exchange, site))

    def begin_step(self, rows: int) -> None:
        """See `DecodeCommunicator`."""
        self._stop_if_failed()
        if self._done is not None:
            raise ValueError("a step begins before the last one has ended")
        if not 1 <= rows <= self._exchanges.rows:
            raise ValueError(f"a step of {rows} rows; want 1 to {self._exchanges.rows}")
        self._memory.counter.advance(rows)
        self._done = Counter()

    def end_step(self) -> None:
        """See `DecodeCommunicator`."""
        done = self._running()
        for spec in self._exchanges.mailboxes:
            if done[spec.site] != spec.per_step:
                raise ValueError(
                    f"{done[spec.site]} exchanges at {spec.site} in a step; want {spec.per_step}"
                )
        rows = self._memory.counter.rows
        device = self._memory.counter.record.device
        self._trade(Site.END, torch.zeros(rows, 1, device=device))
        self._done = None
        self._stop_if_failed()

    def _stop_if_failed(self) -> None:
        """Raises what ended the group, now and ever after."""
        if self._failure is None and self._memory.health.failed:
            self._failure = self._memory.health.record
        if self._failure is not None:
            raise DecodeFailure(self._failure)

    def _running(self) -> Counter[Site]:
        """Exchanges of the running step so far."""
        if self._failure is not None:
            raise DecodeFailure(self._failure)
        if self._done is None:
            raise ValueError("no step has begun")
        return self._done

    def _exchange(
        self, site: Site, operation: Operation, x: torch.Tensor, dim: int | None
    ) -> torch.Tensor:
        """One collective: the same values and bits as `kimi_k3.ranks` computes."""
        self._running()
        if problem := impossible(operation, x, dim, self.size):
            raise ValueError(f"{operation} of {list(x.shape)} at {site}: {problem}")
        return combined(operation, self._trade(site, x), dim, self.rank)

    def _trade(self, site: Site, x: torch.Tensor) -> Sequence[torch.Tensor]:
        """Every rank's `x`, rank 0 first; zeros when a wait was in vain."""
        counter = self._memory.counter
        mailbox, ordinal = self._take(site)
        rows = counter.rows
        if not x.numel() or x.numel() % rows:
            raise ValueError(f"{list(x.shape)} at {site} has no equal parts for {rows} rows")
        flat = x.reshape(rows, -1)
        words = mailbox.words_of(flat)
        if words.shape[1] > mailbox.spec.words:
            raise ValueError(
                f"{words.shape[1]} words per row at {site}; the mailbox has {mailbox.spec.words}"
            )
        self._publish(mailbox, ordinal, words)
        loaded = self._poll(mailbox, ordinal, words)
        mailbox.rearm(counter, ordinal)
        if loaded is None:
            return [torch.zeros_like(x)] * self.size
        return [from_words(part, flat.shape[1], x.dtype).reshape(x.shape) for part in loaded]

    def _take(self, site: Site) -> tuple[Mailbox, int]:
        """The mailbox of `site`, and the ordinal of its next exchange."""
        mailbox = self._memory.mailboxes.get(site)
        if mailbox is None:
            raise ValueError(f"no mailbox for site {site}")
        done = self._running()
        ordinal = done[site]
        if ordinal == mailbox.spec.per_step:
            raise ValueError(f"more than {ordinal} exchanges at {site} in a step")
        done[site] += 1
        return mailbox, ordinal

    def _poll(self, mailbox: Mailbox, ordinal: int, words: torch.Tensor) -> torch.Tensor | None:
        """All ranks' words [source, rows, n]; None when this or another wait was in vain."""
        counter, health = self._memory.counter, self._memory.health
        parity = mailbox.parity(counter.step, ordinal)
        loaded = torch.empty(0)

        def ready() -> bool:
            nonlocal loaded
            if health.failed:
                return True
            loaded = mailbox.load(parity, *words.shape)
            return bool(mailbox.came(loaded).all())

        if not self._waiter.wait_until(ready, self._waiter.now() + self._exchanges.limit_s):
            seen = mailbox.came(loaded).sum(dim=(1, 2)).tolist()
            slot = next(source for source, count in enumerate(seen) if count < words.numel())
            self._report(
                HealthRecord(
                    self.rank,
                    mailbox.spec.site,
                    ordinal,
                    counter.step,
                    slot,
                    words.numel(),
                    seen[slot],
                )
            )
        return None if health.failed else loaded
