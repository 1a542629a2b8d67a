# SPDX-License-Identifier: Apache-2.0
"""Everything that is wrong with the statements that a change brings, each looked at once.

Whose word it is comes first: of a statement that nobody trusted signed, only that is told. Then
what no run can have said, then what it shows of the cell that it names, where the first thing that
is wrong is the one that coverage tells, in the same words. Of statements that are there already,
only how they fit together is looked at, and only where the change relies on them: by its own
statements of the same bytes, or as they speak of cells that it owes.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from fasttrack.case import Case
from fasttrack.config import POLICY_NAME, judged_or_head
from fasttrack.errors import FactUnavailable, InputError
from fasttrack.evidence.accept import signatures
from fasttrack.evidence.among import Among
from fasttrack.evidence.asked import UNKNOWN, Asked, current
from fasttrack.evidence.claims import too_fast
from fasttrack.evidence.dsse import Signed
from fasttrack.evidence.failures import contradictions, failure_of, one_sided, unsure
from fasttrack.evidence.faults import Fault
from fasttrack.evidence.gathered import gather
from fasttrack.evidence.known import Known, known_evidence
from fasttrack.evidence.mixed import mixed
from fasttrack.evidence.owed import judge_coverage
from fasttrack.evidence.predicates.model_eval_v1 import ModelEvalV1
from fasttrack.evidence.predicates.performance_v1 import PerformanceV1
from fasttrack.evidence.statement import Bytes, bytes_of
from fasttrack.evidence.status import MISSING, Answer, Status
from fasttrack.evidence.store import FOLDER, Stored
from fasttrack.evidence.trust import Judged, Reason
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
    """A statement that the change brings or relies on.

    Attributes:
        path: its file; empty of one that was handed in and lies in no repository.
        line: which line of it.
        faults: what is wrong with it, in a sentence each.
    """

    path: str
    line: int
    faults: Mapping[Fault, str]


def weighed(case: Case) -> tuple[Told, ...]:
    """What is wrong with each statement that bears on the change; ask `case.once` for it."""
    known = case.once(known_evidence)
    kept = {one.signed for one in known.kept}
    new = [one for one in known.brought.statements if one.signed not in kept]
    owed = {one.cell.id for one in case.once(judge_coverage).owed}
    both = (*known.kept, *known.handed)
    there = [stored for stored in both if stored.statement.cell.id in owed]
    others = [stored for stored in both if stored.statement.cell.id not in owed]
    kinds = {one.statement.cell.kind for one in (*new, *both)} | {kind for kind, _ in owed}
    asked = Asked(case, known, sorted(kinds))
    brought, relied = _answered(known, asked, new), _answered(known, asked, there)
    # Other cells of the same bytes may have landed when nobody asked for these yet.
    of = {bytes_of(stored.statement) for stored, _, answer in (*brought, *relied) if answer.covers}
    same = _answered(known, asked, [s for s in others if bytes_of(s.statement) in of])
    every = [*brought, *relied, *same]
    several = mixed(one.statement for _, one, answer in every if answer.covers)
    among = Among([one for _, one in known.judged([*new, *there]) if one.pools], case)
    minted = _minted(case)
    found = []
    for stored, one, answer in brought:
        faults = {**_signer(one), **minted(stored.signed)}
        if one.pools:
            faults |= _content(one, case)
            faults |= _weight(one, answer, among, faults)
        found.append(_told(case, stored, faults | _mixed(one, answer, several)))
    for stored, one, answer in relied:
        if current(answer):
            faults = among.same(one.statement) | _mixed(one, answer, several)
            found.append(_told(case, stored, faults))
    return tuple(found)


_Answered = tuple[Stored, Judged, Answer]


def _answered(known: Known, asked: Asked, chosen: Collection[Stored]) -> list[_Answered]:
    """Some statements with what they say; one that no trusted signature is under says nothing."""
    judged = {stored.signed: one for stored, one in known.judged(chosen)}
    found = [(stored, judged[stored.signed]) for stored in chosen]
    return [(stored, one, asked.answer(one) if one.pools else MISSING) for stored, one in found]


def _mixed(one: Judged, answer: Answer, several: Mapping[Bytes, str]) -> dict[Fault, str]:
    text = several.get(bytes_of(one.statement)) if answer.covers else None
    return {Fault.MIXED: text} if text else {}


def _told(case: Case, stored: Stored, faults: Mapping[Fault, str]) -> Told:
    path, line = _place(case, stored)
    is_there = judged_or_head(case.change).get(path) or case.change.base.get(path)
    return Told(path if is_there else "", line if is_there else 0, faults)


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
        if stored.signed not in gone or not one.pools or not asked.is_of_these_bytes(one):
            continue
        answer = asked.answer(one)
        if answer.status is not Status.TOO_OLD:
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
    one: Judged, answer: Answer, among: Among, known: Mapping[Fault, str]
) -> dict[Fault, str]:
    """What a trusted statement lacks: the first thing, and how it fits to the others."""
    found = among.plan(one.statement)
    if current(answer):
        found |= among.same(one.statement)
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
