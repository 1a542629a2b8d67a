# SPDX-License-Identifier: Apache-2.0
"""Runs a plan: one child per cell, one unsigned statement per child.

The collector alone writes the bundle. It compares the tree with the plan before the first and after
every child, and the bundle with what it wrote, so that a test which changes either ends the run
and gains nothing. What a child reports about itself is believed: that is what the statement's
`isolation: process` says.
"""

import hashlib
import secrets
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from fasttrack.errors import InputError
from fasttrack.evidence.bundle import SUFFIX, append, cells_done
from fasttrack.evidence.child import Outcome, measure
from fasttrack.evidence.child_report import ChildReport, Job
from fasttrack.evidence.machine import measured_machine
from fasttrack.evidence.plan import Plan, PlannedCell, PlannedUnit, compare
from fasttrack.evidence.predicates import Predicate, kernel_test_v1, refusal_v1
from fasttrack.evidence.predicates.common import (
    CellFacts,
    Execution,
    Inputs,
    RunFacts,
    TestResults,
    Toolchain,
)
from fasttrack.evidence.predicates.kernel_test_v1 import KernelTestV1
from fasttrack.evidence.predicates.refusal_v1 import RefusalV1
from fasttrack.evidence.shards import ANYWHERE, Shard, hardware_of
from fasttrack.evidence.statement import Statement
from fasttrack.vocabulary import Kind

MEASURED_BY_TESTS = frozenset({Kind.KERNEL_TEST, Kind.REFUSAL})
"""Kinds that a child of ours can show; the others are audited, imported, or need the harness."""


@dataclass(frozen=True)
class Settings:
    """How to collect.

    Attributes:
        root: the source tree.
        out: the bundle.
        hardware: hardware id that this machine stands for.
        shard: which share of the plan.
        timeout_s: seconds that one cell may take.
    """

    root: Path
    out: Path
    hardware: str
    shard: Shard
    timeout_s: float


@dataclass(frozen=True)
class Progress:
    """One cell that was measured.

    Attributes:
        done: cells so far, this one included.
        total: cells to measure.
        cell: which one.
        problems: why it shows nothing; empty when it does.
        log: the end of what its tests printed.
    """

    done: int
    total: int
    cell: PlannedCell
    problems: tuple[str, ...]
    log: str


@dataclass(frozen=True)
class Collected:
    """What a run came to.

    Attributes:
        run: its id; the bundle's file has the same name.
        passed: cells whose statement shows something.
        failed: cells whose statement shows nothing.
        resumed: cells that the bundle already had.
        elsewhere: cells that another machine or tool has to measure, with the reason.
    """

    run: str
    passed: int
    failed: int
    resumed: int
    elsewhere: Mapping[str, int]


class Collector:
    """One run of a plan on this machine."""

    def __init__(self, plan: Plan, settings: Settings) -> None:
        """Takes the plan and how to run it.

        Raises:
            InputError: the tree is not the plan's, or the machine is not the named one.
        """
        if problems := compare(plan, settings.root):
            raise InputError(problems)
        if settings.hardware not in plan.archs:
            known = ", ".join(sorted(plan.archs))
            raise InputError.one("--hardware", settings.hardware, f"one of {known}")
        self._plan = plan
        self._settings = settings
        self._machine = measured_machine(settings.hardware, plan.archs[settings.hardware])
        self._run = secrets.token_hex(16)
        self._written = hashlib.sha256()

    def run(self, tell: Callable[[Progress], None]) -> Collected:
        """Measures the cells that the bundle lacks, in the plan's order.

        Args:
            tell: called after every cell.

        Raises:
            InputError: the tree or the bundle changed meanwhile, or can not be written.
        """
        mine = self._settings.shard.of(self._plan.cells)
        done = cells_done(self._settings.out, self._plan.id)
        reasons = {id(cell): self._elsewhere(cell) for cell in mine}
        here = [cell for cell in mine if not reasons[id(cell)]]
        todo = [c for c in here if (c.kind, c.cell().key) not in done]
        failed = 0
        for number, cell in enumerate(todo, start=1):
            problems, log = self._measure(cell)
            failed += bool(problems)
            tell(Progress(number, len(todo), cell, problems, log))
        return Collected(
            run=self._run,
            passed=len(todo) - failed,
            failed=failed,
            resumed=len(here) - len(todo),
            elsewhere=_counted([reason for reason in reasons.values() if reason]),
        )

    def _elsewhere(self, cell: PlannedCell) -> str:
        if cell.kind not in MEASURED_BY_TESTS:
            return f"{cell.kind.value} is not measured by tests"
        wanted = hardware_of(cell.cell())
        if wanted not in {ANYWHERE, self._settings.hardware}:
            return f"needs {wanted}"
        return ""

    def _measure(self, cell: PlannedCell) -> tuple[tuple[str, ...], str]:
        job = Job(nonce=secrets.token_hex(16), cell=_facts(cell), seeds=cell.seeds)
        started = _now()
        outcome = measure(self._settings.root, cell.tests, job, timeout_s=self._settings.timeout_s)
        if problems := compare(self._plan, self._settings.root):
            raise InputError(problems)
        statement = self._statement(cell, outcome, (started, _now()))
        self._append(statement)
        return tuple(statement.problems()), outcome.log

    def _append(self, statement: Statement) -> None:
        path = self._settings.out / f"{self._run}{SUFFIX}"
        now = path.read_bytes() if path.exists() else b""
        if hashlib.sha256(now).digest() != self._written.digest():
            raise InputError.one(path.name, "changed by another process", "a bundle of our own")
        append(self._settings.out, [statement])
        self._written.update(statement.to_bytes() + b"\n")

    def _statement(
        self, cell: PlannedCell, outcome: Outcome, times: tuple[datetime, datetime]
    ) -> Statement:
        unit = self._plan.unit(cell.unit)
        report = outcome.report
        head = {
            "cell": _facts(cell),
            "run": RunFacts(
                plan=self._plan.id,
                run=self._run,
                commit=self._plan.commit,
                started=times[0],
                finished=times[1],
                isolation="process",
            ),
            "machine": self._machine,
            "toolchain": _toolchain(report, self._plan.packages),
            "inputs": _inputs(self._plan, unit, report),
        }
        results = report.results if report else TestResults(failed=(outcome.why,))
        kind, predicate = _predicate(cell, report, results, head)
        return Statement(kind, predicate)


def _predicate(
    cell: PlannedCell,
    report: ChildReport | None,
    results: TestResults,
    head: Mapping[str, object],
) -> tuple[str, Predicate]:
    """What a child showed of a cell; a child without a report has failed."""
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


def _facts(cell: PlannedCell) -> CellFacts:
    return CellFacts(kind=cell.kind, region=cell.region, values=cell.values)


def _inputs(plan: Plan, unit: PlannedUnit, report: ChildReport | None) -> Inputs:
    launches = report.execution.launches if report else ()
    return Inputs(
        unit=unit.unit,
        digest=unit.digest,
        tests=unit.tests_digest,
        boundary=unit.boundary,
        undeclared=tuple(sorted(_undeclared(plan, unit, report))) if report else (),
        cubins=tuple(sorted({launch.cubin for launch in launches if launch.cubin})),
    )


def _undeclared(plan: Plan, unit: PlannedUnit, report: ChildReport) -> Set[str]:
    """Files that were used and that no digest of the unit holds.

    Modules outside the roots may be imported: what lies behind the boundary is bounded by the age
    of the evidence. So may the configuration be read, and pytest's own settings.
    """
    declared = {file.path for file in (*unit.files, *unit.tests)}
    declared |= {file.path for file in unit.boundary}
    inside = {path for path in report.imported if _in_roots(plan.roots, path)}
    opened = {path for path in report.opened if not path.startswith(plan.unbound)}
    return (inside | opened) - declared


def _in_roots(roots: Sequence[str], path: str) -> bool:
    return any(path.startswith(r) if r.endswith("/") else path == r for r in roots)


def _toolchain(report: ChildReport | None, packages: Sequence[str]) -> Toolchain:
    if report is None:
        return Toolchain(python="unknown")
    found = {name: report.packages[name] for name in packages if name in report.packages}
    return Toolchain(python=report.python, packages=found)


def _counted(reasons: Sequence[str]) -> Mapping[str, int]:
    return {reason: reasons.count(reason) for reason in dict.fromkeys(reasons)}


def _now() -> datetime:
    return datetime.now(UTC).replace(microsecond=0)
