# SPDX-License-Identifier: Apache-2.0
"""Runs start from a commit that the target branch had lately, and from one that it has itself."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from fasttrack.change.read import read_change
from fasttrack.cli.evidence import command
from fasttrack.config import judged_or_head
from fasttrack.errors import InputError
from fasttrack.evidence.departure import require_recent
from fasttrack.evidence.surroundings import START_DAYS, Surroundings
from fasttrack.testing import Repo
from tests.evidence.lanes import RUN_DAY, judged, lane
from tests.evidence.test_surroundings import (
    AS_IT_WAS,
    EDIT,
    PASSES,
    REFUSED,
    RIGGED,
    UNIT,
    answers,
    measured_at,
    ran,
)

DAY = 24 * 60 * 60
RUN = int(RUN_DAY.timestamp()) - 5 * 60
"""When runs of `strategies` start, five minutes before they end."""


@pytest.mark.parametrize(
    ("late", "wanted"),
    [
        (0, PASSES),
        (START_DAYS * DAY, PASSES),
        ((START_DAYS + 1) * DAY - 1, PASSES),
        ((START_DAYS + 1) * DAY, REFUSED),
        (400 * DAY, REFUSED),
        (-DAY, PASSES),
    ],
)
def test_a_commit_may_be_measured_for_some_days_after_the_target_left_it(
    tmp_path: Path, late: int, wanted: object
) -> None:
    repo = Repo(tmp_path / "repo")
    lax = repo.commit("main", lane() | RIGGED, at=RUN - 500 * DAY)
    strict = repo.commit("main", AS_IT_WAS, at=RUN - late)
    at = repo.commit("topic", EDIT, parent=lax, at=RUN)
    kept = measured_at(repo, tmp_path / "new", at)
    repo.commit("topic", EDIT | kept, parent=strict, at=RUN)  # rebased
    assert answers(judged(repo.path)) == wanted


def test_a_target_that_stands_still_may_be_measured_at_any_time(tmp_path: Path) -> None:
    repo = Repo(tmp_path / "repo")
    tip = repo.commit("main", lane(), at=RUN - 500 * DAY)
    at = repo.commit("topic", EDIT, parent=tip, at=RUN - 400 * DAY)
    repo.commit("topic", measured_at(repo, tmp_path / "new", at))
    assert set(answers(judged(repo.path))[1]) == {"covered"}


def test_nothing_is_planned_to_be_measured_where_it_would_not_count(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    repo = Repo(tmp_path / "repo")
    start = repo.commit("main", lane(tier="declared"), at=RUN - 500 * DAY)
    repo.commit("main", {"docs/a.md": "words\n"}, at=RUN - 400 * DAY)
    repo.commit("topic", EDIT, parent=start)
    options = ["plan", "--repo", str(repo.path), "--head", "topic", "--tier", "compiled"]
    command.main([*options], standalone_mode=False)
    assert "missing" in capsys.readouterr().out
    out = tmp_path / "plan.json"
    for more in (("--out", str(out)), ("--format", "json"), ("--format", "slurm")):
        with pytest.raises(InputError, match=rf"{start[:12]}, which the target branch left"):
            command.main([*options, *more], standalone_mode=False)
    assert not out.exists()
    assert capsys.readouterr().out == ""


def test_a_run_is_as_late_as_its_own_start(tmp_path: Path) -> None:
    repo = Repo(tmp_path / "repo")
    start = repo.commit("main", {"f": "1"}, at=RUN)
    repo.commit("main", {"f": "2"}, at=RUN)
    repo.commit("topic", {"g": "1"}, parent=start, at=RUN)
    with read_change(repo.path, target="main", head="topic") as change:
        last = datetime.fromtimestamp(RUN + (START_DAYS + 1) * DAY - 1, UTC)
        require_recent(change, "a run", last)
        with pytest.raises(InputError, match=r"left 15 days before.*want at most 14 days"):
            require_recent(change, "a run", datetime.fromtimestamp(last.timestamp() + 1, UTC))


def test_what_one_of_several_merge_bases_lacks_is_nothing_that_the_change_brings(
    tmp_path: Path,
) -> None:
    """The head has the lax file as one merge base does not, and merging leaves the strict one."""
    lax, strict = {"f": "lax"}, {"f": "strict"}
    for number in range(8):  # until the base that lacks it is the first by name
        repo = Repo(tmp_path / str(number))
        start = repo.commit("main", strict)
        side = repo.commit("side", lax, parent=start)
        tip = repo.commit("main", {"n": str(number)}, parent=start)
        back = repo.commit("side", strict | {"doc": "1"})
        repo.commit("main", {"doc": "1"}, parent=(tip, back))
        repo.commit("topic", {"n": str(number)}, parent=(side, tip))
        with read_change(repo.path, target="main", head="topic") as change:
            assert len(change.merge_bases) == 2
            entry = change.entry("f")
            if change.merge_base == tip:
                assert entry is not None
                found = Surroundings(change, judged_or_head(change))
                assert found.now("f") == ran(tip, strict).apart[0].sha256
                assert found.strange(ran(tip, lax), {}, UNIT) == ("f",)
                return
    pytest.fail("no merge base of either kind in eight tries")


def test_a_merge_with_swapped_parents_is_named_where_it_makes_evidence_stale(
    tmp_path: Path,
) -> None:
    repo = Repo(tmp_path / "repo")
    start = repo.commit("main", lane())
    side = repo.commit("side", {"docs/a.md": "words\n"}, parent=start)
    tip = repo.commit("main", {"docs/b.md": "words\n"}, parent=start)
    at = repo.commit("topic", EDIT, parent=tip)
    kept = measured_at(repo, tmp_path / "new", at)
    swapped = repo.commit("main", {"docs/b.md": "words\n"}, parent=(side, tip))
    repo.commit("topic", EDIT | kept, parent=swapped)
    verdict = judged(repo.path)
    details = {owed.answer.detail for owed in verdict.coverage.owed}
    assert all("never was at itself: it was merged" in detail for detail in details), details
