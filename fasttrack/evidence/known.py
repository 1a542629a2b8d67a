# SPDX-License-Identifier: Apache-2.0
"""All evidence that is known for a case, read and verified once for rules and coverage.

Read together: the store at the target's tip, the files that the change brings, and a folder that
was handed in. What the change brings is told apart, because only that can be held against it: what
lies in the target already counts or does not, and is nobody's fault here.
"""

from collections import defaultdict
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field

from fasttrack.case import Case
from fasttrack.change.tree import Side, Tree
from fasttrack.errors import FactUnavailable
from fasttrack.evidence.accept import signatures
from fasttrack.evidence.dsse import Signed
from fasttrack.evidence.graphs import input_graphs
from fasttrack.evidence.inputs import InputGraph
from fasttrack.evidence.statement import Statement
from fasttrack.evidence.store import FOLDER, Contents, Stored, read_folder, read_tree
from fasttrack.evidence.trust import Judged, Signatures, judge, question
from fasttrack.manifest.cells import CellId

NOTHING = Contents((), ())


@dataclass(frozen=True)
class Known:
    """What there is.

    Attributes:
        case: the change that it is for.
        kept: the statements of the target, each once.
        brought: what the files hold that the change adds or edits; with what can not be read.
        removed: what the target's files hold that the change deletes.
        unknown: why the target's store or the folder could not be read, or not all of it; empty
            when they could.
        handed: what the folder that was handed in has beside kept and brought ones, each once.
        staying: the lines of the target's files that the change leaves there.
    """

    case: Case
    kept: tuple[Stored, ...]
    brought: Contents
    removed: Contents
    unknown: str
    handed: tuple[Stored, ...] = ()
    staying: tuple[Stored, ...] = ()
    _verified: dict[Signed, Signatures] = field(default_factory=dict)

    def about(self, cells: Set[CellId]) -> tuple[Stored, ...]:
        """Every statement about these cells, each envelope once."""
        every = (*self.kept, *self.handed, *self.brought.statements)
        return _once(one for one in every if one.statement.cell.id in cells)

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

    def signers(self, signed: Signed) -> frozenset[str]:
        """Whose signatures under an envelope are good, by their ids in the policy."""
        return self._signatures(signed).valid

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
    there, unknown = NOTHING, ""
    try:
        there = read_tree(change.base, store, change.blob)
        tip = {entry.path: change.base.get(entry.path) for entry in mine}
    except FactUnavailable as reason:
        unknown = str(reason)
    new = {e.path: e.new for e in mine if e.new.present and tip.get(e.path) != e.new}
    gone = {e.path: side for e in mine if e.deleted and (side := tip.get(e.path))}
    brought, removed = (read_tree(_listing(some), store, change.blob) for some in (new, gone))
    handed = NOTHING if case.evidence is None else read_folder(case.evidence)
    told = {one.signed for one in (*there.statements, *brought.statements)}
    others = _once(one for one in handed.statements if one.signed not in told)
    left = {path.removeprefix(f"{store}/") for path in (*new, *gone)}
    staying = tuple(one for one in there.statements if one.file not in left)
    unknown = unknown or there.unread or handed.unread
    return Known(case, _once(there.statements), brought, removed, unknown, others, staying)


def _once(statements: Iterable[Stored]) -> tuple[Stored, ...]:
    """Each envelope where it comes first."""
    found: dict[Signed, Stored] = {}
    for one in statements:
        found.setdefault(one.signed, one)
    return tuple(found.values())


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
