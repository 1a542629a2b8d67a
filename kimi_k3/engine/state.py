# SPDX-License-Identifier: Apache-2.0
"""One request on its way through an engine."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from kimi_k3.engine.memory import Reservation
from kimi_k3.engine.metrics import RequestMetrics
from kimi_k3.engine.request import Request
from kimi_k3.engine.results import FinishReason, Unfinished


@dataclass
class RequestState:
    """A request with what has become of it.

    Attributes:
        id: given by the engine.
        request: as asked for.
        tokens: prompt and generated.
        computed: tokens, from the first on, that the caches hold.
        accepted: tokens of the previous window that survived; 1 after a prefill.
        room: its slots and pages; None while it waits.
        metrics: what was counted.
    """

    id: int
    request: Request
    tokens: list[int]
    computed: int = 0
    accepted: int = 1
    room: Reservation | None = None
    metrics: RequestMetrics = field(default_factory=RequestMetrics)

    @property
    def reserved(self) -> Reservation:
        """Its slots and pages.

        Raises:
            ValueError: it waits, and has none.
        """
        if self.room is None:
            raise ValueError(f"request {self.id} has no slots and no pages")
        return self.room

    @property
    def prefilling(self) -> bool:
        """Whether parts of the prompt are still to be taken in."""
        return self.computed < len(self.request.prompt)

    @property
    def generated(self) -> tuple[int, ...]:
        """Tokens after the prompt."""
        return tuple(self.tokens[len(self.request.prompt) :])

    def draft_room(self, draft: int) -> int:
        """Draft tokens that the next window can take, of `draft`.

        A window may run past `max_tokens`: what it decides there is dropped, and the last windows
        are as long as the others. It ends at the last position that the model has.
        """
        return min(draft, self.reserved.tokens - self.computed - 1)

    def take_prompt(self, rows: int) -> None:
        """Counts `rows` tokens of the prompt as taken in."""
        self.computed += rows
        self.metrics.prefill_steps += 1

    def take_window(self, survived: int) -> None:
        """Counts a window of which the first `survived` tokens stay in the caches."""
        self.computed += survived
        self.accepted = survived

    def append(self, tokens: Sequence[int]) -> tuple[tuple[int, ...], FinishReason | None]:
        """Appends decided tokens up to the request's end.

        Returns:
            What was appended, and why the request has ended, if it has.
        """
        left = self.request.max_tokens - (len(self.tokens) - len(self.request.prompt))
        for count, token in enumerate(tokens, start=1):
            self.tokens.append(token)
            if self.request.ends_at(token):
                return tuple(tokens[:count]), FinishReason.STOP
            if count == left:
                return tuple(tokens[:count]), FinishReason.LENGTH
        return tuple(tokens), None

    def unfinished(self) -> Unfinished:
        """What an engine must be asked for to end this request."""
        done = self.generated
        left = self.request.max_tokens - len(done)
        rest = replace(self.request, prompt=tuple(self.tokens), max_tokens=left)
        return Unfinished(self.id, done, rest)
