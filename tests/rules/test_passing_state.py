# SPDX-License-Identifier: Apache-2.0
"""FT129 on histories that a case file can not tell: merges, long branches, patches."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fasttrack.change import passed
from fasttrack.change.read import read_change
from fasttrack.finding import Finding, Level
from fasttrack.testing import Repo
from fasttrack.verdict import Outcome, Request, evaluate
from tests.engine import AS_OF, KERNEL, POLICY, SHARED, files

NEAR = "engine/near.py"
STRICT, LAX = "def near(a, b): return a == b\n", "def near(a, b): return True\n"
EDIT = {KERNEL: "BLOCK = 64\n"}


def started(where: Path, **edits: str) -> tuple[Repo, str]:
    """The engine with a check beside its tests, and the commit of `main`."""
    repo = Repo(where)
    return repo, repo.commit("main", files() | {NEAR: STRICT} | edits)


def found(where: Path, **request: object) -> list[Finding]:
    """What the rule says of `topic`."""
    verdict = evaluate(Request(where, target="main", head="topic", **request), AS_OF)  # type: ignore[arg-type]
    return [finding for finding in verdict.findings if finding.rule == "FT129"]


def test_the_finding_names_the_oldest_commit_and_the_file_and_holds_the_change(
    tmp_path: Path,
) -> None:
    repo, start = started(tmp_path)
    lax = repo.commit("topic", {NEAR: LAX}, parent=start)
    repo.commit("topic", {NEAR: LAX + "\n"})
    repo.commit("topic", {NEAR: STRICT} | EDIT)
    (finding,) = found(tmp_path)
    assert finding.path == NEAR
    had = "has what neither end of the change has"
    assert finding.saw == f"commit {lax[:12]} {had}, and 1 more"
    assert "squash" in finding.fix
    assert evaluate(Request(tmp_path, target="main", head="topic"), AS_OF).outcome is (
        Outcome.ORDINARY_REVIEW
    )


def test_squashed_it_is_silent(tmp_path: Path) -> None:
    repo, start = started(tmp_path)
    repo.commit("topic", {NEAR: STRICT} | EDIT, parent=start)
    assert found(tmp_path) == []


def test_a_policy_may_make_it_a_note(tmp_path: Path) -> None:
    repo, start = started(tmp_path, **{POLICY: files()[POLICY] + "rules: {FT129: note}\n"})
    repo.commit("topic", {NEAR: LAX}, parent=start)
    repo.commit("topic", {NEAR: STRICT} | EDIT)
    assert [finding.level for finding in found(tmp_path)] == [Level.NOTE]


def test_merging_the_target_in_brings_what_the_target_had(tmp_path: Path) -> None:
    repo, start = started(tmp_path)
    mine = repo.commit("topic", EDIT, parent=start)
    first = repo.commit("main", {SHARED: "LIMIT = 2\n"}, parent=start)
    mine = repo.commit("topic", {SHARED: "LIMIT = 2\n"}, parent=[mine, first])
    second = repo.commit("main", {SHARED: "LIMIT = 3\n"}, parent=first)
    mine = repo.commit("topic", {SHARED: "LIMIT = 3\n"}, parent=[mine, second])
    repo.commit("topic", {KERNEL: "BLOCK = 128\n"}, parent=mine)
    assert found(tmp_path) == []


@pytest.mark.parametrize("merged", [STRICT, LAX])
def test_a_merge_that_does_more_than_its_parents_is_reported(tmp_path: Path, merged: str) -> None:
    repo, start = started(tmp_path)
    mine = repo.commit("topic", EDIT, parent=start)
    theirs = repo.commit("main", {SHARED: "LIMIT = 2\n"}, parent=start)
    mine = repo.commit("topic", {SHARED: "LIMIT = 2\n", NEAR: merged}, parent=[mine, theirs])
    repo.commit("topic", {NEAR: STRICT, KERNEL: "BLOCK = 128\n"}, parent=mine)
    assert [finding.path for finding in found(tmp_path)] == [NEAR] * (merged is LAX)


def test_a_commit_that_was_merged_into_the_branch_counts_as_rebasing_would_land_it(
    tmp_path: Path,
) -> None:
    repo, start = started(tmp_path)
    side = repo.commit("side", {NEAR: LAX}, parent=start)
    side = repo.commit("side", {NEAR: STRICT}, parent=side)
    mine = repo.commit("topic", EDIT, parent=start)
    repo.commit("topic", {}, parent=[mine, side])
    assert [finding.path for finding in found(tmp_path)] == [NEAR]


def merged_before(where: Path) -> tuple[Repo, str, str]:
    """A target that has merged a branch, whose lax commit it never was at; both commits."""
    repo, start = started(where)
    lax = repo.commit("side", {NEAR: LAX}, parent=start)
    back = repo.commit("side", {NEAR: STRICT}, parent=lax)
    return repo, lax, repo.commit("main", {}, parent=[start, back])


def test_a_branch_from_what_was_merged_can_not_make_that_the_target_by_swapped_parents(
    tmp_path: Path,
) -> None:
    repo, lax, tip = merged_before(tmp_path)
    mine = repo.commit("topic", {NEAR: STRICT}, parent=[lax, tip])
    repo.commit("topic", EDIT, parent=mine)
    (finding,) = found(tmp_path)
    assert (finding.path, lax[:12] in finding.saw) == (NEAR, True)


def test_a_branch_from_what_was_merged_that_the_target_has_left_behind_is_let_be(
    tmp_path: Path,
) -> None:
    repo, lax, tip = merged_before(tmp_path)
    mine = repo.commit("topic", {NEAR: STRICT}, parent=[lax, tip])
    repo.commit("topic", EDIT, parent=mine)
    repo.commit("main", {SHARED: "LIMIT = 2\n"}, parent=tip)
    assert found(tmp_path) == []
    repo.commit("topic", {NEAR: STRICT} | EDIT, parent=lax)
    assert found(tmp_path) == []


def test_a_patch_is_one_commit(tmp_path: Path) -> None:
    started(tmp_path / "repo")
    old, new = files()[KERNEL], "BLOCK = 64\n"
    head = f"--- a/{KERNEL}\n+++ b/{KERNEL}\n@@ -1 +1 @@\n"
    assert old.count("\n") == 1
    patch = tmp_path / "x.patch"
    patch.write_text(f"{head}-{old}+{new}")
    assert found(tmp_path / "repo", patch=patch, onto="main") == []


def test_more_commits_than_are_looked_at_can_not_be_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repo, start = started(tmp_path)
    repo.commit("topic", EDIT, parent=start)
    repo.commit("topic", {KERNEL: "BLOCK = 65\n"})
    monkeypatch.setattr(passed, "COMMITS_LIMIT", 2)
    assert found(tmp_path) == []
    monkeypatch.setattr(passed, "COMMITS_LIMIT", 1)
    (finding,) = found(tmp_path)
    assert (finding.unknown, finding.level) == (True, Level.ROUTE)
    assert finding.saw == "could not tell: the change has over 1 commits"


def test_a_change_of_one_commit_costs_one_question_and_a_longer_one_two(tmp_path: Path) -> None:
    repo, start = started(tmp_path)
    repo.commit("topic", EDIT, parent=start)
    repo.branch("short", repo.commit("topic", {}))
    for head, asked in (("main", 1), ("short", 2)):
        with read_change(tmp_path, target="main", head=head) as change:
            before = change.process_count
            assert [*change.passed()] == [] or head == "short"
            assert change.process_count - before == asked


@given(st.lists(st.sampled_from([STRICT, LAX, "other\n"]), min_size=2, max_size=6))
def test_it_is_reported_just_where_a_commit_in_between_has_neither_end(
    tmp_path_factory: pytest.TempPathFactory, states: Sequence[str]
) -> None:
    repo = Repo(tmp_path_factory.mktemp("states") / "repo")
    last = repo.commit("main", {"f": states[0]})
    for state in states[1:]:
        last = repo.commit("topic", {"f": state}, parent=last)
    with read_change(repo.path, target="main", head="topic") as change:
        ends = {states[0], states[-1]}
        seen = {change.text(one.entry.new) for one in change.passed()} - ends
    assert seen == {*states[1:-1]} - ends


def test_commits_that_the_target_has_are_none_of_the_change_s_whatever_base_is_named(
    tmp_path: Path,
) -> None:
    repo, old = started(tmp_path)
    repo.commit("main", {NEAR: LAX})
    tip = repo.commit("main", {NEAR: STRICT})
    repo.commit("topic", EDIT, parent=repo.commit("topic", {}, parent=tip))
    assert found(tmp_path, base=old) == []
