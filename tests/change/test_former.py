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
from fasttrack.change.read import read_revision
from fasttrack.errors import FactUnavailable
from fasttrack.testing import Content, Repo

from .conftest import Read, RunGit


def texts(change: Change, path: str) -> list[str | None]:
    """What was there before the tip, newest first; None for nothing."""
    return [change.text(side) if side.present else None for side in change.former(path)]


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
    before = change.process_count
    assert next(change.former("f")) is not None
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


def test_a_shallow_clone_ends_the_way_and_is_no_error(
    repo: Repo, read: Read, git: RunGit, tmp_path: Path
) -> None:
    history(repo, "1", "2", "3", "4")
    git("clone", "--quiet", "--depth=2", f"file://{repo.path}", tmp_path / "clone")
    assert texts(read(tmp_path / "clone", head="main"), "f") == ["3"]


def test_too_many_changes_are_a_missing_fact_however_often_one_asks(
    repo: Repo, read: Read, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "STEP_BYTES", 100)
    history(repo, "1", "2", "3", "4")
    change = read(repo, head="main")
    for _ in range(2):
        with pytest.raises(FactUnavailable, match="100 bytes"):
            texts(change, "f")
