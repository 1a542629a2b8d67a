# SPDX-License-Identifier: Apache-2.0
"""Orders between kernels: does everything that a launch touches belong to launches that are over?

A recorded sequence says which launch depends on which, by a full edge (it starts when the other is
complete) or a programmatic one (it starts earlier, and only its wait makes sure), and which bytes
each reads and writes. A stream is such a chain of edges; events and graphs add more. What a launch
may rely on follows from that alone:

* by a full edge, or a programmatic one and a wait of all its threads, the other launch is complete;
* and so is what that launch itself could rely on, when it was over. A launch that does not wait
  passes nothing on: it may end before what came before it. That is the two-hop chain.

Two launches that touch the same bytes, one of them writing, without that order, are a hazard.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from fasttrack.errors import InputError, Problem


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class Access(_Strict):
    """Bytes of a buffer."""

    buffer: Annotated[str, Field(min_length=1)]
    """Name of an allocation; two buffers of different names never overlap."""
    start: Annotated[int, Field(ge=0)]
    """First byte."""
    size: Annotated[int, Field(gt=0)]
    """Bytes."""

    def overlaps(self, other: "Access") -> bool:
        """Whether a byte belongs to both."""
        return (
            self.buffer == other.buffer
            and self.start < other.start + other.size
            and other.start < self.start + self.size
        )


class Edge(_Strict):
    """A dependency on an earlier launch."""

    launch: Annotated[int, Field(ge=0)]
    """Index of that launch."""
    programmatic: bool
    """Whether this launch may start before that one is complete."""


class Launch(_Strict):
    """One kernel launch, in the order in which they were recorded."""

    kernel: Annotated[str, Field(min_length=1)]
    """The kernel's symbol."""
    stream: Annotated[str, Field(min_length=1)] | None = None
    """Name of its stream, in which the launch before it comes first; none in a graph."""
    programmatic: bool | None = None
    """With a stream: whether it may start before the launch before it there is complete."""
    after: tuple[Edge, ...] = ()
    """What else it depends on: events, and the edges of a graph."""
    reads: tuple[Access, ...] = ()
    """All it may read, but for memory that no launch writes."""
    writes: tuple[Access, ...] = ()
    """All it may write."""


class Recorded(_Strict):
    """A recorded sequence of launches."""

    launches: Literal[1]
    """Version of the format."""
    sequence: tuple[Launch, ...]
    """In the order in which they were launched."""


@dataclass(frozen=True, slots=True)
class Hazard:
    """Two launches that touch the same bytes without an order.

    Attributes:
        source: what says that they are launched so: the record, or a contract that names
            neighbours.
        kind: `RAW`, `WAR` or `WAW`, seen from the later launch.
        first, second: indices of the launches; in a contract, how far they are from its kernel.
        buffer: whose bytes they are.
        middle: a launch between them that does not wait and so breaks the chain, or None.
        why: one sentence.
    """

    source: str
    kind: str
    first: int
    second: int
    buffer: str
    middle: int | None
    why: str


def check_sequence(sequence: Recorded, source: str) -> None:
    """Raises InputError where a launch depends on a later one, or on one in two ways."""
    found = [
        Problem(f"{source}: sequence[{at}]{where}", saw, want)
        for at, launch in enumerate(sequence.sequence)
        for where, saw, want in _faults(at, launch)
    ]
    if found:
        raise InputError(found)


def _faults(at: int, launch: Launch) -> Iterator[tuple[str, str, str]]:
    on = [edge.launch for edge in launch.after]
    for one in on:
        if one >= at:
            yield ".after", f"launch {one}", f"one before {at}"
    if len(set(on)) < len(on):
        yield ".after", "a launch twice", "one edge for each launch"
    if (launch.stream is None) is not (launch.programmatic is None):
        have, lack = ("stream", "programmatic") if launch.stream else ("programmatic", "stream")
        yield "", f"`{have}` without `{lack}`", "both, or neither for a node of a graph"


def edges_of(launches: Sequence[Launch]) -> list[tuple[Edge, ...]]:
    """All dependencies of each launch, that on the one before it in its stream among them."""
    found: list[tuple[Edge, ...]] = []
    last: dict[str, int] = {}
    for at, launch in enumerate(launches):
        edges = launch.after
        if launch.stream is not None:
            if launch.stream in last:
                early = bool(launch.programmatic)
                edges = (*edges, Edge(launch=last[launch.stream], programmatic=early))
            last[launch.stream] = at
        found.append(edges)
    return found


def hazards(
    launches: Sequence[Launch], waits: Mapping[str, bool], source: str
) -> tuple[Hazard, ...]:
    """Every pair of launches without the order that it needs.

    Args:
        launches: as recorded; edges point backwards.
        waits: by kernel, whether all its threads wait before they touch such memory and before they
            end, as the audit of its machine code found; a kernel that is not there does not wait.
        source: how messages name the record.
    """
    names = [f"launch {at} ({launch.kernel})" for at, launch in enumerate(launches)]
    waiting = [waits.get(launch.kernel, False) for launch in launches]
    return tuple(unordered(launches, waiting, names, source))


def unordered(
    launches: Sequence[Launch], waits: Sequence[bool], names: Sequence[str], source: str
) -> Iterator[Hazard]:
    """The same with a wait and a name for each launch."""
    edges = edges_of(launches)
    complete = _complete(edges, waits)
    for second, later in enumerate(launches):
        for first in range(second):
            if first in complete[second]:
                continue
            for kind, buffer in _conflicts(launches[first], later):
                middle = _middle(edges, waits, first, second)
                why = _why(edges, waits, names, (first, middle, second))
                yield Hazard(source, kind, first, second, buffer, middle, why)


def _complete(edges: Sequence[Sequence[Edge]], waits: Sequence[bool]) -> list[frozenset[int]]:
    """For each launch, those that are complete when it touches memory; all it can pass on."""
    found: list[frozenset[int]] = []
    for at, before in enumerate(edges):
        over: set[int] = set()
        for edge in before:
            if not edge.programmatic or waits[at]:
                over |= {edge.launch} | found[edge.launch]
        found.append(frozenset(over))
    return found


def _conflicts(first: Launch, second: Launch) -> Iterator[tuple[str, str]]:
    pairs = (
        ("RAW", first.writes, second.reads),
        ("WAR", first.reads, second.writes),
        ("WAW", first.writes, second.writes),
    )
    for kind, before, after in pairs:
        names = {one.buffer for one in before for other in after if one.overlaps(other)}
        yield from ((kind, name) for name in sorted(names))


def _middle(
    edges: Sequence[Sequence[Edge]], waits: Sequence[bool], first: int, second: int
) -> int | None:
    """A launch on the way from `second` back to `first` that does not wait."""
    seen, todo = {second}, [second]
    while todo:
        for edge in edges[todo.pop()]:
            if edge.launch <= first or edge.launch in seen:
                continue
            if not waits[edge.launch] and any(one.programmatic for one in edges[edge.launch]):
                return edge.launch
            seen.add(edge.launch)
            todo.append(edge.launch)
    return None


def _why(
    edges: Sequence[Sequence[Edge]],
    waits: Sequence[bool],
    names: Sequence[str],
    places: tuple[int, int | None, int],
) -> str:
    at, middle, late = places
    first, second = names[at], names[late]
    if middle is not None:
        return (
            f"{names[middle]} between them does not surely wait, so that {second} may run while "
            f"{first} does"
        )
    if not waits[late] and any(edge.launch == at and edge.programmatic for edge in edges[late]):
        return f"{second} starts early and does not surely wait for {first}"
    return f"nothing makes {second} wait for {first}"
