# SPDX-License-Identifier: Apache-2.0
"""`fasttrack evidence plan` on whole repositories."""

from collections import Counter
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest
import yaml

from fasttrack.cli.evidence import command
from fasttrack.errors import InputError
from fasttrack.evidence import dsse, store
from fasttrack.evidence.plan import Plan, read_plan
from fasttrack.testing import Content, Repo
from fasttrack.vocabulary import Kind
from tests.engine import MANIFEST, POLICY
from tests.evidence.keys import key, signer
from tests.evidence.plans import commit, engine, keys, region
from tests.evidence.strategies import good


def plan_command(*options: str) -> None:
    command.main(["plan", *options], standalone_mode=False)


def test_the_command_writes_a_plan_that_is_read_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    commit(tmp_path / "repo", engine())
    out = tmp_path / "plan.json"
    options = ["--repo", str(tmp_path / "repo"), "--kind", "refusal", "--kind", "stress"]
    plan_command(*options, "--format", "json", "--out", str(out))
    assert capsys.readouterr().out == out.read_text("ascii")
    assert {cell.kind for cell in read_plan(out).cells} == {Kind.REFUSAL, Kind.STRESS}
    assert read_plan(out).created.date() >= date(2026, 1, 1)


def test_the_policy_is_the_targets_and_the_scope_is_the_heads(tmp_path: Path) -> None:
    repo = Repo(tmp_path / "repo")
    tip = repo.commit("main", engine(region(tier="declared")))
    weaker = str(engine()[POLICY]).replace("[sync-audit, refusal]", "[refusal]")
    changed: dict[str, Content] = {POLICY: weaker, MANIFEST: engine()[MANIFEST]}
    head = repo.commit("topic", changed, parent=tip)
    out = tmp_path / "plan.json"
    options = ["--repo", str(tmp_path / "repo"), "--head", "topic", "--tier", "compiled"]
    plan_command(*options, "--out", str(out))
    plan = read_plan(out)
    assert plan.commit == head
    assert Counter(cell.kind for cell in plan.cells).keys() == {Kind.SYNC_AUDIT, Kind.REFUSAL}


def test_a_plan_that_fails_writes_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    commit(tmp_path / "repo", engine(region(tier="declared")))
    out = tmp_path / "plan.json"
    options = ["--repo", str(tmp_path / "repo"), "--out", str(out), "--format", "slurm"]
    with pytest.raises(InputError, match="no cells to measure"):
        plan_command(*options)
    assert (out.exists(), capsys.readouterr().out) == (False, "")


def statement_of(plan: Plan, kind: Kind) -> bytes:
    """The first cell of a kind, shown just now and signed."""
    cell = next(cell for cell in plan.cells if cell.kind is kind)
    unit = plan.unit(cell.unit)
    told = good(
        kind,
        values=cell.values,
        unit=unit.unit,
        digest=unit.digest,
        tests=unit.tests_digest,
        finished=datetime.now(UTC).replace(microsecond=0) - timedelta(hours=1),
    )
    surroundings = {"boundary": unit.boundary, "target": plan.commit}
    inputs = told.predicate.inputs.model_copy(update=surroundings)
    predicate = told.predicate.model_copy(update={"inputs": inputs})
    return dsse.sign(type(told)(told.predicate_type, predicate), signer("lab"))


@pytest.mark.parametrize("where", ["target", "head", "folder"])
def test_evidence_that_counts_leaves_its_cell_out_wherever_it_is_kept(
    tmp_path: Path, where: str
) -> None:
    always = {"valid_from": date(2020, 1, 1), "valid_until": date(2999, 1, 1)}
    lab = key("lab").model_dump(mode="json", exclude_none=True) | always
    trusted = yaml.safe_dump({"trust": {"keys": [lab]}})
    repo, out = Repo(tmp_path / "repo"), tmp_path / "plan.json"
    tip = repo.commit("main", engine(policy=trusted))
    options = ["--repo", str(repo.path), "--out", str(out), "--head"]
    plan_command(*options, "main")
    before = read_plan(out)
    (file,) = store.write(tmp_path / "more", [statement_of(before, Kind.REFUSAL)])
    kept: dict[str, Content] = {f"manifests/evidence/{file.name}": file.read_bytes()}
    repo.commit("topic", kept, parent=tip)
    if where == "target":
        repo.commit("main", kept)
    more = ["--evidence", str(tmp_path / "more")] if where == "folder" else []
    plan_command(*options, "topic" if where == "head" else tip, *more)
    missing = Counter(keys(before.cells))
    missing.subtract(keys(read_plan(out).cells))
    first = next(cell for cell in before.cells if cell.kind is Kind.REFUSAL)
    assert [found for found, count in missing.items() if count] == keys([first])
