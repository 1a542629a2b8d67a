# SPDX-License-Identifier: Apache-2.0
"""What code in the sandbox can not do, and what comes back of code that tries."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from fasttrack.errors import InputError
from fasttrack.evidence.descendants import children
from fasttrack.executed import sandbox
from fasttrack.executed.box import Bounds, in_box
from fasttrack.executed.reports import ProbeReport, read
from fasttrack.executed.sandbox import MAX_REPORT_BYTES, Ended, require_sandbox, run_boxed
from tests.executed.scratch import sandboxed

TRIES = """
import ctypes, json, os, socket, sys
def tried(act):
    try: act()
    except OSError as error: return error.strerror
    return "done"
libc = ctypes.CDLL(None, use_errno=True)
def call(number, *arguments):
    if libc.syscall(number, *arguments) < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
found = {
    "internet": tried(lambda: socket.socket(socket.AF_INET)),
    "internet 6": tried(lambda: socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)),
    "local": tried(lambda: socket.socket(socket.AF_UNIX)),
    "netlink": tried(lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW)),
    "pair": tried(lambda: socket.socketpair()),
    "other folder": tried(lambda: open(sys.argv[2] + "/x", "w")),
    "working directory": tried(lambda: open("x", "w")),
    "home": tried(lambda: open(os.environ["HOME"] + "/x", "w")),
    "signal": tried(lambda: os.kill(os.getppid(), 0)),
    "trace": tried(lambda: call({"x86_64": 101, "aarch64": 117}[os.uname().machine], 16, 1, 0, 0)),
    "rings": tried(lambda: call(425, 1, 0)),
    "again": tried(lambda: os.setuid(os.getuid())),
    "read": tried(lambda: open(__file__)),
}
os.write(int(sys.argv[1]), json.dumps({
    "found": found, "environment": sorted(os.environ), "path": sys.path, "job": sys.stdin.read(),
}).encode())
"""
REFUSED = (
    *("internet", "internet 6", "local", "netlink", "other folder", "working directory"),
    *("trace", "rings", "signal"),
)


def run(where: Path, source: str, timeout_s: float = 60) -> Ended:
    script = where / "script.py"
    script.write_text(source, encoding="utf-8")
    return run_boxed(script, [str(where)], where, job=b"the job", timeout_s=timeout_s)


@sandboxed
def test_no_socket_is_opened_and_nothing_written_outside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET_TOKEN", "x")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    ended = run(tmp_path, TRIES)
    said = json.loads(ended.report)
    assert ended.why == "", ended
    assert {n for n, how in said["found"].items() if how != "done"} == set(REFUSED), said["found"]
    assert said["job"] == "the job"
    assert not {"SECRET_TOKEN", "PYTHONPATH"} & set(said["environment"])
    assert not [p for p in said["path"] if "site-packages" in p or p == str(tmp_path)]
    assert not [*tmp_path.glob("x")]


@sandboxed
def test_a_process_that_moves_away_is_killed_with_the_others(tmp_path: Path) -> None:
    before = children()
    source = """
import os, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        time.sleep(99)
    os._exit(0)
os.wait()
os.write(int(sys.argv[1]), b"report")
"""
    began = time.monotonic()
    ended = run(tmp_path, source)
    assert (ended.report, ended.why) == (b"report", "")
    assert time.monotonic() - began < 30
    assert children() == before


FORKS = """
import os, time
while True:
    try: os.fork()
    except OSError: time.sleep(0.1)
"""


@sandboxed
def test_a_fork_bomb_is_ended_within_its_limits(tmp_path: Path) -> None:
    before = children()
    ended = run(tmp_path, FORKS, timeout_s=20)
    assert ended.why in {"more than 256 processes at a time", "no result after 20 s"}
    assert children() == before


@sandboxed
def test_more_memory_than_there_may_be_is_an_error_of_its_own(tmp_path: Path) -> None:
    source = "import sys\nx = bytearray(int(sys.argv[2]))\n"
    script = tmp_path / "script.py"
    script.write_text(source, encoding="utf-8")
    bounds = Bounds(cpu_s=10, memory_bytes=256 << 20)
    command = [sys.executable, "-I", str(script), "", str(512 << 20)]
    found = subprocess.run(in_box(command, bounds), capture_output=True, check=False)
    assert b"MemoryError" in found.stderr
    command[-1] = str(16 << 20)
    assert subprocess.run(in_box(command, bounds), check=False).returncode == 0


@sandboxed
def test_all_memory_together_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox, "Bounds", lambda cpu_s: Bounds(cpu_s, memory_bytes=1 << 30))
    source = "import os, time\nfor _ in range(7): os.fork() == 0 and None\n"
    source += "x = b'x' * (60 << 20)\ntime.sleep(60)\n"
    assert run(tmp_path, source).why == "more than 1 GB of memory at a time"


@sandboxed
def test_a_run_past_its_time_is_killed_and_said(tmp_path: Path) -> None:
    began = time.monotonic()
    ended = run(tmp_path, "import time\nprint('begun', flush=True)\ntime.sleep(99)", timeout_s=1)
    assert ended.why == "no result after 1 s"
    assert ended.log == "begun\n"
    assert time.monotonic() - began < 20


@sandboxed
def test_much_output_is_kept_at_its_end_alone(tmp_path: Path) -> None:
    source = "import os, sys\nprint('x' * 20_000_000 + 'end')\nos.write(int(sys.argv[1]), b'1')"
    ended = run(tmp_path, source)
    assert (ended.report, ended.why) == (b"1", "")
    assert ended.log.endswith("xend\n")
    assert len(ended.log) < 5000


@sandboxed
def test_a_report_of_too_many_bytes_is_none(tmp_path: Path) -> None:
    source = f"import os, sys\nfor _ in range({MAX_REPORT_BYTES // 65536 + 2}):\n"
    source += "    os.write(int(sys.argv[1]), b'x' * 65536)"
    assert run(tmp_path, source).why == f"its report exceeds {MAX_REPORT_BYTES:,} bytes"


REPORT = {
    "nonce": "n", "loaded": [], "late": [], "failed": {}, "changes": [], "whole": True, "states": {}
}  # fmt: skip


@pytest.mark.parametrize(
    ("report", "why"),
    [
        (b"", "its report can not be read"),
        (b"\xff\xfe", "its report can not be read"),
        (b"[" * 100_000, "its report can not be read"),
        (json.dumps(REPORT | {"nonce": "other"}).encode(), "its report answers another job"),
        (json.dumps(REPORT | {"more": 1}).encode(), "its report can not be read: more"),
        (json.dumps(REPORT | {"changes": [["a", "b"]]}).encode(), "its report can not be read"),
        (json.dumps(REPORT | {"whole": "maybe"}).encode(), "its report can not be read: whole"),
        (json.dumps(REPORT | {"changes": [["a" * 5000, "b", "c"]]}).encode(), "its report can"),
    ],
    ids=["none", "bytes", "nesting", "nonce", "key", "pair", "word", "length"],
)
def test_a_report_that_was_tampered_with_is_said_so(report: bytes, why: str) -> None:
    found = read(Ended(report, "", ""), ProbeReport, "n")
    assert isinstance(found, str)
    assert found.startswith(why)
    assert len(found) < 5000


def test_a_report_that_is_whole_is_read() -> None:
    found = read(Ended(json.dumps(REPORT).encode(), "", ""), ProbeReport, "n")
    assert isinstance(found, ProbeReport)


@pytest.mark.parametrize("lacking", ["can_be_boxed", "stands_around"])
def test_a_system_without_a_sandbox_runs_nothing(
    lacking: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sandbox, lacking, lambda *_: False)
    with pytest.raises(InputError, match=r"Linux 5\.13"):
        require_sandbox()


@sandboxed
def test_a_filter_that_can_not_be_set_starts_nothing(tmp_path: Path) -> None:
    started = tmp_path / "started"
    command = in_box([sys.executable, "-c", f"open({str(started)!r}, 'w')"], Bounds(cpu_s=10))
    command[command.index("--")] = "++"
    found = subprocess.run(command, capture_output=True, check=False, env=dict(os.environ))
    assert found.returncode != 0
    assert not started.exists()


OF_FILES = """
import json, os, pathlib, shutil, sys
home = pathlib.Path(os.environ["HOME"])
one = home / "one"
one.write_text("kept")
os.chmod(one, 0o600)
before = one.stat().st_mode
os.chmod(one, 0o777)
two = shutil.copy2(one, home / "two")
status = pathlib.Path("/proc/self/status").read_text()
os.write(int(sys.argv[1]), json.dumps({
    "same mode": one.stat().st_mode == before,
    "copied": pathlib.Path(two).read_text(),
    "capabilities": sorted({row.split()[1] for row in status.splitlines() if row.startswith(
        ("CapEff", "CapPrm", "CapInh", "CapAmb"))}),
}).encode())
"""


@sandboxed
def test_files_can_be_copied_though_no_mode_is_changed_and_no_capability_is_left(
    tmp_path: Path,
) -> None:
    ended = run(tmp_path, OF_FILES)

    assert ended.why == ""
    found = json.loads(ended.report)
    assert found == {"same mode": True, "copied": "kept", "capabilities": ["0" * 16]}
