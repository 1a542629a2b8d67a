# SPDX-License-Identifier: Apache-2.0
"""A pytest plugin: tests that measure a cell of a scope, and the report of what they saw.

    pytest -p fasttrack.pytest_plugin

A test takes its cell as an argument and names the ones to try when nobody collects:

    @pytest.mark.fasttrack_cells({"rows": 1}, {"rows": 64})  # and ids=..., as parametrize has it
    def test_kda(fasttrack_cell, fasttrack_seeds, fasttrack_record): ...

Under `fasttrack evidence collect` it runs once, with the cell and the seeds of the plan. Tests of
the same files that take no cell run as ever, and count as well; where none takes it, or none of a
seeded kind takes the seeds, nothing is shown.

* `fasttrack_cell`: axis to value.
* `fasttrack_seeds`: seeds of the inputs; three fixed ones when nobody collects.
* `fasttrack_record`: where tests and the path under test say what happened (`Recorder`).
"""

import ctypes
import json
import os
import signal
import sys
from collections.abc import Mapping
from typing import Any

import pytest

from fasttrack.evidence.child_report import Job
from fasttrack.evidence.observed import (
    imported_files,
    installed,
    opened_files,
    python,
    replaced_files,
)

CELLS = "fasttrack_cells"
SEEDS = (0, 1, 2)
"""Seeds when nobody collects."""
_SET_PARENT_DEATH_SIGNAL = 1


class Recorder:
    """What tests say about themselves; kept only while a cell is collected."""

    def __init__(self) -> None:
        self.tolerances: list[dict[str, Any]] = []
        self.launches: dict[tuple[str | None, ...], int] = {}
        self.fallbacks = 0
        self.gates: list[dict[str, Any]] = []
        self.settings: list[dict[str, Any]] = []
        self.profile = ""
        self.answer: dict[str, Any] | None = None

    def tolerance(
        self, name: str, dtype: str, *, atol: float = 0.0, rtol: float = 0.0, reason: str
    ) -> tuple[float, float]:
        """Notes a tolerance and gives it back, so that what is noted is what is used.

        Args:
            name: what is compared.
            dtype: number format of the compared values.
            atol: absolute bound.
            rtol: relative bound.
            reason: where the bound comes from.

        Returns:
            atol and rtol.
        """
        noted = {"name": name, "dtype": dtype, "atol": atol, "rtol": rtol, "reason": reason}
        if noted not in self.tolerances:
            self.tolerances.append(noted)
        return atol, rtol

    def launched(
        self,
        name: str,
        launches: int = 1,
        cubin: str | None = None,
        *,
        variant: str | None = None,
        unit: str | None = None,
    ) -> None:
        """Notes that a kernel or provider of the path ran.

        Args:
            name: its symbol, or the provider's name.
            launches: how often.
            cubin: SHA-256 of its machine code, for code that was built ahead.
            variant: row of the unit's variant table, for code that is audited.
            unit: unit that it is a kernel of, where that is not the one that is tested.
        """
        seen = (name, cubin, unit, variant)
        self.launches[seen] = self.launches.get(seen, 0) + launches

    def fell_back(self, steps: int = 1) -> None:
        """Notes steps that something else than the path took."""
        self.fallbacks += steps

    def gate(self, name: str, *, passed: bool, controls: int, killed: int) -> None:
        """Notes a gate of the validation harness.

        Args:
            name: its name.
            passed: whether the candidate passed.
            controls: negative controls that the gate was given.
            killed: how many of them it caught.
        """
        self.gates.append({"name": name, "passed": passed, "controls": controls, "killed": killed})

    def delayed(
        self, delay: str, *, longest_us: float, iterations: int, wrong: int, profile: str
    ) -> None:
        """Notes one way of delaying.

        Args:
            delay: which.
            longest_us: longest delay.
            iterations: runs that were compared.
            wrong: those with a wrong result.
            profile: the stress profile that asked for it.
        """
        self.profile = profile
        self.settings.append(
            {"delay": delay, "longest_us": longest_us, "iterations": iterations, "wrong": wrong}
        )

    def answered(self, *, refused: bool, reasons: tuple[str, ...]) -> None:
        """Notes the gate's answer to a refusal cell; once admitted, it stays admitted."""
        if self.answer is not None:
            refused = refused and bool(self.answer["refused"])
            reasons = (*self.answer["reasons"], *reasons)
        self.answer = {"refused": refused, "reasons": list(dict.fromkeys(reasons))}


LAUNCH = ("name", "cubin", "unit", "variant")
"""What tells launches apart."""
GRAVITY = ("passed", "skipped", "xfailed", "failed")
"""Outcomes of a test's phases; the last one that occurs is the test's."""


class Collecting:
    """The plugin's state in one session.

    Attributes:
        job: the cell to measure; None when nobody collects.
        recorder: what tests said.
        asked_for_seeds: whether a test did.
    """

    def __init__(self, job: Job | None, report_fd: int | None) -> None:
        """Takes the job and the descriptor that wants the report."""
        self.job = job
        self.recorder = Recorder()
        self.asked_for_seeds = False
        self._takers: set[str] = set()
        self._collected: set[str] = set()
        self._outcomes: dict[str, str] = {}
        self._report_fd = report_fd
        self._built: dict[str, Any] | None = None

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection(self, session: pytest.Session) -> bool | None:
        """Makes machine code, where that is the job, and collects no tests."""
        if self.job is None or self.job.build is None:
            return None
        from fasttrack.evidence.child_build import built  # noqa: PLC0415  (no test needs it)

        self._built = built(session.config.rootpath, self.job.build)
        return True

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """The planned cell, or those that the test names."""
        if "fasttrack_cell" not in metafunc.fixturenames:
            return
        marker = metafunc.definition.get_closest_marker(CELLS)
        tried = marker.args if marker is not None else ()
        names = marker.kwargs.get("ids", _cell_name) if marker is not None else _cell_name
        cells = tried if self.job is None else (self.job.cell.values,)
        metafunc.parametrize("fasttrack_cell", cells, ids=names)

    def pytest_itemcollected(self, item: pytest.Item) -> None:
        """What is collected and never heard of again was deselected, whoever did it."""
        self._collected.add(item.nodeid)
        if "fasttrack_cell" in getattr(item, "fixturenames", ()):
            self._takers.add(item.nodeid)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """A file that can not be collected has failed."""
        if not report.passed:
            self._note(report.nodeid or "collection", report.outcome)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """One phase of a test."""
        if hasattr(report, "wasxfail"):
            self._note(report.nodeid, "xfailed")
        elif report.when == "call" or not report.passed:
            self._note(report.nodeid, report.outcome)

    def _note(self, node: str, outcome: str) -> None:
        """Keeps the gravest outcome; one of another plugin's, such as `rerun`, is a failure."""
        outcome = outcome if outcome in GRAVITY else "failed"
        self._outcomes[node] = max(outcome, self._outcomes.get(node, outcome), key=GRAVITY.index)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Sends the report."""
        if self.job is None or self._report_fd is None:
            return
        report = self._report(self.job, session)
        with os.fdopen(self._report_fd, "wb") as pipe:
            pipe.write(json.dumps(report).encode("ascii"))

    def _report(self, job: Job, session: pytest.Session) -> dict[str, Any]:
        said, root = self.recorder, session.config.rootpath
        results = {
            outcome: sorted(node for node, found in self._outcomes.items() if found == outcome)
            for outcome in GRAVITY
        }
        imported = imported_files(root)
        return {
            "nonce": job.nonce,
            "results": results | {"deselected": sorted(self._collected - self._outcomes.keys())},
            "took_cell": not self._takers.isdisjoint(results["passed"]),
            "seeds": list(job.seeds) if self.asked_for_seeds else [],
            "tolerances": said.tolerances,
            "execution": {
                "launches": [
                    dict(zip(LAUNCH, seen, strict=True)) | {"launches": count}
                    for seen, count in sorted(said.launches.items(), key=str)
                ],
                "fallbacks": said.fallbacks,
            },
            "gates": said.gates,
            "settings": said.settings,
            "profile": said.profile,
            "answer": said.answer,
            "built": self._built,
            "imported": imported,
            "opened": [path for path in opened_files(root) if path not in set(imported)],
            "replaced": replaced_files(root),
            "python": python(),
            "packages": installed(),
        }


_STATE = pytest.StashKey[Collecting]()


def _cell_name(cell: object) -> str:
    values = cell.values() if isinstance(cell, Mapping) else ()
    return "-".join(str(value) for value in values) or "cell"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Descriptors that the collector hands to its child."""
    group = parser.getgroup("fasttrack", "evidence; `fasttrack evidence collect` sets these")
    group.addoption("--fasttrack-job", type=int, metavar="FD", help="where the job is read")
    group.addoption("--fasttrack-report", type=int, metavar="FD", help="where the report goes")


def pytest_configure(config: pytest.Config) -> None:
    """Reads the job, if there is one."""
    config.addinivalue_line("markers", f"{CELLS}(*cells): cells to try when nobody collects")
    job, job_fd = None, config.getoption("--fasttrack-job")
    if job_fd is not None:
        _end_with_parent()
        with os.fdopen(job_fd, "rb") as pipe:
            job = Job.model_validate_json(pipe.read())
    state = Collecting(job, config.getoption("--fasttrack-report"))
    config.stash[_STATE] = state
    config.pluginmanager.register(state, "fasttrack-collecting")


def _end_with_parent() -> None:
    """Has the system kill this process when the collector is gone (Linux)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)


@pytest.fixture
def fasttrack_record(pytestconfig: pytest.Config) -> Recorder:
    """Where a test says what happened."""
    return pytestconfig.stash[_STATE].recorder


@pytest.fixture
def fasttrack_seeds(pytestconfig: pytest.Config) -> tuple[int, ...]:
    """Seeds of the inputs."""
    state = pytestconfig.stash[_STATE]
    state.asked_for_seeds = True
    return state.job.seeds if state.job is not None else SEEDS
