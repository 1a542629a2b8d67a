# SPDX-License-Identifier: Apache-2.0
"""The commands that show a store: what counts, and why the rest does not."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from fasttrack.cli import main as cli
from fasttrack.evidence.dsse import sign
from fasttrack.evidence.predicates.common import TestResults as Results
from fasttrack.evidence.store import write
from fasttrack.evidence.store_files import PLAIN_SUFFIX
from fasttrack.testing import Repo
from fasttrack.vocabulary import Kind
from tests.engine import POLICY, files
from tests.evidence.keys import DAY, signer
from tests.evidence.stores import AS_OF, CONTENT, LINES, line, named, policy, put
from tests.evidence.strategies import good


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
        "accepted  kernel-test  kda  2026-11-20  isolation: harness",
        "  rows=1 unit=kda",
        f"  in {path.name}:1",
        "accepted  kernel-test  kda  2026-11-20  isolation: harness",
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
    path = put(tmp_path, b"\n".join(mixed), f"bundle{PLAIN_SUFFIX}")
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
    assert record["statements"][0]["isolation"] == "harness"
    assert [one["code"] for one in record["statements"][1]["reasons"]] == ["unknown-key"]


@pytest.mark.parametrize(
    ("content", "name", "said"),
    [
        (CONTENT + b"{}\n", "x", "x:6"),
        (CONTENT, "0" * 64 + PLAIN_SUFFIX, "the bytes that it is named by"),
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


def test_list_and_verify_take_the_policy_of_a_commit(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    repo = Repo(tmp_path / "repo")
    before = repo.commit("main", files())
    held = {POLICY: policy(), f"manifests/evidence/{named(LINES[0])}": LINES[0]}
    repo.commit("main", held, parent=before)
    (path,) = write(tmp_path / "e", LINES[:1])
    given = ["--repo", str(tmp_path / "repo"), AS_OF]
    for ref, code, count in (("HEAD", 0, 1), (before, 1, 0)):
        asked = [*given, "--policy-from", ref]
        assert cli.run(["evidence", "list", *asked]) == 0
        assert capsys.readouterr().out.endswith(f"{count} of 1 statements accepted\n")
        assert cli.run(["evidence", "verify", str(path), *asked]) == code
        assert capsys.readouterr().out.endswith(f"{count} of 1 statements accepted\n")
    both = ["--policy-from", "HEAD", "--policy", str(path)]
    assert cli.run(["evidence", "verify", str(path), *given, *both]) == 2
    assert "saw --policy and --policy-from; want one of them" in capsys.readouterr().err
