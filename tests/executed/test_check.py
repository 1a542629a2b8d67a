# SPDX-License-Identifier: Apache-2.0
"""`fasttrack check` with code of the change run, as a shell sees it."""

import json
from pathlib import Path

import pytest

from fasttrack.cli import main as cli
from fasttrack.executed import run as executed_run
from fasttrack.executed import sandbox
from fasttrack.ran import NOTHING_RAN, BaseTests, Collection, Executed, Probe
from fasttrack.testing import Repo
from tests.engine import KERNEL, files
from tests.executed.scratch import SHARED, TEST, sandboxed

TESTS = (
    "from engine.foo.attention import BLOCK\n\n\ndef test_block():\n    assert BLOCK % 32 == 0\n"
)
CHANGES = {
    "good": {KERNEL: "BLOCK = 64\n"},
    "reaches": {KERNEL: "BLOCK = 64\ngetattr(__import__('engine.ops').ops, 'NAMES').append('x')\n"},
    "wrong": {KERNEL: "BLOCK = 33\n"},
    "outside": {"engine/scheduler.py": "LIMIT = 2\n"},
}
RUN = ("--run-probe", "--run-base-tests", "--run-timeout=60")


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    made = Repo(tmp_path / "repo.git", bare=True)
    tip = made.commit("main", {**files(), **SHARED, TEST: TESTS})
    for branch, change in CHANGES.items():
        made.commit(branch, change, parent=tip)
    return tmp_path / "repo.git"


def check(repo: Path, head: str, *more: str) -> int:
    return cli.run(["check", "--repo", str(repo), "--head", head, "--as-of=2026-11-29", *more])


def judged(
    repo: Path, head: str, capsys: pytest.CaptureFixture[str], *more: str
) -> tuple[dict[str, str], set[str]]:
    check(repo, head, "--format=json", *more)
    said = capsys.readouterr()
    assert said.err == ""
    record = json.loads(said.out)
    return record["executed"], {f["rule"] for f in record["findings"]}


@sandboxed
@pytest.mark.parametrize(
    ("head", "executed", "rules"),
    [
        ("good", ("passed", "passed", "passed"), set()),
        ("reaches", ("failed", "passed", "passed"), {"FT230"}),
        ("wrong", ("passed", "passed", "failed"), {"FT415"}),
        ("outside", ("not-run", "not-run", "not-run"), set()),
    ],
)
def test_the_verdict_says_what_ran_and_what_came_of_it(
    head: str,
    executed: tuple[str, ...],
    rules: set[str],
    repo: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    ran, found = judged(repo, head, capsys, *RUN)
    parts = ("import_probe", "test_collection", "base_tests")
    assert ran == dict(zip(parts, executed, strict=True))
    assert {r for r in found if r in {"FT230", "FT414", "FT415", "FT416"}} == rules


def test_without_the_options_nothing_of_the_change_runs(
    repo: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*_: object) -> None:
        raise AssertionError

    monkeypatch.setattr(executed_run, "execute", never)
    ran, found = judged(repo, "reaches", capsys)
    assert set(ran.values()) == {"not-run"}
    assert "FT230" not in found


@sandboxed
def test_a_terminal_is_told_what_is_being_done(
    repo: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    check(repo, "good", "--run-base-tests")
    assert capsys.readouterr().err == (
        "base tests: which there are, then the same over the change's code\n"
    )


@sandboxed
def test_the_report_says_in_one_line_what_ran(
    repo: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = {}
    for options in ((), ("--run-base-tests", "--run-timeout=60")):
        check(repo, "wrong", *options)
        said = capsys.readouterr().out.splitlines()
        lines[bool(options)] = [line for line in said if line.startswith("executed: ")]

    told = "executed: import probe not-run, test collection not-run, base tests failed"
    assert lines == {False: [], True: [told]}


@sandboxed
def test_what_was_asked_for_and_had_nothing_to_run_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    repo = Repo(tmp_path / "bare.git", bare=True)
    without = {path: text for path, text in files().items() if not path.startswith("tests/")}
    repo.commit("good", CHANGES["good"], parent=repo.commit("main", {**without, **SHARED}))
    check(tmp_path / "bare.git", "good", "--run-base-tests")

    told = "executed: import probe not-run, test collection not-run, base tests not-run"
    assert told in capsys.readouterr().out


def test_a_system_without_a_sandbox_refuses_the_options(
    repo: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sandbox, "can_be_boxed", lambda: False)
    assert check(repo, "good", "--run-probe") == 2
    assert "want Linux 5.13 or newer with Landlock" in " ".join(capsys.readouterr().err.split())


def test_what_was_not_asked_for_is_not_run() -> None:
    assert Executed(None, None, None) == NOTHING_RAN
    assert Probe().run == Collection().run == BaseTests().run == "not-run"
