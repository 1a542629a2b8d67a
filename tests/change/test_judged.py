# SPDX-License-Identifier: Apache-2.0
from pathlib import Path

import pytest

from fasttrack.change import judged as judged_module
from fasttrack.change.change import Change
from fasttrack.errors import FactUnavailable
from fasttrack.testing import Content, Repo

from .conftest import Read, RunGit

LINES = "".join(f"line {n}\n" for n in range(40))


def _merged(repo: Repo, read: Read, ours: dict[str, Content], theirs: dict[str, Content]) -> Change:
    start = repo.commit("main", {"f": LINES, "dir/one": LINES, "dir/two": LINES + "2\n"})
    repo.commit("topic", ours, parent=start)
    repo.commit("main", theirs)
    return read(repo, head="topic")


def _text(change: Change, path: str) -> str:
    side = change.judged.get(path)
    assert side is not None
    return change.text(side)


def test_changes_of_both_sides_meet_in_the_judged_tree(repo: Repo, read: Read) -> None:
    change = _merged(repo, read, {"f": "first\n" + LINES}, {"f": LINES + "last\n", "g": "g"})
    assert _text(change, "f") == "first\n" + LINES + "last\n"
    assert sorted(change.judged) == ["dir/one", "dir/two", "f", "g"]
    assert change.conflicts == ()


def test_a_conflict_names_its_paths_and_has_no_judged_tree(repo: Repo, read: Read) -> None:
    change = _merged(
        repo, read, {"f": "ours\n", "new\n\u00e9": "1"}, {"f": "x\n", "new\n\u00e9": "2"}
    )
    assert change.judged_tree is None
    assert change.conflicts == ("f", "new\n\u00e9")
    with pytest.raises(FactUnavailable, match="rebase"):
        change.judged.get("f")


def test_a_rename_against_an_edit_merges_and_two_renames_conflict(
    repo: Repo, read: Read, tmp_path: Path
) -> None:
    change = _merged(repo, read, {"f": None, "moved": LINES}, {"f": LINES + "last\n"})
    assert _text(change, "moved") == LINES + "last\n"
    other = Repo(tmp_path / "other")
    change = _merged(other, read, {"f": None, "here": LINES}, {"f": None, "there": LINES})
    assert change.judged_tree is None
    assert change.conflicts == ("f", "here", "there")


def test_a_moved_folder_does_not_drag_new_files_along(repo: Repo, read: Read) -> None:
    moved: dict[str, Content] = {"dir/one": None, "dir/two": None}
    moved |= {"else/one": LINES, "else/two": LINES + "2\n"}
    change = _merged(repo, read, {"dir/new": "n"}, moved)
    assert "dir/new" in change.judged
    assert "else/new" not in change.judged


@pytest.mark.parametrize("place", ["base", "head", "info", "home", "checkout"])
def test_merge_attributes_are_not_honoured_wherever_they_stand(
    place: str, repo: Repo, read: Read, tmp_path: Path
) -> None:
    union = "* merge=union\n"
    ours: dict[str, Content] = {"f": "ours\n"}
    theirs: dict[str, Content] = {"f": "theirs\n"}
    (theirs if place == "base" else ours if place == "head" else {})[".gitattributes"] = union
    if place == "info":
        (repo.git_dir / "info").mkdir()
        (repo.git_dir / "info" / "attributes").write_text(union)
    if place == "home":
        (tmp_path / "home" / ".config" / "git").mkdir(parents=True)
        (tmp_path / "home" / ".config" / "git" / "attributes").write_text(union)
    if place == "checkout":
        (repo.path / ".gitattributes").write_text(union)
    assert _merged(repo, read, ours, theirs).conflicts == ("f",)


def test_merge_drivers_and_settings_of_the_user_are_not_honoured(
    repo: Repo, read: Read, tmp_path: Path
) -> None:
    (tmp_path / "home" / ".gitconfig").write_text(
        "[merge]\n\tdefault = union\n\tdirectoryRenames = true\n\trenames = false\n"
        f'[merge "union"]\n\tdriver = touch {tmp_path}/ran\n[attr]\n\ttree = HEAD\n'
    )
    change = _merged(repo, read, {"f": "ours\n"}, {"f": "theirs\n"})
    assert change.conflicts == ("f",)
    assert not (tmp_path / "ran").exists()


def test_in_a_merge_group_the_head_is_judged_as_it_is(repo: Repo, read: Read) -> None:
    start = repo.commit("main", {"f": LINES})
    topic = repo.commit("topic", {"f": "1"}, parent=start)
    group = repo.commit("group", {"g": "1"}, parent=[start, topic])
    change = read(repo, head="group")
    count = change.process_count
    assert change.judged_tree == change.head_tree
    assert change.process_count == count
    assert change.head == group


def test_a_head_that_is_on_the_target_already_leaves_the_target(repo: Repo, read: Read) -> None:
    start = repo.commit("main", {"f": "1"})
    repo.commit("main", {"f": "2"})
    change = read(repo, head=start)
    assert change.entries == ()
    assert change.judged_tree == change.base_tree


def test_the_judged_tree_is_what_git_merge_commits(
    repo: Repo, read: Read, git: RunGit, tmp_path: Path
) -> None:
    change = _merged(repo, read, {"f": "first\n" + LINES, "n": "n"}, {"f": LINES + "last\n"})
    git("clone", repo.path, tmp_path / "clone")
    git("merge", "origin/topic", cwd=tmp_path / "clone")
    assert git("rev-parse", "HEAD^{tree}", cwd=tmp_path / "clone") == change.judged_tree


def test_a_tip_without_common_history_has_no_judged_tree(repo: Repo, read: Read) -> None:
    start = repo.commit("main", {"f": "1"})
    repo.commit("topic", {"f": "2"}, parent=start)
    repo.commit("policy", {"p": "1"}, parent=())
    change = read(repo, head="topic", base="main", policy_from="policy")
    assert change.entries[0].path == "f"
    with pytest.raises(FactUnavailable, match="share no history"):
        change.judged.get("f")


def test_a_blob_too_large_to_merge_is_not_merged(
    repo: Repo, read: Read, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(judged_module, "MERGE_BLOB_LIMIT", 1000)
    fits = _merged(repo, read, {"big": b"x" * 1000}, {"g": "1"})
    assert "big" in fits.judged
    repo.commit("topic", {"big": b"x" * 1001})
    with pytest.raises(FactUnavailable, match="1,001 bytes"):
        read(repo, head="topic").judged.get("big")
