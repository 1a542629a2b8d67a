# SPDX-License-Identifier: Apache-2.0
"""docs/kernels.md: a kernel is added as the page says, in a copy of the project."""

import json
import re
import shutil
import sys
from pathlib import Path

import pytest

from kimi_k3.decode.kernels.attn_res.table import FORMS
from kimi_k3.decode.kernels.build import HERE
from tests.test_docs import Command, commands, run

PAGE = "docs/kernels.md"
ROOT = Path(__file__).resolve().parents[4]
TEXT = (ROOT / PAGE).read_text(encoding="utf-8")
COPIED = ("docs", "fasttrack", "kimi_k3", "manifests", "scripts")
SUSTAINED, LAUNCH_US = 4.27e6, 1.1
"""Bytes per microsecond of a device copy on an H200, and what a tiny kernel in a graph takes."""
TYPED = re.compile(r"^(kimi-k3|scripts/generate)\b")


def steps() -> list[Command]:
    """Of the eight; the block above them says how to install."""
    found = commands(PAGE)
    first = next(at for at, step in enumerate(found) if step.text.startswith("mkdir "))
    return found[first:]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for name in COPIED:
        left_out = shutil.ignore_patterns("__pycache__", *(["evidence"] * (name == "manifests")))
        shutil.copytree(ROOT / name, tmp_path / name, ignore=left_out)
    for file in ROOT.glob("*.toml"):
        shutil.copy(file, tmp_path)
    return tmp_path


def as_installed(command: str) -> str:
    """A command with the copy in front of what is installed."""
    call = command.split("#->", maxsplit=1)[0]
    call = re.sub(r"^kimi-k3", f"{sys.executable} -m kimi_k3", call)
    call = re.sub(r"^scripts/generate$", f"{sys.executable} scripts/generate.py", call.strip())
    return f"PYTHONPATH=$PWD:$PYTHONPATH {call}" if TYPED.match(command) else call


def test_a_kernel_is_added_as_the_page_says(project: Path) -> None:
    printed = ""
    for step in steps():
        done = run(as_installed(step.text), project)
        said = f"$ {step.text}\n{done.stdout}{done.stderr}"
        assert done.returncode == step.code, said
        if step.verdict:
            assert re.search(rf"^{step.verdict}  ", done.stdout, re.MULTILINE), said
        printed += done.stdout
    assert "{name: x, holds: dynamic}" in printed
    assert "2 of 2 cubins proved" in printed
    assert "DOM: saw x (dynamic) is read before ACQBULK" in printed


def test_the_measured_times_are_those_that_were_asked_for() -> None:
    """`first` only norms; the others are held against all bytes moved once."""
    rows = json.loads((ROOT / "docs/attn-res.json").read_text(encoding="utf-8"))["rows"]
    assert {row["form"] for row in rows} == {form for form in FORMS if "mailbox" not in form}
    for row in rows:
        moved = row["bytes"] / SUSTAINED
        assert row["floor_us"] == pytest.approx(moved, abs=1e-3)
        assert row["kernel_us"] < min(row["triton_us"], row["torch_us"]), row
        assert row["rows"] > 1 or row["kernel_us"] <= 3.5, row
        assert row["rows"] < 64 or row["kernel_us"] <= 2 * (moved + LAUNCH_US), row
        assert row["error"] < 2**-8, row


def test_there_are_eight_steps() -> None:
    assert re.findall(r"^\*\*(\d)\. ", TEXT, re.MULTILINE) == [*"12345678"]


def test_the_page_names_every_file_and_every_form() -> None:
    named = set(re.findall(r"`([\w/]+\.(?:py|json))`", TEXT))
    there = {path.name for path in HERE.glob("*.py")} - {"__init__.py"}
    assert there <= named
    rows = TEXT.split("| form |")[1].split("\n\n")[0]
    assert set(re.findall(r"`([a-z-]+)`", rows)) == set(FORMS)
