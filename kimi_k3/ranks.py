# SPDX-License-Identifier: Apache-2.0
"""Reductions over ranks: the interface that every block speaks, and two groups that implement it.

`SingleRank` is alone. `run_ranks` runs a whole group in one process, on the CPU, for tests and for
small models. It stands in for the collectives of several GPUs in what they compute, never in how
long they take.

A sum runs in rank order, in FP32 or wider, and is rounded once to the dtype of its terms. It is
computed once and every rank is given a copy, so that all hold the same bits. Where a model rounds
a sum to fewer bits than its compute dtype has, that rounding is the caller's (`Rounding.reduced`).

The ranks of a group take turns. Each runs in a thread of its own until its next collective, then
the next rank runs; when all have called, the collective is computed and the turns start again.
So only one rank runs at a time, nothing depends on timing, and no rank can wait for another that
never comes: whatever the ranks do between two collectives is known before any of them goes on.
"""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import Generic, Literal, Protocol, TypeVar

import torch

from fasttrack.errors import FasttrackError

T = TypeVar("T")

TURN_LIMIT_S = 300.0
"""How long a rank may compute between two collectives; far more than a step of a small model."""


class RankError(FasttrackError):
    """Ranks of a group did different things, or one of them failed; raised on every rank."""


class Communicator(Protocol):
    """A group of ranks of one model; all of them make the same calls in the same order."""

    @property
    def rank(self) -> int:
        """This rank, 0-based."""

    @property
    def size(self) -> int:
        """Number of ranks."""

    def all_reduce(self, x: torch.Tensor) -> torch.Tensor:
        """The sum over ranks of `x`, added in rank order, on every rank."""

    def reduce_scatter(self, x: torch.Tensor, dim: int) -> torch.Tensor:
        """The `rank`-th of `size` equal slices along `dim` of what `all_reduce` returns."""

    def all_gather(self, x: torch.Tensor, dim: int) -> torch.Tensor:
        """All ranks' `x` concatenated along `dim`, in rank order, on every rank."""


class SingleRank:
    """The communicator of a model that is not split: every operation is the identity."""

    rank = 0
    size = 1

    def all_reduce(self, x: torch.Tensor) -> torch.Tensor:
        """`x`: a sum of one."""
        return x

    def reduce_scatter(self, x: torch.Tensor, dim: int) -> torch.Tensor:
        """`x`: one slice of one."""
        return x

    def all_gather(self, x: torch.Tensor, dim: int) -> torch.Tensor:
        """`x`: a row of one."""
        return x


def run_ranks(
    size: int, function: Callable[[Communicator], T], turn_limit_s: float = TURN_LIMIT_S
) -> list[T]:
    """Runs `function` once per rank, each with its own communicator.

    Args:
        size: number of ranks.
        function: what a rank does. It may call `run_ranks` itself; a communicator serves only the
            thread that it was made for.
        turn_limit_s: seconds that a rank may compute between two collectives.

    Returns:
        What the ranks returned, rank 0 first.

    Raises:
        RankError: at one point the ranks called different collectives, or with other shapes or
            dtypes, or some called and some returned or raised, or one did neither in time. All
            waiting ranks raise it too. A rank that never comes back is left behind.
        Exception: what *every* rank raised with the same type and words, as it is.
    """
    if size < 1:
        raise ValueError(f"{size} ranks; want at least 1")
    group = [_Rank[T](rank, size, function) for rank in range(size)]
    why = "the group has ended"
    answers: Sequence[torch.Tensor | None] = [None] * size
    collectives = 0
    try:
        while True:
            turns = [
                rank.advance(answer, turn_limit_s)
                for rank, answer in zip(group, answers, strict=True)
            ]
            values = [turn.value for turn in turns if isinstance(turn, _Returned)]
            if len(values) == size:
                return values
            answers = _collective(turns, collectives)
            collectives += 1
    except BaseException as error:  # also an interrupt: no thread may stay behind in a wait
        why = str(error) if isinstance(error, RankError) else f"stopped by {type(error).__name__}"
        raise
    finally:
        for rank in group:
            rank.stop(why, turn_limit_s)


@dataclass(frozen=True)
class _Call:
    """A rank waits in a collective."""

    operation: Literal["all_reduce", "reduce_scatter", "all_gather"]
    x: torch.Tensor
    dim: int | None = None

    def __str__(self) -> str:
        dtype = str(self.x.dtype).removeprefix("torch.")
        along = "" if self.dim is None else f", dim {self.dim}"
        return f"called {self.operation}({dtype} {list(self.x.shape)}{along})"


@dataclass(frozen=True)
class _Returned(Generic[T]):
    """A rank's function has returned."""

    value: T

    def __str__(self) -> str:
        return "returned"


@dataclass(frozen=True)
class _Raised:
    """A rank's function has raised."""

    error: BaseException

    def __str__(self) -> str:
        return f"raised {type(self.error).__name__}: {self.error}"


class _Late:
    """A rank is neither in a collective nor at its end."""

    def __str__(self) -> str:
        return "came to no collective in time"


_Turn = _Call | _Returned[T] | _Raised | _Late


class _Rank(Generic[T]):
    """One rank: its thread, and its communicator, which is what the thread sees of it."""

    def __init__(self, rank: int, size: int, function: Callable[[Communicator], T]) -> None:
        self.rank = rank
        self.size = size
        self._function = function
        self._answers: SimpleQueue[torch.Tensor | None] = SimpleQueue()
        self._turns: SimpleQueue[_Turn[T]] = SimpleQueue()
        self._stopped = ""
        self._thread = threading.Thread(target=self._run, name=f"rank {rank}", daemon=True)
        self._busy = False

    def _run(self) -> None:
        """The thread: one answer lets it go until it has posted its next turn."""
        self._answers.get()
        try:
            turn: _Turn[T] = _Returned(self._function(self))
        except BaseException as error:  # whatever it is, the group's caller tells of it
            turn = _Raised(error)
        self._turns.put(turn)

    def advance(self, answer: torch.Tensor | None, limit_s: float) -> _Turn[T]:
        """Gives the rank what it waits for; returns what it does next."""
        if self._thread.ident is None:
            self._thread.start()
        self._busy = True
        self._answers.put(answer)
        try:
            turn = self._turns.get(timeout=limit_s)
        except Empty:
            return _Late()
        self._busy = False
        return turn

    def stop(self, why: str, limit_s: float) -> None:
        """Makes this and every later collective of the rank raise; waits for a rank that waits."""
        self._stopped = why
        self._answers.put(None)
        if self._thread.ident is not None and not self._busy:
            self._thread.join(limit_s)

    def _exchange(self, call: _Call) -> torch.Tensor:
        if threading.current_thread() is not self._thread:
            raise RankError(f"the communicator of rank {self.rank} was used in another thread")
        if not self._stopped:
            self._turns.put(call)
            answer = self._answers.get()
            if answer is not None and not self._stopped:
                return answer
        raise RankError(self._stopped)

    def all_reduce(self, x: torch.Tensor) -> torch.Tensor:
        """See `Communicator`."""
        return self._exchange(_Call("all_reduce", x))

    def reduce_scatter(self, x: torch.Tensor, dim: int) -> torch.Tensor:
        """See `Communicator`."""
        return self._exchange(_Call("reduce_scatter", x, dim))

    def all_gather(self, x: torch.Tensor, dim: int) -> torch.Tensor:
        """See `Communicator`."""
        return self._exchange(_Call("all_gather", x, dim))


def _collective(turns: Sequence[_Turn[T]], number: int) -> list[torch.Tensor]:
    """What each rank is given, when all of them made the same call.

    Raises:
        RankError: they did not; or see `run_ranks`.
    """
    doings = [str(turn) for turn in turns]
    errors = [turn.error for turn in turns if isinstance(turn, _Raised)]
    if len(set(doings)) > 1 or any(isinstance(turn, _Late) for turn in turns):
        cause = errors[0] if errors else None
        raise RankError(f"at collective {number}: {_grouped(doings)}") from cause
    if errors:
        raise errors[0]
    calls = [turn for turn in turns if isinstance(turn, _Call)]
    first = calls[0]
    if problem := _impossible(first, len(calls)):
        raise RankError(f"at collective {number}: all ranks {doings[0]}: {problem}")
    values = [call.x for call in calls]
    if first.operation == "all_gather":
        return _copies(torch.cat(values, dim=first.dim or 0), len(calls))
    total = _rank_order_sum(values)
    if first.operation == "all_reduce":
        return _copies(total, len(calls))
    return [part.clone() for part in total.chunk(len(calls), dim=first.dim or 0)]


def _impossible(call: _Call, size: int) -> str:
    """Why no group can answer the call; empty when it can."""
    if call.operation != "all_gather" and not call.x.is_floating_point():
        return "only floating-point numbers are added"
    if call.dim is None:
        return ""
    if not 0 <= call.dim < call.x.ndim:
        return f"the tensor has {call.x.ndim} dimensions"
    if call.operation == "reduce_scatter" and call.x.shape[call.dim] % size:
        return f"{call.x.shape[call.dim]} elements are no {size} equal slices"
    return ""


def _rank_order_sum(values: Sequence[torch.Tensor]) -> torch.Tensor:
    """The sum of rank 0's value, then rank 1's, ...: in FP32 at least, rounded once at the end."""
    first, *others = values
    wide = torch.promote_types(first.dtype, torch.float32)
    total = first.to(wide)
    for value in others:
        total = total + value.to(wide)
    return total.to(first.dtype)


def _copies(x: torch.Tensor, count: int) -> list[torch.Tensor]:
    """Memory for each rank: what one writes into its result no other may see."""
    return [x.clone() for _ in range(count)]


def _grouped(doings: Sequence[str]) -> str:
    """Ranks that did the same, together: `rank 1 returned; ranks 0, 2 called ...`."""
    ranks: dict[str, list[int]] = {}
    for rank, doing in enumerate(doings):
        ranks.setdefault(doing, []).append(rank)
    return "; ".join(
        f"rank{'s' if len(who) > 1 else ''} {', '.join(map(str, who))} {doing}"
        for doing, who in sorted(ranks.items(), key=lambda item: len(item[1]))
    )
