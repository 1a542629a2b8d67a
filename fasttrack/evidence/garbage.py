# SPDX-License-Identifier: Apache-2.0
"""Which evidence files are of no use any more.

A file is kept when one of its statements answers a cell of the scope: the same kind and key, and
the same files and tests. It is kept even where only a threshold or the boundary is missing, and
where the cell belongs to a higher tier than its region claims: what is asked next is not known
here. What can not be read, or not be verified here, is left for people.

A file of which each statement is in another file too, with the same signatures, is a copy. Nothing
is lost with it, whatever it says, as long as those files stay.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date

from fasttrack.evidence.accept import accept
from fasttrack.evidence.dsse import Signed
from fasttrack.evidence.inputs import UnitInputs
from fasttrack.evidence.store import Stored
from fasttrack.evidence.store_files import PLAIN_SUFFIX
from fasttrack.evidence.subject import unit_of
from fasttrack.evidence.trust import Judged, Reason
from fasttrack.manifest.cells import Cell, CellId
from fasttrack.policy.trust import Trust

Wanted = Mapping[CellId, tuple[tuple[str, str], ...]]
"""Kind and key of the cells that a scope can owe, to the files and tests that they are about."""
MAY_COUNT_LATER = frozenset(
    {Reason.KEY_NOT_YET_VALID, Reason.FROM_THE_FUTURE, Reason.NOT_VERIFIABLE}
)

_ELSEWHERE = "each of them is in another file too"


@dataclass(frozen=True)
class Garbage:
    """A file in which nothing counts, or nothing that is not elsewhere.

    Attributes:
        name: the file.
        statements: how many it holds.
        reasons: why, each once.
    """

    name: str
    statements: int
    reasons: tuple[str, ...]


def wanted_by(
    owed: Iterable[tuple[Iterable[Cell], Callable[[str], UnitInputs]]],
) -> Wanted:
    """What statements can be about.

    Args:
        owed: of every manifest the cells that it can owe, and the inputs of its units.
    """
    found: dict[CellId, set[tuple[str, str]]] = defaultdict(set)
    for cells, inputs_of in owed:
        for cell in cells:
            inputs = inputs_of(unit_of(cell))
            found[cell.id].add((inputs.digest, inputs.tests_digest))
    return {key: tuple(sorted(digests)) for key, digests in found.items()}


def garbage(
    stored: Sequence[Stored], unread: Iterable[str], wanted: Wanted, trust: Trust, day: date
) -> tuple[Garbage, ...]:
    """Files in which no statement counts, in the order given.

    Args:
        stored: every statement of the store.
        unread: names of files of which something could not be read.
        wanted: what statements can be about.
        trust: the policy's.
        day: the UTC day to judge at.
    """
    files: dict[str, list[str]] = defaultdict(list)
    for one, judged in zip(stored, accept(stored, _any_number(trust), day), strict=True):
        files[one.file].append(_useless(judged, wanted))
    left = set(unread)
    return tuple(
        Garbage(name, len(reasons), tuple(dict.fromkeys(reasons)))
        for name, reasons in files.items()
        if name not in left and all(reasons)
    )


def copies(stored: Sequence[Stored], unread: Iterable[str]) -> tuple[Garbage, ...]:
    """Files of which each statement is in another one that is not named here.

    Of two that hold the same it names the plain one, else the smaller one, else the first.

    Args:
        stored: every statement of the files that stay.
        unread: names of files of which something could not be read.
    """
    files: dict[str, list[Signed]] = defaultdict(list)
    for one in stored:
        files[one.file].append(one.signed)
    holders = Counter(signed for held in files.values() for signed in set(held))
    left = set(unread)
    found: list[Garbage] = []
    for name in sorted(files, key=lambda name: _least_first(name, files[name])):
        held = set(files[name])
        if name not in left and all(holders[signed] > 1 for signed in held):
            holders.subtract(held)
            found.append(Garbage(name, len(files[name]), (_ELSEWHERE,)))
    return tuple(found)


def _least_first(name: str, held: Collection[Signed]) -> tuple[bool, int, str]:
    return not name.endswith(PLAIN_SUFFIX), len(held), name


def _any_number(trust: Trust) -> Trust:
    """One pool of two is worth keeping until the other has measured."""
    return trust.model_copy(update={"thresholds": {}})


def _useless(judged: Judged, wanted: Wanted) -> str:
    """Why a statement covers nothing; empty when it does, or may still."""
    if not judged.accepted:
        later = any(refusal.reason in MAY_COUNT_LATER for refusal in judged.refusals)
        return "" if later else judged.refusals[0].text
    cell, inputs = judged.statement.cell, judged.statement.predicate.inputs
    current = wanted.get(cell.id)
    if current is None:
        return f"no manifest has such a {cell.kind.value} cell any more"
    if inputs.digest not in {digest for digest, _ in current}:
        return f"the files of {inputs.unit} are others now"
    if (inputs.digest, inputs.tests) not in current:
        return f"the tests of {inputs.unit} are others now"
    return ""
