# SPDX-License-Identifier: Apache-2.0
"""Reductions over ranks: the interface that every block speaks, and two groups that implement it.

`SingleRank` is alone. `run_ranks` runs a whole group in one process, on the CPU, for tests and for
small models. It stands in for the collectives of several GPUs in what they compute, never in how
long they take.

A sum runs in rank order, in FP32 or wider, and is rounded once to the dtype of its terms. It is
computed once and every rank is given a copy, so that all hold the same bits. Where a model rounds
a sum to fewer bits than its compute dtype has, that rounding is the caller's (`Rounding.reduced`).

The ranks of a group take turns (`kimi_k3.turns`). Each runs in a thread of its own until its next
collective or wait, then another rank runs; when all have called, the collective is computed and
the turns start again. So only one rank runs at a time, nothing depends on timing, and no rank can
wait for another that never comes: a collective that not all ranks call is an error of all, and a
wait has a deadline on a simulated clock.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, TypeVar, cast

import torch

from kimi_k3.turns import Call, Clock, Late, Member, Raised, RankError, Returned, Turn, Turns, Wait

__all__ = [
    "Communicator",
    "Rank",
    "RankError",
    "SingleRank",
    "Waiter",
    "impossible",
    "rank_order_sum",
    "run_ranks",
]

T = TypeVar("T")
Operation = Literal["all_reduce", "reduce_scatter", "all_gather"]

TURN_LIMIT_S = 300.0
"""How long a rank may compute between two turns; far more than a step of a small model."""


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


class Waiter(Protocol):
    """Waits of one rank for what other ranks do, on the simulated clock of their group.

    Time passes only while every rank waits. A rank that has returned or raised wakes nobody: who
    waits for it reaches the deadline.
    """

    def now(self) -> float:
        """Seconds on the clock."""

    def wait_until(self, ready: Callable[[], bool], deadline: float) -> bool:
        """Lets other ranks run until `ready()` holds or the clock reaches `deadline`.

        Args:
            ready: asked between the turns of other ranks, in no rank's thread; never waits itself.
            deadline: a time on the clock; one in the past gives the others a turn each.

        Returns:
            Whether `ready()` held when this rank's turn came.

        Raises:
            ValueError: the deadline is infinite or no number.
        """

    def sleep(self, seconds: float) -> None:
        """Does nothing until `seconds` have passed; 0 gives up one turn."""


class Rank(Communicator, Waiter, Protocol):
    """What `run_ranks` hands to each rank."""


class SingleRank:
    """The communicator of a model that is not split: every operation is the identity.

    Nobody else can make a wait come true, so its clock jumps to the deadline at once.
    """

    rank = 0
    size = 1

    def __init__(self) -> None:
        self._clock = Clock()

    def all_reduce(self, x: torch.Tensor) -> torch.Tensor:
        """`x`: a sum of one."""
        return x

    def reduce_scatter(self, x: torch.Tensor, dim: int) -> torch.Tensor:
        """`x`: one slice of one."""
        return x

    def all_gather(self, x: torch.Tensor, dim: int) -> torch.Tensor:
        """`x`: a row of one."""
        return x

    def now(self) -> float:
        """See `Waiter`."""
        return self._clock.now

    def wait_until(self, ready: Callable[[], bool], deadline: float) -> bool:
        """See `Waiter`."""
        wait = Wait(ready, deadline)
        if wait.ready():
            return True
        self._clock.now = max(self._clock.now, wait.deadline)
        return bool(wait.ready())

    def sleep(self, seconds: float) -> None:
        """See `Waiter`."""
        self.wait_until(lambda: False, self._clock.after(seconds))


def run_ranks(
    size: int,
    function: Callable[[Rank], T],
    turn_limit_s: float = TURN_LIMIT_S,
    seed: int | None = None,
) -> list[T]:
    """Runs `function` once per rank, each with its own communicator.

    Args:
        size: number of ranks.
        function: what a rank does. It may call `run_ranks` itself; a communicator serves only the
            thread that it was made for. A rank alone runs in the caller's thread.
        turn_limit_s: seconds that a rank may compute between two collectives or waits.
        seed: of a random order of turns; None for ranks in turn.

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
    if size == 1:  # nobody to take turns with; a thread of its own would only be slower
        return [function(SingleRank())]
    clock = Clock()
    group = [_Rank(rank, size, clock, function) for rank in range(size)]
    turns = Turns(group, clock, turn_limit_s, seed)
    why = "the group has ended"
    collectives = 0
    try:
        while True:
            doings = turns.run()
            values = [turn.value for turn in doings if isinstance(turn, Returned)]
            if len(values) == size:
                return values
            turns.answer(_collective(doings, collectives))
            collectives += 1
    except BaseException as error:  # also an interrupt: no thread may stay behind in a wait
        why = str(error) if isinstance(error, RankError) else f"stopped by {type(error).__name__}"
        raise
    finally:
        for rank in group:
            rank.stop(why, turn_limit_s)


@dataclass(frozen=True)
class _Collective(Call):
    """A rank waits in a collective."""

    operation: Operation
    x: torch.Tensor
    dim: int | None = None

    def __str__(self) -> str:
        dtype = str(self.x.dtype).removeprefix("torch.")
        along = "" if self.dim is None else f", dim {self.dim}"
        return f"called {self.operation}({dtype} {list(self.x.shape)}{along})"


class _Rank(Member[T]):
    """One rank: a member of the group, and its communicator."""

    def __init__(self, rank: int, size: int, clock: Clock, function: Callable[[Rank], T]) -> None:
        super().__init__(rank, clock, lambda: function(self))
        self.size = size

    def _exchange(
        self, operation: Operation, x: torch.Tensor, dim: int | None = None
    ) -> torch.Tensor:
        return cast("torch.Tensor", self._give_up(_Collective(operation, x, dim)))

    def all_reduce(self, x: torch.Tensor) -> torch.Tensor:
        """See `Communicator`."""
        return self._exchange("all_reduce", x)

    def reduce_scatter(self, x: torch.Tensor, dim: int) -> torch.Tensor:
        """See `Communicator`."""
        return self._exchange("reduce_scatter", x, dim)

    def all_gather(self, x: torch.Tensor, dim: int) -> torch.Tensor:
        """See `Communicator`."""
        return self._exchange("all_gather", x, dim)


def _collective(turns: Sequence[Turn[T]], number: int) -> list[torch.Tensor]:
    """What each rank is given, when all of them made the same call.

    Raises:
        RankError: they did not; or see `run_ranks`.
    """
    doings = [str(turn) for turn in turns]
    errors = [turn.error for turn in turns if isinstance(turn, Raised)]
    if len(set(doings)) > 1 or any(isinstance(turn, Late) for turn in turns):
        cause = errors[0] if errors else None
        raise RankError(f"at collective {number}: {_grouped(doings)}") from cause
    if errors:
        raise errors[0]
    calls = [turn for turn in turns if isinstance(turn, _Collective)]
    first = calls[0]
    if problem := impossible(first.operation, first.x, first.dim, len(calls)):
        raise RankError(f"at collective {number}: all ranks {doings[0]}: {problem}")
    values = [call.x for call in calls]
    if first.operation == "all_gather":
        return _copies(torch.cat(values, dim=first.dim or 0), len(calls))
    total = rank_order_sum(values)
    if first.operation == "all_reduce":
        return _copies(total, len(calls))
    return [part.clone() for part in total.chunk(len(calls), dim=first.dim or 0)]


def impossible(operation: Operation, x: torch.Tensor, dim: int | None, size: int) -> str:
    """Why no group of `size` ranks can compute this of tensors like `x`; empty when one can."""
    if operation != "all_gather" and not x.is_floating_point():
        return "only floating-point numbers are added"
    if dim is None:
        return ""
    if not 0 <= dim < x.ndim:
        return f"the tensor has {x.ndim} dimensions"
    if operation == "reduce_scatter" and x.shape[dim] % size:
        return f"{x.shape[dim]} elements are no {size} equal slices"
    return ""


def rank_order_sum(values: Sequence[torch.Tensor]) -> torch.Tensor:
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
