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
from fasttrack.change.read import read_change, read_revision
from fasttrack.change.tree import ABSENT, Side
from fasttrack.errors import FactUnavailable
from fasttrack.testing import Content, Repo

from .conftest import Read, RunGit


def together(change: Change, since: str, *paths: str) -> list[tuple[str | None, ...]]:
    """What was there from the tip on, newest first, down to a commit; None for nothing."""

    def text(side: Side) -> str | None:
        return change.text(side) if side.present else None

    now = {path: change.base.get(path) or ABSENT for path in paths}
    states = [now, *(step.before for step in change.steps(paths, since))]
    return [tuple(text(sides[path]) for path in paths) for sides in states]


def texts(change: Change, since: str, path: str) -> list[str | None]:
    """What was at one path before the tip."""
    return [text for (text,) in together(change, since, path)][1:]


def history(repo: Repo, *texts: str) -> list[str]:
    """The commits of a branch whose file `f` is each of these after one another."""
    return [repo.commit("main", {"f": text}) for text in texts]


def test_what_was_there_comes_newest_first_and_absence_is_something(repo: Repo, read: Read) -> None:
    root = repo.commit("main", {"other": "1"})
    _, second, _ = history(repo, "1", "2", "3")
    tip = repo.commit("main", {"f": None})
    change = read(repo, head="main")
    assert texts(change, root, "f") == ["3", "2", "1", None]
    assert texts(change, second, "f") == ["3", "2"]
    assert texts(change, tip, "f") == []
    assert texts(change, root, "other") == texts(change, root, "nowhere") == []


def test_the_tip_of_the_target_is_where_it_starts_and_not_the_head(repo: Repo, read: Read) -> None:
    root, start = history(repo, "1", "2")
    rigged = repo.commit("topic", {"f": "rigged"}, parent=start)
    repo.commit("topic", {"f": "2", "g": "new"})
    change = read(repo, head="topic")
    assert texts(change, root, "f") == ["1"]
    assert [change.was_at(commit) for commit in (root, start, rigged)] == [True, True, False]


def test_what_was_merged_in_never_was_the_branch(repo: Repo, read: Read) -> None:
    root, start = history(repo, "1", "2")
    repo.commit("topic", {"f": "rigged"}, parent=start)
    topic = repo.commit("topic", {"f": "2", "g": "new"})
    tip = repo.commit("main", {"h": "3"})
    repo.commit("main", {"g": "new"}, parent=(tip, topic))
    repo.commit("main", {"f": "4"})
    change = read(repo, head="main")
    assert texts(change, root, "f") == ["2", "1"]
    assert not change.was_at(topic)


def test_a_merge_counts_for_what_it_changes_of_the_branch(repo: Repo, read: Read) -> None:
    (start,) = history(repo, "1")
    topic = repo.commit("topic", {"f": "2"}, parent=start)
    tip = repo.commit("main", {"h": "3"})
    repo.commit("main", {"f": "2"}, parent=(tip, topic))
    assert texts(read(repo, head="main"), start, "f") == ["1"]


@given(dates=st.lists(st.integers(0, 2**40), min_size=1, max_size=6), over=st.booleans())
def test_a_branch_leaves_a_commit_when_it_gets_the_next_and_not_before_it_has_it(
    tmp_path_factory: pytest.TempPathFactory, dates: list[int], over: bool
) -> None:
    repo = Repo(tmp_path_factory.mktemp("dated"))
    commits = [repo.commit("main", {"f": str(n)}, at=date) for n, date in enumerate(dates)]
    topic = repo.commit("topic", {"g": "1"}, parent=commits[0], at=7)
    if over:  # what is merged in has dates that nobody asks for
        commits.append(repo.commit("main", {"g": "1"}, parent=(commits[-1], topic), at=9))
        dates = [*dates, 9]
    with read_change(repo.path, target="main", head="topic") as change:
        left = [change.left_at(commit) for commit in commits]
        assert [change.has_merged(one) for one in (topic, "f" * 40)] == [over, False]
    for number, own in enumerate(dates[:-1]):
        later = [date for date in dates[number + 1 :] if date >= own]
        assert left[number] == (min(later) if later else own)
    assert left[-1] is None


@pytest.mark.parametrize(("limit", "known"), [(1, 2), (2, 3), (3, 4), (9, 4)])
def test_the_way_back_is_bounded_by_commits(
    repo: Repo, read: Read, monkeypatch: pytest.MonkeyPatch, limit: int, known: int
) -> None:
    monkeypatch.setattr(module, "COMMITS_LIMIT", limit)
    commits = history(repo, "1", "2", "3", "4")
    change = read(repo, head="main")
    assert [change.was_at(commit) for commit in reversed(commits)] == [n < known for n in range(4)]


def test_git_is_asked_only_as_far_back_as_somebody_looks(
    repo: Repo, read: Read, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "STEP", 2)
    root, *_, newer, _ = history(repo, *map(str, range(9)))
    change = read(repo, head="main")
    assert len(change.base) == 1
    before = change.process_count
    found = change.steps(["f"], root)
    assert change.process_count == before
    assert next(found).before.keys() == {"f"}
    assert change.process_count == before + 2  # the list of commits, and the first step
    assert texts(change, newer, "f") == ["7"]
    assert change.process_count == before + 2
    assert texts(change, root, "f") == [str(n) for n in reversed(range(8))]
    done = change.process_count
    assert texts(change, root, "f") == [str(n) for n in reversed(range(8))]
    assert change.process_count == done == before + 1 + 4


@settings(max_examples=25, deadline=None)
@given(st.lists(st.dictionaries(st.sampled_from("abc"), st.sampled_from("01") | st.none())))
def test_steps_change_nothing(
    tmp_path_factory: pytest.TempPathFactory, commits: Sequence[Mapping[str, str | None]]
) -> None:
    repo = Repo(tmp_path_factory.mktemp("repo"))
    files: dict[str, str] = {}
    states: list[Mapping[str, str]] = []
    made: list[str] = []
    for commit in [{}, *commits]:
        changes: dict[str, Content] = {
            path: text for path, text in commit.items() if text is not None or path in files
        }
        files = {p: t for p, t in (files | commit).items() if t is not None}
        states.append(files)
        made.append(repo.commit("main", changes))
    with pytest.MonkeyPatch.context() as patch, read_revision(repo.path) as change:
        patch.setattr(module, "STEP", 3)
        for path in "abc":
            values = [state.get(path) for state in states]
            moved = [old for old, new in pairwise(values) if old != new]
            found = texts(change, made[0], path)
            assert set(found) == set(moved)
            assert found[:1] == moved[-1:]
            for number, since in enumerate(made):
                last = together(change, since, path)[-1]
                assert last == (states[number].get(path),)


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
    _, second, third, _ = history(repo, "1", "2", "3", "4")
    git("clone", "--quiet", "--depth=2", f"file://{repo.path}", tmp_path / "clone")
    change = read(tmp_path / "clone", head="main")
    assert texts(change, third, "f") == ["3"]
    assert change.was_at(third)
    if told:
        assert not change.was_at(second)
    else:
        with pytest.raises(PastUnavailable, match=r"cut off at [0-9a-f]{12}.*fetch --unshallow"):
            change.was_at(second)


def test_paths_are_told_as_they_stood_together(repo: Repo, read: Read) -> None:
    root = repo.commit("main", {"f": "1", "g": "1"})
    repo.commit("main", {"f": "2", "h": "1"})
    repo.commit("main", {"g": "2"})
    repo.commit("main", {"f": "3", "g": "3", "h": None})
    wanted = [("3", "3", None), ("2", "2", "1"), ("2", "1", "1"), ("1", "1", None)]
    assert together(read(repo, head="main"), root, "f", "g", "h") == wanted
    assert together(read(repo, head="main"), root, "g") == [("3",), ("2",), ("1",)]


def test_a_path_is_no_pattern_and_no_folder(repo: Repo, read: Read) -> None:
    root = repo.commit("main", {"f": "1", "*": "1", "d/x": "1", ":(glob)f": "1", "-f": "1"})
    repo.commit("main", {"f": "2", "d/x": "2"})
    repo.commit("main", {"*": "2", ":(glob)f": "2", "-f": "2"})
    change = read(repo, head="main")
    for path in ("*", ":(glob)f", "-f"):
        assert together(change, root, path) == [("2",), ("1",)]
    assert together(change, root, "d") == [(None,)]


def test_what_else_a_commit_brings_is_not_asked_for(
    repo: Repo, read: Read, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "STEP_BYTES", 1000)
    root = repo.commit("main", {"f": "1"})
    repo.commit("main", {f"vendor/{n}": "x" for n in range(100)} | {"f": "2"})
    repo.commit("main", {f"vendor/{n}": None for n in range(100)})
    assert texts(read(repo, head="main"), root, "f") == ["1"]


def test_paths_are_asked_for_in_portions_and_each_once(
    repo: Repo, read: Read, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "PATHS_BYTES", 2)
    names = "abcde"
    root = repo.commit("main", dict.fromkeys(names, "1"))
    repo.commit("main", dict.fromkeys(names, "2"))
    change = read(repo, head="main")
    assert together(change, root, *names) == [("2",) * 5, ("1",) * 5]
    done = change.process_count
    assert together(change, root, "a", "e") == [("2", "2"), ("1", "1")]
    assert change.process_count == done


def test_too_many_changes_are_a_missing_fact_however_often_one_asks(
    repo: Repo, read: Read, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "STEP_BYTES", 100)
    root, *_ = history(repo, "1", "2", "3", "4")
    change = read(repo, head="main")
    for _ in range(2):
        with pytest.raises(FactUnavailable, match="100 bytes"):
            texts(change, root, "f")


def test_a_commit_left_the_branch_at_the_newest_of_its_own_that_it_descends_from(
    repo: Repo, read: Read
) -> None:
    root, start = history(repo, "1", "2")
    side = repo.commit("side", {"g": "1"}, parent=start)
    merged = repo.commit("main", {"g": "1"}, parent=(start, side))
    tip = repo.commit("main", {"f": "3"})
    early = repo.commit("early", {"h": "1"}, parent=root)
    # Where two lines part may be a commit that was merged into the branch, and never was it.
    repo.commit("stacked", {"h": "2"}, parent=side)
    repo.commit("caught-up", {"h": "3"}, parent=(early, merged))
    wanted = {"early": root, "stacked": start, "caught-up": merged, "main": tip, root: root}
    for head, commit in wanted.items():
        assert read(repo, head=head).branch_point == commit
    stacked = read(repo, head="stacked")
    assert stacked.merge_base == side
    assert [entry.path for entry in stacked.departed] == ["g", "h"]
    assert [entry.path for entry in read(repo, head="early").departed] == ["h"]


COMMITS = st.lists(st.tuples(st.integers(1, 6), st.integers(0, 6), st.integers(0, 9)), max_size=20)
"""Of each commit after the first: how far back its parents are (0 for no second), and its date."""


@settings(max_examples=60, deadline=None)
@given(COMMITS, st.integers(0, 20), st.integers(0, 20))
def test_the_start_is_never_newer_than_it_is_whatever_dates_say(
    tmp_path_factory: pytest.TempPathFactory,
    commits: Sequence[tuple[int, int, int]],
    tip: int,
    head: int,
) -> None:
    repo = Repo(tmp_path_factory.mktemp("repo"))
    tree = repo.tree([])
    parents: list[list[int]] = [[]]
    for n, (first, second, _) in enumerate(commits, 1):
        parents.append([*dict.fromkeys(max(0, n - back) for back in (first, second) if back)])
    made: list[str] = []
    for number, (above, date) in enumerate(
        zip(parents, [9, *(c[2] for c in commits)], strict=True)
    ):
        lines = [f"tree {tree}", *(f"parent {made[parent]}" for parent in above)]
        who = f"a <a@example.com> {1_700_000_000 + 86400 * date} +0000"
        text = "\n".join([*lines, f"author {who}", f"committer {who}", "", str(number)])
        made.append(repo.write("commit", text.encode()))
    tip, head = min(tip, len(commits)), min(head, len(commits))
    below = {head}
    for number in range(head, -1, -1):
        if number in below:
            below.update(parents[number])
    line = [tip]
    while parents[line[-1]]:
        line.append(parents[line[-1]][0])
    with read_change(repo.path, policy_from=made[tip], head=made[head]) as change:
        found = line.index(made.index(change.branch_point))
    true = next(place for place, commit in enumerate(line) if commit in below)
    assert found >= true
    if all(commits[n - 1][2] >= 9 for n in range(1, len(made))):
        assert found == true


def test_a_commit_too_far_behind_has_no_start(
    repo: Repo, read: Read, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "COMMITS_LIMIT", 2)
    root, second, *_ = history(repo, "1", "2", "3", "4")
    assert read(repo, head=second).branch_point == second
    with pytest.raises(PastUnavailable, match="none of the branch's last 2 commits"):
        _ = read(repo, head=root).branch_point
