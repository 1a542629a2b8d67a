# SPDX-License-Identifier: Apache-2.0
"""From what a child reported to a statement.

Of the child come its results and what it used. Digests, machine, run and times are the collector's.
A child without a report has failed, and the statement says why.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from fasttrack.evidence.child import Outcome
from fasttrack.evidence.child_report import ChildReport
from fasttrack.evidence.plan import SEEDED, Plan, PlannedCell, PlannedUnit
from fasttrack.evidence.predicates import Predicate, kernel_test_v1, refusal_v1
from fasttrack.evidence.predicates.common import (
    MAX_NODES,
    CellFacts,
    Execution,
    Inputs,
    Machine,
    RunFacts,
    TestResults,
    Toolchain,
)
from fasttrack.evidence.predicates.kernel_test_v1 import KernelTestV1
from fasttrack.evidence.predicates.refusal_v1 import RefusalV1
from fasttrack.evidence.statement import MAX_BYTES, Statement
from fasttrack.evidence.used import replaced, used_files
from fasttrack.vocabulary import Kind

MEASURED_BY_TESTS = frozenset({Kind.KERNEL_TEST, Kind.REFUSAL})
"""Kinds that a child of ours can show; the others are audited, imported, or need the harness."""
RECORDED_VARIABLES = ("CUTE_DSL_ARCH",)
"""Of the variables that a child inherits, those that change what is built."""
MAX_UNDECLARED = 4096
"""Undeclared files that a statement names."""


def statement_of(
    plan: Plan, cell: PlannedCell, outcome: Outcome, run: RunFacts, machine: Machine, *, root: Path
) -> Statement:
    """What a child showed of a cell.

    Args:
        plan: the plan.
        cell: of a kind in `MEASURED_BY_TESTS`.
        outcome: what came of its child.
        run: plan, run and times.
        machine: this machine.
        root: the source tree.
    """
    unit = plan.unit(cell.unit)
    inputs = _inputs(plan, unit, outcome, root)
    statement = _statement(plan, cell, outcome, run, machine=machine, inputs=inputs)
    size = len(statement.to_bytes())
    if size <= MAX_BYTES:
        return statement
    why = f"its report makes a statement of {size:,} bytes, of at most {MAX_BYTES:,}"
    none = Outcome(None, why, outcome.log)
    inputs = _inputs(plan, unit, none, root)
    return _statement(plan, cell, none, run, machine=machine, inputs=inputs)


def facts_of(cell: PlannedCell) -> CellFacts:
    """The cell as statements and jobs name it."""
    return CellFacts(kind=cell.kind, region=cell.region, values=cell.values)


def _statement(
    plan: Plan,
    cell: PlannedCell,
    outcome: Outcome,
    run: RunFacts,
    *,
    machine: Machine,
    inputs: Inputs,
) -> Statement:
    report = outcome.report
    head = {
        "cell": facts_of(cell),
        "run": run,
        "machine": machine,
        "toolchain": toolchain_of(report, plan.packages),
        "inputs": inputs,
    }
    results = _results(plan.unit(cell.unit), cell, outcome)
    kind, predicate = _predicate(cell, report, results, head)
    return Statement(kind, predicate)


def _results(unit: PlannedUnit, cell: PlannedCell, outcome: Outcome) -> TestResults:
    report = outcome.report
    if report is None:
        return TestResults(failed=(outcome.why[:1024],))
    failed = (*replaced(unit, report), *_ignored(cell, report), *report.results.failed)
    return report.results.model_copy(update={"failed": failed[:MAX_NODES]})


def _ignored(cell: PlannedCell, report: ChildReport) -> Iterator[str]:
    """What no test asked for, although all of them passed: they say nothing about it."""
    if report.results.problems():
        return
    if not report.took_cell:
        yield "no test that takes fasttrack_cell passed"
    if cell.kind in SEEDED and report.seeds != cell.seeds:
        yield "no test took fasttrack_seeds"


def _predicate(
    cell: PlannedCell,
    report: ChildReport | None,
    results: TestResults,
    head: Mapping[str, object],
) -> tuple[str, Predicate]:
    if cell.kind is Kind.REFUSAL:
        answer = report.answer if report else None
        refusal = {
            "refused": answer is not None and answer.refused,
            "reasons": answer.reasons if answer else (),
            "results": results,
        }
        return refusal_v1.TYPE, RefusalV1.model_validate({**head, **refusal})
    tested = {
        "results": results,
        "seeds": (report.seeds if report else ()) or cell.seeds,
        "tolerances": report.tolerances if report else (),
        "execution": report.execution if report else Execution(fallbacks=0),
        "gates": report.gates if report else (),
    }
    return kernel_test_v1.TYPE, KernelTestV1.model_validate({**head, **tested})


def _inputs(plan: Plan, unit: PlannedUnit, outcome: Outcome, root: Path) -> Inputs:
    report = outcome.report
    launches = report.execution.launches if report else ()
    boundary, undeclared = used_files(plan, unit, report, root) if report else (unit.boundary, ())
    return Inputs(
        unit=unit.unit,
        digest=unit.digest,
        tests=unit.tests_digest,
        boundary=boundary,
        undeclared=undeclared[:MAX_UNDECLARED],
        cubins=tuple(sorted({launch.cubin for launch in launches if launch.cubin})),
    )


def toolchain_of(report: ChildReport | None, packages: Sequence[str]) -> Toolchain:
    """Versions in a child, of these packages; unknown where it told none."""
    if report is None:
        return Toolchain(python="unknown")
    found = {name: report.packages[name] for name in packages if name in report.packages}
    variables = {n: os.environ[n][:200] for n in RECORDED_VARIABLES if os.environ.get(n)}
    return Toolchain(python=report.python, packages=found, variables=variables)
