# SPDX-License-Identifier: Apache-2.0
"""`docs/validation.md` says what the gates do: commands, gates, modes, controls."""

import re
from pathlib import Path

from kimi_k3.validation.budget import BUDGETS
from kimi_k3.validation.gates import GATES
from tests.test_docs import ROOT, commands, run

PAGE = "docs/validation.md"
TEXT = (ROOT / PAGE).read_text("utf-8")
MODES = re.findall(r"^\| (\d+) \| [^|]+ \| ([^|]+) \|$", TEXT, re.MULTILINE)


def test_every_command_of_the_page_ends_as_the_page_says(tmp_path: Path) -> None:
    steps = commands(PAGE)
    assert steps
    for step in steps:
        done = run(step.text, tmp_path)
        assert done.returncode == step.code, f"$ {step.text}\n{done.stdout}{done.stderr}"
        assert "caught" in done.stdout


def test_the_page_has_every_mode_once_with_the_gate_that_closes_it() -> None:
    assert [int(number) for number, _ in MODES] == list(range(1, 41))
    closed = {int(number): by for number, by in MODES if by.startswith("G")}
    assert closed == {mode: gate.number for gate in GATES for mode in gate.closes}
    for number, by in MODES:
        assert int(number) in closed or by.startswith(("open", "does not apply")), number


def test_the_page_has_every_gate_and_every_budget() -> None:
    listed = re.findall(r"^\| (G\d) (\w+) \|", TEXT, re.MULTILINE)
    assert listed == [(gate.number, gate.name) for gate in GATES]
    assert all(f"`{name}`" in TEXT for name in BUDGETS)
