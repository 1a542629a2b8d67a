# SPDX-License-Identifier: Apache-2.0
"""Evidence in the verdict of whole changes: what makes it count, and what makes it stale."""

import json
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from fasttrack.cli.main import run
from fasttrack.evidence.predicates.common import TestResults
from fasttrack.evidence.subject import unit_of
from fasttrack.next_steps import next_steps
from fasttrack.report.record import verdict_record
from fasttrack.report.style import Style
from fasttrack.report.text import text_report
from fasttrack.testing import Repo
from fasttrack.verdict import Outcome
from fasttrack.vocabulary import Kind
from tests.engine import AS_OF, KERNEL, MANIFEST, POLICY
from tests.evidence.keys import key
from tests.evidence.lanes import (
    judged,
    lane,
    owed_at,
    shown,
    statements_for,
    statuses,
    stored,
    trusting,
)
from tests.evidence.units import SOURCES

EDIT = {KERNEL: SOURCES[KERNEL] + "SPEED = 2\n"}


def changed(where: Path, policy: str | None = None) -> tuple[Repo, str, str]:
    """A repository whose `topic` edits a kernel: repository, `main` and `topic`."""
    repo = Repo(where / "repo")
    tip = repo.commit("main", lane(policy=policy))
    return repo, tip, repo.commit("topic", EDIT, parent=tip)


def test_a_kernel_edit_owes_cells_and_signed_statements_of_them_let_it_pass(
    tmp_path: Path,
) -> None:
    repo, _, _ = changed(tmp_path)
    before = judged(repo.path)
    assert (before.outcome, set(statuses(before))) == (Outcome.NEEDS_EVIDENCE, {"missing"})

    repo.commit("topic", stored(tmp_path / "new", statements_for(repo.path, "topic")))
    after = judged(repo.path)
    assert [f.message for f in after.findings if f.level != "note"] == []
    assert statuses(after) == {"covered": len(before.coverage.owed)}
    assert after.outcome is Outcome.FAST_TRACK
    record = verdict_record(after)
    assert (record.coverage.covered, record.coverage.missing) == (record.coverage.owed, ())
    assert record.change_digest == verdict_record(before).change_digest


def test_a_change_that_only_adds_evidence_is_in_the_lane_and_passes(tmp_path: Path) -> None:
    repo, tip, _ = changed(tmp_path)
    repo.commit("topic", stored(tmp_path / "new", statements_for(repo.path, "main")), parent=tip)
    verdict = judged(repo.path)
    assert (verdict.in_lane, verdict.outcome) == (True, Outcome.FAST_TRACK)


@pytest.mark.parametrize("path", [KERNEL, "engine/foo/near.py", "engine/foo/gate.py"])
def test_a_byte_of_a_unit_makes_exactly_the_cells_stale_that_depend_on_it(
    tmp_path: Path, path: str
) -> None:
    repo = Repo(tmp_path / "repo")
    tip = repo.commit("main", lane())
    kept = stored(tmp_path / "new", statements_for(repo.path, tip))
    tip = repo.commit("main", kept)
    repo.commit("topic", {path: SOURCES[path] + "#"}, parent=tip)
    verdict = judged(repo.path)
    assert set(statuses(verdict)) == {"stale"}
    stale = {(o.cell.kind, o.cell.key) for o in verdict.coverage.owed}

    (cells, before), (_, after) = owed_at(repo.path, "main"), owed_at(repo.path, "topic")
    moved = {unit for unit in before if before[unit].inputs.digest != after[unit].inputs.digest}
    assert stale == {(c.kind, c.key) for c in cells if unit_of(c) in moved}
    assert 0 < len(stale) < len(cells)


def test_a_rebase_a_comment_elsewhere_more_evidence_and_a_higher_tier_make_nothing_stale(
    tmp_path: Path,
) -> None:
    repo = Repo(tmp_path / "repo")
    tip = repo.commit("main", lane("compiled"))
    topic = repo.commit("topic", EDIT, parent=tip)
    raised = repo.commit("raised", {MANIFEST: lane("kernel-tested")[MANIFEST]}, parent=topic)
    kept = stored(tmp_path / "new", statements_for(repo.path, raised))
    for number in range(5):
        tip = repo.commit("main", {"docs/foo.md": f"{number}\n", "engine/late.py": f"# {number}\n"})
    other = stored(tmp_path / "other", statements_for(repo.path, "main", run="3" * 32))
    tip = repo.commit("main", other)
    # The same edit on the newer target, at a higher tier, with the evidence of before.
    repo.commit("rebased", {**EDIT, MANIFEST: lane("kernel-tested")[MANIFEST], **kept}, parent=tip)
    verdict = judged(repo.path, "rebased")
    assert set(statuses(verdict)) == {"covered"}
    assert {o.cell.kind.value for o in verdict.coverage.owed} == {"sync-audit", "kernel-test"}
    # Without a rebase, judged as the merge would leave it.
    repo.commit("raised", kept)
    assert set(statuses(judged(repo.path, "raised"))) == {"covered"}


def test_evidence_counts_that_is_handed_in_as_a_folder(tmp_path: Path) -> None:
    repo, _, _ = changed(tmp_path)
    stored(tmp_path / "new", statements_for(repo.path, "topic"))
    assert judged(repo.path).outcome is Outcome.NEEDS_EVIDENCE
    assert judged(repo.path, evidence=tmp_path / "new").outcome is Outcome.FAST_TRACK


def test_runs_that_disagree_in_a_folder_that_is_handed_in_are_told_without_a_path(
    tmp_path: Path,
) -> None:
    repo, _, _ = changed(tmp_path)
    cells, inputs = owed_at(repo.path, "topic")
    statements = statements_for(repo.path, "topic")
    tested = next(cell for cell in cells if cell.kind is Kind.KERNEL_TEST)
    failed = {"results": TestResults(passed=(), failed=("t",), skipped=())}
    again = shown(tested, inputs[unit_of(tested)], run="3" * 32, content=failed)
    stored(tmp_path / "new", [*statements, again])
    verdict = judged(repo.path, evidence=tmp_path / "new")
    assert not verdict.coverage.missing
    assert verdict.outcome is Outcome.ORDINARY_REVIEW
    assert {(found.rule, found.path) for found in verdict.findings} == {("FT512", "")}


def test_the_command_takes_the_folder_and_prints_a_record_of_what_counts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    repo, _, _ = changed(tmp_path)
    stored(tmp_path / "new", statements_for(repo.path, "topic"))
    words = ["check", "--repo", str(repo.path), "--head", "topic", "--as-of", AS_OF.isoformat()]
    assert run([*words, "--format", "json"]) == 3
    (kind,) = {
        cell["status"] for cell in json.loads(capsys.readouterr().out)["coverage"]["missing"]
    }
    assert kind == "missing"
    assert run([*words, "--format", "json", "--evidence", str(tmp_path / "new")]) == 0
    coverage = json.loads(capsys.readouterr().out)["coverage"]
    assert (
        sum(n for counts in coverage["statuses"].values() for n in counts.values())
        == (coverage["covered"])
    )


def test_evidence_of_the_target_counts_and_a_head_can_not_take_it_away(tmp_path: Path) -> None:
    repo, tip, topic = changed(tmp_path)
    kept = stored(tmp_path / "new", statements_for(repo.path, topic))
    tip = repo.commit("main", kept, parent=tip)
    repo.commit("topic", EDIT | dict.fromkeys(kept, None), parent=tip)
    assert set(statuses(judged(repo.path))) == {"covered"}


def test_a_revoked_key_voids_what_it_signed(tmp_path: Path) -> None:
    revoked = trusting(key("lab", hardware=("h100",), revoked=date(2026, 11, 25)))
    repo, _, _ = changed(tmp_path, revoked)
    repo.commit("topic", stored(tmp_path / "new", statements_for(repo.path, "topic")))
    verdict = judged(repo.path)
    assert set(statuses(verdict)) == {"untrusted"}
    assert "is revoked from 2026-11-25 on" in verdict.coverage.missing[0].answer.detail


def test_a_key_that_comes_with_the_evidence_it_signs_does_not_count(tmp_path: Path) -> None:
    repo, _, _ = changed(tmp_path)
    mine = key("mine", hardware=("h100",))
    files = stored(tmp_path / "new", statements_for(repo.path, "topic"), "mine")
    repo.commit("topic", {**files, POLICY: lane(policy=trusting(mine))[POLICY]})
    verdict = judged(repo.path)
    assert set(statuses(verdict)) == {"untrusted"}
    assert "key mine is not one of the policy's" in verdict.coverage.missing[0].answer.detail
    assert verdict.outcome is Outcome.REFUSED


def test_untrusted_evidence_says_so_and_the_next_command_asks_whose_it_is(tmp_path: Path) -> None:
    repo, _, _ = changed(tmp_path)
    repo.commit("topic", stored(tmp_path / "new", statements_for(repo.path, "topic"), "nobody"))
    verdict = judged(repo.path)
    assert verdict.outcome is Outcome.NEEDS_EVIDENCE
    assert [step.command for step in next_steps(replace(verdict, request=None))] == [
        "fasttrack evidence verify manifests/evidence/*.dsse.jsonl*"
    ]
    text = text_report(verdict_record(verdict), Style())
    assert "untrusted: key nobody is not one of the policy's" in " ".join(text.split())


def test_what_lacks_is_named_and_one_plan_asks_for_exactly_that(tmp_path: Path) -> None:
    repo, _, _ = changed(tmp_path)
    cells, inputs = owed_at(repo.path, "topic")
    kernels = [c for c in cells if c.kind == "kernel-test" and unit_of(c) == "core"]
    told = [shown(c, inputs[unit_of(c)]) for c in cells if c not in kernels]
    told.append(shown(kernels[0], inputs["core"], content={"seeds": (7,)}))
    repo.commit("topic", stored(tmp_path / "new", told))
    verdict = judged(repo.path)
    record = verdict_record(verdict)
    assert {(c.status.value, c.key["unit"]) for c in record.coverage.missing} == {
        ("missing", "core"),
        ("below-floor", "core"),
    }
    assert "1 of 3 seeds" in {c.detail for c in record.coverage.missing}
    assert [step.command for step in next_steps(replace(verdict, request=None))] == [
        "fasttrack evidence plan --unit core --kind kernel-test --out plan.json",
        "fasttrack evidence collect --plan plan.json --out bundle --hardware h100",
        "fasttrack evidence sign --plan plan.json --bundle bundle --key FILE --key-id ID",
    ]
    counts = record.coverage.statuses["kernel-test"]  # type: ignore[index]  # a StrEnum is its text
    assert counts["below-floor"] == 1  # type: ignore[index]
    text = text_report(record, Style())
    assert f"kernel-test {counts['covered']} covered, 1 below-floor" in " ".join(text.split())  # type: ignore[index]


def test_broken_files_of_evidence_cover_nothing_and_stop_nothing(tmp_path: Path) -> None:
    repo, _, _ = changed(tmp_path)
    kept = stored(tmp_path / "new", statements_for(repo.path, "topic"))
    cut = {path: content[:-2] for path, content in kept.items() if isinstance(content, bytes)}
    repo.commit("topic", cut | {"manifests/evidence/x.dsse.jsonl": "{"})
    assert set(statuses(judged(repo.path))) == {"missing"}


def test_evidence_that_nobody_asks_about_is_not_verified(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repo, tip, topic = changed(tmp_path)
    kept = stored(tmp_path / "new", statements_for(repo.path, topic))
    monkeypatch.setattr("fasttrack.evidence.accept.verified_key_ids", None)
    repo.commit("main", kept, parent=tip)
    repo.commit("docs", {"docs/foo.md": "more\n"}, parent=tip)
    assert judged(repo.path, "docs", labelled=True).coverage.owed == ()
    repo.commit("topic", kept)
    with pytest.raises(TypeError):
        judged(repo.path)
