# SPDX-License-Identifier: Apache-2.0
"""An engine's settings, and the caches that a backend must allocate for them."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import torch

from fasttrack.errors import InputError, Problem
from kimi_k3.config import K3Config
from kimi_k3.engine.memory import Memory, PageLayout
from kimi_k3.engine.request import Request
from kimi_k3.engine.speculation import NO_SPECULATION, Speculation
from kimi_k3.reference.state import CacheShape

Padding = Callable[[int, int], int]
"""(live requests, rows of each) -> requests of the padded step, at least as many."""

AT_LEAST_ONE = ("max_requests", "pages", "page_size", "prefill_budget", "dcp", "interleave")


def unpadded(live: int, rows: int) -> int:
    """No null requests, however many `rows` each live one brings."""
    return live


@dataclass(frozen=True)
class EngineConfig:
    """Settings, the same on every rank and for every backend.

    Attributes:
        max_requests: that run at once; others wait.
        pages: of each KV cache.
        page_size: tokens per page.
        prefill_budget: prompt tokens per step, over all requests.
        mixed: whether a step may hold windows and prompt tokens; otherwise the two take turns.
        speculation: who drafts and who judges.
        padding: how many requests a step of equal windows is padded to.
        dcp: ranks that share the tokens of a KV cache.
        interleave: consecutive tokens that one of them holds.
        device: of the step tensors.

    Raises:
        InputError: a number below 1.
    """

    max_requests: int = 8
    pages: int = 1024
    page_size: int = 16
    prefill_budget: int = 512
    mixed: bool = True
    speculation: Speculation = NO_SPECULATION
    padding: Padding = unpadded
    dcp: int = 1
    interleave: int = 1
    device: torch.device | str = "cpu"

    def __post_init__(self) -> None:
        values = [(name, getattr(self, name)) for name in AT_LEAST_ONE]
        problems = [Problem(name, str(n), "at least 1") for name, n in values if n < 1]
        if problems:
            raise InputError(problems)

    @property
    def window(self) -> int:
        """Rows of a full window, and state slots of a request."""
        return 1 + self.speculation.draft

    @property
    def layout(self) -> PageLayout:
        """How tokens lie in pages."""
        return PageLayout(self.page_size, self.dcp, self.interleave)

    @property
    def cache_shape(self) -> CacheShape:
        """What a backend allocates, the null slot included."""
        slots = 1 + self.max_requests * self.window
        return CacheShape(slots, self.pages, self.page_size, self.speculation.draft)

    def memory(self) -> Memory:
        """All slots and pages, free."""
        return Memory(self.layout, self.window, self.max_requests, self.pages)

    def room(self, config: K3Config, request: Request) -> int:
        """Positions to reserve: all that a request may fill, its last window included."""
        return min(request.positions + self.speculation.draft, config.max_positions)

    def problems(self, config: K3Config, request: Request) -> Iterator[Problem]:
        """Everything that keeps this engine from serving `request` even when it is empty."""
        found = [*request.problems(config)]
        yield from found
        if not found and self.layout.pages(self.room(config, request)) > self.pages:
            saw = f"a request of up to {request.positions} positions"
            needed = self.layout.pages(self.room(config, request))
            want = f"one that needs at most the engine's {self.pages} pages, not {needed}"
            yield Problem("max_tokens", saw, want, f"pages {needed}")

    def sized_for(self, config: K3Config, requests: Sequence[Request]) -> "EngineConfig":
        """The same with just enough slots and pages to run `requests` side by side.

        No more than `max_requests` run at once, though; then the largest ones fit together.
        """
        needed = sorted(self.layout.pages(self.room(config, request)) for request in requests)
        most = max(1, min(self.max_requests, len(needed)))
        return replace(self, max_requests=most, pages=max(1, sum(needed[-most:])))
