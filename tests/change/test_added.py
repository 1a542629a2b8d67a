# SPDX-License-Identifier: Apache-2.0
from collections import Counter

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fasttrack.change import added as added_module
from fasttrack.change.change import Change
from fasttrack.errors import FactUnavailable
from fasttrack.testing import Content, File, Gitlink, Repo, Symlink

from .conftest import Read, RunGit


def _change(repo: Repo, read: Read, old: Content, new: Content) -> Change:
    base: dict[str, Content] = {"other": "x"} if old is None else {"f": old, "other": "x"}
    start = repo.commit("main", base, parent=())
    repo.commit("topic", {"f": new}, parent=start)
    return read(repo, head="topic")


def _added(change: Change) -> list[tuple[int, str]]:
    (entry,) = change.entries
    return [(line.number, line.text) for line in change.added_lines(entry)]


@pytest.mark.parametrize(
    ("old", "new", "added", "counts"),
    [
        pytest.param(None, "a\nb\n", [(1, "a"), (2, "b")], (2, 0), id="a new file is all added"),
        pytest.param("a\nb\n", None, [], (0, 2), id="a deleted file adds nothing"),
        pytest.param(None, "", [], (0, 0), id="an empty file has no lines"),
        pytest.param("a\nc\n", "a\nb\nc\n", [(2, "b")], (1, 0), id="one line inserted"),
        pytest.param("a\nb\nc\n", "a\nB\nc\n", [(2, "B")], (1, 1), id="one line changed"),
        pytest.param("a\nb", "a\nb\n", [(2, "b")], (1, 1), id="the end of the last line counts"),
        pytest.param("a\n", "a\nb", [(2, "b")], (1, 0), id="a last line without its end"),
        pytest.param("a\nb\n", "a\r\nb\n", [(1, "a")], (1, 1), id="CR LF for LF is a change"),
        pytest.param("a\n", "a\nb\rc\n", [(2, "b\rc")], (1, 0), id="a lone CR ends no line"),
        pytest.param("a\n", "a\n\r\n", [(2, "")], (1, 0), id="an empty line with CR LF"),
        pytest.param(
            "a\n",
            "a\nb\u2028c\x0bd\x85e\n",
            [(2, "b\u2028c\x0bd\x85e")],
            (1, 0),
            id="other separators end no line",
        ),
        pytest.param(Symlink("a\n"), Symlink("b"), [(1, "b")], (1, 1), id="a link's target"),
        pytest.param(Gitlink("1" * 40), "a\n", [(1, "a")], (1, 0), id="a file for a submodule"),
        pytest.param("a\n", File("a\n", "100755"), [], (0, 0), id="a mode alone adds nothing"),
        pytest.param(b"\xff\0\n", "a\n", [(1, "a")], (1, 1), id="text that was binary before"),
    ],
)
def test_added_lines_and_counts(
    old: Content,
    new: Content,
    added: list[tuple[int, str]],
    counts: tuple[int, int],
    repo: Repo,
    read: Read,
) -> None:
    change = _change(repo, read, old, new)
    assert _added(change) == added
    assert change.line_counts(change.entries[0]) == counts


def test_a_submodule_has_no_lines(repo: Repo, read: Read) -> None:
    change = _change(repo, read, "a\n", Gitlink("1" * 40))
    for fact in (change.added_lines, change.line_counts):
        with pytest.raises(FactUnavailable, match="submodule"):
            fact(change.entries[0])


@pytest.mark.parametrize(("content", "reason"), [(b"a\0", "NUL"), (b"\xff\n", "UTF-8")])
def test_what_is_not_text_has_counts_and_no_added_lines(
    content: bytes, reason: str, repo: Repo, read: Read
) -> None:
    change = _change(repo, read, "a\n", content)
    assert change.line_counts(change.entries[0]) == (1, 1)
    with pytest.raises(FactUnavailable, match=f"f is not.*{reason}"):
        _added(change)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(*[st.lists(st.sampled_from("abcdefgh"), max_size=12).map("\n".join)] * 2)
def test_no_line_that_is_new_is_missed_and_the_numbers_are_right(
    repo: Repo, read: Read, old: str, new: str
) -> None:
    change = _change(repo, read, old, new)
    if not change.entries:
        assert old == new
        return
    added = _added(change)
    lines = new.split("\n")
    assert all(lines[number - 1] == text for number, text in added)
    fresh = Counter(new.splitlines(keepends=True)) - Counter(old.splitlines(keepends=True))
    assert Counter(line.rstrip("\n") for line in fresh.elements()) <= Counter(
        text for _, text in added
    )
    more, less = change.line_counts(change.entries[0])
    assert more == len(added)
    assert more - less == len(new.splitlines()) - len(old.splitlines())


def test_counts_of_plain_edits_are_those_of_git(repo: Repo, read: Read, git: RunGit) -> None:
    before = {
        f"f{n}": "".join(f"{n} {k % (n + 2)} {k // 3}\n" for k in range(60)) for n in range(20)
    }
    after = {
        path: text.replace("\n", "\nadded\n", 3).replace(" 7\n", " seven\n")
        for path, text in before.items()
    }
    start = repo.commit("main", before)
    repo.commit("topic", after, parent=start)
    change = read(repo, head="topic")
    ours = [(*change.line_counts(entry), entry.path) for entry in change.entries]
    stat = git("diff", "--numstat", "--minimal", "main", "topic", cwd=repo.path)
    theirs = [(int(a), int(b), path) for a, b, path in map(str.split, stat.splitlines())]
    assert ours == theirs


def test_a_file_over_the_limit_is_a_missing_fact_and_the_others_are_not(
    repo: Repo, read: Read, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(added_module, "BLOB_LIMIT", 100)
    start = repo.commit("main", {"a": "x"})
    repo.commit("topic", {"fits": "x" * 100, "large": "x" * 101}, parent=start)
    change = read(repo, head="topic")
    fits, large = change.entries
    assert change.line_counts(fits) == (1, 0)
    for fact in (change.added_lines, change.line_counts):
        with pytest.raises(FactUnavailable, match="101 bytes; at most 100"):
            fact(large)


@pytest.mark.parametrize(
    ("limit", "value", "reason"),
    [("CHANGE_BYTES_LIMIT", 20, "21 bytes of text"), ("CHANGE_LINES_LIMIT", 12, "13 lines")],
)
def test_a_change_over_the_limit_is_a_missing_fact_for_every_file(
    limit: str, value: int, reason: str, repo: Repo, read: Read, monkeypatch: pytest.MonkeyPatch
) -> None:
    files: dict[str, Content] = {"a": "1\n" * 5, "b": "2\n" * 5}
    start = repo.commit("main", {"z": "x"})
    repo.commit("topic", files, parent=start)
    monkeypatch.setattr(added_module, limit, value)
    fits = read(repo, head="topic")
    assert [fits.line_counts(entry) for entry in fits.entries] == [(5, 0), (5, 0)]
    repo.commit("topic", {"c": "3"})
    over = read(repo, head="topic")
    for entry in reversed(over.entries):
        with pytest.raises(FactUnavailable, match=reason):
            over.added_lines(entry)


def test_a_million_changed_lines_are_counted_within_bounds(repo: Repo, read: Read) -> None:
    old = b"".join(b"%d\n" % n for n in range(400_000))
    new = b"".join(b"%d\n" % n for n in reversed(range(400_000)))
    change = _change(repo, read, old, new)
    added, removed = change.line_counts(change.entries[0])
    assert added == removed
    assert added >= 399_999


def test_asking_twice_reads_and_compares_once(
    repo: Repo, read: Read, monkeypatch: pytest.MonkeyPatch
) -> None:
    change = _change(repo, read, "a\n", "a\nb\n")
    first = change.added_lines(change.entries[0])
    monkeypatch.setattr(added_module, "kept_lines", None)
    assert change.added_lines(change.entries[0]) is first
    assert change.line_counts(change.entries[0]) == (1, 0)
