# SPDX-License-Identifier: Apache-2.0
"""Faults as data: what goes wrong on which rank, and where.

Steps are named by the device step counter: the first step after a build with `start=0` is 1.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from kimi_k3.decode.comm.interface import Site


@dataclass(frozen=True)
class Place:
    """One exchange: the `ordinal`-th of a site in a step."""

    step: int
    site: Site
    ordinal: int = 0


@dataclass(frozen=True)
class Kill:
    """`rank` ends there, after it has published to the first `stored` ranks."""

    rank: int
    place: Place
    stored: int = 0


@dataclass(frozen=True)
class Delay:
    """`rank` does nothing for `seconds` before it publishes there."""

    rank: int
    place: Place
    seconds: float


@dataclass(frozen=True)
class Drop:
    """A publication of `rank` does not arrive.

    Attributes:
        rank: whose.
        place: where.
        peers: at whom it does not arrive; None is everyone, `rank` included.
        word: which word of it is lost, counted over all rows; None is all of it.
    """

    rank: int
    place: Place
    peers: frozenset[int] | None = None
    word: int | None = None


@dataclass(frozen=True)
class FallBack:
    """`rank` takes the stock path in a step in which the others do not."""

    rank: int
    step: int


Fault = Kill | Delay | Drop | FallBack


class RankKilled(BaseException):
    """A planted `Kill`; no `Exception`, so that nothing on the way to the rank's end stops it."""


class RankFaults:
    """The faults of one rank."""

    def __init__(self, faults: Sequence[Fault], rank: int) -> None:
        self._faults = [fault for fault in faults if fault.rank == rank]

    def delay_s(self, place: Place) -> float:
        """Seconds to do nothing."""
        return sum(f.seconds for f in self._faults if isinstance(f, Delay) and f.place == place)

    def kill(self, place: Place) -> int | None:
        """After how many ranks to end; None to live on."""
        stored = [f.stored for f in self._faults if isinstance(f, Kill) and f.place == place]
        return min(stored, default=None)

    def drop(self, place: Place, peer: int) -> Drop | None:
        """What of the publication to `peer` is lost."""
        drops = [f for f in self._faults if isinstance(f, Drop) and f.place == place]
        return next((f for f in drops if f.peers is None or peer in f.peers), None)

    def falls_back(self, step: int) -> bool:
        """Whether the step takes the stock path."""
        return any(isinstance(f, FallBack) and f.step == step for f in self._faults)
