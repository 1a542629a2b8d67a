# SPDX-License-Identifier: Apache-2.0
from pathlib import Path

import pytest

from fasttrack.change import patch as patch_module
from fasttrack.change.change import Change
from fasttrack.errors import InputError
from fasttrack.testing import Repo, Symlink

from .conftest import Read, RunGit

LINES = "".join(f"line {n}\n" for n in range(1, 41))


@pytest.fixture
def start(repo: Repo) -> str:
    """A commit on main with one text file and one binary file."""
    return repo.commit("main", {"f": LINES, "bin": b"\0\1\2"})


def _hunk(at: int, *, path: str = "f", line: int = 20) -> str:
    """A patch that changes one line, with three lines of context, said to be at line `at`."""
    before = "".join(f" line {n}\n" for n in range(line - 3, line))
    after = "".join(f" line {n}\n" for n in range(line + 1, line + 4))
    return (
        f"diff --git a/{path} b/{path}\n--- a/{path}\n+++ b/{path}\n"
        f"@@ -{at},7 +{at},7 @@\n{before}-line {line}\n+changed\n{after}"
    )


def _read(read: Read, repo: Repo, tmp_path: Path, text: str | bytes) -> Change:
    patch = tmp_path / "change.patch"
    patch.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read(repo, patch=patch, onto="main")


def test_a_patch_is_judged_as_a_commit_on_top_of_onto(
    start: str, repo: Repo, read: Read, tmp_path: Path
) -> None:
    change = _read(read, repo, tmp_path, _hunk(17))
    assert (change.merge_base, change.base_tip) == (start, start)
    (entry,) = change.entries
    assert [tuple(line) for line in change.added_lines(entry)] == [(20, "changed")]
    assert change.judged_tree == change.head_tree


def test_the_same_patch_gives_the_same_ids(
    start: str, repo: Repo, read: Read, tmp_path: Path
) -> None:
    one, two = (_read(read, repo, tmp_path, _hunk(17)) for _ in range(2))
    assert (one.head, one.head_tree) == (two.head, two.head_tree)
    assert one.head != start


def test_a_patch_of_a_branch_leaves_the_tree_of_that_branch(
    start: str, repo: Repo, read: Read, git: RunGit, tmp_path: Path
) -> None:
    files = {"f": None, "g é": LINES + "more\n", "l": Symlink("x"), "no-end": "a\nb"}
    repo.commit("topic", files, parent=start)
    git("format-patch", f"--output={tmp_path}/p", "--no-renames", "main..topic", cwd=repo.path)
    change = _read(read, repo, tmp_path, (tmp_path / "p").read_bytes())
    assert change.head_tree == git("rev-parse", "topic^{tree}", cwd=repo.path)
    assert change.change_digest(lambda _: False) == read(repo, head="topic").change_digest(
        lambda _: False
    )


def test_a_patch_onto_an_older_commit_is_merged_with_the_tip(
    start: str, repo: Repo, read: Read, tmp_path: Path
) -> None:
    repo.commit("main", {"f": LINES + "more\n"})
    patch = tmp_path / "p"
    patch.write_text(_hunk(17))
    change = read(repo, patch=patch, onto=start)
    side = change.judged.get("f")
    assert side is not None
    assert change.text(side) == LINES.replace("line 20\n", "changed\n") + "more\n"


@pytest.mark.parametrize(("at", "offset"), [(16, "offset 1 line"), (25, "offset -8 lines")])
def test_a_hunk_that_fits_only_elsewhere_is_named(
    at: int, offset: str, start: str, repo: Repo, read: Read, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=rf"hunk 1 of f fits only at line 17 \({offset}\)"):
        _read(read, repo, tmp_path, _hunk(at))


def test_a_hunk_elsewhere_in_a_file_with_a_strange_name_is_named(
    repo: Repo, read: Read, tmp_path: Path
) -> None:
    repo.commit("main", {"a b...": LINES})
    with pytest.raises(InputError, match=r"hunk 1 of a b\.\.\. fits only at line 17"):
        _read(read, repo, tmp_path, _hunk(16, path="a b..."))


def test_a_file_name_can_not_hide_a_moved_hunk(repo: Repo, read: Read, tmp_path: Path) -> None:
    name = "x\nChecking patch y..."
    repo.commit("main", {name: LINES})
    quoted = '"a/x\\nChecking patch y..."'
    text = _hunk(16).replace("a/f", quoted).replace("b/f", quoted.replace("a/", "b/"))
    with pytest.raises(InputError, match="fits only at line 17"):
        _read(read, repo, tmp_path, text)


def test_a_patch_that_does_not_apply_names_path_and_line(
    start: str, repo: Repo, read: Read, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=r"patch failed: f:17.*--onto"):
        _read(read, repo, tmp_path, _hunk(17).replace("-line 20", "-other"))


def test_context_that_differs_is_not_ignored(
    start: str, repo: Repo, read: Read, tmp_path: Path
) -> None:
    (tmp_path / "home" / ".gitconfig").write_text(
        "[apply]\n\tignoreWhitespace = change\n\twhitespace = fix\n"
    )
    with pytest.raises(InputError, match="patch failed: f:17"):
        _read(read, repo, tmp_path, _hunk(17).replace(" line 18", " line  18"))


def test_white_space_that_the_patch_adds_is_kept(
    start: str, repo: Repo, read: Read, tmp_path: Path
) -> None:
    (tmp_path / "home" / ".gitconfig").write_text("[apply]\n\twhitespace = fix\n")
    change = _read(read, repo, tmp_path, _hunk(17).replace("+changed\n", "+changed \t \r\n"))
    assert change.added_lines(change.entries[0])[0].text == "changed \t "


@pytest.mark.parametrize("full", [True, False])
def test_a_binary_patch_is_refused(
    full: bool, start: str, repo: Repo, read: Read, git: RunGit, tmp_path: Path
) -> None:
    repo.commit("topic", {"bin": b"\0\1\2\3"}, parent=start)
    options = ["--binary"] if full else []
    text = git("diff", *options, "main", "topic", cwd=repo.path) + "\n\n"
    with pytest.raises(InputError, match=r"binary patch.*bin"):
        _read(read, repo, tmp_path, text)


@pytest.mark.parametrize("path", ["../up", ".git/config", "a/../../b"])
def test_a_patch_outside_the_tree_is_refused(
    path: str, start: str, repo: Repo, read: Read, tmp_path: Path
) -> None:
    text = f"--- /dev/null\n+++ b/{path}\n@@ -0,0 +1 @@\n+x\n"
    with pytest.raises(InputError, match="invalid path"):
        _read(read, repo, tmp_path, text)


@pytest.mark.parametrize("text", ["", "no patch at all\n", "\0\1\2"])
def test_a_file_without_a_patch_is_refused(
    text: str, start: str, repo: Repo, read: Read, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match="No valid patches"):
        _read(read, repo, tmp_path, text)


def test_a_patch_file_that_is_not_there_is_bad_input(
    start: str, repo: Repo, read: Read, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match="No such file"):
        read(repo, patch=tmp_path / "gone", onto="main")
    with pytest.raises(InputError, match="Is a directory"):
        read(repo, patch=tmp_path, onto="main")


def test_the_size_of_a_patch_file_is_bounded(
    start: str, repo: Repo, read: Read, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(patch_module, "PATCH_LIMIT", len(_hunk(17)))
    assert len(_read(read, repo, tmp_path, _hunk(17)).entries) == 1
    with pytest.raises(InputError, match="at most"):
        _read(read, repo, tmp_path, _hunk(17) + "\n")


def test_the_index_of_the_checkout_is_neither_read_nor_written(
    start: str, repo: Repo, read: Read, git: RunGit, tmp_path: Path
) -> None:
    git("reset", "--hard", cwd=repo.path)
    (repo.path / "f").write_text("other\n")
    git("add", "f", cwd=repo.path)
    index = (repo.git_dir / "index").read_bytes()
    assert len(_read(read, repo, tmp_path, _hunk(17)).entries) == 1
    assert (repo.git_dir / "index").read_bytes() == index
