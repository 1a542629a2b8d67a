# SPDX-License-Identifier: Apache-2.0
"""Runs of a collector that end early, go on, or share a bundle with others."""

import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest

from fasttrack.errors import InputError
from fasttrack.evidence.bundle import statements
from fasttrack.evidence.guard import Guard
from fasttrack.evidence.plan import Plan, write_plan
from fasttrack.evidence.statement import Statement
from fasttrack.vocabulary import Kind
from tests.evidence.collecting import collect, content, settings_of
from tests.evidence.scratch import HEAD, plan_of, planned, project
from tests.evidence.strategies import good

ENDS: Mapping[str, tuple[str, str]] = {
    "a source file": ("open('beacon/smooth.py', 'a').write('#')", "beacon/smooth.py: saw other"),
    "a new link": (
        "os.rename('beacon', 'b'); os.symlink('b', 'beacon')",
        "beacon/__init__.py: saw a symbolic link at beacon",
    ),
    "its bundle, gone": ("[os.unlink(f) for f in files]", "jsonl: saw no such file"),
    "its bundle, longer": ("open(files[-1], 'a').write('{}\\n')", "jsonl: saw "),
    "a file of another run": (
        "open('../out/' + '0' * 32 + '.jsonl', 'r+').write('x')",
        "0000.jsonl: saw other bytes",
    ),
    "more in a file of another run": (
        "open('../out/' + '0' * 32 + '.jsonl', 'a').write('x')",
        "0000.jsonl: saw more bytes",
    ),
    "a file of a run that never was": (
        "open('../out/' + 'a' * 32 + '.jsonl', 'w').write('x')",
        "aaaa.jsonl: saw a new file",
    ),
}


@pytest.fixture
def no_wall(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a system that can not keep tests from the bundle."""
    monkeypatch.setattr("fasttrack.evidence.collect.stands_around", lambda *_: False)


@pytest.mark.usefixtures("no_wall")
@pytest.mark.parametrize("what", ENDS)
def test_a_test_that_changes_tree_or_bundle_ends_the_run(tmp_path: Path, what: str) -> None:
    code, message = ENDS[what]
    body = f"""
def test_smooth(fasttrack_cell, fasttrack_seeds):
    files = sorted(os.path.join("../out", f) for f in os.listdir("../out"))
    files = [f for f in files if "0" * 32 not in f] or files
    if fasttrack_cell["rows"] == 2: {code}
"""
    root, out = project(tmp_path / "project", HEAD + body), tmp_path / "out"
    earlier = good(Kind.REFUSAL, run="0" * 32)
    Guard(out, "0" * 32, shared=False).append(earlier)
    plan = plan_of(root, [planned(2)] if "bundle" not in what else [planned(1), planned(2)])
    with pytest.raises(InputError, match=message):
        collect(plan, settings_of(root, out))
    assert all(s.cell.values["rows"] != 2 for s in _readable(out))


def _readable(out: Path) -> list[Statement]:
    return [entry.statement for entry in statements(out).entries]


def test_a_file_that_a_test_puts_where_the_run_would_write_ends_the_run(tmp_path: Path) -> None:
    guard = Guard(tmp_path, "2" * 32, shared=True)
    (tmp_path / ("2" * 32 + ".jsonl")).write_bytes(b"{}\n")
    with pytest.raises(InputError, match="saw a new file; want none that this run did not write"):
        guard.append(good(Kind.REFUSAL))


def test_in_a_shared_folder_other_runs_may_come_and_grow_but_not_shrink(tmp_path: Path) -> None:
    guard = Guard(tmp_path, "2" * 32, shared=True)
    other = Guard(tmp_path, "3" * 32, shared=True)
    for kind in (Kind.REFUSAL, Kind.KERNEL_TEST):
        other.append(good(kind, run="3" * 32))
        guard.append(good(kind, run="2" * 32))
    file = tmp_path / ("3" * 32 + ".jsonl")
    file.write_bytes(file.read_bytes()[:-1])
    with pytest.raises(InputError, match=r"3333\.jsonl: saw other bytes"):
        guard.append(good(Kind.STRESS, run="2" * 32))


def _pipe(path: Path) -> None:
    os.mkfifo(path)


def _endless(path: Path) -> None:
    path.symlink_to("/dev/zero")


@pytest.mark.parametrize("make", [_pipe, _endless, Path.mkdir])
def test_what_is_no_plain_file_ends_a_run_and_is_not_waited_for(
    tmp_path: Path, make: Callable[[Path], None]
) -> None:
    name = "2" * 32 + ".jsonl"
    guard = Guard(tmp_path, "2" * 32, shared=True)
    guard.append(good(Kind.REFUSAL))
    (tmp_path / name).unlink()
    make(tmp_path / name)
    for look in (guard.check, lambda: Guard(tmp_path, "3" * 32, shared=True)):
        with pytest.raises(InputError, match=f"^{name}: saw .*; want a plain file"):
            look()


def test_a_file_that_is_larger_than_memory_is_read_in_pieces(tmp_path: Path) -> None:
    guard = Guard(tmp_path, "2" * 32, shared=True)
    guard.append(good(Kind.REFUSAL))
    os.truncate(tmp_path / ("2" * 32 + ".jsonl"), 1 << 43)
    with pytest.raises(InputError, match="saw more bytes"):
        guard.check()


MARKS = """
def test_smooth(fasttrack_cell, fasttrack_seeds, fasttrack_record):
    fasttrack_record.launched("smooth")
"""


def start(root: Path, out: Path, *options: str) -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-m", "fasttrack", "evidence", "collect", "--hardware", "here"]
    paths = ["--plan", str(root / "../plan.json"), "--out", str(out), "--root", str(root)]
    place = Path(__file__).parents[2]
    return subprocess.Popen(
        [*command, *paths, *options],
        cwd=place,
        env=os.environ | {"TMPDIR": str(root.parent)},  # a collector that is killed leaves files
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def scratch_plan(tmp_path: Path, rows: Sequence[int]) -> tuple[Plan, Path]:
    root = project(tmp_path / "project", HEAD + MARKS)
    plan = plan_of(root, [planned(n) for n in rows])
    write_plan(plan, tmp_path / "plan.json")
    return plan, root


def test_a_collector_that_was_killed_goes_on_without_losing_or_repeating_a_cell(
    tmp_path: Path,
) -> None:
    plan, root = scratch_plan(tmp_path, [1, 2, 3])
    out = tmp_path / "out"
    first = start(root, out)
    assert until(lambda: out.exists() and bool(_readable(out)))
    first.kill()
    first.wait()
    before = len(_readable(out))
    found, progress = collect(plan, settings_of(root, out))
    assert 1 <= before < 3
    assert (found.resumed, len(progress)) == (before, 3 - before)
    assert Counter(s.cell.values["rows"] for s in content(out)) == {1: 1, 2: 1, 3: 1}
    assert len({s.predicate.run.run for s in content(out)}) == 2


def test_a_child_ends_with_its_collector(tmp_path: Path) -> None:
    body = """
def test_it():
    with open(os.path.join(os.environ["HOME"], "pid"), "w") as file: file.write(str(os.getpid()))
    time.sleep(600)
"""
    root = project(tmp_path / "project", HEAD + body)
    write_plan(plan_of(root, [planned(1)]), tmp_path / "plan.json")

    def pid() -> str:
        return "".join(file.read_text() for file in tmp_path.glob("fasttrack-cell-*/pid"))

    with start(root, tmp_path / "out") as collector:
        assert until(lambda: pid().isdecimal())
        collector.kill()
    assert until(lambda: _gone(int(pid())))


def until(true: Callable[[], bool]) -> bool:
    """Waits for something that is soon true."""
    deadline = time.monotonic() + 60
    while not (found := true()) and time.monotonic() < deadline:
        time.sleep(0.02)
    return found


def _gone(pid: int) -> bool:
    """Whether a process has ended, be it ours to reap by now."""
    try:
        return os.waitpid(pid, os.WNOHANG)[0] == pid
    except ChildProcessError:
        return not Path(f"/proc/{pid}").exists()


def test_several_machines_write_to_one_bundle_at_once_and_may_measure_a_cell_twice(
    tmp_path: Path,
) -> None:
    _, root = scratch_plan(tmp_path, [1, 2])
    out = tmp_path / "out"
    started = [start(root, out, "--shard", shard) for shard in ("1/2", "2/2", "1/2")]
    assert [one.wait(60) for one in started] == [0, 0, 0]
    found = content(out)
    assert all(s.problems() == [] for s in found)
    count = Counter((s.cell.values["rows"], s.predicate.run.run) for s in found)
    assert {rows for rows, _ in count} == {1, 2}
    assert {*count.values()} == {1}
    assert [rows for rows, _ in count].count(2) == 1
