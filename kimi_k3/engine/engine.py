# SPDX-License-Identifier: Apache-2.0
"""The engine: requests in, tokens out, one step of the model at a time.

A step: (1) admit what fits and plan who takes part, (2) compute, (3) judge every window, (4) commit
the tokens. Nothing is released before all of (2) and (3) is done. When the backend fails in
between, no token of that step exists, and the engine is of no use any more: its caches may be ahead
of its requests. What was released stays readable, and what is left can be asked of another engine.

A request whose logits are no numbers ends with an error; the others go on.
"""

from collections.abc import Sequence

from fasttrack.errors import FasttrackError, InputError, Problem
from kimi_k3.config import K3Config
from kimi_k3.engine.acceptance import Verdict, Window
from kimi_k3.engine.batch import Batch, Part
from kimi_k3.engine.metrics import EngineMetrics
from kimi_k3.engine.options import EngineConfig
from kimi_k3.engine.request import Request
from kimi_k3.engine.results import Event, FinishReason, Result, Unfinished
from kimi_k3.engine.sampler import StepLogits
from kimi_k3.engine.scheduler import Scheduler
from kimi_k3.engine.state import RequestState
from kimi_k3.step import Backend, Kind, Step, lasting


class Engine:
    """Continuous batching on one rank; every rank's engine is given the same calls.

    Attributes:
        metrics: what was counted.
        scheduler: queue, running requests and memory.
    """

    def __init__(self, config: K3Config, backend: Backend, options: EngineConfig) -> None:
        """An idle engine.

        Args:
            config: the model.
            backend: its caches have `options.cache_shape`, and are this engine's alone.
            options: settings.
        """
        self.metrics = EngineMetrics()
        self.scheduler = Scheduler(options, config.vocab_size)
        self._config = config
        self._backend = backend
        self._options = options
        self._next_id = 0
        self._events: list[Event] = []
        self._failure: FasttrackError | None = None

    @property
    def idle(self) -> bool:
        """Whether no request waits or runs."""
        return next(iter(self.scheduler), None) is None

    def add(self, request: Request) -> int:
        """Queues a request and returns its id.

        Raises:
            InputError: it can not be served, for every reason there is.
            FasttrackError: the engine has failed.
        """
        self._check_usable()
        problems = [*self._options.problems(self._config, request)]
        if problems:
            raise InputError(problems)
        state = RequestState(self._next_id, request, [*request.prompt])
        self._next_id += 1
        self.scheduler.add(state, self._options.room(self._config, request))
        return state.id

    def abort(self, request: int) -> bool:
        """Ends a request; its slots and pages are free at once, the next `step` tells of it.

        Returns:
            False when it has ended already.

        Raises:
            ValueError: there never was such a request.
            FasttrackError: the engine has failed.
        """
        self._check_usable()
        if not 0 <= request < self._next_id:
            raise ValueError(f"abort of request {request}; ids so far are below {self._next_id}")
        for state in self.scheduler:
            if state.id == request:
                self._events.append(self._end(state, (), FinishReason.ABORTED))
                return True
        return False

    def step(self) -> list[Event]:
        """Computes one step, if there is anything to do, and returns what is new.

        After a failure the first call still tells of requests that were aborted before it.

        Raises:
            FasttrackError: the backend failed, now or in an earlier call; no token of the step that
                failed was released, and none will be.
        """
        if self._failure is not None and self._events:
            events, self._events = self._events, []
            return events
        self._check_usable()
        batch = self.scheduler.next_batch()
        verdicts = self._compute(batch) if batch else []
        events, self._events = self._events, []
        if batch:
            self._count(batch)
            for part, verdict in zip(batch.parts, verdicts, strict=True):
                events.extend(self._commit(part, verdict))
        return events

    def run_all(self) -> list[Result]:
        """Steps until all requests have ended; their results, in the order of their ids."""
        results: list[Result] = []
        while not self.idle or self._events:
            results.extend(event.result for event in self.step() if event.result)
        return sorted(results, key=lambda result: result.request)

    def generate(self, requests: Sequence[Request]) -> list[Result]:
        """Runs requests on an idle engine; their results, in the order of the requests.

        Raises:
            InputError: some can not be served, for every reason there is; none has run.
            ValueError: the engine has other requests.
            FasttrackError: see `step`.
        """
        self._check_usable()
        if not self.idle or self._events:
            raise ValueError("generate wants an engine without requests")
        problems = [
            Problem(f"request {index}: {p.where}", p.saw, p.want, p.fix)
            for index, request in enumerate(requests)
            for p in self._options.problems(self._config, request)
        ]
        if problems:
            raise InputError(problems)
        for request in requests:
            self.add(request)
        return self.run_all()

    def unfinished(self) -> list[Unfinished]:
        """Requests that have not ended, in the order of their ids; also after a failure."""
        return [state.unfinished() for state in self.scheduler]

    def _check_usable(self) -> None:
        if self._failure is not None:
            raise self._failure

    def _compute(self, batch: Batch) -> list[Verdict | None]:
        """Runs the step and judges its windows; None for a chunk that does not end its prompt."""
        options = self._options
        step = batch.step(options.window, options.layout, options.device)
        try:
            return self._judge(batch, self._logits(step))
        except BaseException as error:  # also an interrupt: the caches may be ahead
            self._failure = lasting(error)
            raise

    def _logits(self, step: Step) -> StepLogits:
        logits = StepLogits(self._backend.step(step).logits)
        wanted = len(step.shape.logit_rows())
        if logits.rows != wanted:
            raise ValueError(f"the backend returned {logits.rows} rows of logits, not {wanted}")
        return logits

    def _judge(self, batch: Batch, logits: StepLogits) -> list[Verdict | None]:
        acceptance = self._options.speculation.acceptance
        verdicts: list[Verdict | None] = []
        row = 0
        for part in batch.parts:
            state = part.state
            window = Window(
                logits, row, part.draft, state.request.sampling, len(state.tokens), state.id
            )
            verdicts.append(acceptance.judge(window) if part.decides else None)
            row += part.logit_rows
        return verdicts

    def _count(self, batch: Batch) -> None:
        self.metrics.steps[batch.kind] += 1
        self.metrics.null_requests += batch.null_requests

    def _commit(self, part: Part, verdict: Verdict | None) -> list[Event]:
        """Moves a request past a step; at most one event."""
        state = part.state
        if part.kind is Kind.PREFILL:
            state.take_prompt(len(part.tokens))
            self.metrics.prompt_tokens += len(part.tokens)
        elif verdict is not None:
            drafted, stood = len(part.draft.tokens), len(verdict.tokens) - (not verdict.failed)
            state.take_window(len(verdict.tokens))
            for counts in (state.metrics.speculation, self.metrics.speculation):
                counts.count(drafted, stood)
        if verdict is None:
            return []
        tokens, reason = state.append(verdict.tokens)
        self.metrics.generated_tokens += len(tokens)
        if reason is None and verdict.failed:
            reason = FinishReason.ERROR
        return [Event(state.id, tokens) if reason is None else self._end(state, tokens, reason)]

    def _end(self, state: RequestState, tokens: tuple[int, ...], reason: FinishReason) -> Event:
        self.scheduler.remove(state)
        problem = None
        if reason is FinishReason.ERROR:
            saw = f"logits that are no finite numbers at token {len(state.generated)}"
            want = "weights of which every tensor is finite"
            problem = Problem(f"request {state.id}", saw, want)
        notes = self._options.speculation.acceptance.notes
        result = Result(state.id, state.generated, reason, notes, state.metrics, problem)
        return Event(state.id, tokens, result)
