# SPDX-License-Identifier: Apache-2.0
"""Children that misbehave: what the collector gets of them, and what they leave behind."""

import os
import signal
import subprocess
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import pytest

from fasttrack.errors import InputError
from fasttrack.evidence.child import KEPT_VARIABLES, LOG_TAIL, Outcome
from fasttrack.evidence.child_report import MAX_REPORT_BYTES
from fasttrack.evidence.descendants import children
from tests.evidence.scratch import HEAD, TEST, measured, project, run_child

GET_FD = """
@pytest.fixture
def report(pytestconfig): return pytestconfig.getoption("--fasttrack-report")
"""
NO_REPORT: Mapping[str, tuple[str, str]] = {
    "a report of too many bytes": (
        f"[os.write(report, b'x' * 65536) for _ in range({MAX_REPORT_BYTES // 65536 + 3})]; "
        "os._exit(0)",
        "its report exceeds 8,388,608 bytes",
    ),
    "a pipe that is closed": ("os.close(report); os._exit(0)", "exit code 0 and no report"),
    "garbage": ("os.write(report, bytes(range(256))); os._exit(0)", "its report can not be read"),
    "a kill": ("os.kill(os.getpid(), 9)", "it ended with exit code -9 and no report"),
    "a crash behind a good report": (
        "import atexit; atexit.register(os.abort)",
        "it ended with exit code -6 after a report of no failure",
    ),
    "a report of another job": (
        "pytestconfig.pluginmanager.get_plugin('fasttrack-collecting').job = "
        "pytestconfig.pluginmanager.get_plugin('fasttrack-collecting').job.model_copy("
        "update={'nonce': 'b' * 32})",
        "its report answers another job",
    ),
    "words where a number should be": (
        "fasttrack_record.fallbacks = 'none'",
        "its report can not be read: execution.fallbacks: ",
    ),
}


@pytest.mark.parametrize("case", NO_REPORT)
def test_what_is_no_report_is_said_so(case: str, tmp_path: Path) -> None:
    statement, why = NO_REPORT[case]
    body = f"{GET_FD}def test_it(report, pytestconfig, fasttrack_record):\n    {statement}\n"
    outcome = measured(tmp_path, body)
    assert (outcome.report, why in outcome.why) == (None, True), outcome.why


def test_megabytes_of_output_and_a_home_that_is_gone_cost_nothing(tmp_path: Path) -> None:
    body = """
def test_it(capfd):
    with capfd.disabled():
        for _ in range(10): os.write(1, b"." * (1 << 20))
    import atexit, shutil; atexit.register(shutil.rmtree, os.environ["HOME"])
"""
    outcome = measured(tmp_path, body)
    assert outcome.report is not None
    assert outcome.report.results.passed == (f"{TEST}::test_it",)
    assert "1 passed" in outcome.log
    assert len(outcome.log) <= LOG_TAIL


DAEMON = """
def test_it():
    for place in ("left", "left-in-session"):
        if os.fork() == 0:
            if place == "left": os.setsid()
            if os.fork() == 0:
                # By a link, so that the name is there only with the number.
                os.symlink(str(os.getpid()), os.environ["HOME"] + "/../" + NAME + place)
                time.sleep(600)
            os._exit(0)
        os.wait()
        while not os.path.islink(os.environ["HOME"] + "/../" + NAME + place): time.sleep(0.01)
        time.sleep(0.05)
"""


def _gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the homes of children are made."""
    place = tmp_path / "temporary"
    place.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(place))
    return place


@pytest.mark.parametrize("end", ["", "    while True: time.sleep(1)\n"], ids=["ends", "loops"])
def test_nothing_that_a_child_started_outlives_it(
    tmp_path: Path, temporary: Path, end: str
) -> None:
    started = time.monotonic()
    project(tmp_path, f"{HEAD}NAME = 'pid-'\n{DAEMON}{end}")
    outcome = run_child(tmp_path, timeout_s=6 if end else 60)
    assert time.monotonic() - started < 40
    assert (outcome.report is None) == bool(end)
    assert outcome.why == ("no result after 6 s" if end else "")
    files = sorted(temporary.iterdir())
    pids = [int(file.readlink().name) for file in files]
    assert [file.name for file in files] == ["pid-left", "pid-left-in-session"]
    assert all(_gone(pid) for pid in pids)


LOOKS_ROUND = """
def test_it(pytestconfig):
    places = [f"/proc/self/fd/{fd}" for fd in os.listdir("/proc/self/fd")]
    links = [os.readlink(place) for place in places if os.path.lexists(place)]
    raise AssertionError(repr((sorted(os.environ.items()), sys.argv, links)))
"""


@pytest.fixture(scope="module")
def what_a_child_sees(tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    root = tmp_path_factory.mktemp("looks")
    with pytest.MonkeyPatch.context() as patch, (root / "key.pem").open("wb") as key:
        patch.setenv("LAB_TOKEN", "value-of-the-token")
        patch.setenv("FASTTRACK_KEY", "/keys/lab.pem")
        patch.setenv("CUDA_VISIBLE_DEVICES", "0")
        os.set_inheritable(key.fileno(), True)
        return measured(root / "project", LOOKS_ROUND)


def test_a_child_gets_no_variable_beyond_the_list(what_a_child_sees: Outcome) -> None:
    log = what_a_child_sees.log
    assert "AssertionError" in log
    assert "CUDA_VISIBLE_DEVICES" in log
    assert "LAB_TOKEN" not in log
    assert "value-of-the-token" not in log
    assert "FASTTRACK_KEY" not in log
    assert not {"HOME", "TMPDIR", "XDG_CACHE_HOME"} & {*KEPT_VARIABLES}


def test_a_child_gets_no_descriptor_and_no_path_of_the_collector(
    what_a_child_sees: Outcome,
) -> None:
    assert "pipe:" in what_a_child_sees.log
    assert "key.pem" not in what_a_child_sees.log
    assert "--fasttrack-report=" in what_a_child_sees.log
    assert ".jsonl" not in what_a_child_sees.log


def test_an_interrupt_of_the_collector_kills_the_child(
    tmp_path: Path, temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project(tmp_path, f"{HEAD}NAME = 'pid-'\n{DAEMON}    while True: time.sleep(1)\n")

    monkeypatch.setattr("subprocess.Popen.wait", _interrupted_once(temporary))
    with pytest.raises(KeyboardInterrupt):
        run_child(tmp_path)
    assert all(_gone(int(file.readlink().name)) for file in temporary.iterdir())


def _interrupted_once(temporary: Path) -> object:
    wait, calls = subprocess.Popen.wait, []

    def interrupted(child: "subprocess.Popen[bytes]", timeout: float | None = None) -> int:
        calls.append(timeout)
        if len(calls) > 1:
            return wait(child, timeout)
        while not (temporary / "pid-left-in-session").is_symlink():
            time.sleep(0.02)
        raise KeyboardInterrupt

    return interrupted


def test_what_can_not_be_killed_ends_the_run(
    tmp_path: Path, temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fasttrack.evidence.child.GRACE_S", 0.05)
    monkeypatch.setattr("os.kill", lambda pid, number: None)
    project(tmp_path, f"{HEAD}NAME = 'pid-'\n{DAEMON}")
    with pytest.raises(InputError, match="processes of a test that can not be killed; want"):
        run_child(tmp_path)
    monkeypatch.undo()
    for file in temporary.glob("pid-*"):
        with suppress(ProcessLookupError):
            os.kill(int(file.readlink().name), signal.SIGKILL)


def test_a_thread_that_ends_meanwhile_hides_no_child(monkeypatch: pytest.MonkeyPatch) -> None:
    child = subprocess.Popen(["sleep", "60"])
    try:
        real = Path.glob

        def with_an_ended_thread(path: Path, pattern: str) -> list[Path]:
            return [path / "0" / "children", *real(path, pattern)]

        monkeypatch.setattr(Path, "glob", with_an_ended_thread)
        assert child.pid in children()
    finally:
        child.kill()
        child.wait()
