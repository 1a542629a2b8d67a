# SPDX-License-Identifier: Apache-2.0
import subprocess
from pathlib import Path

import pytest

from fasttrack.testing import Content, File, Gitlink, Repo, Symlink


def _git(repo: Repo, *args: str) -> str:
    done = subprocess.run(
        ["git", *args], cwd=repo.path, check=True, capture_output=True, text=True, errors="replace"
    )
    return done.stdout


FILES: dict[str, Content] = {
    "a": "text\n",
    "b/c/d": b"\0bytes",
    "b.c": "sorts before b/",
    "run": File("#!/bin/sh\n", "100755"),
    "link": Symlink("a"),
    "sub": Gitlink("1" * 40),
    "new\nline": "x",
    "é/ü": "x",
}


def test_git_finds_nothing_wrong_with_what_is_written(tmp_path: Path) -> None:
    repo = Repo(tmp_path)
    start = repo.commit("main", FILES)
    side = repo.commit("side", {"b/c/d": None, "z": "1"}, parent=start)
    repo.commit("main", {"z": "1"}, parent=[start, side], message="a merge\n\nof two\n")
    out = _git(repo, "fsck", "--strict", "--full")
    assert "error" not in out
    assert "warning" not in out


@pytest.mark.parametrize("object_format", ["sha1", "sha256"])
def test_git_reads_back_what_was_committed(object_format: str, tmp_path: Path) -> None:
    repo = Repo(tmp_path, object_format=object_format)
    files = {path: content for path, content in FILES.items() if path != "sub"}
    first = repo.commit("main", files)
    second = repo.commit("main", {"a": None, "b/c/e": "new"})
    assert _git(repo, "rev-list", "--parents", "main").split() == [second, first, first]
    listed = _git(repo, "ls-tree", "-r", "--name-only", "-z", "main").split("\0")[:-1]
    assert sorted(listed) == sorted({*files, "b/c/e"} - {"a"})
    assert _git(repo, "show", "main:b/c/e") == "new"
    assert _git(repo, "ls-tree", "main", "run", "link").split()[::4] == ["120000", "100755"]


def test_a_folder_is_gone_with_its_last_file(tmp_path: Path) -> None:
    repo = Repo(tmp_path)
    repo.commit("main", {"a/b/c": "1", "d": "2"})
    repo.commit("main", {"a/b/c": None})
    assert _git(repo, "ls-tree", "-r", "-t", "--name-only", "main").split() == ["d"]


def test_the_same_calls_give_the_same_ids(tmp_path: Path) -> None:
    ids = []
    for name in ("one", "two"):
        repo = Repo(tmp_path / name)
        start = repo.commit("main", FILES)
        ids.append((start, repo.commit("topic", {"a": "2"}, parent=start)))
    assert ids[0] == ids[1]


def test_commits_are_dated_in_their_order(tmp_path: Path) -> None:
    repo = Repo(tmp_path)
    for n in range(3):
        repo.commit("main", {"n": str(n)})
    dates = [int(date) for date in _git(repo, "log", "--format=%ct").split()]
    assert dates == sorted(dates, reverse=True)
    assert len(set(dates)) == 3


def test_a_path_that_is_not_there_can_not_be_deleted(tmp_path: Path) -> None:
    repo = Repo(tmp_path)
    with pytest.raises(KeyError):
        repo.commit("main", {"a": None})
