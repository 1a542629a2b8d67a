# SPDX-License-Identifier: Apache-2.0
"""What evidence says of a cell: the one judgement that verdict, plan and effective tier share.

A statement is judged by the first thing that is wrong with it, in the order of `answer_of`: whether
it speaks of the unit and of these bytes, whose word it is, what it shows, on which machine, with
which versions, how much of it, and how old it is. A cell is as good as the best of its statements.
Trust has verified the signatures before; only it knows how many pools must agree, and here they
are counted once more, over the statements that are in order.

A changed boundary is told by no commit's date, which its author chooses, but measured from the day
on which the run ended: under `trust.boundary: grace` evidence of the last `GRACE_DAYS` days stays
covered when the target branch moved on just outside the roots, older evidence does not. What it was
measured with must be what that branch had, or what the change brings
(`fasttrack.evidence.surroundings`); else it is stale, wherever the statement lies.

What would cover is then held against the audits of the machine code that it launched
(`fasttrack.evidence.machine_code`).
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from fasttrack.evidence.acceptable import (
    device_fault,
    floor_fault,
    named_test_fault,
    silent_file_fault,
    toolchain_fault,
    waiver_faults,
)
from fasttrack.evidence.inputs import UnitInputs
from fasttrack.evidence.machine_code import code_fault
from fasttrack.evidence.predicates.kernel_test_v1 import KernelTestV1
from fasttrack.evidence.predicates.model_eval_v1 import ModelEvalV1
from fasttrack.evidence.predicates.refusal_v1 import RefusalV1
from fasttrack.evidence.predicates.sync_audit_v1 import SyncAuditV1
from fasttrack.evidence.statement import Statement
from fasttrack.evidence.status import MISSING, Answer, Status
from fasttrack.evidence.subject import unit_of
from fasttrack.evidence.surroundings import START_DAYS, Around, Then
from fasttrack.evidence.terms import Terms
from fasttrack.evidence.trust import Judged, Reason, shortfall
from fasttrack.manifest.cells import Cell, CellId
from fasttrack.vocabulary import Kind

GRACE_DAYS = 14
"""Days after a run for which a changed boundary does not matter, where the policy says so."""


InputsOf = Callable[[str], UnitInputs]
"""A unit's inputs in the judged tree; may raise FactUnavailable."""
Covered = Callable[[Cell, UnitInputs], bool]
"""Whether a cell need not be measured again, of exactly these inputs."""


class Evidence:
    """Statements after their signatures were judged, by the cell that they speak of."""

    def __init__(self, judged: Iterable[Judged] = ()) -> None:
        """Takes them; none covers nothing."""
        self._by_cell: Mapping[CellId, list[Judged]] = defaultdict(list)
        for one in judged:
            self._by_cell[one.statement.cell.id].append(one)
        self._audits: dict[CellId, tuple[Terms, frozenset[str]]] = {}

    def answer(self, cell: Cell, terms: Terms, inputs_of: InputsOf) -> Answer:
        """The best that the statements say of a cell.

        Args:
            cell: a cell that the manifest's scope asks for.
            terms: what they are held against.
            inputs_of: asked only when a statement speaks of the cell's unit.

        Raises:
            FactUnavailable: whatever `inputs_of` or `terms.around` raises.
        """
        about = self._by_cell.get(cell.id, [])
        known = [one for one in about if one.statement.predicate.inputs.unit == unit_of(cell)]
        if not known:
            return _wrong_unit(about[0].statement, cell) if about else MISSING
        inputs = inputs_of(unit_of(cell))
        answers = [
            (one, self.looked(one, cell, terms, answer_of(one, cell, terms, inputs), inputs_of))
            for one in known
        ]
        return max((_best(part, cell, terms) for part in _parts(answers, terms)), key=_order)

    def looked(
        self, one: Judged, cell: Cell, terms: Terms, answer: Answer, inputs_of: InputsOf
    ) -> Answer:
        """The answer of a statement, if the machine code that it launched was audited.

        Args:
            one: a statement, which need not be one of these.
            cell: the cell that it speaks of.
            terms: what it is held against.
            answer: what it says otherwise.
            inputs_of: asked for the units whose audits are among these.

        Raises:
            FactUnavailable: as `answer`.
        """
        if not answer.covers:
            return answer

        def audited(about: Cell) -> frozenset[str]:
            return self._audited(about, terms, inputs_of)

        fault = code_fault(one.statement, cell, terms.policy, terms.manifest, audited)
        return fault or answer

    def _audited(self, about: Cell, terms: Terms, inputs_of: InputsOf) -> frozenset[str]:
        """Digests of the machine code that audits of a cell cover, each with pools enough.

        Found once for all statements that are held against the same terms.
        """
        known = self._audits.get(about.id)
        if known is None or known[0] is not terms:
            known = terms, self._find_audited(about, terms, inputs_of)
            self._audits[about.id] = known
        return known[1]

    def _find_audited(self, about: Cell, terms: Terms, inputs_of: InputsOf) -> frozenset[str]:
        agreeing: Mapping[str, list[Judged]] = defaultdict(list)
        for one in self._by_cell.get(about.id, ()):
            predicate = one.statement.predicate
            if isinstance(predicate, SyncAuditV1) and predicate.inputs.unit == unit_of(about):
                inputs = inputs_of(unit_of(about))
                if answer_of(one, about, terms, inputs).covers:
                    agreeing[predicate.cubin].append(one)
        trust = terms.policy.trust
        return frozenset(c for c in agreeing if not shortfall(agreeing[c], about.kind, trust))


def _order(answer: Answer) -> tuple[bool, int]:
    return not answer.covers, answer.status.rank


def _parts(
    answers: Sequence[tuple[Judged, Answer]], terms: Terms
) -> Iterator[Sequence[tuple[Judged, Answer]]]:
    """All of them; of evaluations those of each task that the manifest names: each is needed."""
    tasks = [task.task for task in terms.manifest.evidence.evals]
    if not tasks or answers[0][0].statement.cell.kind is not Kind.MODEL_EVAL:
        yield answers
        return
    for task in tasks:
        yield [pair for pair in answers if _task(pair[0].statement) == task]


def _task(statement: Statement) -> str:
    predicate = statement.predicate
    return predicate.task if isinstance(predicate, ModelEvalV1) else ""


def _best(part: Sequence[tuple[Judged, Answer]], cell: Cell, terms: Terms) -> Answer:
    if not part:
        return Answer(Status.MISSING, "no statement of one of the tasks that the manifest names")
    return min(_agreed(part, cell, terms), key=_order)


def covered_by(evidence: Evidence, terms: Terms, others: InputsOf) -> Covered:
    """What a plan leaves out: whatever is covered, but nothing whose boundary changed.

    A verdict may let that pass for a while; who measures anyway measures it again. What waits for
    an audit alone is left out: another run of it would wait, too.

    Args:
        evidence: what there is.
        terms: what it is held against.
        others: inputs of further units, whose machine code a cell's runs may have launched.
    """

    def covered(cell: Cell, inputs: UnitInputs) -> bool:
        def inputs_of(unit: str) -> UnitInputs:
            return inputs if unit == inputs.unit else others(unit)

        found = evidence.answer(cell, terms, inputs_of).status
        return found in {Status.COVERED, Status.UNAUDITED}

    return covered


def _wrong_unit(statement: Statement, cell: Cell) -> Answer:
    saw, want = statement.predicate.inputs.unit, unit_of(cell)
    return Answer(Status.WRONG_UNIT, f"it binds to the files of {saw}, and the cell's are {want}'s")


def answer_of(one: Judged, cell: Cell, terms: Terms, inputs: UnitInputs) -> Answer:
    """What one statement of the cell's unit says, before pools are counted.

    Args:
        one: the statement, after its signatures were judged.
        cell: the cell that it speaks of.
        terms: what it is held against.
        inputs: the unit's, as they are now.

    Raises:
        FactUnavailable: whatever `terms.around` raises.
    """
    statement = one.statement
    policy, facts = terms.policy, statement.predicate.inputs
    bytes_now = {"files": inputs.digest, "tests": inputs.tests_digest}
    bytes_then = {"files": facts.digest, "tests": facts.tests}
    if changed := [name for name, digest in bytes_now.items() if bytes_then[name] != digest]:
        text = f"the {' and '.join(changed)} of {facts.unit} are not those of {_run(statement)}"
        return Answer(Status.STALE, text)
    if text := _distrust(one):
        return Answer(Status.UNTRUSTED, text)
    if fault := _shown(statement, terms):
        return fault
    for status, text in (
        (Status.SKIPPED, named_test_fault(statement, cell, terms.manifest)),
        (Status.SKIPPED, silent_file_fault(statement, inputs)),
        (Status.WRONG_DEVICE, device_fault(statement.predicate.machine, cell, policy.hardware)),
        (Status.WRONG_TOOLCHAIN, toolchain_fault(statement, cell, policy, terms.manifest)),
        (Status.BELOW_FLOOR, floor_fault(statement, cell, policy, terms.manifest)),
        (Status.TOO_OLD, _said(one, Reason.TOO_OLD)),
    ):
        if text:
            return Answer(status, text)
    return _boundary(statement, inputs, terms)


def _agreed(answers: Sequence[tuple[Judged, Answer]], cell: Cell, terms: Terms) -> Sequence[Answer]:
    """The answers, with as few of them covering as there are too few pools or runs for.

    Trust counted every accepted statement; one that was measured elsewhere, or is below a floor,
    stands for no pool here.
    """
    covering = [(answer.status.rank, one) for one, answer in answers if _is_right(answer)]
    few: dict[int, Answer] = {}
    for rank in {rank for rank, _ in covering}:
        agreeing = [one for its, one in covering if its <= rank]
        if text := shortfall(agreeing, cell.kind, terms.policy.trust):
            few[rank] = Answer(Status.UNTRUSTED, text)
    return [
        few.get(answer.status.rank, answer) if _is_right(answer) else answer
        for _, answer in answers
    ]


def _is_right(answer: Answer) -> bool:
    """Whether nothing lacks but, perhaps, an audit."""
    return answer.covers or answer.status is Status.UNAUDITED


def _distrust(one: Judged) -> str:
    """Why nobody can take its word, whatever it says; empty when somebody whom we trust said it."""
    if not one.pools:
        return one.refusals[0].text if one.refusals else "no signature"
    return _said(one, Reason.FROM_THE_FUTURE) or _said(one, Reason.RUN_ID_REUSED)


def _said(one: Judged, reason: Reason) -> str:
    return next((refusal.text for refusal in one.refusals if refusal.reason is reason), "")


def _shown(statement: Statement, terms: Terms) -> Answer | None:
    """Why it shows nothing; tests that did not run are told from tests that failed."""
    predicate, problems = statement.predicate, statement.problems()
    if isinstance(predicate, KernelTestV1 | RefusalV1):
        results = predicate.results
        if (lacking := results.problems()) and not results.failed:
            return Answer(Status.SKIPPED, f"{lacking[0]}: skipped is missing")
    if isinstance(predicate, SyncAuditV1):
        problems += waiver_faults(predicate, terms.waivers, terms.day)
    return Answer(Status.FAILED, problems[0]) if problems else None


def _boundary(statement: Statement, inputs: UnitInputs, terms: Terms) -> Answer:
    then: dict[str, str | None] = {f.path: f.sha256 for f in statement.predicate.inputs.boundary}
    now = {file.path: file.sha256 for file in inputs.boundary}
    then |= dict.fromkeys(now.keys() - then.keys())
    around = terms.around
    moved = {p: then[p] for p in sorted(then) if then[p] != (now.get(p) or around.now(p))}
    age = (terms.day - statement.predicate.run.finished.date()).days
    grace = terms.policy.trust.boundary == "grace" and age <= GRACE_DAYS
    # What was there is asked only where it decides: it may take a walk through history.
    if (grace or not moved) and (text := _strange(statement, inputs, around, moved)):
        return Answer(Status.STALE, text)
    if not moved:
        return Answer(Status.COVERED, f"shown by {_run(statement)}", covers=True)
    text = f"{_several([*moved], inputs)} changed since {_run(statement)}"
    return Answer(Status.BOUNDARY_CHANGED, text, covers=grace)


def _strange(statement: Statement, inputs: UnitInputs, around: Around, moved: Then) -> str:
    """What of a run's surroundings nobody can have seen; empty when somebody can."""
    ran, run = statement.predicate.inputs, _run(statement)
    if ran.target is None:
        return f"{run} does not say what it had otherwise than the target branch"
    started = f"{run} started from {ran.target[:12]}, which the target branch"
    if not around.was_at(ran.target):
        merged = around.has_merged(ran.target)
        how = " itself: it was merged, perhaps with its parents swapped" if merged else ""
        return f"{started} never was at{how}"
    days = around.days_behind(ran.target, statement.predicate.run.started)
    if days > START_DAYS and around.was_at(statement.predicate.run.commit):
        # It landed as it was: the branch went on from the start by the measured commit itself.
        days = around.days_behind(statement.predicate.run.commit, statement.predicate.run.started)
    if days > START_DAYS:
        return f"{started} had left {days} days before; measure what is nearer to it"
    if strange := around.strange(ran, moved, inputs):
        had = "what did not stand so in the target branch or the change with the rest of it"
        return f"{_several(strange, inputs)} was in {run} {had}"
    return ""


def _several(paths: Sequence[str], inputs: UnitInputs) -> str:
    """Some paths, those first that the unit imports directly."""
    near = {file.path for file in inputs.boundary}
    first = next((path for path in paths if path in near), paths[0])
    more = f" and {len(paths) - 1} more" if len(paths) > 1 else ""
    where = "of the unit" if first in inputs.bound else "in no digest"
    return f"{first}{more}, {'just outside the roots' if first in near else where},"


def _run(statement: Statement) -> str:
    run = statement.predicate.run
    return f"run {run.run[:12]} of {run.finished.date()}"
