# SPDX-License-Identifier: Apache-2.0
from pathlib import Path

import pytest

from fasttrack.change import tree as tree_module
from fasttrack.change.tree import path_bytes
from fasttrack.errors import FactUnavailable, InputError
from fasttrack.testing import Content, Repo, Symlink

from .conftest import Read, put_git_on_path

UNUSUAL = [
    "new\nline",
    "tab\there",
    'quote"back\\slash',
    "\udcff\udcfe not utf-8",
    "é/ü",
    " lead and trail ",
    "-option",
    ":magic",
    "a.b",
    "a/b",
    "a-b",
    "\x01",
]


@pytest.mark.parametrize("path", ["../up", "a/../b", ".git/config", "./x"])
def test_paths_that_git_would_not_check_out_are_told_as_they_are(
    path: str, repo: Repo, read: Read
) -> None:
    start = repo.commit("main", {"a0": "1"})
    repo.commit("topic", {path: "x"}, parent=start)
    change = read(repo, head="topic")
    assert [entry.path for entry in change.entries] == [path]


def test_an_empty_name_in_a_tree_is_bad_input(repo: Repo, read: Read) -> None:
    start = repo.commit("main", {"a": "1"})
    repo.commit("topic", {"a//b": "x"}, parent=start)
    with pytest.raises(InputError, match="empty filename in tree entry"):
        read(repo, head="topic")


def test_paths_of_any_bytes_are_told_in_byte_order(repo: Repo, read: Read) -> None:
    start = repo.commit("main", {"zz": "1"})
    files: dict[str, Content] = dict.fromkeys(UNUSUAL, "x\n")
    repo.commit("topic", files, parent=start)
    repo.commit("main", {"zz": "2"})
    change = read(repo, head="topic")
    assert [entry.path for entry in change.entries] == sorted(UNUSUAL, key=path_bytes)
    for tree in (change.head_files, change.judged):
        assert list(tree) == sorted([*UNUSUAL, "zz"], key=path_bytes)
    assert all(change.added_lines(entry)[0].text == "x" for entry in change.entries)


def test_a_tree_tells_sides_by_path_and_nothing_for_folders(repo: Repo, read: Read) -> None:
    repo.commit("main", {"a/b": "1", "l": Symlink("a")})
    tree = read(repo).base
    side = tree.get("a/b")
    assert side is not None
    assert (side.mode, len(side.oid), side.present) == ("100644", 40, True)
    assert tree.get("a") is None
    assert "a" not in tree
    assert ("a/b" in tree, "l" in tree, len(tree), list(tree)) == (True, True, 2, ["a/b", "l"])


def test_the_heads_files_are_the_same_derived_or_listed(repo: Repo, read: Read) -> None:
    start = repo.commit("main", {"a": "1", "b/c": "2", "d": "3"})
    repo.commit("topic", {"a": None, "b/c": "22", "b-": "4", "b0": "5"}, parent=start)
    derived = read(repo, head="topic").head_files
    repo.commit("main", {"e": "1"})
    listed = read(repo, head="topic").head_files
    assert [(path, derived.get(path)) for path in derived] == [
        (path, listed.get(path)) for path in listed
    ]


def test_a_tree_that_lists_a_path_twice_is_refused(repo: Repo, read: Read) -> None:
    start = repo.commit("main", {"a": "1"})
    good, evil = repo.write("blob", b"good"), repo.write("blob", b"evil")
    twice = repo.tree([("100644", b"a", good), ("100644", b"a", evil)])
    repo.branch("topic", repo.commit_tree(twice, [start]))
    with pytest.raises(InputError, match="lists one path twice"):
        read(repo, head="topic")
    repo.branch("main", repo.commit_tree(twice))
    with pytest.raises(FactUnavailable, match="lists one path twice"):
        read(repo, head="main", target="main").base.get("a")


def test_nested_trees_that_stand_for_a_billion_files_are_refused(
    repo: Repo, read: Read, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tree_module, "TREE_BYTES_LIMIT", 1_000_000)
    start = repo.commit("main", {"a": "1"})
    oid, mode = repo.write("blob", b"x"), "100644"
    for _ in range(9):
        oid, mode = repo.tree([(mode, b"%02d" % n, oid) for n in range(10)]), "40000"
    repo.branch("topic", repo.commit_tree(oid, [start]))
    with pytest.raises(InputError, match=r"more than 1,000,000 bytes|out of memory"):
        read(repo, head="topic")
    repo.branch("main", repo.commit_tree(oid))
    with pytest.raises(FactUnavailable, match="more than 1,000,000 bytes"):
        len(read(repo).base)


def test_a_path_of_very_many_folders_is_read(repo: Repo, read: Read) -> None:
    start = repo.commit("main", {"a": "1"})
    oid, mode = repo.write("blob", b"x"), "100644"
    for _ in range(2500):
        oid, mode = repo.tree([(mode, b"d", oid)]), "40000"
    repo.branch("topic", repo.commit_tree(oid, [start]))
    change = read(repo, head="topic")
    assert [entry.path for entry in change.entries] == ["a", "d" + "/d" * 2499]
    assert list(change.judged) == ["d" + "/d" * 2499]


def test_a_git_that_crashes_on_the_trees_is_bad_input(
    repo: Repo, read: Read, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = repo.commit("main", {"a": "1"})
    repo.commit("topic", {"a": "2"}, parent=start)
    put_git_on_path(
        tmp_path, monkeypatch, '[ "$1" = diff-tree ] && kill -SEGV $$ || exec REAL "$@"'
    )
    with pytest.raises(InputError, match="git diff-tree ended by signal 11"):
        read(repo, head="topic")


def test_the_number_of_changed_paths_is_bounded(
    repo: Repo, read: Read, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = repo.commit("main", {"a": "1"})
    monkeypatch.setattr(tree_module, "CHANGED_PATHS_LIMIT", 10)
    repo.commit("topic", {f"f{n}": "1" for n in range(10)}, parent=start)
    assert len(read(repo, head="topic").entries) == 10
    repo.commit("topic", {"one more": "1"})
    with pytest.raises(InputError, match=r"11 changed paths.*at most 10"):
        read(repo, head="topic")


def test_the_number_of_paths_of_a_tree_is_bounded(
    repo: Repo, read: Read, monkeypatch: pytest.MonkeyPatch
) -> None:
    repo.commit("main", {f"f{n}": "1" for n in range(10)})
    monkeypatch.setattr(tree_module, "TREE_PATHS_LIMIT", 10)
    assert len(read(repo).base) == 10
    repo.commit("main", {"one more": "1"})
    with pytest.raises(FactUnavailable, match="11 paths; at most 10"):
        len(read(repo).base)
