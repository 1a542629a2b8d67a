# SPDX-License-Identifier: Apache-2.0
"""Mailboxes: the word that a peer stores is its own ready flag.

A mailbox belongs to one rank and one site: `slots` [parity, source rank, rows, words], every word
armed with the sentinel. An *exchange* of the site does, on every rank:

1. publish: store the own words into slot [parity, own rank] of every rank's mailbox;
2. poll: load the slots of all source ranks until no loaded word is the sentinel; the loaded words
   are the ones used, nothing is loaded again;
3. re-arm: write the sentinel back.

Nothing else is synchronised: no fence, no flag, and only single 32-bit stores need to be atomic,
because every word is checked.

**Parities.** Let e number the exchanges of one mailbox over all steps; e uses parity e mod P. A
rank publishes e only after it has finished the poll of e - 1, for which *every* peer had published
e - 1. So a rank is at most one exchange ahead of any other: it may store e while a peer still polls
e - 1, never while one polls e - 2.

* `Rearm.AT_ONCE`, P = 2. A peer that has published e - 1 had re-armed e - 2 before, in program
  order, and e - 2 is what last used the slots of e. With P = 1 the store of e would meet slots
  that a peer still polls for e - 1, or that it is about to re-arm.
* `Rearm.AT_NEXT`, P = 3. The poll of e is followed by the re-arm of e - 1 (the reader's next
  kernel does it in passing). A peer that has published e - 1 had re-armed e - 3, which last used
  the slots of e. With P = 2 the slots of e would be those of e - 2, which a peer that polls e - 1
  has not re-armed yet.

Between re-arm and the next publication lies, on a GPU, a kernel boundary or a release fence: it is
what makes "before, in program order" hold for other GPUs too.

**Nothing per step is baked into a graph.** A step's first operation advances `StepCounter`, which
lives in a tensor. The parity is f(counter, ordinal): a step makes `per_step` exchanges of the site,
so e = counter x per_step + ordinal. How many rows to re-arm is read from the same tensor, of the
step that wrote the slot: the step before may have had more rows than this one. The counter wraps at
`COUNTER_WRAP`, a multiple of 2 and 3, so that e mod P goes on without a jump. Steps that fall back
leave counter and mailboxes alone, on all ranks alike; the next planned step finds them as the last
one left them.
"""

from dataclasses import dataclass
from enum import Enum

import torch

from kimi_k3.decode.comm.interface import Site
from kimi_k3.decode.comm.words import Sentinel, sanitised, to_words

COUNTER_WRAP = 3 * 2**30
"""The step counter's period: below 2^32, and a multiple of every number of parities."""


class Rearm(Enum):
    """When a reader re-arms what it has read; the value is how many parities that needs."""

    AT_ONCE = 2
    """Right after reading."""
    AT_NEXT = 3
    """After reading the site's next exchange, which may lie in the next step."""


@dataclass(frozen=True)
class MailboxSpec:
    """One kind of mailbox.

    Attributes:
        site: whose exchanges it carries.
        words: capacity of a row (`words.words_for`); an exchange may send fewer.
        per_step: exchanges of the site in every step.
        rearm: when slots are re-armed.
        sentinel: the word that says "not yet written".

    Raises:
        ValueError: nothing would ever be exchanged.
    """

    site: Site
    words: int
    per_step: int
    rearm: Rearm = Rearm.AT_ONCE
    sentinel: Sentinel = Sentinel.ALL_ONES

    def __post_init__(self) -> None:
        if self.words < 1 or self.per_step < 1:
            raise ValueError(
                f"mailbox {self.site}: {self.words} words, {self.per_step} exchanges per step; "
                "want at least 1 each"
            )


class StepCounter:
    """A rank's device-side record of the running step: int64 [3] = step, rows, rows of the last.

    Args:
        start: the counter before the first step.
        device: where it lives.
    """

    def __init__(self, start: int = 0, device: torch.device | None = None) -> None:
        self.record = torch.tensor([start, 0, 0], dtype=torch.int64, device=device)

    def advance(self, rows: int) -> None:
        """The first operation of a step of `rows` rows."""
        self.record[0] = (self.record[0] + 1) % COUNTER_WRAP
        self.record[2] = self.record[1]
        self.record[1] = rows

    @property
    def step(self) -> int:
        """Number of the running step, modulo `COUNTER_WRAP`."""
        return int(self.record[0])

    @property
    def rows(self) -> int:
        """Rows of the running step."""
        return int(self.record[1])

    @property
    def rows_before(self) -> int:
        """Rows of the step before; 0 in the first."""
        return int(self.record[2])


class Mailbox:
    """One rank's mailbox of one site.

    Args:
        spec: which.
        size: source ranks.
        rows: capacity, in rows of a step.
        device: where it lives.
    """

    def __init__(
        self, spec: MailboxSpec, size: int, rows: int, device: torch.device | None = None
    ) -> None:
        self.spec = spec
        shape = (spec.rearm.value, size, rows, spec.words)
        self.slots = torch.full(shape, spec.sentinel.value, dtype=torch.int32, device=device)

    def parity(self, step: int, ordinal: int) -> int:
        """Which slots exchange `ordinal` of step `step` uses."""
        return (step * self.spec.per_step + ordinal) % len(self.slots)

    def words_of(self, x: torch.Tensor) -> torch.Tensor:
        """The rows [n, elements] of `x` as words [n, w] to publish, none of them the sentinel."""
        return to_words(sanitised(x, self.spec.sentinel))

    def load(self, parity: int, rows: int, words: int) -> torch.Tensor:
        """A copy [source, rows, words] of what the slots hold now."""
        return self.slots[parity, :, :rows, :words].clone()

    def came(self, loaded: torch.Tensor) -> torch.Tensor:
        """Which of the loaded words have been written: bool, of the same shape."""
        return loaded != self.spec.sentinel.value

    def rearm(self, counter: StepCounter, ordinal: int) -> None:
        """Arms what exchange `ordinal` of the running step is to arm, after its poll."""
        if self.spec.rearm is Rearm.AT_ONCE:
            self._arm(self.parity(counter.step, ordinal), counter.rows)
        else:
            writer = counter.rows if ordinal else counter.rows_before
            self._arm(self.parity(counter.step, ordinal - 1), writer)

    def _arm(self, parity: int, rows: int) -> None:
        self.slots[parity, :, :rows] = self.spec.sentinel.value
