# SPDX-License-Identifier: Apache-2.0
"""The unsigned bundle: nothing is lost, nothing is half there, nothing is taken on trust."""

import os
import threading
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fasttrack.errors import InputError
from fasttrack.evidence.bundle import MAX_PROBLEMS, append, cells_done, statements
from fasttrack.evidence.predicates.common import TestResults
from fasttrack.evidence.statement import MAX_BYTES, Statement
from fasttrack.vocabulary import Kind
from tests.evidence.strategies import good
from tests.evidence.strategies import statements as any_statements

RUN, OTHER, PLAN = "2" * 32, "3" * 32, "1" * 32
ROWS = [good(Kind.KERNEL_TEST, values={"unit": "kda", "rows": rows}) for rows in range(1, 4)]


def read(directory: Path) -> list[Statement]:
    """What the bundle holds; it has no problems."""
    contents = statements(directory)
    assert contents.problems == ()
    return [entry.statement for entry in contents.entries]


def said(directory: Path) -> list[str]:
    """The problems of a bundle, as people see them."""
    return [str(problem) for problem in statements(directory).problems]


@settings(max_examples=25, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(any_statements(), max_size=4))
def test_whatever_is_appended_is_read_back_per_run_in_its_order(
    tmp_path_factory: pytest.TempPathFactory, given_statements: list[Statement]
) -> None:
    directory = tmp_path_factory.mktemp("bundle")
    append(directory, given_statements)
    wanted = sorted(given_statements, key=lambda s: s.predicate.run.run)
    assert [s.to_bytes() for s in read(directory)] == [s.to_bytes() for s in wanted]


def test_a_file_that_is_cut_anywhere_keeps_its_whole_lines_and_takes_the_next(
    tmp_path: Path,
) -> None:
    append(tmp_path / "whole", ROWS)
    whole = (tmp_path / "whole" / f"{RUN}.jsonl").read_bytes()
    ends = [i + 1 for i, byte in enumerate(whole) if byte == ord("\n")]
    directory = tmp_path / "cut"
    directory.mkdir()
    file = directory / f"{RUN}.jsonl"
    for length in range(len(whole) + 1):
        file.write_bytes(whole[:length])
        kept = sum(end <= length for end in ends)
        assert read(directory) == ROWS[:kept], length
        if length % 17 == 0 or length + 1 in ends:  # each append is two flushes to the disk
            append(directory, [ROWS[2]])
            assert read(directory) == [*ROWS[:kept], ROWS[2]], length


def test_a_line_that_no_buffer_holds_is_cut_off_too(tmp_path: Path) -> None:
    append(tmp_path, ROWS[:1])
    with (tmp_path / f"{RUN}.jsonl").open("ab") as file:
        file.write(b"x" * 200_000)
    append(tmp_path, ROWS[1:2])
    assert read(tmp_path) == ROWS[:2]


@pytest.mark.parametrize("written", [0, 1, 700])
def test_a_full_disk_leaves_the_bundle_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, written: int
) -> None:
    append(tmp_path, ROWS[:1])
    real = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: real(fd, data[:written]))
    with pytest.raises(InputError, match="bytes could be written"):
        append(tmp_path, ROWS[1:])
    monkeypatch.undo()
    assert (tmp_path / f"{RUN}.jsonl").read_bytes() == ROWS[0].to_bytes() + b"\n"


def test_a_write_that_fails_is_told_with_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(InputError, match=rf"{RUN}.jsonl: saw No space left on device"):
        append(tmp_path, ROWS)


def test_collectors_at_once_lose_nothing_even_with_one_run_id(tmp_path: Path) -> None:
    runs = [RUN, RUN, OTHER, OTHER]

    def collect(number: int) -> None:
        for row in range(10):
            values = {"unit": "kda", "collector": number, "row": row}
            append(tmp_path, [good(Kind.KERNEL_TEST, values=values, run=runs[number])])

    threads = [threading.Thread(target=collect, args=(i,)) for i in range(len(runs))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({(s.predicate.run.run, s.cell) for s in read(tmp_path)}) == 40
    assert sorted(p.name for p in tmp_path.iterdir()) == [f"{RUN}.jsonl", f"{OTHER}.jsonl"]


def test_a_statement_that_is_too_large_keeps_all_from_being_written(tmp_path: Path) -> None:
    nodes = tuple(f"tests/test_x.py::test_{i}" + "y" * 900 for i in range(300))
    large = good(Kind.KERNEL_TEST, {"results": TestResults(passed=nodes)})
    assert len(large.to_bytes()) > MAX_BYTES
    with pytest.raises(InputError, match="at most 262,144"):
        append(tmp_path, [ROWS[0], large])
    assert list(tmp_path.iterdir()) == []


def test_a_directory_that_can_not_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="a bundle that can be written"):
        append(tmp_path / "file" / "bundle", ROWS)
    with pytest.raises(InputError, match="a directory of statements"):
        statements(tmp_path / "missing")


def test_flipping_any_byte_of_a_line_is_seen_or_ends_another_valid_statement(
    tmp_path: Path,
) -> None:
    line = ROWS[0].to_bytes() + b"\n"
    file = tmp_path / f"{RUN}.jsonl"
    seen = 0
    for at in range(0, len(line) - 1, 3):
        file.write_bytes(line[:at] + bytes([line[at] ^ 1]) + line[at + 1 :])
        contents = statements(tmp_path)
        if contents.problems:
            seen += 1
            continue
        # A flipped digit is another statement; nothing but a signature can tell. It stays in its
        # run, and is spelled as a statement is spelled.
        (entry,) = contents.entries
        assert entry.statement != ROWS[0]
        assert entry.statement.predicate.run.run == RUN
        assert entry.statement.to_bytes() + b"\n" == file.read_bytes()
    assert seen > 100


@pytest.mark.parametrize(
    ("payload", "message"),
    [
        (b"{}", f"{RUN}.jsonl:1: saw predicate type None"),
        (b"", f"{RUN}.jsonl:1"),
        (b"\xff\xfe", f"{RUN}.jsonl:1"),
        (good(Kind.REFUSAL, run=OTHER).to_bytes(), f"want run {RUN}, as the file's name says"),
        (b" " + ROWS[0].to_bytes(), "another spelling of a statement"),
        (ROWS[0].to_bytes().replace(b'":', b'": '), "another spelling of a statement"),
        (b"x" * (MAX_BYTES + 10), "a longer line"),
    ],
    ids=["no statement", "empty", "no text", "run", "space", "spaces", "long"],
)
def test_a_bad_line_is_a_problem_with_its_place_and_hides_no_other_file(
    tmp_path: Path, payload: bytes, message: str
) -> None:
    (tmp_path / f"{RUN}.jsonl").write_bytes(payload + b"\n")
    append(tmp_path, [good(Kind.REFUSAL, run=OTHER)])
    assert any(message in line for line in said(tmp_path)), said(tmp_path)
    assert len(statements(tmp_path).entries) == 1


def test_links_pipes_and_misnamed_files_are_problems(tmp_path: Path) -> None:
    append(tmp_path / "elsewhere", ROWS[:1])
    (tmp_path / f"{RUN}.jsonl").symlink_to(tmp_path / "elsewhere" / f"{RUN}.jsonl")
    os.mkfifo(tmp_path / f"{OTHER}.jsonl")
    (tmp_path / "shard-1.jsonl").write_bytes(ROWS[0].to_bytes() + b"\n")
    (tmp_path / "plan.json").write_text("{}")
    problems = said(tmp_path)
    (tmp_path / ("4" * 32 + ".jsonl")).mkdir()
    assert len(problems) == 3
    assert f"{'4' * 32}.jsonl: saw no plain file; want a plain file" in said(tmp_path)
    assert statements(tmp_path).entries == ()
    with pytest.raises(InputError):
        append(tmp_path, ROWS[:1])  # not through the link
    assert read(tmp_path / "elsewhere") == ROWS[:1]


def test_problems_of_a_hostile_bundle_are_bounded(tmp_path: Path) -> None:
    (tmp_path / f"{RUN}.jsonl").write_bytes(b"[]\n" * 5000)
    assert len(statements(tmp_path).problems) == MAX_PROBLEMS


def test_cells_done_are_those_of_the_plan_whatever_they_show(tmp_path: Path) -> None:
    failed = good(
        Kind.KERNEL_TEST,
        {"results": TestResults(failed=("t.py::t",))},
        values={"unit": "kda", "rows": 9},
    )
    assert failed.problems()
    append(tmp_path, [ROWS[0], failed, good(Kind.REFUSAL, run=OTHER)])
    (tmp_path / f"{'4' * 32}.jsonl").write_bytes(b"torn")
    done = cells_done(tmp_path, PLAN)
    assert {(kind.value, key) for kind, key in done} == {
        ("kernel-test", ROWS[0].cell.key),
        ("kernel-test", failed.cell.key),
        ("refusal", good(Kind.REFUSAL).cell.key),
    }
    assert cells_done(tmp_path, "9" * 32) == frozenset()
    assert cells_done(tmp_path / "missing", PLAN) == frozenset()
