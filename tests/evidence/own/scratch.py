# SPDX-License-Identifier: Apache-2.0
"""The files of this repository in a scratch repository, with evidence for what its scope owes.

The scratch repository borrows the objects of this one and starts with the files of HEAD, whatever
lies in the working tree. Its policy trusts a test key alone, which signs a statement for each cell
that `kimi-k3-mini` owes there; evidence that is kept here is left out.
"""

import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import yaml

from fasttrack.case import Case
from fasttrack.change.read import read_change, read_revision
from fasttrack.config import (
    judged_or_head,
    read_base_manifests,
    read_config,
    read_head_manifests,
)
from fasttrack.evidence import store
from fasttrack.evidence.choice import Choice
from fasttrack.evidence.departure import Departure, departure
from fasttrack.evidence.dsse import sign
from fasttrack.evidence.gathered import gather, judged_evidence
from fasttrack.evidence.inputs import InputGraph
from fasttrack.evidence.owed import judge_coverage
from fasttrack.evidence.plan import SEEDED, Plan, PlannedCell
from fasttrack.evidence.planning import Planner
from fasttrack.evidence.predicates.common import Machine, TestResults
from fasttrack.evidence.statement import Statement
from fasttrack.evidence.status import Answer
from fasttrack.evidence.surroundings import Surroundings
from fasttrack.evidence.terms import Terms
from fasttrack.manifest.cells import CellId
from fasttrack.testing import Content, Repo, Stored
from tests.evidence.keys import DAY, key, signer
from tests.evidence.plans import nothing
from tests.evidence.strategies import good

from .dependencies import GATE, Commit, Dependencies

ROOT = Path(__file__).parents[3]
NAME = "kimi-k3-mini"
MANIFEST = f"manifests/{NAME}.yaml"
POLICY = "manifests/policy.yaml"
KEPT = "manifests/evidence/"
KEY = "scratch"
Edit = Callable[[dict[str, Any]], object]


@dataclass(frozen=True)
class Told:
    """What the evidence of a scratch repository is found to say.

    Attributes:
        owed: the cells that the change owes, with what evidence says of them.
        said: the same of every cell of the manifest after the merge.
    """

    owed: Mapping[CellId, Answer]
    said: Mapping[CellId, Answer]


class Scratch:
    """A repository whose `main` has this one's files and evidence for all of them.

    Attributes:
        repo: where commits are written.
        tip: the commit of `main`.
        cells: every cell that is owed there and has a statement, to its unit.
    """

    def __init__(self, where: Path) -> None:
        """Makes it in an empty folder."""
        self._where = where
        self.repo = Repo(where / "repo", object_format=_git("rev-parse", "--show-object-format"))
        self._borrow()
        listed = {path: side for path, side in _files_of_head() if not path.startswith(KEPT)}
        self.tip = self.repo.commit("main", listed)
        self.tip = self.repo.commit("main", self.rewritten(POLICY, _trust_test_key))
        self._plan = self._planned(self.tip)
        self.cells = {cell.cell().id: _unit(cell) for cell in self._plan.cells}
        self.tip = self.repo.commit("main", self.evidence(self.tip, "2" * 32))

    def rewritten(self, path: str, edit: Edit) -> Mapping[str, Content]:
        """The file of `main` at a path, which is YAML, after an edit of what it holds."""
        content = yaml.safe_load(self.read(self.tip).text(path))
        edit(content)
        return {path: yaml.safe_dump(content, sort_keys=False)}

    def evidence(self, commit: str, run: str) -> Mapping[str, Content]:
        """Files with a signed statement of one run for each cell that a commit owes."""
        plan = self._planned(commit)
        with read_change(self.repo.path, target="main", head=commit) as change:
            departed = departure(change, plan, KEPT.partition("/")[0])
            told = [_shown(plan, cell, run, departed) for cell in plan.cells]
        files = store.write(self._where / run, [sign(one, signer(KEY)) for one in told])
        return {KEPT + file.name: file.read_bytes() for file in files}

    def listed(self) -> tuple[set[str], set[str]]:
        """The inputs and the boundary of all units, as the plan lists them."""
        units = self._plan.units
        inputs = {file.path for unit in units for file in (*unit.files, *unit.tests)}
        return inputs, {file.path for unit in units for file in unit.boundary}

    def read(self, commit: str) -> Commit:
        """A commit's files, as git lists them."""
        return Commit(self.repo.path, commit, self._where / f"{commit}.index")

    def dependencies(self, commit: str) -> Dependencies:
        """What the units depend on at a commit, by the second reading."""
        return Dependencies(self.read(commit), MANIFEST, POLICY)

    def topic(self, files: Mapping[str, Content]) -> str:
        """A change of `main`."""
        return self.repo.commit("topic", files, parent=self.tip)

    def told(self, head: str, day: date = DAY, target: str = "main") -> Told:
        """What is owed and said of a change against a branch, at a day."""
        with read_change(self.repo.path, target=target, head=head) as change:
            config = read_config(change, folder=None, policy_file=None)
            base = read_base_manifests(change, config)
            case = Case(change, config, base, read_head_manifests(change, config), day)
            coverage = judge_coverage(case)
            assert coverage.unknown == ()
            manifest, tree = case.head.valid[MANIFEST], judged_or_head(change)
            kept = gather(change, (change.base, tree), config.folder, None)
            evidence = judged_evidence(kept, self.cells.keys(), config.policy.trust, day)
            terms = Terms(config.policy, manifest, day, Surroundings(change, tree))
            inputs = InputGraph(change, tree, manifest, config).unit_inputs
            cells = [planned.cell() for planned in self._plan.cells]
            said = {cell.id: evidence.answer(cell, terms, inputs) for cell in cells}
        mine = [one for one in coverage.owed if one.manifest == NAME]
        return Told({one.cell.id: one.answer for one in mine}, said)

    def _planned(self, commit: str) -> Plan:
        with read_revision(self.repo.path, commit) as revision:
            config = read_config(revision, folder=None, policy_file=None)
            planner = Planner(revision, config, NAME)
            moment = datetime(2026, 11, 20, 12, tzinfo=UTC)
            return planner.make(planner.owed(Choice()), nothing, moment).plan

    def _borrow(self) -> None:
        objects = (ROOT / _git("rev-parse", "--git-path", "objects")).resolve()
        info = self.repo.git_dir / "objects/info"
        info.mkdir()
        (info / "alternates").write_text(f"{objects}\n", encoding="utf-8")


def _trust_test_key(policy: dict[str, Any]) -> None:
    mine = key(KEY, hardware=tuple(policy["hardware"]))
    policy["trust"]["keys"] = [mine.model_dump(mode="json", exclude_none=True)]


def _unit(cell: PlannedCell) -> str:
    return GATE if cell.kind == "refusal" else str(cell.values["unit"])


def _shown(plan: Plan, cell: PlannedCell, run: str, departed: Departure) -> Statement:
    """A statement that covers a planned cell."""
    unit = plan.unit(cell.unit)
    facts: dict[str, Any] = {"values": dict(cell.values), "unit": unit.unit, "hardware": "cpu"}
    facts |= {"digest": unit.digest, "tests": unit.tests_digest, "plan": plan.id, "run": run}
    content: dict[str, Any] = {"seeds": cell.seeds} if cell.kind in SEEDED else {}
    content["results"] = TestResults(passed=tuple(f"{file}::test_it" for file in cell.tests))
    told = good(cell.kind, content, **facts)
    machine = Machine(
        hardware="cpu", device="a processor", arch=plan.archs["cpu"], count=1, memory_bytes=1 << 34
    )
    inputs = told.predicate.inputs.model_copy(update={"boundary": unit.boundary})
    bound = {file.path for file in (*unit.files, *unit.tests)}
    inputs = departed.told(inputs, bound, unit.boundary, "a statement")
    changed = told.predicate.model_copy(update={"machine": machine, "inputs": inputs})
    return Statement(told.predicate_type, changed)


def _files_of_head() -> list[tuple[str, Stored]]:
    found = []
    for entry in filter(None, _git("ls-tree", "-r", "-z", "HEAD").split("\0")):
        head, _, path = entry.partition("\t")
        mode, _, oid = head.split(" ")
        found.append((path, Stored(oid, mode)))
    return found


def _git(*words: str) -> str:
    argv = ["git", "-C", str(ROOT), *words]
    return subprocess.run(argv, check=True, capture_output=True, encoding="utf-8").stdout.strip()
