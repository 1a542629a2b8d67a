# SPDX-License-Identifier: Apache-2.0
"""The commands that `fasttrack check` prints next work as they are, with what it was given."""

import shlex
from collections.abc import Mapping
from pathlib import Path

import pytest

from fasttrack.cli.main import run
from fasttrack.evidence.plan import read_plan
from fasttrack.next_steps import next_steps
from fasttrack.testing import Content, Repo
from fasttrack.verdict import Outcome, Request, Verdict, evaluate
from tests.engine import AS_OF, KERNEL, POLICY
from tests.evidence.lanes import lane, statements_for, stored

EDIT: Mapping[str, Content] = {KERNEL: "BLOCK = 64\n"}


def commands(verdict: Verdict) -> list[str]:
    """The steps that are commands, about evidence."""
    steps = [step.command for step in next_steps(verdict)]
    return [step for step in steps if step.startswith("fasttrack evidence")]


def engine(where: Path) -> Repo:
    """`main`, and `topic` that edits a kernel."""
    repo = Repo(where)
    repo.commit("topic", EDIT, parent=repo.commit("main", lane()))
    return repo


def request(repo: Path, **given: object) -> Request:
    """`topic` against `main`."""
    return Request(repo, head="topic", **given)  # type: ignore[arg-type]


def test_a_plan_repeats_what_was_given(tmp_path: Path) -> None:
    repo, more = engine(tmp_path / "a repo"), tmp_path / "more"
    more.mkdir()
    verdict = evaluate(request(repo.path, policy_from="main", evidence=more), AS_OF)
    plan, collect, sign = commands(verdict)
    place = shlex.quote(str(repo.path))
    given = f"--repo {place} --head topic --policy-from main --evidence {more}"
    assert plan.startswith(f"fasttrack evidence plan {given} ")
    assert collect.startswith(f"fasttrack evidence collect --root {place} --plan plan.json ")
    assert sign.startswith(f"fasttrack evidence sign --repo {place} --policy-from main --plan ")


def test_nothing_is_repeated_that_a_command_takes_by_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repo = engine(tmp_path)
    repo.checkout("topic")
    monkeypatch.chdir(tmp_path)
    verdict = evaluate(Request(Path()), AS_OF)
    assert verdict.outcome is Outcome.NEEDS_EVIDENCE
    assert not any("--repo" in c or "--head" in c or "--root" in c for c in commands(verdict))


def test_a_folder_and_a_policy_by_option_are_repeated(tmp_path: Path) -> None:
    repo = engine(tmp_path / "repo")
    policy = tmp_path / "policy.yaml"
    policy.write_text(str(lane()[POLICY]))
    verdict = evaluate(request(repo.path, policy_file=policy, config_dir="manifests"), AS_OF)
    plan, _, sign = commands(verdict)
    assert f"--config-dir manifests --head topic --policy {policy} " in plan
    assert " --config-dir manifests " in sign


@pytest.mark.parametrize("given", [{}, {"policy_from": "main"}])
def test_the_plan_that_is_printed_plans_what_the_verdict_lacks(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    given: dict[str, str],
) -> None:
    repo, away = engine(tmp_path / "repo"), tmp_path / "away"
    away.mkdir()
    covered = statements_for(repo.path, "topic")[:-3]
    stored(tmp_path / "more", covered)
    verdict = evaluate(request(repo.path, evidence=tmp_path / "more", **given), AS_OF)
    monkeypatch.chdir(away)
    assert run(shlex.split(commands(verdict)[0])[1:]) == 0
    capsys.readouterr()
    planned = {cell.cell().id for cell in read_plan(away / "plan.json").cells}
    assert planned == {owed.cell.id for owed in verdict.coverage.missing}
    assert 0 < len(planned) <= 3


def test_evidence_that_was_handed_in_is_verified_where_it_lies(tmp_path: Path) -> None:
    repo, more = engine(tmp_path / "repo"), tmp_path / "more folder"
    stored(more, statements_for(repo.path, "topic"), "nobody")
    verdict = evaluate(request(repo.path, evidence=more), AS_OF)
    place = repo.path / "manifests/evidence"
    assert commands(verdict) == [
        f"fasttrack evidence verify --repo {repo.path} {place}/*.dsse.jsonl*",
        f"fasttrack evidence verify --repo {repo.path} {shlex.quote(str(more))}/*.dsse.jsonl*",
    ]


def test_a_patch_is_committed_before_anything_is_measured(tmp_path: Path) -> None:
    repo = Repo(tmp_path / "repo")
    repo.commit("main", lane())
    patch = tmp_path / "edit.patch"
    old = str(lane()[KERNEL]).splitlines()
    lines = [f"--- a/{KERNEL}", f"+++ b/{KERNEL}", f"@@ -1,{len(old)} +1,1 @@"]
    patch.write_text("\n".join([*lines, *(f"-{line}" for line in old), "+BLOCK = 64", ""]))
    verdict = evaluate(Request(repo.path, patch=patch, onto="main"), AS_OF)
    assert verdict.coverage.missing
    assert commands(verdict) == []
    assert "which speaks of commits" in " ".join(step.why for step in next_steps(verdict))
