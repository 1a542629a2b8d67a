# SPDX-License-Identifier: Apache-2.0
"""Evidence files: only whole files under their own digest are read, and writing loses nothing."""

import hashlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fasttrack.change.read import read_change
from fasttrack.cli import main as cli
from fasttrack.errors import InputError
from fasttrack.evidence import store
from fasttrack.evidence.accept import accept
from fasttrack.evidence.dsse import read_envelope, sign
from fasttrack.evidence.predicates.common import TestResults as Results
from fasttrack.evidence.store import (
    MAX_FILE_BYTES,
    MAX_FILE_LINES,
    MAX_PROBLEMS,
    SUFFIX,
    Contents,
    merge,
    read_folder,
    read_tree,
    write,
)
from fasttrack.report.schemas import SCHEMAS
from fasttrack.testing import Repo, Symlink
from fasttrack.vocabulary import Kind
from tests.engine import POLICY, files
from tests.evidence.keys import DAY, key, signer, trust
from tests.evidence.strategies import good

AS_OF = f"--as-of={DAY}"


def line(number: int = 1, key_id: str = "lab", kind: Kind = Kind.KERNEL_TEST) -> bytes:
    """An envelope of a cell of its own."""
    return sign(good(kind, values={"unit": "kda", "rows": number}), signer(key_id))


LINES = [line(number) for number in range(1, 6)]


def named(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest() + SUFFIX


def put(folder: Path, content: bytes, name: str | None = None) -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / (name or named(content))
    path.write_bytes(content)
    return path


def rows(contents: Contents) -> list[object]:
    return [one.statement.cell.values["rows"] for one in contents.statements]


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    paths = write(tmp_path / "new" / "evidence", LINES)
    contents = read_folder(tmp_path / "new" / "evidence")
    assert rows(contents) == [1, 2, 3, 4, 5]
    assert contents.problems == ()
    (path,) = paths
    assert path.name == named(path.read_bytes())
    assert contents.statements[2].source == f"{path.name}:3"
    assert contents.statements[2].signed == read_envelope(LINES[2], "x")
    assert path.stat().st_mode & 0o777 == 0o644


def test_writing_the_same_again_changes_nothing(tmp_path: Path) -> None:
    first = write(tmp_path, LINES)
    assert write(tmp_path, [*LINES, *LINES]) == first
    assert sorted(tmp_path.iterdir()) == sorted(first)


def test_large_stores_are_split_below_the_limit(tmp_path: Path) -> None:
    lines = [line(number) for number in range(600)]
    paths = write(tmp_path, lines)
    assert len(paths) > 1
    assert all(path.stat().st_size <= MAX_FILE_BYTES for path in paths)
    assert all(path.stat().st_size > MAX_FILE_BYTES * 0.9 for path in paths[:-1])
    assert sorted(rows(read_folder(tmp_path)), key=str) == sorted(range(600), key=str)


def test_a_folder_that_is_not_there_is_empty(tmp_path: Path) -> None:
    assert read_folder(tmp_path / "nothing") == Contents((), ())


@pytest.mark.parametrize("bad", [b"", b"a\nb", b"x" * (400 * 1024)])
def test_what_is_no_line_is_not_written(tmp_path: Path, bad: bytes) -> None:
    with pytest.raises(InputError):
        write(tmp_path / "evidence", [LINES[0], bad])
    assert not (tmp_path / "evidence").exists()


CONTENT = b"".join(one + b"\n" for one in LINES)
BROKEN_FILES: dict[str, tuple[bytes, str, str]] = {
    "under another digest": (CONTENT, "0" * 64 + SUFFIX, "the bytes that it is named by"),
    "edited": (CONTENT.replace(b"A", b"B", 1), named(CONTENT), "the bytes that it is named by"),
    "cut short": (CONTENT[:-700], named(CONTENT), "the bytes that it is named by"),
    "longer": (CONTENT + CONTENT, named(CONTENT), "the bytes that it is named by"),
    "under a name in capitals": (
        CONTENT,
        named(CONTENT).removesuffix(SUFFIX).upper() + SUFFIX,
        "the bytes that it is named by",
    ),
    "under a name of people": (CONTENT, "lab" + SUFFIX, "the bytes that it is named by"),
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


@pytest.mark.parametrize("name", BROKEN_LINES)
def test_a_broken_line_is_named_and_the_others_count(tmp_path: Path, name: str) -> None:
    content = b"\n".join([LINES[0], BROKEN_LINES[name], LINES[1]]) + b"\n"
    path = put(tmp_path, content)
    contents = read_folder(tmp_path)
    assert rows(contents) == [1, 2]
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
    os.mkfifo(folder / ("a" * 64 + SUFFIX))
    (folder / ("b" * 64 + SUFFIX)).mkdir()
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


@given(st.binary(max_size=400))
def test_a_file_of_random_bytes_gives_problems_only(raw: bytes) -> None:
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
    one, two = CONTENT, LINES[0] + b"\n{}\n"
    for content in (one, two):
        put(tmp_path / "folder", content)
    held = in_tree(
        tmp_path / "repo",
        {f"manifests/evidence/{named(content)}": content for content in (one, two)},
    )
    assert held == read_folder(tmp_path / "folder")
    assert len(held.statements) == 6


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


# Writers


def test_merging_takes_what_is_new_and_nothing_twice(tmp_path: Path) -> None:
    write(tmp_path / "mine", LINES[:3])
    write(tmp_path / "yours", LINES[1:4])
    write(tmp_path / "theirs", LINES[3:])
    new, problems = merge(tmp_path / "mine", [tmp_path / "yours", tmp_path / "theirs"])
    assert problems == ()
    assert len(new) == 1
    assert sorted(rows(read_folder(tmp_path / "mine")), key=str) == [1, 2, 3, 4, 5]
    assert merge(tmp_path / "mine", [tmp_path / "yours", tmp_path / "theirs"]) == ((), ())


def test_merging_leaves_out_what_can_not_be_read(tmp_path: Path) -> None:
    put(tmp_path / "yours", CONTENT, "0" * 64 + SUFFIX)
    put(tmp_path / "yours", b"{}\n" + LINES[0] + b"\n")
    new, problems = merge(tmp_path / "mine", [tmp_path / "yours"])
    assert rows(read_folder(tmp_path / "mine")) == [1]
    assert len(new) == 1
    assert len({problem.where.split(":")[0] for problem in problems}) == 2


WRITER = """
import sys
from pathlib import Path
from fasttrack.evidence.store import write
folder, count = Path(sys.argv[1]), int(sys.argv[2])
lines = sys.stdin.buffer.read().splitlines()
for start in range(0, len(lines), count):
    write(folder, lines[start : start + count])
"""


def test_two_writers_at_once_lose_nothing(tmp_path: Path) -> None:
    lines = [line(number) for number in range(60)]
    halves = [lines[:40], lines[20:]]
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path), "2"], stdin=subprocess.PIPE)
        for _ in halves
    ]
    for writer, half in zip(writers, halves, strict=True):
        assert writer.stdin is not None
        writer.stdin.write(b"\n".join(half))
        writer.stdin.close()
    assert [writer.wait() for writer in writers] == [0, 0]
    contents = read_folder(tmp_path)
    assert contents.problems == ()
    assert set(rows(contents)) == set(range(60))
    assert all(path.name.endswith(SUFFIX) for path in tmp_path.iterdir())


KILLED = """
import os, signal, sys
def die(*args):
    os.kill(os.getpid(), signal.SIGKILL)
setattr(os, sys.argv[3], die)
"""


@pytest.mark.parametrize("step", ["fchmod", "fsync", "replace"])
def test_a_writer_that_is_killed_leaves_nothing_that_is_read(tmp_path: Path, step: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", KILLED + WRITER, str(tmp_path), "5", step],
        input=b"\n".join(LINES),
        check=False,
    )
    assert done.returncode == -signal.SIGKILL
    assert read_folder(tmp_path) == Contents((), ())
    write(tmp_path, LINES)
    assert rows(read_folder(tmp_path)) == [1, 2, 3, 4, 5]


def test_a_writer_that_fails_leaves_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(InputError, match="No space left"):
        write(tmp_path, LINES)
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_was_damaged_is_written_anew(tmp_path: Path) -> None:
    (path,) = write(tmp_path, LINES)
    path.write_bytes(b"damaged")
    write(tmp_path, LINES)
    assert rows(read_folder(tmp_path)) == [1, 2, 3, 4, 5]


# Commands

TRUST_LINES = """
trust:
  keys:
    - id: lab
      public: "{public}"
      roles: [runner]
      kinds: [kernel-test, refusal]
      pool: lab
      hardware: [h200, cpu]
      valid_from: 2026-01-01
      valid_until: 2026-12-31
"""


def policy() -> str:
    return files()[POLICY] + TRUST_LINES.format(public=key("lab").public)


@pytest.fixture
def verify(tmp_path: Path) -> Callable[..., int]:
    (tmp_path / "policy.yaml").write_text(policy())

    def run(*arguments: str) -> int:
        asked = ("--policy", str(tmp_path / "policy.yaml"), AS_OF, *arguments)
        return cli.run(["evidence", "verify", *asked])

    return run


def test_verify_accepts_what_counts(
    tmp_path: Path, verify: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    (path,) = write(tmp_path / "e", LINES[:2])
    assert verify(str(path)) == 0
    assert capsys.readouterr().out.splitlines() == [
        "accepted  kernel-test  kda  2026-11-20",
        "  rows=1 unit=kda",
        f"  in {path.name}:1",
        "accepted  kernel-test  kda  2026-11-20",
        "  rows=2 unit=kda",
        f"  in {path.name}:2",
        "2 of 2 statements accepted",
    ]


def test_verify_says_why_one_does_not_count(
    tmp_path: Path, verify: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    failed = sign(
        good(Kind.KERNEL_TEST, {"results": Results(failed=("a",))}, values={"rows": 7}),
        signer("lab"),
    )
    mixed = [LINES[0], line(9, "cloud"), line(1, kind=Kind.STRESS), failed]
    path = put(tmp_path, b"\n".join(mixed), f"bundle{SUFFIX}")
    assert verify(str(path)) == 1
    said = capsys.readouterr().out
    assert "unknown-key: key cloud is not one of the policy's" in said
    assert "wrong-kind: key lab may sign kernel-test, refusal, not stress" in said
    assert "shows-nothing: 1 tests failed, a first" in said
    assert said.endswith("1 of 4 statements accepted\n")


def test_verify_prints_json(
    tmp_path: Path, verify: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    (path,) = write(tmp_path / "e", [LINES[0], line(2, "cloud")])
    assert verify(str(path), "--format=json") == 1
    text = capsys.readouterr().out
    record = json.loads(text)
    assert text == json.dumps(record, indent=2, sort_keys=True) + "\n"
    assert str(tmp_path) not in text
    assert record["as_of"] == str(DAY)
    assert [one["accepted"] for one in record["statements"]] == [True, False]
    assert record["statements"][0]["cell"] == {"unit": "kda", "rows": 1}
    assert record["statements"][0]["pools"] == ["lab"]
    assert [one["code"] for one in record["statements"][1]["reasons"]] == ["unknown-key"]


@pytest.mark.parametrize(
    ("content", "name", "said"),
    [
        (CONTENT + b"{}\n", "x", "x:6"),
        (CONTENT, "0" * 64 + SUFFIX, "the bytes that it is named by"),
        (b"", "x", "x:1"),
    ],
)
def test_verify_calls_what_is_no_evidence_bad_input(
    tmp_path: Path,
    verify: Callable[..., int],
    content: bytes,
    name: str,
    said: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert verify(str(put(tmp_path / "e", content, name))) == 2
    streams = capsys.readouterr()
    assert said in streams.out + streams.err


def test_verify_needs_files_that_are_there(
    tmp_path: Path, verify: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    assert verify(str(tmp_path / "nothing")) == 2
    assert verify() == 2
    assert "No such file" in capsys.readouterr().err


def test_verify_shows_no_escape_sequence_of_a_statement(
    tmp_path: Path, verify: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    hostile = sign(good(Kind.KERNEL_TEST, values={"\x1b[31m": "\u202e"}), signer("lab"))
    verify(str(put(tmp_path, hostile, "x")))
    assert capsys.readouterr().out.isascii()


def test_verify_takes_the_repository_s_policy(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for path, text in (files() | {POLICY: policy()}).items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    (path,) = write(tmp_path / "e", LINES)
    assert cli.run(["evidence", "verify", str(path), "--repo", str(tmp_path), AS_OF]) == 0
    assert cli.run(["evidence", "verify", str(path), "--repo", str(tmp_path / "e"), AS_OF]) == 2
    assert "5 of 5 statements accepted" in capsys.readouterr().out


def test_list_tells_what_head_holds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    repo = Repo(tmp_path)
    mixed = LINES[0] + b"\n" + line(9, "cloud") + b"\n{}\n"
    repo.commit("main", files() | {POLICY: policy()})
    assert cli.run(["evidence", "list", "--repo", str(tmp_path), AS_OF]) == 0
    assert capsys.readouterr().out == "0 of 0 statements accepted\n"
    repo.commit("main", {f"manifests/evidence/{named(mixed)}": mixed})
    assert cli.run(["evidence", "list", "--repo", str(tmp_path), AS_OF, "--format=json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert [one["accepted"] for one in record["statements"]] == [True, False]
    assert {problem["where"].split(":")[1] for problem in record["problems"]} == {"3"}


def test_accepting_counts_pools_over_all_envelopes() -> None:
    contents = store._gathered([(named(CONTENT), CONTENT)])
    asked = trust(thresholds={Kind.KERNEL_TEST: 2})
    assert not any(one.accepted for one in accept(contents.statements, asked, DAY))
    again = b"".join(line(number, "cloud") + b"\n" for number in range(1, 6))
    both = store._gathered([(named(CONTENT), CONTENT), (named(again), again)])
    assert all(one.accepted for one in accept(both.statements, asked, DAY))


@pytest.mark.parametrize("kind", Kind)
def test_a_payload_fits_the_shipped_schema(kind: Kind) -> None:
    whole = json.loads(good(kind).to_bytes())
    jsonschema.validate(whole, SCHEMAS["evidence"]())
    whole["predicate"]["note"] = 1
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(whole, SCHEMAS["evidence"]())
