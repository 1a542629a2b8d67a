# SPDX-License-Identifier: Apache-2.0
"""`docs/model.md` does what it says: its commands and its program run."""

import re
import subprocess
import sys
from pathlib import Path

from kimi_k3.config import PRESETS
from tests.test_docs import ROOT, commands, run

PAGE = "docs/model.md"
PROGRAM = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def test_every_command_of_the_page_ends_as_the_page_says(tmp_path: Path) -> None:
    steps = commands(PAGE)
    assert len(steps) >= 3
    for step in steps:
        done = run(step.text, tmp_path)
        assert done.returncode == step.code, f"$ {step.text}\n{done.stdout}{done.stderr}"


def test_the_program_of_the_page_runs(tmp_path: Path) -> None:
    (program,) = PROGRAM.findall((ROOT / PAGE).read_text("utf-8"))
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert len(list((tmp_path / "checkpoint").glob("*.safetensors"))) == 3


def test_the_page_lists_every_configuration() -> None:
    listed = re.findall(r"^\| `(\w+)` \|", (ROOT / PAGE).read_text("utf-8"), re.MULTILINE)
    assert sorted(name for name in listed if name in PRESETS) == sorted(PRESETS)
