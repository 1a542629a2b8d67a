# SPDX-License-Identifier: Apache-2.0
"""What the target branch had at a path before its tip."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fasttrack.change import former as module
from fasttrack.change.change import Change
from fasttrack.change.former import PastUnavailable
from fasttrack.change.read import read_revision
from fasttrack.change.tree import Side
from fasttrack.errors import FactUnavailable
from fasttrack.testing import Content, Repo

from .conftest import Read, RunGit


def together(change: Change, *paths: str) -> list[tuple[str | None, ...]]:
    """What was there from the tip on, newest first; None for nothing."""

    def text(side: Side) -> str | None:
        return change.text(side) if side.present else None

    return [tuple(text(sides[path]) for path in paths) for sides in change.former(paths)]


def texts(change: Change, path: str) -> list[str | None]:
    """What was at one path before the tip."""
    return [text for (text,) in together(change, path)][1:]


def history(repo: Repo, *texts: str) -> str:
    """A branch whose file `f` is each of these after one another; the tip."""
    return [repo.commit("main", {"f": text}) for text in texts][-1]


def test_what_was_there_comes_newest_first_and_absence_is_something(repo: Repo, read: Read) -> None:
    repo.commit("main", {"other": "1"})
    history(repo, "1", "2", "3")
    repo.commit("main", {"f": None})
    change = read(repo, head="main")
    assert texts(change, "f") == ["3", "2", "1", None]
    assert texts(change, "other") == texts(change, "nowhere") == []


def test_the_tip_of_the_target_is_where_it_starts_and_not_the_head(repo: Repo, read: Read) -> None:
    start = history(repo, "1", "2")
    repo.commit("topic", {"f": "rigged"}, parent=start)
    repo.commit("topic", {"f": "2", "g": "new"})
    change = read(repo, head="topic")
    assert texts(change, "f") == ["1"]


def test_what_was_merged_in_never_was_the_branch(repo: Repo, read: Read) -> None:
    start = history(repo, "1", "2")
    repo.commit("topic", {"f": "rigged"}, parent=start)
    topic = repo.commit("topic", {"f": "2", "g": "new"})
    tip = repo.commit("main", {"h": "3"})
    repo.commit("main", {"g": "new"}, parent=(tip, topic))
    repo.commit("main", {"f": "4"})
    assert texts(read(repo, head="main"), "f") == ["2", "1"]


def test_a_merge_counts_for_what_it_changes_of_the_branch(repo: Repo, read: Read) -> None:
    start = history(repo, "1")
    topic = repo.commit("topic", {"f": "2"}, parent=start)
    tip = repo.commit("main", {"h": "3"})
    repo.commit("main", {"f": "2"}, parent=(tip, topic))
    assert texts(read(repo, head="main"), "f") == ["1"]


@pytest.mark.parametrize(("limit", "found"), [(1, ["3"]), (2, ["3", "2"]), (9, ["3", "2", "1"])])
def test_the_way_back_is_bounded_by_commits(
    repo: Repo, read: Read, monkeypatch: pytest.MonkeyPatch, limit: int, found: list[str]
) -> None:
    monkeypatch.setattr(module, "COMMITS_LIMIT", limit)
    history(repo, "1", "2", "3", "4")
    assert texts(read(repo, head="main"), "f") == found


def test_git_is_asked_only_as_far_back_as_somebody_looks(
    repo: Repo, read: Read, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "STEP", 2)
    history(repo, *map(str, range(9)))
    change = read(repo, head="main")
    assert len(change.base) == 1
    before = change.process_count
    found = change.former(["f"])
    assert next(found).keys() == {"f"}
    assert change.process_count == before
    assert next(found).keys() == {"f"}
    assert change.process_count == before + 2  # the list of commits, and the first step
    assert texts(change, "f") == [str(n) for n in reversed(range(8))]
    done = change.process_count
    assert texts(change, "f") == [str(n) for n in reversed(range(8))]
    assert change.process_count == done == before + 1 + 4


@settings(max_examples=25, deadline=None)
@given(st.lists(st.dictionaries(st.sampled_from("abc"), st.sampled_from("01") | st.none())))
def test_steps_change_nothing(
    tmp_path_factory: pytest.TempPathFactory, commits: Sequence[Mapping[str, str | None]]
) -> None:
    repo = Repo(tmp_path_factory.mktemp("repo"))
    files: dict[str, str] = {}
    states: list[Mapping[str, str]] = []
    for commit in [{}, *commits]:
        changes: dict[str, Content] = {
            path: text for path, text in commit.items() if text is not None or path in files
        }
        files = {p: t for p, t in (files | commit).items() if t is not None}
        states.append(files)
        repo.commit("main", changes)
    with pytest.MonkeyPatch.context() as patch, read_revision(repo.path) as change:
        patch.setattr(module, "STEP", 3)
        for path in "abc":
            values = [state.get(path) for state in states]
            moved = [old for old, new in pairwise(values) if old != new]
            found = texts(change, path)
            assert set(found) == set(moved)
            assert found[:1] == moved[-1:]


@pytest.mark.parametrize(("limit", "told"), [(1, True), (2, False), (4096, False)])
def test_where_a_shallow_clone_ends_too_early_the_rest_can_not_be_told(
    repo: Repo,
    read: Read,
    git: RunGit,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    limit: int,
    told: bool,
) -> None:
    monkeypatch.setattr(module, "COMMITS_LIMIT", limit)
    history(repo, "1", "2", "3", "4")
    git("clone", "--quiet", "--depth=2", f"file://{repo.path}", tmp_path / "clone")
    change = read(tmp_path / "clone", head="main")
    found = change.former(["f"])
    assert [change.text(next(found)["f"]) for _ in range(2)] == ["4", "3"]
    if told:
        assert list(found) == []
    else:
        with pytest.raises(PastUnavailable, match=r"cut off at [0-9a-f]{12}.*fetch --unshallow"):
            next(found)


def test_paths_are_told_as_they_stood_together(repo: Repo, read: Read) -> None:
    repo.commit("main", {"f": "1", "g": "1"})
    repo.commit("main", {"f": "2", "h": "1"})
    repo.commit("main", {"g": "2"})
    repo.commit("main", {"f": "3", "g": "3", "h": None})
    wanted = [("3", "3", None), ("2", "2", "1"), ("2", "1", "1"), ("1", "1", None)]
    assert together(read(repo, head="main"), "f", "g", "h") == wanted
    assert together(read(repo, head="main"), "g") == [("3",), ("2",), ("1",)]


def test_a_path_is_no_pattern_and_no_folder(repo: Repo, read: Read) -> None:
    repo.commit("main", {"f": "1", "*": "1", "d/x": "1", ":(glob)f": "1", "-f": "1"})
    repo.commit("main", {"f": "2", "d/x": "2"})
    repo.commit("main", {"*": "2", ":(glob)f": "2", "-f": "2"})
    change = read(repo, head="main")
    for path in ("*", ":(glob)f", "-f"):
        assert together(change, path) == [("2",), ("1",)]
    assert together(change, "d") == [(None,)]


def test_what_else_a_commit_brings_is_not_asked_for(
    repo: Repo, read: Read, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "STEP_BYTES", 1000)
    repo.commit("main", {"f": "1"})
    repo.commit("main", {f"vendor/{n}": "x" for n in range(100)} | {"f": "2"})
    repo.commit("main", {f"vendor/{n}": None for n in range(100)})
    assert texts(read(repo, head="main"), "f") == ["1"]


def test_paths_are_asked_for_in_portions_and_each_once(
    repo: Repo, read: Read, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "PATHS_BYTES", 2)
    names = "abcde"
    repo.commit("main", dict.fromkeys(names, "1"))
    repo.commit("main", dict.fromkeys(names, "2"))
    change = read(repo, head="main")
    assert together(change, *names) == [("2",) * 5, ("1",) * 5]
    done = change.process_count
    assert together(change, "a", "e") == [("2", "2"), ("1", "1")]
    assert change.process_count == done


def test_too_many_changes_are_a_missing_fact_however_often_one_asks(
    repo: Repo, read: Read, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "STEP_BYTES", 100)
    history(repo, "1", "2", "3", "4")
    change = read(repo, head="main")
    for _ in range(2):
        with pytest.raises(FactUnavailable, match="100 bytes"):
            texts(change, "f")
