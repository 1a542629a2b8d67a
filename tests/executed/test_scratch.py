# SPDX-License-Identifier: Apache-2.0
"""Trees on disk are those of git, and hostile ones leave their folder nowhere."""

import os
from pathlib import Path

import pytest

from fasttrack.change.read import read_change
from fasttrack.errors import FactUnavailable
from fasttrack.executed import scratch
from fasttrack.executed.scratch import scratch_tree
from fasttrack.testing import Content, File, Gitlink, Repo, Stored, Symlink


def written(where: Path, files: dict[str, Content]) -> dict[str, str]:
    repo = Repo(where / "repo", bare=True)
    repo.commit("main", files)
    with (
        read_change(where / "repo", target="main", head="main") as change,
        scratch_tree(change, change.base, {}) as top,
    ):
        return {
            path.relative_to(top).as_posix(): f"-> {path.readlink()}"
            if path.is_symlink()
            else f"{oct(path.stat().st_mode & 0o111)} {path.read_text()}"
            for path in sorted(top.rglob("*"))
            if path.is_symlink() or path.is_file()
        }


def test_files_links_and_modes_are_written_and_submodules_left_out(tmp_path: Path) -> None:
    files: dict[str, Content] = {
        "a/b.py": "x",
        "run": File("y", "100755"),
        "link": Symlink("a/b.py"),
        "out": Symlink("/etc/passwd"),
        "sub": Gitlink("1" * 40),
    }
    assert written(tmp_path, files) == {
        "a/b.py": "0o0 x",
        "run": "0o111 y",
        "link": "-> a/b.py",
        "out": "-> /etc/passwd",
    }


def test_no_file_is_written_through_a_link(tmp_path: Path) -> None:
    repo = Repo(tmp_path / "repo", bare=True)
    victim = tmp_path / "victim"
    victim.mkdir()
    blob = repo.write("blob", b"owned")
    link = repo.write("blob", os.fsencode(victim))
    inner = repo.tree([("100644", b"file", blob)])
    # One name twice, as a link and as a folder: git would never write such a tree.
    tree = repo.tree([("120000", b"a", link), ("40000", b"a", inner)])
    repo.branch("main", repo.commit_tree(tree))
    with (
        read_change(tmp_path / "repo", target="main", head="main") as change,
        pytest.raises(FactUnavailable, match="can not be written"),
        scratch_tree(change, change.base, {}),
    ):
        pass
    assert [*victim.iterdir()] == []


@pytest.mark.parametrize("name", ["..", ".git", ".GIT", "."])
def test_a_path_that_leaves_the_folder_is_refused(name: str, tmp_path: Path) -> None:
    repo = Repo(tmp_path / "repo", bare=True)
    blob = repo.write("blob", b"x")
    inner = repo.tree([("100644", b"file", blob)])
    repo.branch("main", repo.commit_tree(repo.tree([("40000", name.encode(), inner)])))
    with (
        read_change(tmp_path / "repo", target="main", head="main") as change,
        pytest.raises(FactUnavailable, match="no path that is written"),
        scratch_tree(change, change.base, {}),
    ):
        pass


def test_other_sides_stand_in_for_the_tree_s_own(tmp_path: Path) -> None:
    repo = Repo(tmp_path / "repo", bare=True)
    first = repo.commit("main", {"a": "1", "b": "2"})
    repo.commit("topic", {"a": "3", "c": "4"}, parent=first)
    with read_change(tmp_path / "repo", target="main", head="topic") as change:
        other = {"a": change.base.get("a"), "b": None}
        with scratch_tree(change, change.judged, other) as top:
            assert {p.name: p.read_text() for p in top.iterdir()} == {"a": "1", "c": "4"}
        assert not top.exists()


def test_bounds_of_a_tree_hold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scratch, "FILE_LIMIT", 2)
    assert written(tmp_path / "1", {"a": "12", "b": "123"}) == {"a": "0o0 12"}
    monkeypatch.setattr(scratch, "TREE_LIMIT", 3)
    with pytest.raises(FactUnavailable, match="a tree of more than"):
        written(tmp_path / "2", {"a": "12", "b": "12"})
    monkeypatch.setattr(scratch, "FILES_LIMIT", 1)
    with pytest.raises(FactUnavailable, match="a tree of 2 files; at most 1"):
        written(tmp_path / "3", {"a": "1", "b": "1"})


def test_stored_objects_that_are_not_there_are_a_missing_fact(tmp_path: Path) -> None:
    with pytest.raises(FactUnavailable, match="not in this clone"):
        written(tmp_path, {"a": Stored("1" * 40)})
