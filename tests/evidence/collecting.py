# SPDX-License-Identifier: Apache-2.0
"""Runs of a collector over a scratch project, and reports of children that never were."""

from pathlib import Path
from typing import Any

from fasttrack.evidence.bundle import statements
from fasttrack.evidence.child_report import ChildReport
from fasttrack.evidence.collect import Collected, Collector, Progress, Settings
from fasttrack.evidence.plan import Plan
from fasttrack.evidence.predicates.common import Execution, KernelLaunch, RunFacts, TestResults
from fasttrack.evidence.shards import Shard
from fasttrack.evidence.statement import Statement
from fasttrack.vocabulary import Kind
from tests.evidence.scratch import NONCE, SEEDS
from tests.evidence.strategies import FINISHED, good

RUN = RunFacts(
    plan="b" * 32,
    run="1" * 32,
    commit="c" * 40,
    started=FINISHED,
    finished=FINISHED,
    isolation="process",
)
MACHINE = good(Kind.REFUSAL).predicate.machine


def report(**changes: Any) -> ChildReport:
    """A report of a cell that passed."""
    fields: dict[str, Any] = {
        "nonce": NONCE,
        "results": TestResults(passed=("t",)),
        "took_cell": True,
        "seeds": SEEDS,
        "tolerances": (),
        "execution": Execution(launches=(KernelLaunch(name="k", launches=1),), fallbacks=0),
        "gates": (),
        "settings": (),
        "profile": "",
        "answer": None,
        "imported": (),
        "opened": (),
        "replaced": (),
        "python": "3.11.7",
        "packages": {},
    }
    return ChildReport(**(fields | changes))


def settings_of(root: Path, out: Path, **changes: Any) -> Settings:
    fields: dict[str, Any] = {"hardware": "here", "shard": Shard(1, 1), "timeout_s": 60.0}
    fields |= changes
    return Settings(root, out, **fields)


def collect(plan: Plan, settings: Settings) -> tuple[Collected, list[Progress]]:
    told: list[Progress] = []
    return Collector(plan, settings).run(told.append), told


def content(out: Path) -> list[Statement]:
    found = statements(out)
    assert not found.problems
    return [entry.statement for entry in found.entries]
