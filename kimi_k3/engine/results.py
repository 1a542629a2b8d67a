# SPDX-License-Identifier: Apache-2.0
"""What an engine gives back: events while it runs, one result at each request's end."""

from dataclasses import dataclass
from enum import StrEnum

from fasttrack.errors import Problem
from kimi_k3.engine.metrics import RequestMetrics
from kimi_k3.engine.request import Request


class FinishReason(StrEnum):
    """Why a request ended."""

    LENGTH = "length"
    """It has `max_tokens` tokens."""
    STOP = "stop"
    """Its last token is a stop id or the end token."""
    ABORTED = "aborted"
    """The caller gave it up."""
    ERROR = "error"
    """The model computed no numbers for it; see `Result.problem`."""


@dataclass(frozen=True)
class Result:
    """One request at its end.

    Attributes:
        request: its id.
        tokens: generated, a final stop token included; what there was at an abort or error.
        reason: why it ended.
        notes: what a reader must know of the tokens, such as that they mean nothing.
        metrics: what was counted.
        problem: what went wrong when the reason is `ERROR`.
    """

    request: int
    tokens: tuple[int, ...]
    reason: FinishReason
    notes: tuple[str, ...]
    metrics: RequestMetrics
    problem: Problem | None = None


@dataclass(frozen=True)
class Event:
    """News of one request.

    Attributes:
        request: its id.
        tokens: new since its last event.
        result: given once, with the last event.
    """

    request: int
    tokens: tuple[int, ...]
    result: Result | None = None


@dataclass(frozen=True)
class Unfinished:
    """A request that has not ended.

    Attributes:
        request: its id.
        tokens: released so far.
        rest: asks an engine for what is missing. The prompt has grown by `tokens`, so draws, which
            count positions from the prompt's first token, go on where they stood.
    """

    request: int
    tokens: tuple[int, ...]
    rest: Request
