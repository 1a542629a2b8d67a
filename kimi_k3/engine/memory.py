# SPDX-License-Identifier: Apache-2.0
"""State slots and KV pages of running requests.

A request is admitted when slots and pages for its whole possible length are free, and holds them
until it ends. What runs therefore never waits for memory, nothing is ever preempted, and the queue
can not deadlock: whatever runs ends, and an empty engine fits every request that was let in.

All ranks use the same page numbers. Under decode context parallelism a rank holds every dcp-th run
of `interleave` tokens, rank 0 the most; a request reserves the pages that rank 0 needs, and the
others may leave its last page empty.
"""

from dataclasses import dataclass

from kimi_k3.engine.pool import Pool


@dataclass(frozen=True)
class PageLayout:
    """How tokens lie in pages, as in `kimi_k3.reference.state.KvCache`.

    Attributes:
        page_size: tokens per page.
        dcp: ranks that share a request's tokens.
        interleave: consecutive tokens that one of them holds.
    """

    page_size: int
    dcp: int = 1
    interleave: int = 1

    def pages(self, tokens: int) -> int:
        """Pages of a request of `tokens` tokens on the rank that holds the most of them."""
        turns, rest = divmod(tokens, self.interleave * self.dcp)
        held = turns * self.interleave + min(rest, self.interleave)
        return -(-held // self.page_size)


@dataclass(frozen=True)
class Reservation:
    """What one running request holds.

    Attributes:
        tokens: positions there is room for.
        slots: one for each position of a window, none of them the null slot 0.
        pages: in the order of its tokens.
    """

    tokens: int
    slots: tuple[int, ...]
    pages: tuple[int, ...]


class Memory:
    """Slots and pages of one engine; the same numbers on every rank."""

    def __init__(self, layout: PageLayout, window: int, max_requests: int, pages: int) -> None:
        """All free.

        Args:
            layout: of the pages.
            window: slots per request, 1 + draft.
            max_requests: how many run at once.
            pages: of each KV cache.
        """
        self.layout = layout
        self.slots = Pool("state slots", range(1, 1 + window * max_requests))
        self.pages = Pool("pages", range(pages))
        self._window = window

    def reserve(self, tokens: int) -> Reservation | None:
        """Room for a request of `tokens` positions; None while there is none."""
        pages = self.layout.pages(tokens)
        if pages > self.pages.free or self._window > self.slots.free:
            return None
        return Reservation(tokens, self.slots.take(self._window), self.pages.take(pages))

    def release(self, reservation: Reservation) -> None:
        """Takes a request's room back.

        Raises:
            ValueError: it was taken back before.
        """
        self.slots.give(reservation.slots)
        self.pages.give(reservation.pages)

    def check_all_free(self) -> None:
        """Finds leaks when nothing runs.

        Raises:
            ValueError: a slot or a page is held.
        """
        self.slots.check_all_free()
        self.pages.check_all_free()
