# SPDX-License-Identifier: Apache-2.0
"""The launches around a kernel that its contract names, held against the order that they have.

The contract calls memory by its own parameters' names, so this needs no recorded launches; it sees
only hazards in which the kernel itself takes part.
"""

from collections.abc import Iterator
from dataclasses import replace

from fasttrack.audit.contract import Class, Contract, Neighbour
from fasttrack.audit.launches import Access, Edge, Hazard, Launch, unordered
from fasttrack.audit.lint import named

BY_FLAG = (Class.MAILBOX, Class.FLAG)
"""Memory whose order flags make, not launches."""
FARTHEST = 2


def neighbour_hazards(contract: Contract, waits: bool, source: str) -> Iterator[Hazard]:
    """Hazards between a kernel and the launches that its contract puts around it.

    Every launch is taken to start early, as a neighbour may; only its wait makes an order.

    Args:
        contract: of the kernel in the middle.
        waits: whether all its threads surely wait.
        source: how messages name the contract.
    """
    launches: list[Launch] = []
    waiting, names, places = [], [], []
    near: dict[int, Neighbour] = {one.distance: one for one in contract.neighbours}
    for distance in range(-FARTHEST, FARTHEST + 1):
        one = near.get(distance)
        if one is None and distance:
            continue
        reads, writes = (one.reads, one.writes) if one is not None else _own(contract)
        early = one is not None or contract.pdl
        edges = (Edge(launch=len(launches) - 1, programmatic=early),) if launches else ()
        name = one.name if one is not None else contract.kernel
        launches.append(Launch(kernel=name, after=edges, reads=_all(reads), writes=_all(writes)))
        waiting.append(one.waits if one is not None else waits)
        names.append(name if one is None else f"{name} ({_far(distance)})")
        places.append(distance)
    for found in unordered(launches, waiting, names, source):
        pair = places[found.first], places[found.second]
        if 0 in pair:
            middle = None if found.middle is None else places[found.middle]
            yield replace(found, first=pair[0], second=pair[1], middle=middle)


def _own(contract: Contract) -> tuple[tuple[str, ...], tuple[str, ...]]:
    by_flag = {one.name for one in named(contract) if one.holds in BY_FLAG}
    reads, writes = (
        tuple(name for name in names if name not in by_flag)
        for names in (contract.reads, contract.writes)
    )
    return reads, writes


def _all(names: tuple[str, ...]) -> tuple[Access, ...]:
    return tuple(Access(buffer=name, start=0, size=1) for name in names)


def _far(distance: int) -> str:
    launches = "1 launch" if abs(distance) == 1 else f"{abs(distance)} launches"
    return f"{launches} {'before' if distance < 0 else 'after'}"
