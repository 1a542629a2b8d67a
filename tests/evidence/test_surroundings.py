# SPDX-License-Identifier: Apache-2.0
"""What was just outside the roots while evidence was measured must have been there openly."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from fasttrack.change.read import read_change, read_revision
from fasttrack.config import judged_or_head, read_base_manifests, read_config
from fasttrack.errors import FactUnavailable
from fasttrack.evidence.coverage import GRACE_DAYS
from fasttrack.evidence.effective import effective_tiers
from fasttrack.evidence.inputs import UnitInputs
from fasttrack.evidence.predicates.common import ApartFile, Inputs
from fasttrack.evidence.surroundings import Surroundings
from fasttrack.finding import Level
from fasttrack.testing import Content, Gitlink, Repo, Symlink
from fasttrack.verdict import Outcome, Verdict
from fasttrack.vocabulary import Kind, Tier
from tests.engine import AS_OF, KERNEL
from tests.evidence.lanes import RUN_DAY, judged, lane, statements_for, statuses, stored, trusting
from tests.evidence.units import SOURCES

EDIT = {KERNEL: SOURCES[KERNEL] + "SPEED = 2\n"}
OUTSIDE = "engine/ops.py"
"""Imported by the roots, and in no digest of a unit."""
RIGGED = {OUTSIDE: SOURCES[OUTSIDE] + "RIGGED = True\n"}
AS_IT_WAS = {OUTSIDE: SOURCES[OUTSIDE]}
NEWER = {OUTSIDE: SOURCES[OUTSIDE] + "NEWER = 1\n"}
NEWEST = {OUTSIDE: SOURCES[OUTSIDE] + "NEWER = 2\n"}


def measured_at(repo: Repo, where: Path, commit: str, **changes: Any) -> dict[str, Content]:
    """Files with signed evidence of everything that a commit owes, as it was there."""
    return dict(stored(where, statements_for(repo.path, commit, **changes)))


def started(where: Path, policy: str | None = None) -> tuple[Repo, str]:
    """A repository, and the tip of its `main`."""
    repo = Repo(where / "repo")
    return repo, repo.commit("main", lane(policy=policy))


def answers(verdict: Verdict) -> tuple[Outcome, set[str], set[str]]:
    """The outcome, the statuses of owed cells, and which of our rules speak."""
    assert all(found.level is Level.NOTE for found in verdict.findings)
    return verdict.outcome, set(statuses(verdict)), {found.rule for found in verdict.findings}


PASSES = (Outcome.FAST_TRACK, {"boundary-changed"}, {"FT521"})
REFUSED = (Outcome.NEEDS_EVIDENCE, {"stale"}, {"FT519"})


@pytest.mark.parametrize("folder", [False, True])
@pytest.mark.parametrize(
    "rigged",
    [RIGGED, {OUTSIDE: None}, {OUTSIDE: b"\xff"}],
    ids=["edited", "taken away", "binary"],
)
def test_a_boundary_that_was_put_back_before_the_change_was_proposed_covers_nothing(
    tmp_path: Path, rigged: dict[str, Content], folder: bool
) -> None:
    repo, tip = started(tmp_path)
    at = repo.commit("topic", EDIT | rigged, parent=tip)
    kept = measured_at(repo, tmp_path / "new", at)
    # Both in history and without a trace.
    repo.commit("topic", AS_IT_WAS | ({} if folder else kept))
    repo.commit("clean", EDIT | ({} if folder else kept), parent=tip)
    handed = {"evidence": tmp_path / "new"} if folder else {}
    wanted = (*REFUSED[:2], set()) if folder else REFUSED
    assert answers(judged(repo.path, "clean", **handed)) == wanted
    told = judged(repo.path, "topic", **handed)
    assert set(statuses(told)) == {"stale"}
    found = {(one.rule, one.path) for one in told.findings if one.level is not Level.NOTE}
    assert found == {("FT129", OUTSIDE)}


def test_evidence_that_came_to_the_target_in_a_change_of_its_own_is_no_better(
    tmp_path: Path,
) -> None:
    repo, tip = started(tmp_path)
    at = repo.commit("topic", EDIT | RIGGED, parent=tip)
    kept = measured_at(repo, tmp_path / "new", at)
    tip = repo.commit("main", kept)
    repo.commit("topic", EDIT, parent=tip)
    assert answers(judged(repo.path)) == (Outcome.NEEDS_EVIDENCE, {"stale"}, set())


def test_a_merged_changes_own_past_is_not_the_targets(tmp_path: Path) -> None:
    repo, start = started(tmp_path)
    at = repo.commit("topic", EDIT | RIGGED, parent=start)
    kept = measured_at(repo, tmp_path / "new", at)
    harmless = repo.commit("harmless", RIGGED, parent=start)
    back = repo.commit("harmless", {**AS_IT_WAS, "docs/foo.md": "more words\n"})
    tip = repo.commit("main", {"docs/foo.md": "more words\n"}, parent=(start, back))
    # Branched where the bytes were, so that the merge base has them.
    repo.commit("topic", EDIT | kept, parent=harmless)
    repo.commit("rebased", EDIT | kept, parent=tip)
    assert answers(judged(repo.path)) == REFUSED
    assert answers(judged(repo.path, "rebased")) == REFUSED


@pytest.mark.parametrize("rebased", [False, True])
def test_the_target_may_move_on_under_a_change_and_a_rebase_keeps_its_evidence(
    tmp_path: Path, rebased: bool
) -> None:
    repo, start = started(tmp_path)
    at = repo.commit("topic", EDIT, parent=start)
    kept = measured_at(repo, tmp_path / "new", at)
    for moved in (NEWER, NEWEST):
        tip = repo.commit("main", moved)
    repo.commit("topic", EDIT | kept, parent=tip if rebased else start)
    assert answers(judged(repo.path)) == PASSES


def test_a_change_that_was_rebased_twice_keeps_evidence_from_between(tmp_path: Path) -> None:
    repo, _ = started(tmp_path)
    between = repo.commit("main", NEWER)
    at = repo.commit("topic", EDIT, parent=between)
    kept = measured_at(repo, tmp_path / "new", at)
    repo.commit("main", NEWEST)
    tip = repo.commit("main", {OUTSIDE: None, "engine/late.py": "X = 1\n"})
    repo.commit("topic", EDIT | kept, parent=tip)
    assert answers(judged(repo.path)) == PASSES


@pytest.mark.parametrize("days", [GRACE_DAYS, GRACE_DAYS + 1])
def test_after_the_days_of_grace_nobody_looks_back(tmp_path: Path, days: int) -> None:
    repo, start = started(tmp_path)
    at = repo.commit("topic", EDIT, parent=start)
    age = (AS_OF - RUN_DAY.date()).days
    kept = measured_at(
        repo, tmp_path / "new", at, finished=RUN_DAY + timedelta(days=age) - timedelta(days=days)
    )
    repo.commit("main", NEWER)
    repo.commit("topic", EDIT | kept, parent=start)
    late = (Outcome.NEEDS_EVIDENCE, {"boundary-changed"}, {"FT521"})
    assert answers(judged(repo.path)) == (PASSES if days == GRACE_DAYS else late)


def test_where_a_changed_boundary_is_stale_it_is_told_as_such(tmp_path: Path) -> None:
    repo, start = started(tmp_path, trusting(boundary="stale"))
    at = repo.commit("topic", EDIT | RIGGED, parent=start)
    repo.commit("clean", EDIT | measured_at(repo, tmp_path / "new", at), parent=start)
    # Those of other units never had that file in their boundary, and are of a rigged tree as well.
    wanted = (Outcome.NEEDS_EVIDENCE, {"boundary-changed"}, {"FT519", "FT521"})
    assert answers(judged(repo.path, "clean")) == wanted


def tiers(repo: Repo, revision: str) -> list[Tier]:
    """Effective tiers by the files and the evidence of one commit."""
    with read_revision(repo.path, revision) as found:
        config = read_config(found, folder=None, policy_file=None)
        (manifest,) = read_base_manifests(found, config).valid.values()
        return [*effective_tiers(found, config, manifest, AS_OF).values()]


@pytest.mark.parametrize(
    ("boundary", "tier"),
    [
        ({}, Tier.KERNEL_TESTED),
        (AS_IT_WAS, Tier.KERNEL_TESTED),
        (NEWEST, Tier.DECLARED),
        (RIGGED, Tier.DECLARED),
    ],
    ids=["as it was", "as it is", "as it was before", "as it never was"],
)
def test_the_effective_tier_falls_with_evidence_of_bytes_that_nobody_had(
    tmp_path: Path, boundary: dict[str, Content], tier: Tier
) -> None:
    repo, _ = started(tmp_path)
    repo.commit("main", NEWEST)
    start = repo.commit("main", NEWER)
    at = repo.commit("topic", boundary, parent=start)
    told = [*statements_for(repo.path, at)]
    assert {one.cell.kind for one in told} >= {Kind.KERNEL_TEST, Kind.REFUSAL}
    tip = repo.commit("main", AS_IT_WAS, parent=start)
    assert tiers(repo, repo.commit("main", stored(tmp_path / "new", told), parent=tip)) == [tier]


UNIT = UnitInputs("unit", (), (), ())
"""Whose digests hold nothing."""


def digest_of(text: str) -> str:
    return sha256(text.encode()).hexdigest()


def ran(start: str, apart: Mapping[str, str | None]) -> Inputs:
    """A run that started from a commit, with these files otherwise than there."""
    files = tuple(
        ApartFile(path=path, sha256=None if text is None else digest_of(text))
        for path, text in apart.items()
    )
    return Inputs(unit="u", digest="0" * 64, tests="1" * 64, target=start, apart=files)


def stood(repo: Repo, start: str, path: str, texts: Sequence[str | None]) -> list[bool]:
    """With which contents a path can have been in a run that started from a commit."""
    with read_change(repo.path, target="main", head="topic") as change:
        found = Surroundings(change, judged_or_head(change))
        assert found.was_at(start)
        return [not found.strange(ran(start, {path: text}), {}, UNIT) for text in texts]


def test_bytes_that_are_apart_are_the_targets_later_or_the_changes_own(tmp_path: Path) -> None:
    repo = Repo(tmp_path)
    repo.commit("main", {"f": "old"})
    start = repo.commit("main", {"f": "start", "gone": "x"})
    repo.commit("topic", {"f": "between"}, parent=start)
    repo.commit("topic", {"f": "mine", "new": "n", "gone": None})
    repo.commit("main", {"f": "landed"})
    repo.commit("main", {"f": "start"})
    texts = ["landed", "mine", "old", "between", None]
    assert stood(repo, start, "f", texts) == [True, True, False, False, False]
    assert stood(repo, start, "new", ["n", "m"]) == [True, False]
    assert stood(repo, start, "gone", [None, "y"]) == [True, False]
    assert stood(repo, start, "nowhere", ["x"]) == [False]


def test_a_commit_that_was_merged_in_is_nothing_to_start_from(tmp_path: Path) -> None:
    repo = Repo(tmp_path)
    start = repo.commit("main", {"f": "1", "g": "1"})
    side = repo.commit("side", {"f": "rigged"}, parent=start)
    back = repo.commit("side", {"f": "1", "h": "new"})
    tip = repo.commit("main", {"h": "new"}, parent=(start, back))
    head = repo.commit("topic", {"f": "1"}, parent=side)
    with read_change(repo.path, target="main", head="topic") as change:
        found = Surroundings(change, judged_or_head(change))
        known = [found.was_at(commit) for commit in (start, tip, side, back, head, "f" * 40)]
    assert known == [True, True, False, False, False, False]
    assert stood(repo, start, "f", ["rigged"]) == [False]


@pytest.mark.parametrize("other", [Symlink("text"), Gitlink("1" * 40)])
def test_a_link_or_a_submodule_has_no_bytes_and_is_something(
    tmp_path: Path, other: Content
) -> None:
    repo = Repo(tmp_path)
    start = repo.commit("main", {"g": "1"})
    repo.commit("topic", {"f": other}, parent=start)
    assert stood(repo, start, "f", ["text", "1" * 40]) == [False] * 2
    with read_change(repo.path, target="main", head="topic") as change:
        side = change.head_files.get("f")
        assert side is not None
        (file,) = ran(start, {"f": f"{side.mode} {side.oid}"}).apart
        assert Surroundings(change, judged_or_head(change)).now("f") == file.sha256


def test_a_former_content_that_is_not_here_is_a_missing_fact_and_no_pass(tmp_path: Path) -> None:
    repo = Repo(tmp_path)
    start = repo.commit("main", {"f": "old"})
    repo.commit("main", {"f": "newer"})
    repo.commit("topic", {"g": "1"}, parent=repo.commit("main", {"f": "new"}))
    with read_change(repo.path, target="main", head="topic") as change:
        former = next(change.steps(["f"], start)).before["f"]
    (repo.git_dir / "objects" / former.oid[:2] / former.oid[2:]).unlink()
    with pytest.raises(FactUnavailable, match="not in this clone"):
        stood(repo, start, "f", ["older"])
    assert stood(repo, start, "f", ["new"]) == [True]
