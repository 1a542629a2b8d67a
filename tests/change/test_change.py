# SPDX-License-Identifier: Apache-2.0
import hashlib
from pathlib import Path

import pytest

from fasttrack.change.change import Change
from fasttrack.change.tree import Tree
from fasttrack.errors import FactUnavailable
from fasttrack.testing import Content, File, Repo

from .conftest import Read


def _digest(change: Change) -> str:
    return change.change_digest(lambda path: path.startswith("evidence/"))


def _topic(read: Read, repo: Repo, name: str, files: dict[str, Content], parent: str) -> str:
    repo.commit(name, files, parent=parent)
    return _digest(read(repo, head=name))


def test_the_digest_survives_a_rebase_that_leaves_the_files_alone(repo: Repo, read: Read) -> None:
    start = repo.commit("main", {"a": "1", "b": "1"})
    moved = repo.commit("main", {"b": "2"})
    on_old = _topic(read, repo, "old", {"a": "2"}, start)
    on_new = _topic(read, repo, "new", {"a": "2"}, moved)
    assert on_old == on_new


def test_the_digest_survives_evidence_and_nothing_else(repo: Repo, read: Read) -> None:
    start = repo.commit("main", {"a": "1", "b": "1"})
    plain = _topic(read, repo, "t0", {"a": "2"}, start)
    assert _topic(read, repo, "t1", {"a": "2", "evidence/x": "e"}, start) == plain
    others: list[dict[str, Content]] = [
        {"a": "3"},
        {"a": File("2", "100755")},
        {"a": None},
        {"a": "2", "b": "2"},
        {"A": "2"},
        {},
    ]
    digests = {_topic(read, repo, f"o{n}", files, start) for n, files in enumerate(others)}
    assert len(digests) == len(others)
    assert plain not in digests


def test_the_digest_is_what_its_description_says(repo: Repo, read: Read) -> None:
    start = repo.commit("main", {"b": "1"})
    repo.commit("topic", {"a\nb": "2", "b": None}, parent=start)
    change = read(repo, head="topic")
    new, old = change.entries[0].new, change.entries[1].old
    text = f"000000 - 100644 {new.oid} a\nb\x00100644 {old.oid} 000000 - b\x00"
    assert _digest(change) == hashlib.sha256(text.encode()).hexdigest()


def test_a_change_that_moves_bytes_between_path_and_id_has_another_digest(
    repo: Repo, read: Read
) -> None:
    start = repo.commit("main", {"x": "1"})
    one = _topic(read, repo, "one", {"a": "1", "b": "1"}, start)
    blob = repo.write("blob", b"1")
    two = _topic(read, repo, "two", {f"a\n000000 - 100644 {blob} b": "1"}, start)
    assert one != two


def test_text_is_utf8_without_nul(repo: Repo, read: Read) -> None:
    repo.commit("main", {"t": "é\r\n", "n": b"a\0b", "l": b"\xe9", "b": b"\xef\xbb\xbfx"})
    change = read(repo)
    sides = {path: change.base.get(path) for path in change.base}
    assert sides["t"] is not None
    assert change.text(sides["t"]) == "é\r\n"
    assert sides["b"] is not None
    assert change.text(sides["b"]) == "\ufeffx"
    for path, reason in (("n", "NUL"), ("l", "not UTF-8 text: byte 0")):
        side = sides[path]
        assert side is not None
        with pytest.raises(FactUnavailable, match=reason):
            change.text(side)


def test_a_blob_over_the_limit_is_named_by_its_size_and_not_read(repo: Repo, read: Read) -> None:
    repo.commit("main", {"x": b"0123456789"})
    change = read(repo)
    side = change.base.get("x")
    assert side is not None
    assert change.size(side) == 10
    assert change.blob(side, limit=10) == b"0123456789"
    with pytest.raises(FactUnavailable, match="has 10 bytes; at most 9 are read"):
        change.blob(side, limit=9)


def test_a_closed_change_answers_no_more(repo: Repo, read: Read) -> None:
    repo.commit("main", {"x": "1"})
    with read(repo) as change:
        side = change.base.get("x")
    assert side is not None
    with pytest.raises(FactUnavailable, match="closed"):
        change.blob(side)
    with pytest.raises(FactUnavailable, match="closed"):
        Tree.listed(change._git, change.head_tree).get("x")


def test_the_working_tree_and_index_are_not_looked_at(
    repo: Repo, read: Read, tmp_path: Path
) -> None:
    start = repo.commit("main", {"a": "1"})
    repo.commit("topic", {"a": "2"}, parent=start)
    (repo.path / "a").write_text("other")
    (repo.path / "new").write_text("other")
    (repo.git_dir / "index").write_bytes(b"not an index")
    assert [entry.path for entry in read(repo, head="topic").entries] == ["a"]
