# SPDX-License-Identifier: Apache-2.0
"""Runs a plan: one child per cell, one unsigned statement per child.

Machine code is audited by this process itself, whatever made it (`fasttrack.evidence.auditing`).

The collector alone writes the bundle. Where the system can build a wall, a test can change neither
it nor the tree (`fasttrack.evidence.wall`). Everywhere the tree is compared with the plan before
the first and after every child, and the bundle with what was left there, so that a test which
changes either ends the run and gains nothing. What a child reports about itself is believed: that
is what the statement's `isolation: process` says.
"""

import secrets
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.util import find_spec
from itertools import groupby
from pathlib import Path
from tempfile import TemporaryDirectory

from fasttrack.errors import FactUnavailable, InputError
from fasttrack.evidence.bundle import cells_done, statements
from fasttrack.evidence.child import Outcome, Runs, measure
from fasttrack.evidence.child_report import Build, Job
from fasttrack.evidence.guard import Guard
from fasttrack.evidence.in_tree import compare
from fasttrack.evidence.machine import measured_machine
from fasttrack.evidence.plan import Plan, PlannedCell
from fasttrack.evidence.predicates.common import Isolation, RunFacts
from fasttrack.evidence.shards import Shard
from fasttrack.evidence.shown import MEASURED_BY_TESTS, facts_of, statement_of
from fasttrack.evidence.subject import ANYWHERE, hardware_of
from fasttrack.evidence.used import own_places
from fasttrack.evidence.wall import stands_around
from fasttrack.vocabulary import Kind


@dataclass(frozen=True)
class Settings:
    """How to collect.

    Attributes:
        root: the source tree.
        out: the bundle.
        hardware: hardware id that this machine stands for.
        shard: which share of the plan.
        timeout_s: seconds that one cell may take.
        shared: whether other collectors may use the bundle where no wall keeps tests from it.
    """

    root: Path
    out: Path
    hardware: str
    shard: Shard
    timeout_s: float
    shared: bool = False


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
    """What the bundle has of this machine's share, and what this run added.

    Attributes:
        run: its id; the bundle's file has the same name.
        passed: cells of which every statement shows something.
        failed: cells with a statement that shows nothing.
        unmeasured: cells whose tests could not start, or of which there is no machine code to
            audit; there is no statement of them.
        resumed: cells that the bundle already had.
        elsewhere: cells that another machine or tool has to measure, by reason.
        walled: whether tests were kept from the bundle and the tree.
    """

    run: str
    passed: int
    failed: int
    unmeasured: int
    resumed: int
    elsewhere: Mapping[str, int]
    walled: bool


class Collector:
    """One run of a plan on this machine."""

    def __init__(self, plan: Plan, settings: Settings) -> None:
        """Takes the plan and how to run it.

        Raises:
            InputError: there is no pytest, the tree is not the plan's, or the machine is not the
                named one.
        """
        if find_spec("pytest") is None:
            want = "pytest, and what the tests import, where fasttrack is installed"
            raise InputError.one("pytest", "no such module", want, "python -m pip install pytest")
        if problems := compare(plan, settings.root):
            raise InputError(problems)
        if settings.hardware not in plan.archs:
            known = ", ".join(sorted(plan.archs))
            raise InputError.one("--hardware", settings.hardware, f"one of {known}")
        self._plan = plan
        self._settings = settings
        self._machine = measured_machine(settings.hardware, plan.archs[settings.hardware])
        self._run = secrets.token_hex(16)
        self._walled = stands_around(settings.out, settings.root)
        self._unmeasured = 0
        shared = self._walled or settings.shared
        self._bundle = Guard(settings.out, self._run, shared=shared)

    def run(self, tell: Callable[[Progress], None]) -> Collected:
        """Measures the cells that the bundle lacks, in the plan's order.

        Args:
            tell: called after every cell.

        Raises:
            InputError: the tree or the bundle changed meanwhile, or can not be written.
        """
        mine = [(cell, self._elsewhere(cell)) for cell in self._settings.shard.of(self._plan)]
        here = [cell for cell, reason in mine if not reason]
        done = cells_done(self._settings.out, self._plan.id)
        todo = [cell for cell in here if cell.cell().id not in done]
        numbered = enumerate(todo, start=1)
        for _, cells in groupby(numbered, key=lambda one: one[1].unit):
            with TemporaryDirectory(
                prefix="fasttrack-bytecode-", ignore_cleanup_errors=True
            ) as kept:
                for number, cell in cells:
                    problems, log = self._measure(cell, Path(kept))
                    tell(Progress(number, len(todo), cell, problems, log))
        failed = self._failed(here)
        return Collected(
            run=self._run,
            passed=len(here) - failed - self._unmeasured,
            failed=failed,
            unmeasured=self._unmeasured,
            resumed=len(here) - len(todo),
            elsewhere=Counter(reason for _, reason in mine if reason),
            walled=self._walled,
        )

    def _elsewhere(self, cell: PlannedCell) -> str:
        if cell.kind not in {*MEASURED_BY_TESTS, Kind.SYNC_AUDIT}:
            return f"{cell.kind.value} is not measured by tests"
        if cell.kind is Kind.SYNC_AUDIT and self._plan.unit(cell.unit).variants is None:
            return f"no variant table of {cell.unit} names machine code to audit"
        wanted = hardware_of(cell.cell())
        if wanted not in {ANYWHERE, self._settings.hardware}:
            return f"needs {wanted}"
        return ""

    def _measure(self, cell: PlannedCell, bytecode: Path) -> tuple[tuple[str, ...], str]:
        started = _now()
        if cell.kind is Kind.SYNC_AUDIT:
            return self._audit(cell, bytecode, started)
        outcome = self._child(cell, bytecode)
        if not outcome.began:
            return self._left(("its tests can not start here",), outcome.log)
        run = self._facts(started, "process")
        statement = statement_of(
            self._plan, cell, outcome, run, self._machine, root=self._settings.root
        )
        self._bundle.append(statement)
        return tuple(statement.problems()), outcome.log

    def _audit(
        self, cell: PlannedCell, bytecode: Path, started: datetime
    ) -> tuple[tuple[str, ...], str]:
        # What audits is slow to import, and needs packages that tests do not.
        from fasttrack.evidence.auditing import Run, audit  # noqa: PLC0415

        run = Run(
            self._plan,
            self._settings.root,
            self._machine,
            lambda: self._facts(started, "harness"),
            lambda asked, build: self._child(asked, bytecode, build),
        )
        try:
            statement, log = audit(run, cell)
        except FactUnavailable as reason:
            why, _, log = str(reason).partition("\n")
            return self._left((why,), log)
        except InputError as error:
            return self._left(tuple(map(str, error.problems)), "")
        self._bundle.append(statement)
        return tuple(statement.problems()), log

    def _child(self, cell: PlannedCell, bytecode: Path, build: Build | None = None) -> Outcome:
        """What comes of a cell's tests, or of a module that makes its machine code."""
        outcome = measure(
            self._settings.root,
            Runs(() if build else cell.tests, own_places(self._plan.unit(cell.unit))),
            Job(nonce=secrets.token_hex(16), cell=facts_of(cell), seeds=cell.seeds, build=build),
            bytecode,
            walled=self._walled,
            timeout_s=self._settings.timeout_s,
        )
        if problems := compare(self._plan, self._settings.root):
            raise InputError(problems)
        return outcome

    def _left(self, problems: tuple[str, ...], log: str) -> tuple[tuple[str, ...], str]:
        """Nothing was measured, and a statement would say that it failed."""
        self._bundle.check()
        self._unmeasured += 1
        return problems, log

    def _facts(self, started: datetime, isolation: Isolation) -> RunFacts:
        return RunFacts(
            plan=self._plan.id,
            run=self._run,
            commit=self._plan.commit,
            started=started,
            finished=max(started, _now()),  # a clock may be set back
            isolation=isolation,
        )

    def _failed(self, cells: Sequence[PlannedCell]) -> int:
        """Cells that some run did not show: a later pass does not hide what failed before."""
        written = bool(cells) and self._settings.out.is_dir()
        failed = {
            entry.statement.cell.id
            for entry in (statements(self._settings.out).entries if written else ())
            if entry.statement.predicate.run.plan == self._plan.id and entry.statement.problems()
        }
        return sum(cell.cell().id in failed for cell in cells)


def _now() -> datetime:
    return datetime.now(UTC).replace(microsecond=0)
