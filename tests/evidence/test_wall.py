# SPDX-License-Identifier: Apache-2.0
"""What a test process can write under `collect`, where the system can build a wall."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from fasttrack.evidence import wall
from fasttrack.evidence.wall import behind_wall, stands_around
from tests.evidence.collecting import collect, content, settings_of
from tests.evidence.scratch import HEAD, SOURCE, plan_of, planned, project

walled = pytest.mark.skipif(
    not stands_around(Path.cwd()), reason="takes Landlock, which this system does not have"
)

TRIES = """
import os, pathlib, sys
kept, own, parent = map(pathlib.Path, sys.argv[1:4])
def tried(name, act):
    try: act()
    except OSError as error: print(name, error.strerror)
    else: print(name, "done")
tried("new file", lambda: (kept / "new").write_text("x"))
tried("old file", lambda: open(kept / "old", "a").write("x"))
tried("truncate", lambda: os.truncate(kept / "old", 0))
tried("unlink", lambda: os.unlink(kept / "old"))
tried("folder", lambda: os.mkdir(kept / "folder"))
tried("link", lambda: os.symlink("old", kept / "link"))
tried("fifo", lambda: os.mkfifo(kept / "fifo"))
tried("move in", lambda: ((own / "x").write_text("x"), os.rename(own / "x", kept / "x")))
tried("move out", lambda: os.rename(kept / "old", own / "old"))
tried("own file", lambda: (own / "y").write_text("x"))
tried("own folder", lambda: os.makedirs(own / "a/b"))
tried("read", lambda: (kept / "old").read_text())
tried("null", lambda: open("/dev/null", "w").write("x"))
tried("parent's memory", lambda: open(f"/proc/{parent}/mem", "rb"))
if os.fork() == 0:
    tried("of a child", lambda: (kept / "new").write_text("x"))
    os._exit(0)
os.wait()
"""
REFUSED = (
    *("new file", "old file", "truncate", "unlink", "folder", "link", "fifo", "move in"),
    *("move out", "of a child", "parent's memory"),
)
DONE = ("own file", "own folder", "read", "null")


@walled
def test_nothing_but_its_own_folders_can_be_written_behind_the_wall(tmp_path: Path) -> None:
    kept, own = tmp_path / "kept", tmp_path / "own"
    kept.mkdir()
    own.mkdir()
    (kept / "old").write_text("old")
    script = [sys.executable, "-u", "-c", TRIES, str(kept), str(own), str(os.getpid())]
    found = subprocess.run(behind_wall(script, [own]), capture_output=True, text=True, check=True)
    said: Mapping[str, str] = {
        name: rest
        for line in found.stdout.splitlines()
        for name in (*REFUSED, *DONE)
        if line.startswith(f"{name} ")
        for rest in [line.removeprefix(f"{name} ")]
    }
    assert {name for name, rest in said.items() if rest == "done"} == set(DONE), found.stdout
    assert said.keys() == {*REFUSED, *DONE}
    assert [(p.name, p.read_text()) for p in kept.iterdir()] == [("old", "old")]


@walled
def test_a_wall_that_can_not_be_built_starts_nothing(tmp_path: Path) -> None:
    started = tmp_path / "started"
    script = [sys.executable, "-c", f"open({str(started)!r}, 'w')"]
    command = behind_wall(script, [tmp_path, tmp_path / "not there"])
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    assert found.returncode != 0
    assert not started.exists()


def test_there_is_no_wall_without_the_system_or_around_shared_memory(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert not stands_around(tmp_path, Path("/dev/shm/bundle"))
    monkeypatch.setattr(wall, "_version", lambda: -1)
    assert not stands_around(tmp_path)


FORGES = """
def test_smooth(fasttrack_cell, fasttrack_seeds, fasttrack_record):
    fasttrack_record.launched("smooth")
    if fasttrack_cell["rows"] != 2: return
    (mine,) = os.listdir("../out")
    line = open(f"../out/{mine}").read()
    with pytest.raises(PermissionError):
        open("../out/" + "a" * 32 + ".jsonl", "w").write(line.replace(mine[:32], "a" * 32))
    with pytest.raises(PermissionError): open(f"../out/{mine}", "a").write(line)
    with pytest.raises(PermissionError): open("beacon/smooth.py", "a")
    with pytest.raises(PermissionError): open("pytest.ini", "w")
    with pytest.raises(PermissionError): open("conftest.py", "w")
    assert False
"""


@walled
def test_a_test_that_forges_another_cell_s_statement_gains_nothing(tmp_path: Path) -> None:
    root, out = project(tmp_path / "project", HEAD + FORGES), tmp_path / "out"
    plan = plan_of(root, [planned(1), planned(2), planned(3)])
    found, progress = collect(plan, settings_of(root, out))
    assert found.walled
    assert [bool(told.problems) for told in progress] == [False, True, False]
    assert "assert False" in progress[1].log  # every attempt before it was refused
    said = {s.cell.values["rows"]: bool(s.problems()) for s in content(out)}
    assert said == {1: False, 2: True, 3: False}
    assert len([*out.iterdir()]) == 1
    assert (root / SOURCE).read_text() == "WIDTH = 3\n"


SIGNALS = """
def test_smooth(fasttrack_cell, fasttrack_seeds, fasttrack_record):
    fasttrack_record.launched("smooth")
    with pytest.raises(PermissionError): os.kill(os.getppid(), 0)
"""


@walled
@pytest.mark.skipif(wall._version() < 6, reason="takes Linux 6.12")
def test_a_test_can_not_send_signals_to_the_collector(tmp_path: Path) -> None:
    root, out = project(tmp_path / "project", HEAD + SIGNALS), tmp_path / "out"
    found, _ = collect(plan_of(root, [planned(1)]), settings_of(root, out))
    assert (found.passed, found.failed) == (1, 0)


NAMED = """
import os, subprocess, sys
def tried(name, path):
    try: os.close(os.open(path, os.O_WRONLY))
    except OSError: print(name, "closed")
    else: print(name, "open")
tried("own name", "/proc/self/comm")
tried("parent's memory", f"/proc/{sys.argv[1]}/mem")
tried("system", "/proc/sys/kernel/core_pattern")
tried("kept", sys.argv[2])
print(subprocess.run([sys.executable, "-c", "open('/proc/self/comm', 'w').write('x')"],
                     stderr=subprocess.DEVNULL).returncode)
"""
BESIDE_A_GPU = """
import importlib.util, sys
from pathlib import Path
spec = importlib.util.spec_from_file_location("wall", sys.argv[1])
wall = importlib.util.module_from_spec(spec)
spec.loader.exec_module(wall)
wall._GPU = Path(sys.argv[2])
wall._main(sys.argv[3:])
"""


@walled
@pytest.mark.parametrize("gpu", [True, False])
def test_beside_a_gpu_processes_name_their_threads_and_write_nothing_else_of_proc(
    tmp_path: Path, gpu: bool
) -> None:
    kept, own = tmp_path / "kept", tmp_path / "own"
    kept.write_text("old")
    own.mkdir()
    script = [sys.executable, "-c", NAMED, str(os.getpid()), str(kept)]
    device = "/dev/null" if gpu else "/dev/nothing"
    command = [sys.executable, "-c", BESIDE_A_GPU, str(wall.__file__), device, str(own), "--"]
    done = subprocess.run([*command, *script], capture_output=True, text=True, check=True)
    named, *closed, child = done.stdout.splitlines()
    assert named == f"own name {'open' if gpu else 'closed'}"
    assert (child == "0") == gpu  # a process that it starts, too
    assert closed == ["parent's memory closed", "system closed", "kept closed"]
