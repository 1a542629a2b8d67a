# SPDX-License-Identifier: Apache-2.0
"""Threads of one process that take turns, and the simulated clock that they share.

Each member of a group runs in a thread of its own until it needs the others; then another member
runs. So only one runs at a time and nothing depends on timing: the next turn goes to the member
that gave up its last turn first, or to one drawn from a seed. A member gives up its turn in one of
four ways. It *calls* what all members have to call; it *waits* until something is so or until a
deadline on the clock; it returns; it raises. The clock stands still while anyone can go on. When
everyone waits in vain, it jumps to the earliest deadline: what takes a second in the simulation
takes no time.
"""

import math
import random
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import Generic, TypeVar

from fasttrack.errors import FasttrackError

T = TypeVar("T")


class RankError(FasttrackError):
    """Ranks of a group did different things, or one of them failed; raised on every rank."""


class Clock:
    """Simulated time of a group, in seconds; starts at 0 and never goes back."""

    now = 0.0

    def after(self, seconds: float) -> float:
        """The time `seconds` from now; ValueError when that is in the past."""
        if seconds < 0:
            raise ValueError(f"{seconds} s from now; want at least 0")
        return self.now + seconds


class Call:
    """A member waits for an answer that only the whole group can give; its words say for which."""


@dataclass(frozen=True)
class Wait:
    """A member waits for something that others do.

    Attributes:
        ready: asked between turns, in the caller's thread; never waits itself.
        deadline: time on the clock at which the member goes on all the same.

    Raises:
        ValueError: the deadline is no time.
    """

    ready: Callable[[], bool]
    deadline: float

    def __post_init__(self) -> None:
        if not math.isfinite(self.deadline):
            raise ValueError(f"a wait until {self.deadline} s; want a finite deadline")


@dataclass(frozen=True)
class Returned(Generic[T]):
    """A member's function has returned."""

    value: T

    def __str__(self) -> str:
        return "returned"


@dataclass(frozen=True)
class Raised:
    """A member's function has raised."""

    error: BaseException

    def __str__(self) -> str:
        return f"raised {type(self.error).__name__}: {self.error}"


class Late:
    """A member still computes after the limit of a turn."""

    def __str__(self) -> str:
        return "came to no collective in time"


Turn = Call | Wait | Returned[T] | Raised | Late


@dataclass(frozen=True)
class _Granted:
    """A member may go on with an answer that it has not been given yet."""

    answer: object


BUSY_JOIN_S = 5.0
"""How long a group that ends waits for a member that still computes."""


class Member(Generic[T]):
    """One member of a group: its thread, and how the thread gives up its turn."""

    def __init__(self, rank: int, clock: Clock, function: Callable[[], T]) -> None:
        self.rank = rank
        self._clock = clock
        self._function = function
        self._answers: SimpleQueue[object] = SimpleQueue()
        self._turns: SimpleQueue[Turn[T]] = SimpleQueue()
        self._stopped = ""
        self._thread = threading.Thread(target=self._run, name=f"rank {rank}", daemon=True)
        self._busy = False

    def _run(self) -> None:
        """The thread: one answer lets it go until it has posted its next turn."""
        self._answers.get()
        try:
            turn: Turn[T] = Returned(self._function())
        except BaseException as error:  # whatever it is, the group's caller tells of it
            turn = Raised(error)
        self._turns.put(turn)

    def advance(self, answer: object, limit_s: float) -> Turn[T]:
        """Gives the member what it waits for; returns what it does next."""
        if self._thread.ident is None:
            self._thread.start()
        self._busy = True
        self._answers.put(answer)
        try:
            turn = self._turns.get(timeout=limit_s)
        except Empty:
            return Late()
        self._busy = False
        return turn

    def stop(self, why: str, limit_s: float) -> None:
        """Makes this and every later call and wait raise; joins the thread.

        One that still computes is waited for only a moment: it may never come back. But one that
        runs when the interpreter ends would take the process down.
        """
        self._stopped = why
        self._answers.put(None)
        if self._thread.ident is not None:
            self._thread.join(min(limit_s, BUSY_JOIN_S) if self._busy else limit_s)

    def _give_up(self, turn: Call | Wait) -> object:
        """Lets others run; returns the answer, never None.

        Raises:
            RankError: in another thread, or after the group has ended.
        """
        if threading.current_thread() is not self._thread:
            raise RankError(f"the communicator of rank {self.rank} was used in another thread")
        if not self._stopped:
            self._turns.put(turn)
            answer = self._answers.get()
            if answer is not None and not self._stopped:
                return answer
        raise RankError(self._stopped)

    def now(self) -> float:
        """Seconds on the group's simulated clock."""
        return self._clock.now

    def wait_until(self, ready: Callable[[], bool], deadline: float) -> bool:
        """Waits; see `kimi_k3.ranks.Waiter`."""
        return bool(self._give_up(Wait(ready, deadline)))

    def sleep(self, seconds: float) -> None:
        """Does nothing; see `kimi_k3.ranks.Waiter`."""
        self.wait_until(lambda: False, self._clock.after(seconds))


class Turns(Generic[T]):
    """Who runs next.

    Args:
        members: the group, rank 0 first.
        clock: the clock that the members read.
        limit_s: seconds of real time that a turn may take; a member that takes longer is `Late`.
        seed: of a random choice among those who can go on. None: the one that gave up its turn
            first; so of several waits until one deadline the one that began first ends first.
    """

    def __init__(
        self, members: Sequence[Member[T]], clock: Clock, limit_s: float, seed: int | None
    ) -> None:
        self._members = members
        self._clock = clock
        self._limit_s = limit_s
        self._random = None if seed is None else random.Random(seed)  # noqa: S311  (no secret)
        self._state: list[Turn[T] | _Granted] = [_Granted(None) for _ in members]
        self._queue = list(range(len(members)))  # who gave up its turn first, first

    def run(self) -> list[Turn[T]]:
        """Gives turns until every member has called or ended; returns what each did last."""
        while True:
            if able := self._next():
                rank, answer = able
                self._state[rank] = self._members[rank].advance(answer, self._limit_s)
                self._queue.remove(rank)
                self._queue.append(rank)
            elif deadlines := [turn.deadline for turn in self._state if isinstance(turn, Wait)]:
                self._clock.now = min(deadlines)
            else:
                return [turn for turn in self._state if not isinstance(turn, _Granted)]

    def answer(self, answers: Sequence[object]) -> None:
        """Answers the call that every member is in; none of the answers is None."""
        self._state = [_Granted(answer) for answer in answers]

    def _next(self) -> tuple[int, object] | None:
        """A member that can go on, and its answer; None when there is none."""
        if self._random is None:
            return next(self._able(), None)
        able = list(self._able())
        return self._random.choice(able) if able else None

    def _able(self) -> Iterator[tuple[int, object]]:
        """Members that can go on, and what they are answered."""
        for rank in self._queue:
            match self._state[rank]:
                case _Granted(answer):
                    yield rank, answer
                case Wait(ready, deadline):
                    if ready():
                        yield rank, True
                    elif deadline <= self._clock.now:
                        yield rank, False
