# SPDX-License-Identifier: Apache-2.0
"""`kimi-k3 generate --decode-operators`: what runs, what is refused, and what is told."""

import json
from typing import Any

import pytest
from click.testing import CliRunner, Result

from fasttrack.errors import Exit, InputError
from kimi_k3.cli import cli

MINI = ("--config", "mini", "--backend", "latency_specialized", "--virtual-ranks")
PROMPTS = ("--prompt-ids", "1,2,3", "--prompt-ids", "5,6,5,6", "--max-tokens", "6")


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["generate", *arguments])


def answer(*arguments: str) -> dict[str, Any]:
    done = run(*arguments, "--format", "json")
    assert done.exit_code == 0, done.output
    parsed: dict[str, Any] = json.loads(done.stdout)
    return parsed


@pytest.mark.parametrize(
    "more",
    [(), ("--tp", "2", "--draft", "3"), ("--kv", "fp8", "--temperature", "0.8")],
    ids=["plain", "tp 2 with drafts", "fp8 and sampling"],
)
def test_the_text_is_that_of_reference_operators(more: tuple[str, ...]) -> None:
    ours = answer(*MINI, *PROMPTS, *more, "--decode-operators", "prepared")
    theirs = answer(*MINI, *PROMPTS, *more)
    assert ours["results"] == theirs["results"]
    assert ours["steps"] == theirs["steps"]
    assert ours["steps"]["planned"] > 0
    assert set(theirs["operators"].values()) == {"reference"}
    assert {o for o, name in ours["operators"].items() if name == "reference"} == {"embed"}
    assert ours["notes"][:-1] == theirs["notes"]
    assert ours["notes"][-1].startswith("decode_operators prepared: region cpu of kimi-k3-mini, ")


def test_a_refusal_names_the_fallback_and_every_reason() -> None:
    other = ("--config", "tiny", *MINI[2:], *PROMPTS, "--tp", "2", "--dcp", "2")
    done = run(*other, "--decode-operators", "prepared")
    assert done.exit_code == Exit.REFUSED
    assert done.stdout == ""
    assert done.stderr.splitlines() == [
        "decode_operators prepared is refused; decode_operators reference runs here",
        "  - the model is not the mini one: other hidden_size and 14 more",
        "  - cpu: dcp 2 is not one of 1",
        "  - h200: gpu cpu is not one of h200; dcp 2 is not one of 1",
    ]
    told = json.loads(run(*other, "--decode-operators", "prepared", "--format", "json").stdout)
    assert len(told["refused"]) == 3


def test_the_decode_path_is_asked_first() -> None:
    done = run(
        "--config", "mini", *MINI[2:4], "--prompt-ids", "1", "--decode-operators", "prepared"
    )
    assert done.exit_code == Exit.REFUSED
    assert done.stderr.startswith("decode_backend latency_specialized is refused; ")


def test_auto_plans_no_steps_that_could_be_prepared() -> None:
    done = run("--config", "mini", "--prompt-ids", "1", "--decode-operators", "prepared")
    assert isinstance(done.exception, InputError)
    assert "which plans no steps; want decode_backend latency_specialized" in str(done.exception)
