# SPDX-License-Identifier: Apache-2.0
"""The path leaves as its lease says: its roots and some lines of wiring, and nothing misses it."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from fasttrack.manifest.model import RemovalWiring

from .cells import MANIFEST, ROOT

GENERATE = ("generate", "--config", "tiny", "--prompt-ids", "1,2,3", "--max-tokens", "4")
SPECIALISED = ("--backend", "latency_specialized", "--virtual-ranks")


def removed(text: str, edit: RemovalWiring) -> str:
    """A wired file without the lines of its removal."""
    lines = text.splitlines(keepends=True)
    for unwanted in edit.lines:
        assert sum(line.strip() == unwanted for line in lines) == 1, unwanted
    return "".join(line for line in lines if line.strip() not in edit.lines)


@pytest.fixture(scope="module")
def without(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the packages from which the path has been taken out."""
    top = tmp_path_factory.mktemp("removed")
    for name in ("kimi_k3", "fasttrack", "manifests"):
        unwanted = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / name, top / name, ignore=unwanted)
    shutil.rmtree(top / MANIFEST.code.roots[0])
    for edit in MANIFEST.lease.removal.wiring:
        file = top / edit.path
        file.write_text(removed(file.read_text("utf-8"), edit), "utf-8")
    return top


def run(top: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-P", "-m", "kimi_k3", *arguments],
        cwd=top,
        env=os.environ | {"PYTHONPATH": str(top)},
        capture_output=True,
        text=True,
        check=False,
    )


def test_nothing_that_stays_speaks_of_the_roots(without: Path) -> None:
    naming = [
        file.relative_to(without)
        for file in without.rglob("*.py")
        if "kimi_k3.mini" in file.read_text("utf-8")
    ]
    assert naming == []


def test_the_decode_path_and_the_stock_path_under_it_run_without_it(without: Path) -> None:
    here, there = (run(top, *GENERATE, *SPECIALISED) for top in (ROOT, without))
    assert there.returncode == 0, there.stderr
    assert "steps: 1 prefill, 3 planned" in there.stdout
    assert there.stdout == here.stdout


def test_its_option_is_gone(without: Path) -> None:
    done = run(without, *GENERATE, *SPECIALISED, "--decode-operators", "reference")
    assert done.returncode == 2
    assert "No such option" in done.stderr
    assert "--decode-operators" in done.stderr


def test_wiring_and_removal_speak_of_the_same_files() -> None:
    assert {w.path for w in MANIFEST.code.wiring} == {w.path for w in MANIFEST.lease.removal.wiring}
