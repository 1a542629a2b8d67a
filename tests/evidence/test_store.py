# SPDX-License-Identifier: Apache-2.0
"""Evidence files: only whole files under their own digest are read, and lines that are signed."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fasttrack.change.read import read_change
from fasttrack.evidence import store
from fasttrack.evidence.accept import accept
from fasttrack.evidence.dsse import sign
from fasttrack.evidence.packed import MAX_TEXT_BYTES, pack
from fasttrack.evidence.store import MAX_PROBLEMS, Contents, read_folder, read_tree
from fasttrack.evidence.store_files import MAX_FILE_BYTES, MAX_FILE_LINES, PLAIN_SUFFIX, SUFFIX
from fasttrack.testing import Repo, Symlink
from fasttrack.vocabulary import Kind
from tests.evidence.keys import DAY, signer, trust
from tests.evidence.stores import CONTENT, LINES, SAME_RUN, line, named, put, rows
from tests.evidence.strategies import good

PACKED = pack(CONTENT)
BOMB = pack(CONTENT.ljust(MAX_TEXT_BYTES + 1, b"\n"))
ONE_MEMBER = "one whole gzip member of at most 8,000,000 unpacked bytes"


def test_a_folder_that_is_not_there_is_empty(tmp_path: Path) -> None:
    assert read_folder(tmp_path / "nothing") == Contents((), ())


BROKEN_FILES: dict[str, tuple[bytes, str, str]] = {
    "under another digest": (CONTENT, "0" * 64 + PLAIN_SUFFIX, "the bytes that it is named by"),
    "edited": (CONTENT.replace(b"A", b"B", 1), named(CONTENT), "the bytes that it is named by"),
    "cut short": (CONTENT[:-700], named(CONTENT), "the bytes that it is named by"),
    "longer": (CONTENT + CONTENT, named(CONTENT), "the bytes that it is named by"),
    "under a name in capitals": (
        CONTENT,
        named(CONTENT).removesuffix(PLAIN_SUFFIX).upper() + PLAIN_SUFFIX,
        "the bytes that it is named by",
    ),
    "under a name of people": (CONTENT, "lab" + PLAIN_SUFFIX, "the bytes that it is named by"),
    "too large": (
        CONTENT.ljust(MAX_FILE_BYTES + 1, b"\n"),
        named(CONTENT.ljust(MAX_FILE_BYTES + 1, b"\n")),
        "at most 1,000,000 bytes",
    ),
    "of too many lines": (
        b"\n" * (MAX_FILE_LINES + 1),
        named(b"\n" * (MAX_FILE_LINES + 1)),
        "at most 4,096",
    ),
    "packed, under another digest": (
        PACKED,
        "0" * 64 + SUFFIX,
        "the bytes that it is named by",
    ),
    "packed, and named by its lines": (
        PACKED,
        named(CONTENT) + ".gz",
        "the bytes that it is named by",
    ),
    "plain, under a packed name": (CONTENT, named(CONTENT) + ".gz", ONE_MEMBER),
    "packed, cut short": (PACKED[:-1], named(PACKED[:-1]), ONE_MEMBER),
    "packed twice over": (PACKED * 2, named(PACKED * 2), ONE_MEMBER),
    "packed, with a wrong sum": (
        PACKED[:-8] + bytes(4) + PACKED[-4:],
        named(PACKED[:-8] + bytes(4) + PACKED[-4:]),
        ONE_MEMBER,
    ),
    "a bomb": (BOMB, named(BOMB), ONE_MEMBER),
    "packed, of too many lines": (
        pack(b"\n" * (MAX_FILE_LINES + 1)),
        named(pack(b"\n" * (MAX_FILE_LINES + 1))),
        "at most 4,096",
    ),
}


@pytest.mark.parametrize("name", BROKEN_FILES)
def test_a_file_that_is_not_what_its_name_says_counts_for_nothing(
    tmp_path: Path, name: str
) -> None:
    content, file_name, want = BROKEN_FILES[name]
    put(tmp_path, content, file_name)
    put(tmp_path, LINES[0] + b"\n")
    contents = read_folder(tmp_path)
    assert rows(contents) == [1]
    (problem,) = contents.problems
    assert (problem.where, problem.want) == (file_name, want)


BROKEN_LINES = {
    "no JSON": b"{",
    "an empty line": b"",
    "no envelope": b"{}",
    "a payload that is no statement": sign(good(Kind.STRESS), signer("lab")).replace(
        b'"payload":"', b'"payload":"QUFB'
    ),
    "a payload that contradicts itself": sign(good(Kind.KERNEL_TEST), signer("lab")).replace(
        b'"payload":"eyJf', b'"payload":"e30x'
    ),
}


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("name", BROKEN_LINES)
def test_a_broken_line_is_named_and_the_others_count(
    tmp_path: Path, name: str, packed: bool
) -> None:
    content = b"\n".join([LINES[0], BROKEN_LINES[name], LINES[1]]) + b"\n"
    path = put(tmp_path, pack(content) if packed else content)
    contents = read_folder(tmp_path)
    assert rows(contents) == [1, 2]
    assert [one.source for one in contents.statements] == [f"{path.name}:1", f"{path.name}:3"]
    assert {problem.where.split(": ")[0] for problem in contents.problems} == {f"{path.name}:2"}


def test_a_last_line_without_its_end_is_read(tmp_path: Path) -> None:
    put(tmp_path, LINES[0] + b"\n" + LINES[1])
    assert rows(read_folder(tmp_path)) == [1, 2]


def test_thousands_of_broken_lines_give_a_bounded_number_of_problems(tmp_path: Path) -> None:
    put(tmp_path, b"{}\n" * 2000 + LINES[0])
    contents = read_folder(tmp_path)
    assert len(contents.problems) == MAX_PROBLEMS
    assert rows(contents) == [1]


def test_other_files_are_none_of_our_business(tmp_path: Path) -> None:
    put(tmp_path, b"x", "README.md")
    put(tmp_path, CONTENT[:100], ".abc.partial")
    put(tmp_path, CONTENT, "x.jsonl")
    assert read_folder(tmp_path) == Contents((), ())


def test_links_pipes_and_folders_are_problems(tmp_path: Path) -> None:
    elsewhere = put(tmp_path / "elsewhere", CONTENT)
    folder = tmp_path / "evidence"
    folder.mkdir()
    (folder / named(CONTENT)).symlink_to(elsewhere)
    os.mkfifo(folder / ("a" * 64 + PLAIN_SUFFIX))
    (folder / ("b" * 64 + PLAIN_SUFFIX)).mkdir()
    contents = read_folder(folder)
    assert contents.statements == ()
    assert len(contents.problems) == 3


def test_a_store_that_is_too_large_is_read_up_to_its_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for one in LINES[:3]:
        put(tmp_path, one + b"\n")
    monkeypatch.setattr(store, "MAX_STORE_BYTES", 2 * len(LINES[0]) + 100)
    contents = read_folder(tmp_path)
    assert len(contents.statements) == 2
    (problem,) = contents.problems
    assert problem.fix == "fasttrack evidence gc"


def test_a_store_s_limit_is_of_what_is_unpacked_also_from_bombs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    one = pack(LINES[0])
    files = [(named(BOMB), BOMB), (named(one), one)]
    monkeypatch.setattr(store, "MAX_STORE_BYTES", MAX_TEXT_BYTES * 2)
    assert rows(store._gathered(files)) == [1]
    monkeypatch.setattr(store, "MAX_STORE_BYTES", MAX_TEXT_BYTES + len(LINES[0]))
    contents = store._gathered(files)
    assert contents.statements == ()
    assert [problem.where for problem in contents.problems] == [named(BOMB), named(one)]


def test_packed_lines_under_a_plain_name_are_no_statements(tmp_path: Path) -> None:
    name = named(PACKED).removesuffix(".gz")
    contents = read_folder(put(tmp_path, PACKED, name).parent)
    assert contents.statements == ()
    assert {problem.where.partition(":")[0] for problem in contents.problems} == {name}


@given(st.binary(max_size=400), st.booleans())
def test_a_file_of_random_bytes_gives_problems_only(raw: bytes, packed: bool) -> None:
    raw = pack(raw) if packed else raw
    contents = store._gathered([(named(raw), raw)])
    assert contents.statements == ()
    assert contents.problems


# In git trees


def in_tree(where: Path, tree: dict[str, object]) -> Contents:
    repo = Repo(where)
    repo.commit("main", tree)  # type: ignore[arg-type]
    with read_change(where, target="HEAD") as change:
        return read_tree(change.base, "manifests/evidence", change.blob)


def test_a_tree_s_evidence_is_what_a_folder_s_is(tmp_path: Path) -> None:
    files = CONTENT, LINES[0] + b"\n{}\n", PACKED, PACKED[:-1]
    for content in files:
        put(tmp_path / "folder", content)
    held = in_tree(
        tmp_path / "repo",
        {f"manifests/evidence/{named(content)}": content for content in files},
    )
    assert held == read_folder(tmp_path / "folder")
    assert len(held.statements) == 11
    assert len({problem.where.partition(":")[0] for problem in held.problems}) == 2


def test_only_the_folder_itself_is_read_from_a_tree(tmp_path: Path) -> None:
    name = named(CONTENT)
    places = (f"manifests/evidence/deep/{name}", f"evidence/{name}", f"manifests/{name}")
    assert in_tree(tmp_path, dict.fromkeys(places, CONTENT)) == Contents((), ())


def test_what_is_no_plain_file_in_a_tree_is_a_problem(tmp_path: Path) -> None:
    large = CONTENT.ljust(MAX_FILE_BYTES + 1, b"\n")
    held = in_tree(
        tmp_path,
        {
            f"manifests/evidence/{named(CONTENT)}": Symlink("x"),
            f"manifests/evidence/{named(large)}": large,
        },
    )
    assert held.statements == ()
    assert len(held.problems) == 2


def test_accepting_counts_pools_over_all_envelopes() -> None:
    contents = store._gathered([(named(CONTENT), CONTENT)])
    asked = trust(thresholds={Kind.KERNEL_TEST: 2})
    assert not any(one.accepted for one in accept(contents.statements, asked, DAY))
    for run, agreeing in ((SAME_RUN, False), ("3" * 32, True)):
        again = b"".join(line(number, "cloud", run=run) + b"\n" for number in range(1, 6))
        both = store._gathered([(named(CONTENT), CONTENT), (named(again), again)])
        assert {one.accepted for one in accept(both.statements, asked, DAY)} == {agreeing}
