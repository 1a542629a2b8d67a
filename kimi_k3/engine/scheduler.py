# SPDX-License-Identifier: Apache-2.0
"""Who runs and who waits, and what each brings to the next step.

Requests are admitted in the order in which they came; one that does not fit holds back those behind
it, so that none waits for ever. All running requests take part in every step they can: decoding
ones with a window, those with a prompt left with a chunk of it, as far as the budget goes, the
earliest first. Where windows and prompts may not be mixed they take turns.
"""

from collections import deque
from collections.abc import Iterator

from kimi_k3.engine.batch import Batch, Part, arrange
from kimi_k3.engine.drafters import Draft
from kimi_k3.engine.options import EngineConfig
from kimi_k3.engine.state import RequestState
from kimi_k3.step import Kind


class Scheduler:
    """The queue and the running requests of one engine."""

    def __init__(self, options: EngineConfig, vocab_size: int) -> None:
        """Nothing waits and nothing runs.

        Args:
            options: the engine's settings.
            vocab_size: of the model; drafts are checked against it.
        """
        self.memory = options.memory()
        self._options = options
        self._vocab_size = vocab_size
        self._waiting: deque[tuple[RequestState, int]] = deque()
        self._running: list[RequestState] = []
        self._windows_next = False

    def __iter__(self) -> Iterator[RequestState]:
        """All requests that have not ended, in the order in which they came."""
        yield from self._running
        yield from (state for state, _ in self._waiting)

    def add(self, state: RequestState, positions: int) -> None:
        """Queues a request that an empty memory has room for.

        Args:
            state: the request.
            positions: to reserve.
        """
        self._waiting.append((state, positions))

    def remove(self, state: RequestState) -> None:
        """Forgets a request; its slots and pages are free at once.

        Raises:
            ValueError: it is not here.
        """
        if state.room is None:
            kept = [entry for entry in self._waiting if entry[0] is not state]
            if len(kept) == len(self._waiting):
                raise ValueError(f"request {state.id} neither waits nor runs")
            self._waiting = deque(kept)
            return
        self._running.remove(state)
        self.memory.release(state.room)
        state.room = None

    def next_batch(self) -> Batch | None:
        """Admits what fits, then says who takes part in the next step; None when nobody is here.

        Raises:
            ValueError: slots or pages have leaked, or a drafter answered what it may not.
        """
        if not self._running:
            self.memory.check_all_free()
        self._admit()
        prompts = [state for state in self._running if state.prefilling]
        windows = [state for state in self._running if not state.prefilling]
        if prompts and windows and not self._options.mixed:
            prompts, windows = ([], windows) if self._windows_next else (prompts, [])
        self._windows_next = bool(prompts)
        parts = [*map(self._window, windows), *self._chunks(prompts)]
        return arrange(parts, self._options.padding) if parts else None

    def _admit(self) -> None:
        while self._waiting:
            state, positions = self._waiting[0]
            state.room = self.memory.reserve(positions)
            if state.room is None:
                return
            self._waiting.popleft()
            self._running.append(state)

    def _chunks(self, prompts: list[RequestState]) -> Iterator[Part]:
        budget = self._options.prefill_budget
        for state in prompts:
            tokens = state.request.prompt[state.computed : state.computed + budget]
            if tokens:
                yield Part(state, Kind.PREFILL, tokens)
            budget -= len(tokens)

    def _window(self, state: RequestState) -> Part:
        room = state.draft_room(self._options.speculation.draft)
        draft = Draft()
        if room > 0:
            sampling = state.request.sampling
            draft = self._options.speculation.drafter.propose(state.tokens, room, sampling)
        if len(draft.tokens) > room or any(
            not 0 <= token < self._vocab_size for token in draft.tokens
        ):
            asked = f"at most {room} tokens below {self._vocab_size}"
            raise ValueError(f"the drafter proposed {draft.tokens}; it was asked for {asked}")
        return Part(state, Kind.WINDOW, (state.tokens[-1], *draft.tokens), draft)
