# SPDX-License-Identifier: Apache-2.0
"""`docs/mini.md` does what it says, and its table of units is the manifest's."""

import re
from dataclasses import fields
from pathlib import Path

from kimi_k3.decode.providers import Providers
from kimi_k3.mini.scope import WHY
from tests.test_docs import commands, run

from .cells import MANIFEST, ROOT

PAGE = "docs/mini.md"
TEXT = (ROOT / PAGE).read_text("utf-8")


def test_every_command_of_the_page_ends_as_the_page_says(tmp_path: Path) -> None:
    steps = commands(PAGE)
    assert {step.code for step in steps} == {0, 1, 2}
    for step in steps:
        done = run(step.text, tmp_path)
        assert done.returncode == step.code, f"$ {step.text}\n{done.stdout}{done.stderr}"
        drafted = re.search(r"which [1-9]\d* of \d+ windows had", done.stdout + done.stderr)
        assert ("--draft" in step.text) == bool(drafted), done.stdout + done.stderr


def test_the_page_lists_every_unit_with_its_operators() -> None:
    rows = re.findall(r"^\| `([\w-]+)` \| (.*?) \|", TEXT, re.MULTILINE)
    assert {unit for unit, _ in rows} == {unit.id for unit in MANIFEST.units}
    named = [word for _, cell in rows for word in re.findall(r"`(\w+)`", cell)]
    assert sorted(named) == sorted({f.name for f in fields(Providers)} - {"embed"})


def test_the_page_names_every_feature_that_is_refused() -> None:
    assert all(f"`{feature}`" in TEXT for feature in WHY)
