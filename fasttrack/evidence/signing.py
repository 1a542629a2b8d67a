# SPDX-License-Identifier: Apache-2.0
"""Signing what was collected, after comparing it with the plan and with git.

Nothing of the change is executed: digests come from git objects, and a statement is data. Whoever
measured could have chosen other cells, seeds or bytes than the plan; a bundle in which one
statement did is not signed at all. The plan itself is compared with its commit: one that runs
fewer tests is not signed either. Seeds follow from no commit, so that the plan has to come from
where it was made, not from where it was run. Statements that show nothing are signed too: that a
cell failed is worth knowing, and covers nothing. So are two runs of one cell, as they are two runs.

What was collected names every file that a run used. Signed is in its place which commit of the
target branch the plan's descends from, and what was otherwise than there
(`fasttrack.evidence.departure`).
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from fasttrack.config import needed
from fasttrack.errors import InputError, Problem
from fasttrack.evidence.bundle import Entry
from fasttrack.evidence.departure import Departure
from fasttrack.evidence.derived import Derived
from fasttrack.evidence.dsse import sign
from fasttrack.evidence.inputs import UnitInputs
from fasttrack.evidence.plan import Plan, PlannedCell, PlannedUnit
from fasttrack.evidence.predicates.kernel_test_v1 import KernelTestV1
from fasttrack.evidence.predicates.stress_v1 import StressV1
from fasttrack.evidence.statement import MAX_BYTES, Statement
from fasttrack.evidence.subject import ANYWHERE, hardware_of
from fasttrack.manifest.cells import CellId

if TYPE_CHECKING:
    from securesystemslib.signer import Signer


def signed_bundle(
    entries: Sequence[Entry],
    plan: Plan,
    derived: Derived,
    departure: Departure,
    signer: "Signer",
) -> list[bytes]:
    """An envelope for every statement of a bundle.

    Args:
        entries: the statements.
        plan: what they had to be.
        derived: what follows from the plan's commit, from git objects.
        departure: what that commit has otherwise than the target branch.
        signer: of one of the policy's keys.

    Raises:
        InputError: nothing to sign, a statement that is not the plan's, or a plan that is not its
            commit's.
    """
    if not entries:
        raise InputError.one("bundle", "no statements", "what `evidence collect` writes")
    planned = {cell.cell().id: cell for cell in plan.cells}
    problems = [*_twice(entries), *(p for e in entries for p in _against(e, plan, planned))]
    problems += _derived_again(plan, derived)
    if problems:
        raise InputError(problems)
    return [sign(_departing(entry, plan, departure), signer) for entry in entries]


def _departing(entry: Entry, plan: Plan, departure: Departure) -> Statement:
    """The statement as it is signed."""
    predicate = entry.statement.predicate
    unit = plan.unit(predicate.inputs.unit)
    bound = {file.path for file in (*unit.files, *unit.tests)}
    with needed(entry.where):
        inputs = departure.told(predicate.inputs, bound, unit.boundary, entry.where)
    update = {"inputs": inputs}
    found = Statement(entry.statement.predicate_type, predicate.model_copy(update=update))
    if (size := len(found.to_bytes())) > MAX_BYTES:
        saw = f"a statement of {size:,} bytes, with {len(inputs.apart):,} files that differ"
        raise InputError.one(entry.where, saw, f"at most {MAX_BYTES:,}")
    return found


def _twice(entries: Sequence[Entry]) -> Iterator[Problem]:
    count = Counter((e.statement.predicate.run.run, e.statement.cell) for e in entries)
    for (run, cell), times in count.items():
        if times > 1:
            yield Problem(f"run {run}", f"{times} statements of {cell.key}", "one for each cell")


def _against(entry: Entry, plan: Plan, planned: Mapping[CellId, PlannedCell]) -> Iterator[Problem]:
    """What a statement has other than the plan."""
    statement = entry.statement
    run, cell = statement.predicate.run, statement.cell
    if (run.plan, run.commit) != (plan.id, plan.commit):
        saw = f"a statement of plan {run.plan} at {run.commit[:12]}"
        yield Problem(entry.where, saw, f"plan {plan.id} at {plan.commit[:12]}")
        return
    wanted = planned.get(cell.id)
    if wanted is None:
        yield Problem(entry.where, f"the {cell.kind.value} cell {cell.key}", "a cell of the plan")
        return
    for saw, want in _differences(statement, wanted, plan):
        yield Problem(entry.where, saw, want)


def _differences(
    statement: Statement, planned: PlannedCell, plan: Plan
) -> Iterator[tuple[str, str]]:
    predicate, unit = statement.predicate, plan.unit(planned.unit)
    inputs, hardware = predicate.inputs, hardware_of(planned.cell())
    if inputs.unit != unit.unit:
        yield f"the unit {inputs.unit}", unit.unit
    elif (inputs.digest, inputs.tests) != (unit.digest, unit.tests_digest):
        yield "digests of other bytes", "those of the plan"
    elif not set(unit.boundary) <= set(inputs.boundary):
        yield "another boundary", "that of the plan"
    elif odd := {file.path for file in {*inputs.boundary} - {*unit.boundary}} - {*plan.beside}:
        yield f"the boundary file {min(odd)}", "a file of the plan's commit"
    if hardware not in {ANYWHERE, predicate.machine.hardware}:
        yield f"measured on {predicate.machine.hardware}", hardware
    seeds = predicate.seeds if isinstance(predicate, KernelTestV1 | StressV1) else ()
    if sorted(seeds) != sorted(planned.seeds):
        yield "other seeds", "those that the plan chose"


def _derived_again(plan: Plan, derived: Derived) -> Iterator[Problem]:
    """What the plan says other than git does."""
    want = f"what follows from commit {plan.commit[:12]}"
    if (plan.roots, plan.unbound) != (derived.roots, derived.unbound):
        yield Problem("the plan", "other roots, or other files that may be read unbound", want)
    if plan.beside != derived.beside:
        yield Problem("the plan", "other files beside the roots", want)
    tests: dict[str, tuple[str, ...]] = {}
    for unit in plan.units:
        found = derived.inputs_of(unit.unit)
        tests[unit.unit] = found.runs
        if not _same_bytes(unit, found):
            want_bytes = f"the bytes of commit {plan.commit[:12]}"
            yield Problem(f"unit {unit.unit} of the plan", "other digests", want_bytes)
        if unit.patterns != derived.patterns_of(unit.unit):
            yield Problem(f"unit {unit.unit} of the plan", "other test patterns", want)
        if unit.variants != derived.variants_of(unit.unit):
            yield Problem(f"unit {unit.unit} of the plan", "another variant table", want)
    for number, cell in enumerate(plan.cells):
        if cell.tests != tests[cell.unit]:
            saw = f"{len(cell.tests)} test files, not the {len(tests[cell.unit])} of {cell.unit}"
            yield Problem(f"cell {number} of the plan", saw, want)


def _same_bytes(unit: PlannedUnit, found: UnitInputs) -> bool:
    boundary = [(file.path, file.sha256) for file in found.boundary]
    same = (found.digest, found.tests_digest) == (unit.digest, unit.tests_digest)
    return same and sorted(boundary) == sorted((f.path, f.sha256) for f in unit.boundary)
