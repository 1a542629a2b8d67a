# SPDX-License-Identifier: Apache-2.0
"""FT126 on histories that a case file can not tell: what a merge undoes without showing it."""

from pathlib import Path

import pytest

from fasttrack.change.read import read_change
from fasttrack.errors import InputError
from fasttrack.testing import Repo, Stored
from fasttrack.verdict import Outcome, Request, evaluate
from tests.engine import AS_OF, KERNEL, SHARED, files

UNDONE = f"the merge does more than the change shows, in `{SHARED}`"


def criss_cross(where: Path, resolved: str) -> Repo:
    """Both branches merge the other's first commit; `topic` leaves `resolved` in the shared file.

    The first of the two merge bases, by id, is the commit in which `topic` already has the file as
    it was before the target branch mended it.
    """
    repo = Repo(where)
    start = repo.commit("main", files())
    mended = repo.commit("main", {SHARED: "LIMIT = 2\n"}, parent=start)
    work = next(
        oid
        for i in range(100)
        if (oid := repo.commit("topic", {KERNEL: "BLOCK = 64\n"}, parent=start, message=f"{i}\n"))
        < mended
    )
    repo.commit("main", {KERNEL: "BLOCK = 64\n"}, parent=[mended, work])
    repo.commit("topic", {SHARED: resolved, KERNEL: "BLOCK = 96\n"}, parent=[work, mended])
    return repo


def test_a_merge_that_undoes_what_the_target_gained_is_reported(tmp_path: Path) -> None:
    criss_cross(tmp_path, "LIMIT = 1\n")
    with read_change(tmp_path, target="main", head="topic") as change:
        assert [entry.path for entry in change.entries] == [KERNEL]
        assert [entry.path for entry in change.landing] == sorted([KERNEL, SHARED])

    verdict = evaluate(Request(tmp_path, target="main", head="topic"), AS_OF)

    assert verdict.outcome is Outcome.ORDINARY_REVIEW
    assert [(f.rule, f.saw) for f in verdict.findings] == [("FT126", UNDONE)]


def test_an_honest_merge_from_both_sides_undoes_nothing(tmp_path: Path) -> None:
    criss_cross(tmp_path, "LIMIT = 2\n")
    verdict = evaluate(Request(tmp_path, target="main", head="topic"), AS_OF)
    assert [(f.rule, f.path) for f in verdict.findings] == [("FT101", SHARED)]


def test_an_older_base_hides_no_revert(tmp_path: Path) -> None:
    repo = Repo(tmp_path)
    old = repo.commit("main", files())
    tip = repo.commit("main", {SHARED: "LIMIT = 2\n"})
    repo.commit("topic", {SHARED: files()[SHARED], KERNEL: "BLOCK = 64\n"}, parent=tip)

    verdict = evaluate(Request(tmp_path, target="main", head="topic", base=old), AS_OF)

    assert [(f.rule, f.saw) for f in verdict.findings] == [("FT126", UNDONE)]
    assert verdict.outcome is Outcome.ORDINARY_REVIEW


def test_a_target_that_only_moved_on_does_not_matter(tmp_path: Path) -> None:
    repo = Repo(tmp_path)
    start = repo.commit("main", files())
    repo.commit("main", {SHARED: "LIMIT = 2\n"})
    repo.commit("topic", {KERNEL: "BLOCK = 64\n"}, parent=start)
    verdict = evaluate(Request(tmp_path, target="main", head="topic"), AS_OF)
    assert (verdict.outcome, verdict.findings) == (Outcome.FAST_TRACK, ())


def test_an_old_file_can_not_pose_as_a_new_one_by_a_second_entry(tmp_path: Path) -> None:
    repo = Repo(tmp_path)
    old = repo.write("blob", b"assert True\n")
    start = repo.commit("main", files() | {"tests/test_a.py": Stored(old)})
    new = repo.write("blob", b"pass\n")
    folder = repo.tree([("100644", b"test_a.py", old), ("100644", b"test_a.py", new)])
    repo.branch("topic", repo.commit_tree(repo.tree([("40000", b"tests", folder)]), [start]))
    with pytest.raises(InputError, match="lists one path twice"):
        evaluate(Request(tmp_path, target="main", head="topic"), AS_OF)
