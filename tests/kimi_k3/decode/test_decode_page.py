# SPDX-License-Identifier: Apache-2.0
"""`docs/decode.md` does what it says, and its tables are those of the code."""

import re
from dataclasses import fields
from pathlib import Path

from kimi_k3.decode.deployment import Features
from kimi_k3.decode.plan import BUCKETS, Reason
from kimi_k3.decode.providers import Providers
from tests.test_docs import ROOT, commands, run

PAGE = "docs/decode.md"
TEXT = (ROOT / PAGE).read_text("utf-8")


def section(title: str) -> str:
    """The text under one heading."""
    return TEXT.partition(f"## {title}\n")[2].partition("\n## ")[0]


def test_every_command_of_the_page_ends_as_the_page_says(tmp_path: Path) -> None:
    steps = commands(PAGE)
    assert len(steps) >= 2
    for step in steps:
        done = run(step.text, tmp_path)
        assert done.returncode == step.code, f"$ {step.text}\n{done.stdout}{done.stderr}"
        drafts = step.text.startswith("kimi-k3 generate") and "--draft" in step.text
        assert drafts is ("tokens accepted" in done.stdout), step.text


def test_the_page_lists_every_feature_with_the_gate_s_own_reason() -> None:
    listed = re.findall(r"^\| `(\w+)` \| (.+) \|$", section("What is refused at startup"), re.M)
    assert listed == [(probe.feature, probe.why) for probe in Features().probes()]


def test_the_page_lists_every_reason_of_a_fallback() -> None:
    rows = re.findall(r"^\| (`.+`) \| ", section("Which steps it takes"), re.MULTILINE)
    listed = [word for row in rows for word in re.findall(r"`([\w-]+)`", row)]
    assert sorted(listed) == sorted(reason.value for reason in Reason)


def test_the_page_names_the_prepared_row_counts() -> None:
    small = next(i for i, rows in enumerate(BUCKETS, start=1) if BUCKETS[i] != rows + 1)
    last = BUCKETS[-1]
    large = ", ".join(map(str, BUCKETS[small:-1]))
    assert f"Prepared are 1 to {small}, {large} and {last} rows" in section("Which steps it takes")


def test_the_page_lists_every_operator() -> None:
    rows = re.findall(r"^\| (`.+`) \| ", section("How a planned step runs"), re.MULTILINE)
    listed = [word for row in rows for word in re.findall(r"`(\w+)`", row)]
    assert sorted(listed) == sorted(field.name for field in fields(Providers))
