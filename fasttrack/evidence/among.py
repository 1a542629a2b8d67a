# SPDX-License-Identifier: Apache-2.0
"""What trusted statements say that another of them does not bear."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from fasttrack.case import Case, lies_in
from fasttrack.errors import FactUnavailable
from fasttrack.evidence.failures import failure_of, said_no
from fasttrack.evidence.faults import Fault
from fasttrack.evidence.predicates.kernel_test_v1 import KernelTestV1
from fasttrack.evidence.predicates.stress_v1 import StressV1
from fasttrack.evidence.predicates.sync_audit_v1 import SyncAuditV1
from fasttrack.evidence.statement import Statement
from fasttrack.evidence.surroundings import surroundings
from fasttrack.evidence.trust import Judged, Question, question
from fasttrack.evidence.unit_paths import unbound_paths

if TYPE_CHECKING:
    from fasttrack.manifest.cells import CellId

_Asked = tuple[Question, frozenset[tuple[str, str | None]]]


class Among:
    """Trusted statements side by side.

    Groups are looked at once and not for each of their statements: a plan can have thousands.
    """

    def __init__(self, trusted: Iterable[Judged], case: Case) -> None:
        """Takes them, of a case."""
        same: dict[_Asked, list[Statement]] = defaultdict(list)
        self._around = case.once(surroundings)
        self._unbound = unbound_paths(case.config.folder)
        self._commits: dict[str, set[str]] = defaultdict(set)
        self._seeds: dict[tuple[str, CellId], set[tuple[int, ...]]] = defaultdict(set)
        for one in trusted:
            told, run = one.statement, one.statement.predicate.run
            same[self._asked(told)].append(told)
            self._commits[run.plan].add(run.commit)
            self._seeds[run.plan, told.cell.id].add(_seeds(told))
        self._same = {asked: _same(group) for asked, group in same.items()}

    def same(self, statement: Statement) -> dict[Fault, str]:
        """What others say otherwise of the same bytes."""
        return self._same[self._asked(statement)]

    def _asked(self, statement: Statement) -> _Asked:
        """The question, and what of its surroundings is otherwise now: runs of other ones differ.

        Nothing is otherwise that can not be told, nor what may be read unbound.
        """
        inputs = statement.predicate.inputs
        then: dict[str, str | None] = {file.path: file.sha256 for file in inputs.boundary}
        then |= {file.path: file.sha256 for file in inputs.apart}
        moved = []
        for path, sha256 in then.items():
            if not lies_in(self._unbound, path):
                with suppress(FactUnavailable):
                    if self._around.now(path) != sha256:
                        moved.append((path, sha256))
        return question(statement), frozenset(moved)

    def plan(self, statement: Statement) -> dict[Fault, str]:
        """What others of the same plan say that the plan was."""
        plan = statement.predicate.run.plan
        if len(self._commits[plan]) > 1:
            return {Fault.PLAN: f"plan {plan} of two commits"}
        twice = len(self._seeds[plan, statement.cell.id]) > 1
        return {Fault.PLAN: f"plan {plan} with two choices of seeds"} if twice else {}


def _same(group: Sequence[Statement]) -> dict[Fault, str]:
    """What statements of one cell and the same bytes do not agree on."""
    found: dict[Fault, str] = {}
    failed = sum(said_no(told) for told in group)
    if failed and any(failure_of(told) is None for told in group):
        found[Fault.DISAGREEMENT] = f"{failed} of {len(group)} runs failed, others did not"
    cubins = {t.predicate.cubin for t in group if isinstance(t.predicate, SyncAuditV1)}
    if len(cubins) > 1:
        found[Fault.CUBIN] = f"{len(cubins)} cubins of one variant"
    return found


def _seeds(statement: Statement) -> tuple[int, ...]:
    predicate = statement.predicate
    return tuple(sorted(predicate.seeds)) if isinstance(predicate, KernelTestV1 | StressV1) else ()
