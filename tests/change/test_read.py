# SPDX-License-Identifier: Apache-2.0
import hashlib
from pathlib import Path

import pytest

from fasttrack.change.change import Change
from fasttrack.errors import FactUnavailable, InputError
from fasttrack.testing import Content, File, Gitlink, Repo, Symlink

from .conftest import Read, RunGit


def _paths(change: Change) -> list[str]:
    return [entry.path for entry in change.entries]


def _branched(repo: Repo) -> tuple[str, str, str]:
    """Ids of merge base, moved tip of main, and topic."""
    start = repo.commit("main", {"a.py": "a\n", "b.py": "b\n"})
    topic = repo.commit("topic", {"a.py": "a2\n", "new.py": "n\n"}, parent=start)
    tip = repo.commit("main", {"b.py": "b2\n"})
    return start, tip, topic


def test_the_change_starts_at_the_merge_base_not_at_the_tip(repo: Repo, read: Read) -> None:
    start, tip, topic = _branched(repo)
    change = read(repo, head="topic")
    assert (change.merge_base, change.base_tip, change.head) == (start, tip, topic)
    assert _paths(change) == ["a.py", "new.py"]
    assert change.merge_bases == (start,)


def test_added_modified_and_deleted_paths_tell_both_sides(repo: Repo, read: Read) -> None:
    start = repo.commit("main", {"gone": "1", "kept": "2", "mode": "3"})
    repo.commit(
        "topic",
        {"gone": None, "kept": "22", "mode": File("3", "100755"), "new": "4"},
        parent=start,
    )
    change = read(repo, head="topic")
    kinds = {e.path: (e.added, e.deleted, e.modified, e.mode_changed) for e in change.entries}
    assert kinds == {
        "gone": (False, True, False, False),
        "kept": (False, False, True, False),
        "mode": (False, False, True, True),
        "new": (True, False, False, False),
    }
    mode = change.entry("mode")
    assert mode is not None
    assert (mode.old.mode, mode.new.mode, mode.old.oid) == ("100644", "100755", mode.new.oid)
    assert change.entry("untouched") is None


def test_a_rename_is_seen_on_both_sides(repo: Repo, read: Read) -> None:
    start = repo.commit("main", {"old/name.py": "same\n" * 50})
    repo.commit("topic", {"old/name.py": None, "new/name.py": "same\n" * 50}, parent=start)
    change = read(repo, head="topic")
    assert [(e.path, e.added, e.deleted) for e in change.entries] == [
        ("new/name.py", True, False),
        ("old/name.py", False, True),
    ]


def test_symlinks_and_submodules_are_told_by_their_modes(repo: Repo, read: Read) -> None:
    start = repo.commit("main", {"a": "x"})
    files: dict[str, Content] = {
        "link": Symlink("../etc"),
        "sub": Gitlink("1" * 40),
        "a": Symlink("x"),
    }
    repo.commit("topic", files, parent=start)
    change = read(repo, head="topic")
    found = {e.path: (e.is_symlink, e.is_gitlink) for e in change.entries}
    assert found == {"a": (True, False), "link": (True, False), "sub": (False, True)}
    link, sub = change.entry("link"), change.entry("sub")
    assert link is not None
    assert sub is not None
    assert change.blob(link.new) == b"../etc"
    for read_it in (change.blob, change.size, change.text):
        with pytest.raises(FactUnavailable, match="submodule"):
            read_it(sub.new)


def test_the_target_is_origin_head_before_main(repo: Repo, read: Read) -> None:
    start, tip, _ = _branched(repo)
    assert read(repo, head="topic").base_tip == tip
    repo.ref("refs/remotes/origin/trunk", start)
    repo.ref("refs/remotes/origin/HEAD", "ref: refs/remotes/origin/trunk")
    assert read(repo, head="topic").base_tip == start


def test_a_tag_named_main_does_not_stand_in_for_the_target_branch(repo: Repo, read: Read) -> None:
    start, tip, _ = _branched(repo)
    repo.ref("refs/tags/main", start)
    assert read(repo, head="topic").base_tip == tip


def test_without_a_target_the_user_is_asked_for_one(tmp_path: Path, read: Read) -> None:
    repo = Repo(tmp_path / "r", default_branch="trunk")
    repo.commit("trunk", {"a": "1"})
    with pytest.raises(InputError, match="neither origin/HEAD nor a branch `main`"):
        read(repo)
    assert read(repo, target="trunk").entries == ()


def test_a_named_target_that_is_not_there_is_bad_input(repo: Repo, read: Read) -> None:
    _branched(repo)
    with pytest.raises(InputError, match=r"no commit release.*git fetch origin release"):
        read(repo, head="topic", target="release")


@pytest.mark.parametrize("option", ["base", "head", "policy_from"])
def test_any_revision_that_is_not_there_is_bad_input(option: str, repo: Repo, read: Read) -> None:
    _branched(repo)
    with pytest.raises(InputError, match="no commit gone"):
        read(repo, **{option: "gone"})


def test_base_moves_the_start_and_leaves_the_tip(repo: Repo, read: Read) -> None:
    _, tip, topic = _branched(repo)
    second = repo.commit("topic", {"more.py": "m\n"})
    change = read(repo, head="topic", base=topic)
    assert (change.merge_base, change.base_tip, change.head) == (topic, tip, second)
    assert _paths(change) == ["more.py"]


def test_a_base_that_is_no_ancestor_means_its_merge_base(repo: Repo, read: Read) -> None:
    start, _, _ = _branched(repo)
    assert read(repo, head="topic", base="main").merge_base == start


def test_policy_from_moves_the_tip_and_leaves_the_start(repo: Repo, read: Read) -> None:
    start, _, _ = _branched(repo)
    stricter = repo.commit("strict", {"policy": "strict"}, parent=start)
    change = read(repo, head="topic", policy_from="strict")
    assert (change.merge_base, change.base_tip) == (start, stricter)
    assert "policy" in change.base
    assert sorted(change.judged) == ["a.py", "b.py", "new.py", "policy"]


def test_a_branch_from_before_a_policy_change_is_seen_with_the_newer_policy(
    repo: Repo, read: Read
) -> None:
    start = repo.commit("main", {"policy": "weak"})
    repo.commit("topic", {"a": "1"}, parent=start)
    repo.commit("main", {"policy": "strict"})
    change = read(repo, head="topic")
    policy = change.base.get("policy")
    assert policy is not None
    assert change.text(policy) == "strict"


def test_head_is_what_is_checked_out(repo: Repo, read: Read) -> None:
    _, _, topic = _branched(repo)
    repo.checkout("topic")
    assert read(repo).head == topic


def test_a_detached_head_is_read(repo: Repo, read: Read) -> None:
    _, _, topic = _branched(repo)
    repo.ref("HEAD", topic)
    assert read(repo).head == topic


def test_an_unborn_head_is_bad_input(repo: Repo, read: Read) -> None:
    with pytest.raises(InputError, match="no commit HEAD"):
        read(repo)


@pytest.mark.parametrize("bare", [True, False])
@pytest.mark.parametrize("object_format", ["sha1", "sha256"])
def test_both_object_formats_are_read_bare_or_not(
    object_format: str, bare: bool, tmp_path: Path, read: Read
) -> None:
    repo = Repo(tmp_path / "r", object_format=object_format, bare=bare)
    start, tip, topic = _branched(repo)
    change = read(repo, head="topic")
    assert (change.merge_base, change.base_tip, change.head) == (start, tip, topic)
    assert len(change.head) == {"sha1": 40, "sha256": 64}[object_format]
    assert sorted(change.judged) == ["a.py", "b.py", "new.py"]
    entry = change.entry("a.py")
    assert entry is not None
    assert change.text(entry.new) == "a2\n"


def test_a_worktree_and_a_subdirectory_are_read(
    repo: Repo, read: Read, git: RunGit, tmp_path: Path
) -> None:
    _, _, topic = _branched(repo)
    git("worktree", "add", tmp_path / "tree", "topic", cwd=repo.path)
    assert read(tmp_path / "tree").head == topic
    folder = tmp_path / "tree" / "deep" / "er"
    folder.mkdir(parents=True)
    assert read(folder).head == topic


def test_a_clone_that_borrows_objects_is_read(
    repo: Repo, read: Read, git: RunGit, tmp_path: Path
) -> None:
    _, _, topic = _branched(repo)
    git("clone", "--shared", "--bare", repo.path, tmp_path / "borrower")
    assert read(tmp_path / "borrower", head="topic", target="main").head == topic


def test_a_shallow_clone_that_ends_before_the_merge_base_names_the_command(
    repo: Repo, read: Read, git: RunGit, tmp_path: Path
) -> None:
    _branched(repo)
    clone = tmp_path / "clone"
    git("clone", "--depth=1", "--no-single-branch", f"file://{repo.path}", clone)
    with pytest.raises(InputError, match=r"shallow clone.*git fetch --unshallow.*--deepen"):
        read(clone, head="origin/topic")
    git("fetch", "--deepen=1", cwd=clone)
    assert _paths(read(clone, head="origin/topic")) == ["a.py", "new.py"]


def test_a_shallow_clone_that_holds_the_merge_base_is_read(
    repo: Repo, read: Read, git: RunGit, tmp_path: Path
) -> None:
    repo.commit("main", {"long": "ago"})
    start, tip, _ = _branched(repo)
    clone = tmp_path / "clone"
    git("clone", "--depth=2", "--no-single-branch", f"file://{repo.path}", clone)
    change = read(clone, head="origin/topic")
    assert (change.merge_base, change.base_tip) == (start, tip)
    assert sorted(change.judged) == ["a.py", "b.py", "long", "new.py"]


def test_a_shallow_cut_that_may_hide_a_better_merge_base_is_refused(
    repo: Repo, read: Read, git: RunGit, tmp_path: Path
) -> None:
    root = repo.commit("main", {"a": "1"})
    shared = repo.commit("side", {"side": "1"}, parent=root)
    repo.commit("main", {"side": "1", "m": "1"}, parent=[root, shared])
    repo.commit("topic", {"side": "1", "t": "1"}, parent=[root, shared])
    clone = tmp_path / "clone"
    git("clone", "--no-single-branch", f"file://{repo.path}", clone)
    assert read(clone, head="origin/topic").merge_bases == (shared,)
    (clone / ".git" / "shallow").write_text(shared + "\n")
    assert read(clone, head="origin/topic").merge_bases == tuple(sorted([root, shared]))
    topic = git("rev-parse", "origin/topic", cwd=clone)
    (clone / ".git" / "shallow").write_text(topic + "\n")
    with pytest.raises(InputError, match="ends at"):
        read(clone, head="origin/topic")


def test_unrelated_histories_are_bad_input(repo: Repo, read: Read) -> None:
    repo.commit("main", {"a": "1"})
    repo.commit("other", {"a": "1"}, parent=(), message="other root\n")
    with pytest.raises(InputError, match="histories without a common commit"):
        read(repo, head="other")


def test_of_several_merge_bases_the_smallest_id_is_taken_and_all_are_told(
    repo: Repo, read: Read
) -> None:
    root = repo.commit("main", {"r": "0"})
    ones = repo.commit("one", {"one": "1"}, parent=root)
    twos = repo.commit("two", {"two": "2"}, parent=root)
    repo.commit("main", {"two": "2", "main": "m"}, parent=[ones, twos])
    repo.commit("topic", {"one": "1", "topic": "t"}, parent=[twos, ones])
    change = read(repo, head="topic")
    assert change.merge_bases == tuple(sorted([ones, twos]))
    assert change.merge_base == min(ones, twos)
    assert sorted(change.judged) == ["main", "one", "r", "topic", "two"]


def test_replacement_refs_of_the_user_are_ignored(repo: Repo, read: Read) -> None:
    _, _, topic = _branched(repo)
    harmless = repo.commit("harmless", {"a.py": "a\n"}, parent=())
    repo.ref(f"refs/replace/{topic}", harmless)
    evil = repo.write("blob", b"replaced\n")
    entry = read(repo, head=topic).entry("new.py")
    assert entry is not None
    repo.ref(f"refs/replace/{entry.new.oid}", evil)
    change = read(repo, head=topic)
    assert _paths(change) == ["a.py", "new.py"]
    assert change.blob(entry.new) == b"n\n"


def test_grafts_of_the_user_are_ignored(repo: Repo, read: Read) -> None:
    start, tip, topic = _branched(repo)
    grafts = repo.git_dir / "info" / "grafts"
    grafts.parent.mkdir()
    grafts.write_text(f"{topic} {tip}\n")
    assert read(repo, head="topic").merge_base == start


def test_the_diff_does_not_depend_on_the_users_configuration(
    repo: Repo, read: Read, tmp_path: Path
) -> None:
    start = repo.commit("main", {"old": "same\n" * 50, "sub": Gitlink("1" * 40)})
    files = {"old": None, "new": "same\n" * 50, "sub": Gitlink("2" * 40)}
    repo.commit("topic", files, parent=start)
    before = read(repo, head="topic").entries
    (tmp_path / "home" / ".gitconfig").write_text(
        "[diff]\n\trenames = copies\n\tignoreSubmodules = all\n\torderFile = /dev/null\n"
        "\tnoprefix = true\n[core]\n\tquotePath = true\n\tabbrev = 7\n"
    )
    assert read(repo, head="topic").entries == before
    assert [entry.path for entry in before] == ["new", "old", "sub"]


def test_blobs_that_a_partial_clone_left_out_are_told_and_never_fetched(
    repo: Repo, read: Read, git: RunGit, tmp_path: Path
) -> None:
    _branched(repo)
    git("config", "uploadpack.allowFilter", "true", cwd=repo.path)
    clone = tmp_path / "clone"
    options = ["--no-checkout", "--filter=blob:none", f"file://{repo.path}"]
    git("clone", *options, clone)
    before = sorted((clone / ".git" / "objects").rglob("*"))
    change = read(clone, head="origin/topic")
    assert _paths(change) == ["a.py", "new.py"]
    for entry in change.entries:
        for fact in (change.added_lines, change.line_counts):
            with pytest.raises(FactUnavailable, match=r"not in this clone.*git fetch --refetch"):
                fact(entry)
    assert sorted((clone / ".git" / "objects").rglob("*")) == before


def test_trees_that_a_partial_clone_left_out_are_bad_input(
    repo: Repo, read: Read, git: RunGit, tmp_path: Path
) -> None:
    start = repo.commit("main", {"d/a.py": "a\n"})
    repo.commit("topic", {"d/a.py": "a2\n"}, parent=start)
    git("config", "uploadpack.allowFilter", "true", cwd=repo.path)
    clone = tmp_path / "clone"
    git("clone", "--no-checkout", "--filter=tree:0", f"file://{repo.path}", clone)
    with pytest.raises(InputError, match="git fetch --refetch --no-filter"):
        read(clone, head="origin/topic")


def _state_of(folder: Path) -> dict[str, tuple[int, str]]:
    return {
        str(file.relative_to(folder)): (
            file.stat().st_mtime_ns,
            hashlib.sha256(file.read_bytes()).hexdigest() if file.is_file() else "",
        )
        for file in folder.rglob("*")
    }


def test_the_users_repository_is_only_read(repo: Repo, read: Read, tmp_path: Path) -> None:
    _branched(repo)
    patch = tmp_path / "p"
    patch.write_text("--- a/b.py\n+++ b/b.py\n@@ -1 +1 @@\n-b2\n+b3\n")
    before = _state_of(repo.path)
    for change in (read(repo, head="topic"), read(repo, patch=patch, onto="main")):
        assert len(change.judged) + len(change.base) + len(change.head_files) > 3
        for entry in change.entries:
            assert change.added_lines(entry)
    assert _state_of(repo.path) == before


def test_a_change_of_200_files_takes_at_most_ten_processes(repo: Repo, read: Read) -> None:
    start = repo.commit("main", {f"d{n % 7}/f{n}.py": f"{n}\n" for n in range(300)})
    repo.commit("topic", {f"d{n % 7}/f{n}.py": f"{n}\nmore\n" for n in range(200)}, parent=start)
    repo.commit("main", {"other": "x"})
    change = read(repo, head="topic")
    assert sum(change.line_counts(entry)[0] for entry in change.entries) == 200
    assert sum(len(change.added_lines(entry)) for entry in change.entries) == 200
    assert len(change.judged) == 301
    assert len(change.base) == 301
    assert len(change.head_files) == 300
    assert change.process_count <= 10


def test_patch_and_onto_belong_together(repo: Repo, read: Read, tmp_path: Path) -> None:
    _branched(repo)
    for options in ({"patch": tmp_path / "p"}, {"onto": "main"}):
        with pytest.raises(InputError, match="--patch and --onto apart"):
            read(repo, **options)


def test_after_an_error_no_temporary_files_are_left(
    repo: Repo, read: Read, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _branched(repo)
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    with pytest.raises(InputError):
        read(repo, head="gone")
    assert list(scratch.iterdir()) == []
    change = read(repo, head="topic")
    assert list(scratch.iterdir()) != []
    change.close()
    assert list(scratch.iterdir()) == []
