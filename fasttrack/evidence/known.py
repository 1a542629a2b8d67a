# SPDX-License-Identifier: Apache-2.0
"""All evidence that is known for a case, read and verified once for rules and coverage.

Read together: the store at the target's tip, the files that the change brings, and a folder that
was handed in. What the change brings is told apart, because only that can be held against it: what
lies in the target already counts or does not, and is nobody's fault here.
"""

from collections import defaultdict
from collections.abc import Collection, Hashable, Mapping, Sequence, Set
from dataclasses import dataclass, field

from fasttrack.case import Case
from fasttrack.change.tree import Side, Tree
from fasttrack.errors import FactUnavailable
from fasttrack.evidence.accept import signatures
from fasttrack.evidence.dsse import Signed
from fasttrack.evidence.gathered import gather
from fasttrack.evidence.graphs import input_graphs
from fasttrack.evidence.inputs import InputGraph
from fasttrack.evidence.statement import Statement
from fasttrack.evidence.store import FOLDER, Contents, Stored, read_tree
from fasttrack.evidence.trust import Judged, Signatures, judge, question
from fasttrack.manifest.cells import CellId


@dataclass(frozen=True)
class Known:
    """What there is.

    Attributes:
        case: the change that it is for.
        kept: the statements of the target and of the folder that was handed in, each once.
        brought: what the files hold that the change adds or edits; with what can not be read.
        removed: what the target's files hold that the change deletes.
        unknown: why the target's store could not be read; empty when it could.
    """

    case: Case
    kept: tuple[Stored, ...]
    brought: Contents
    removed: Contents
    unknown: str
    _verified: dict[Signed, Signatures] = field(default_factory=dict)

    def about(self, cells: Set[CellId]) -> tuple[Stored, ...]:
        """Every statement about these cells, each envelope once."""
        found: dict[Signed, Stored] = {}
        for one in (*self.kept, *self.brought.statements):
            if one.statement.cell.id in cells:
                found.setdefault(one.signed, one)
        return tuple(found.values())

    def judged(self, chosen: Collection[Stored]) -> tuple[tuple[Stored, Judged], ...]:
        """Whether some statements count, and those that bear on them: of one question, run or plan.

        Nobody else's signature is verified, which changes nothing for these: a statement of another
        cell, or of other bytes in another run, neither agrees nor disagrees with them.
        """
        around = self.about({one.statement.cell.id for one in chosen})
        found = _tied(around, {one.signed for one in chosen})
        signed = [(one.statement, self._signatures(one.signed)) for one in found]
        trust = self.case.policy.trust
        return tuple(zip(found, judge(signed, trust, self.case.as_of), strict=True))

    def graph(self, path: str) -> InputGraph:
        """What depends on what after the merge, under the manifest at a path."""
        return self.case.once(input_graphs)[path]

    def _signatures(self, signed: Signed) -> Signatures:
        if signed not in self._verified:
            self._verified[signed] = signatures(signed, self.case.policy.trust)
        return self._verified[signed]


def known_evidence(case: Case) -> Known:
    """Reads it all; ask `case.once` for it.

    Raises:
        InputError: the folder that was handed in can not be read.
    """
    change, store = case.change, f"{case.config.folder}/{FOLDER}"
    mine = case.evidence_entries
    tip: dict[str, Side | None] = {}
    kept: list[Stored] = []
    unknown = ""
    try:
        kept = gather(change, (change.base,), case.config.folder, case.evidence)
        tip = {entry.path: change.base.get(entry.path) for entry in mine}
    except FactUnavailable as reason:
        unknown = str(reason)
    new = {e.path: e.new for e in mine if e.new.present and tip.get(e.path) != e.new}
    gone = {e.path: side for e in mine if e.deleted and (side := tip.get(e.path))}
    brought, removed = (read_tree(_listing(some), store, change.blob) for some in (new, gone))
    return Known(case, tuple(kept), brought, removed, unknown)


def _tied(around: Sequence[Stored], chosen: Set[Signed]) -> tuple[Stored, ...]:
    """The chosen ones, and whatever is tied to one of them directly or through others, in order."""
    by_tie: dict[Hashable, list[int]] = defaultdict(list)
    for place, one in enumerate(around):
        for tie in _ties(one.statement):
            by_tie[tie].append(place)
    found: set[int] = set()
    waiting = [place for place, one in enumerate(around) if one.signed in chosen]
    while waiting:
        place = waiting.pop()
        if place not in found:
            found.add(place)
            for tie in _ties(around[place].statement):
                waiting += by_tie.pop(tie, ())
    return tuple(around[place] for place in sorted(found))


def _ties(statement: Statement) -> tuple[Hashable, Hashable, Hashable]:
    """What statements share that count together, contradict each other, or are of one plan."""
    run = statement.predicate.run
    return question(statement), (run.run, statement.cell.id), run.plan


def _listing(files: Mapping[str, Side]) -> Tree:
    return Tree(lambda: {path: f"{side.mode} blob {side.oid}" for path, side in files.items()})
