# SPDX-License-Identifier: Apache-2.0
"""Everything that is wrong with the statements that a change brings, each looked at once.

Whose word it is comes first: of a statement that nobody trusted signed, only that is told. Then
what no run can have said, then what it shows of the cell that it names, where the first thing that
is wrong is the one that coverage tells, in the same words. Statements of the target are looked at
only where one that is brought agrees or disagrees with them.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass

from fasttrack.case import Case, lies_in
from fasttrack.config import POLICY_NAME, judged_or_head
from fasttrack.errors import FactUnavailable, InputError
from fasttrack.evidence.accept import signatures
from fasttrack.evidence.asked import UNKNOWN, Asked, current
from fasttrack.evidence.claims import too_fast
from fasttrack.evidence.dsse import Signed
from fasttrack.evidence.failures import contradictions, failure_of, one_sided, said_no, unsure
from fasttrack.evidence.faults import Fault
from fasttrack.evidence.gathered import gather
from fasttrack.evidence.known import Known, known_evidence
from fasttrack.evidence.mixed import mixed
from fasttrack.evidence.predicates.kernel_test_v1 import KernelTestV1
from fasttrack.evidence.predicates.model_eval_v1 import ModelEvalV1
from fasttrack.evidence.predicates.performance_v1 import PerformanceV1
from fasttrack.evidence.predicates.stress_v1 import StressV1
from fasttrack.evidence.predicates.sync_audit_v1 import SyncAuditV1
from fasttrack.evidence.statement import Bytes, Statement, bytes_of
from fasttrack.evidence.status import MISSING, Answer, Status
from fasttrack.evidence.store import FOLDER, Stored
from fasttrack.evidence.surroundings import surroundings
from fasttrack.evidence.trust import Judged, Question, Reason, question
from fasttrack.evidence.unit_paths import unbound_paths
from fasttrack.policy.load import load_policy
from fasttrack.policy.trust import Trust
from fasttrack.vocabulary import Kind

_SIGNER = frozenset(
    {
        Reason.UNKNOWN_KEY,
        Reason.UNKNOWN_IDENTITY,
        Reason.NOT_VERIFIABLE,
        Reason.KEY_NOT_YET_VALID,
        Reason.EXPIRED_KEY,
    }
)
_ROLE = frozenset({Reason.WRONG_ROLE, Reason.WRONG_KIND, Reason.WRONG_HARDWARE})
_BY_STATUS: Mapping[Status, Fault] = {
    Status.STALE: Fault.OTHER_BYTES,
    Status.WRONG_UNIT: Fault.OTHER_BYTES,
    Status.MISSING: Fault.UNASKED,
    Status.BOUNDARY_CHANGED: Fault.BOUNDARY,
    Status.TOO_OLD: Fault.AGE,
    Status.WRONG_DEVICE: Fault.MACHINE,
    Status.WRONG_TOOLCHAIN: Fault.VERSIONS,
    Status.SKIPPED: Fault.SKIPPED,
    Status.UNAUDITED: Fault.CODE,
    Status.OTHER_CODE: Fault.CODE,
}
_FLOORS = {Kind.MODEL_EVAL: Fault.EVALUATION, Kind.PERFORMANCE: Fault.NO_CLAIM}


@dataclass(frozen=True)
class Told:
    """A statement of a file that the change brings.

    Attributes:
        path: the file.
        line: which line of it.
        faults: what is wrong with it, in a sentence each.
    """

    path: str
    line: int
    faults: Mapping[Fault, str]


def weighed(case: Case) -> tuple[Told, ...]:
    """What is wrong with each statement that the change brings; ask `case.once` for it."""
    known = case.once(known_evidence)
    kept = {one.signed for one in known.kept}
    new = [one for one in known.brought.statements if one.signed not in kept]
    judged = known.judged(new)
    by_envelope = {stored.signed: one for stored, one in judged}
    asked = Asked(case, known, (one.statement.cell.kind for one in new))
    among = _Among([one for _, one in judged if one.pools], case)
    minted = _minted(case)
    found, covering = [], []
    for stored in new:
        one = by_envelope[stored.signed]
        faults = {**_signer(one), **minted(stored.signed)}
        if one.pools:
            answer = asked.answer(one)
            faults |= _content(one, case)
            faults |= _weight(one, answer, among, faults)
            if answer.covers:
                covering.append((one.statement, faults))
        path, line = _place(case, stored)
        found.append(Told(path, line, faults))
    units = {bytes_of(statement) for statement, _ in covering}
    before = [one.statement for one in _covering_already(known, asked, units)]
    several = mixed([*before, *(statement for statement, _ in covering)])
    for statement, faults in covering:
        if text := several.get(bytes_of(statement)):
            faults[Fault.MIXED] = text
    return tuple(found)


def _covering_already(known: Known, asked: Asked, units: Set[Bytes]) -> Iterator[Judged]:
    """What the target's statements cover of the bytes that the change brings evidence of."""
    same = [one for one in known.kept if bytes_of(one.statement) in units]
    chosen = {one.signed for one in same}
    for stored, one in known.judged(same):
        if stored.signed in chosen and one.pools and asked.answer(one).covers:
            yield one


def still_counted(case: Case) -> Mapping[str, str]:
    """Files that the change deletes and that still say something, to what; ask `case.once` for it.

    Something is said by every trusted statement of a cell that is asked for after the merge, of
    its bytes as they then are: also that it failed.
    """
    known = case.once(known_evidence)
    change, folder = case.change, case.config.folder
    left = {one.signed for one in gather(change, (judged_or_head(change),), folder, None)}
    gone = {one.signed: one for one in known.removed.statements if one.signed not in left}
    asked = Asked(case, known, (one.statement.cell.kind for one in gone.values()))
    found: dict[str, str] = {}
    for stored, one in known.judged(gone.values()):
        answer = asked.answer(one) if stored.signed in gone and one.pools else MISSING
        if current(answer) and answer.status is not Status.TOO_OLD:
            path, _ = _place(case, gone[stored.signed])
            cell = one.statement.cell
            found.setdefault(path, f"{cell.kind.value} {cell.key}: {answer.status.value}")
    return found


def _place(case: Case, stored: Stored) -> tuple[str, int]:
    name, _, line = stored.source.rpartition(":")
    return f"{case.config.folder}/{FOLDER}/{name}", int(line)


def _signer(one: Judged) -> dict[Fault, str]:
    """What is wrong with its signatures; a single good one is enough, except beside a forgery."""
    found: dict[Fault, str] = {}
    for refusal in one.refusals:
        if refusal.reason is Reason.BAD_SIGNATURE:
            found.setdefault(Fault.FORGED, refusal.text)
        elif refusal.reason is Reason.REVOKED_KEY:
            finished = one.statement.predicate.run.finished.date()
            late = refusal.revoked is not None and refusal.revoked <= finished
            if late or not one.pools:
                found.setdefault(Fault.REVOKED if late else Fault.SIGNER, refusal.text)
        elif refusal.reason in _SIGNER and not one.pools:
            found.setdefault(Fault.SIGNER, refusal.text)
        elif refusal.reason in _ROLE and not one.pools:
            found.setdefault(Fault.ROLE, refusal.text)
    return found


def _minted(case: Case) -> Callable[[Signed], dict[Fault, str]]:
    """Tells which statements are signed by a key that the change itself makes trusted."""
    side = judged_or_head(case.change).get(f"{case.config.folder}/{POLICY_NAME}")
    try:
        after = load_policy(case.change.blob(side), POLICY_NAME).trust if side else Trust()
    except (InputError, FactUnavailable):  # FT317 reports a policy that can not be read
        after = Trust()
    known = {(key.id, key.public) for key in case.policy.trust.keys}
    new = Trust(keys=tuple(key for key in after.keys if (key.id, key.public) not in known))

    def minted(signed: Signed) -> dict[Fault, str]:
        mine = sorted(signatures(signed, new).valid) if new.keys and not signed.bundle else []
        return {Fault.OWN_KEY: f"the key {mine[0]}, which the change adds"} if mine else {}

    return minted


def _content(one: Judged, case: Case) -> dict[Fault, str]:
    """What no run can have said, or what nobody can hold against anything."""
    predicate = one.statement.predicate
    found: dict[Fault, str] = {}
    if text := next(contradictions(predicate), ""):
        found[Fault.CONTRADICTION] = text
    for refusal in one.refusals:
        if refusal.reason is Reason.RUN_ID_REUSED:
            found[Fault.REUSED_RUN] = refusal.text
        elif refusal.reason is Reason.FROM_THE_FUTURE:
            found[Fault.FUTURE] = refusal.text
    if isinstance(predicate, ModelEvalV1) and (text := unsure(predicate)):
        found[Fault.CONFIDENCE] = text
    if isinstance(predicate, PerformanceV1):
        if text := one_sided(predicate):
            found[Fault.INTERLEAVED] = text
        if text := _impossible(predicate, case):
            found[Fault.IMPOSSIBLE] = text
    return found


def _impossible(measured: PerformanceV1, case: Case) -> str:
    known = case.policy.hardware.get(measured.machine.hardware)
    bandwidth = known.bandwidth_tb_s if known else None
    return too_fast(measured, bandwidth.peak) if bandwidth else ""


def _weight(
    one: Judged, answer: Answer, among: "_Among", known: Mapping[Fault, str]
) -> dict[Fault, str]:
    """What a trusted statement lacks: the first thing, and how it fits to the others."""
    found = among.faults(one.statement) if current(answer) else among.plan(one.statement)
    if answer is UNKNOWN or known.keys() & {Fault.FUTURE, Fault.REUSED_RUN, Fault.CONTRADICTION}:
        return found
    if answer.detail in known.values():  # told already, by a fault of its own
        return found
    fault = _BY_STATUS.get(answer.status)
    if answer.status is Status.FAILED:
        fault = failure_of(one.statement) or Fault.FAILED
    elif answer.status is Status.BELOW_FLOOR:
        fault = _FLOORS.get(one.statement.cell.kind, Fault.FLOORS)
        if Fault.IMPOSSIBLE in known:
            return found
    if fault is not None:
        cell = one.statement.cell
        unasked = f"{cell.kind.value} {cell.key}"
        found[fault] = unasked if fault is Fault.UNASKED else answer.detail
    elif answer.covers:
        few = (r.text for r in one.refusals if r.reason is Reason.BELOW_THRESHOLD)
        if text := next(few, ""):
            found[Fault.POOLS] = text
    return found


_Asked = tuple[Question, frozenset[tuple[str, str | None]]]


class _Among:
    """Trusted statements side by side: what one says that another of them does not bear.

    Groups are looked at once and not for each of their statements: a plan can have thousands.
    """

    def __init__(self, trusted: Sequence[Judged], case: Case) -> None:
        same: dict[_Asked, list[Statement]] = defaultdict(list)
        self._around = case.once(surroundings)
        self._unbound = unbound_paths(case.config.folder)
        self._commits: dict[str, set[str]] = defaultdict(set)
        self._seeds: dict[tuple[str, Kind, str], set[tuple[int, ...]]] = defaultdict(set)
        for one in trusted:
            told, run = one.statement, one.statement.predicate.run
            same[self._asked(told)].append(told)
            self._commits[run.plan].add(run.commit)
            self._seeds[run.plan, *told.cell.id].add(_seeds(told))
        self._same = {asked: _same(group) for asked, group in same.items()}

    def faults(self, statement: Statement) -> dict[Fault, str]:
        """What others say otherwise of the same bytes."""
        return self.plan(statement) | self._same[self._asked(statement)]

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
        twice = len(self._seeds[plan, *statement.cell.id]) > 1
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
