# SPDX-License-Identifier: Apache-2.0
"""Statements against what the manifests ask for after the merge, whatever tier they claim."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Set
from contextlib import suppress

from fasttrack.case import Case
from fasttrack.config import judged_or_head
from fasttrack.errors import FactUnavailable
from fasttrack.evidence.coverage import Evidence, answer_of
from fasttrack.evidence.known import Known
from fasttrack.evidence.machine_code import audits_of
from fasttrack.evidence.owed import variant_tables
from fasttrack.evidence.statement import bytes_of
from fasttrack.evidence.status import MISSING, Answer, Status
from fasttrack.evidence.subject import unit_of
from fasttrack.evidence.terms import Terms
from fasttrack.evidence.trust import Judged
from fasttrack.manifest.cells import Cell, CellId
from fasttrack.manifest.points import TooManyPoints, witness_points
from fasttrack.vocabulary import Kind

UNKNOWN = Answer(Status.MISSING, "could not tell what is asked for")
"""Nobody knows whether there is such a cell, or of which bytes."""


class Asked:
    """The cells of some kinds, of every manifest."""

    def __init__(self, case: Case, known: Known, kinds: Iterable[Kind]) -> None:
        """Lists them."""
        self._case, self._known = case, known
        self._cells: dict[CellId, list[tuple[str, Cell]]] = defaultdict(list)
        self._hidden: set[Kind] = set()
        self._audited: dict[frozenset[CellId], Evidence] = {}
        self._terms = {path: Terms.of(case, path) for path in case.head.valid}
        for kind in dict.fromkeys(kinds):
            for path, cell in self._witnesses(kind):
                self._cells[cell.id].append((path, cell))

    def answer(self, one: Judged) -> Answer:
        """The best that a statement says of a cell with its kind and key.

        `MISSING` when there is no such cell, and `UNKNOWN` when that can not be told.
        """
        statement = one.statement
        cells = self._cells.get(statement.cell.id, [])
        if not cells:
            return UNKNOWN if statement.cell.kind in self._hidden else MISSING
        answers = [self._answer(one, path, cell) for path, cell in cells]
        return min(answers, key=lambda answer: (not answer.covers, answer.status.rank))

    def is_of_these_bytes(self, one: Judged) -> bool:
        """Whether a statement speaks of such a cell, and of its unit as it is after the merge.

        So it may even where its surroundings make it `stale`, as the change may have moved them.
        """
        for path, cell in self._cells.get(one.statement.cell.id, []):
            with suppress(FactUnavailable):
                unit = self._known.graph(path).unit_inputs(unit_of(cell))
                if bytes_of(one.statement) == (unit.unit, unit.digest, unit.tests_digest):
                    return True
        return False

    def _answer(self, one: Judged, path: str, cell: Cell) -> Answer:
        unit = one.statement.predicate.inputs.unit
        if unit != unit_of(cell):
            return Answer(Status.WRONG_UNIT, f"it binds to {unit}, and the cell to {unit_of(cell)}")
        terms, inputs_of = self._terms[path], self._known.graph(path).unit_inputs
        try:
            answer = answer_of(one, cell, terms, inputs_of(unit))
            audits = self._audits(one) if answer.covers else Evidence()
            return audits.looked(one, cell, terms, answer, inputs_of)
        except FactUnavailable:
            return UNKNOWN

    def _audits(self, one: Judged) -> Evidence:
        """Audits of the machine code that a statement launched."""
        audits = audits_of([one.statement])
        if audits not in self._audited:
            about = self._known.about(audits)
            judged = self._known.judged(about) if about else ()
            self._audited[audits] = Evidence(found for _, found in judged)
        return self._audited[audits]

    def _witnesses(self, kind: Kind) -> Iterator[tuple[str, Cell]]:
        case = self._case
        if case.head.broken:
            self._hidden.add(kind)
        for path, manifest in case.head.valid.items():
            tables = variant_tables(case.change, manifest, judged_or_head(case.change))
            try:
                cells = witness_points(manifest, kind, case.policy.hardware, tables)
            except (TooManyPoints, FactUnavailable):
                self._hidden.add(kind)
                continue
            for cell in cells:
                yield path, cell


def current(answer: Answer) -> bool:
    """Whether a statement speaks of a cell that is asked for, and of its bytes as they are."""
    return answer.status not in _ELSEWHERE


_ELSEWHERE: Set[Status] = frozenset({Status.MISSING, Status.STALE, Status.WRONG_UNIT})
