# SPDX-License-Identifier: Apache-2.0
"""`kimi-k3 scope explain`: what each region says, and an exit code that scripts rely on."""

import json
import subprocess
import sys
from typing import Any

import pytest
from click.testing import CliRunner, Result

from fasttrack.errors import InputError
from kimi_k3.cli import cli
from kimi_k3.decode.packaged import packaged_manifest, packaged_policy

ISSUE = ("--gpu", "gb300", "--tp", "16", "--requests", "8", "--draft", "7")
VIRTUAL = ("--gpu", "cpu", "--tp", "4", "--requests", "8", "--draft", "7", "--virtual-ranks")
TIER = "gb300: declared, never executed; admitted from stress-tested"


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["scope", "explain", *arguments])


def answer(*arguments: str) -> dict[str, Any]:
    parsed: dict[str, Any] = json.loads(run(*arguments, "--format", "json").stdout)
    return parsed


def region(name: str, *arguments: str) -> dict[str, Any]:
    return next(r for r in answer(*arguments)["regions"] if r["region"] == name)


def test_the_command_of_the_issue_tells_tier_bounds_and_reasons_of_every_region() -> None:
    done = run(*ISSUE)
    lines = done.stdout.splitlines()
    assert (done.exit_code, done.stderr) == (1, "")
    assert lines[0] == "not admitted; decode_backend: auto runs there"
    at = lines.index("  gb300-tp16: claims declared, effective declared")
    assert lines[at + 1] == (
        "    holds gpu gb300, real ranks, tp 16, dcp 1/16, 1 to 64 requests, draft "
        "0/1/2/3/4/5/6/7, at most 64 rows, contexts up to 1048576, kv_cache bf16/fp8_e4m3, "
        "graph_mode full"
    )
    assert lines[at + 2] == f"    - {TIER}"
    for one in packaged_manifest().scope:
        assert any(line.startswith(f"  {one.id}: claims ") for line in lines)
    assert all(refusal.feature in lines[-1] for refusal in packaged_manifest().refuses)


def test_virtual_ranks_are_admitted_and_said_to_be_no_deployment() -> None:
    done = run(*VIRTUAL)
    assert done.exit_code == 0
    first, note, *_ = done.stdout.splitlines()
    assert first == "admitted by cpu-virtual-tp4"
    assert note.startswith("virtual ranks: one device, not a deployment; ")
    assert run(*VIRTUAL[:-1]).exit_code == 1


def test_json_says_what_text_says() -> None:
    got = answer(*ISSUE)
    heads = [got[key] for key in ("version", "manifest", "state", "admit_tier", "admitted")]
    assert heads == [1, "kimi-k3-decode", "active", "stress-tested", False]
    assert got["notes"] == []
    assert got["also_refused"] == [refusal.feature for refusal in packaged_manifest().refuses]
    text = run(*ISSUE).stdout.splitlines()
    for found in got["regions"]:
        head = f"  {found['region']}: claims {found['claimed']}, effective {found['effective']}"
        at = text.index(head) + 2
        reasons = [f"    - {reason}" for reason in found["reasons"]]
        assert text[at : at + len(reasons)] == reasons
        assert found["admits"] is (not reasons)


def test_bounds_are_those_of_the_manifest() -> None:
    bounds = region("gb300-tp8", *ISSUE)["bounds"]
    assert bounds["requests"] == {"min": 1, "max": 64}
    assert bounds["dtypes"]["recurrent_state"] == ["fp32"]
    assert "tier" not in bounds


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        (("--dcp", "2"), "dcp 2 is not one of 1, 16"),
        (("--context", "1048577"), "a context of 1048577 tokens exceeds 1048576"),
        (("--kv", "fp16"), "kv_cache fp16 is not one of bf16, fp8_e4m3"),
        (("--virtual-ranks",), "its ranks are devices, not virtual"),
    ],
)
def test_an_option_outside_the_scope_has_its_reason(more: tuple[str, ...], reason: str) -> None:
    assert reason in region("gb300-tp16", *ISSUE, *more)["reasons"]
    assert reason not in region("gb300-tp16", *ISSUE)["reasons"]


def test_options_inside_the_scope_have_none() -> None:
    inside = ("--dcp", "16", "--context", "1048576", "--kv", "fp8_e4m3")
    assert region("gb300-tp16", *ISSUE, *inside)["reasons"] == [TIER]


def test_a_lower_tier_is_on_the_operator_s_account_and_says_so() -> None:
    got = answer(*ISSUE, "--min-tier", "compiled")
    assert got["notes"] == [
        "decode_min_tier compiled: below the policy's stress-tested, on the operator's own account"
    ]
    reasons = next(r["reasons"] for r in got["regions"] if r["region"] == "gb300-tp16")
    assert reasons == ["gb300: declared, never executed; admitted from compiled"]
    assert "'declared' is not one of 'compiled'" in run(*ISSUE, "--min-tier", "declared").stderr


def test_a_tier_of_virtual_ranks_is_bad_input() -> None:
    done = run(*VIRTUAL, "--min-tier", "served")
    assert isinstance(done.exception, InputError)
    assert "saw 'served' with virtual ranks; want none with them" in str(done.exception)
    assert done.stdout == ""


@pytest.mark.parametrize(
    ("gpu", "fix"), [("GB300", "--gpu gb300"), ("gb-300", "--gpu gb300"), ("", ""), ("b4", "")]
)
def test_hardware_that_the_policy_does_not_know_is_bad_input_that_names_what_it_knows(
    gpu: str, fix: str
) -> None:
    done = run("--gpu", gpu, *ISSUE[2:])
    assert isinstance(done.exception, InputError)
    (problem,) = done.exception.problems
    assert (problem.where, problem.saw, problem.fix) == ("--gpu", repr(gpu), fix)
    assert problem.want.endswith(f": {', '.join(sorted(packaged_policy().hardware))}")
    assert done.stdout == ""


@pytest.mark.parametrize("gpu", packaged_policy().hardware)
def test_every_hardware_of_the_policy_can_be_asked_about(gpu: str) -> None:
    assert answer("--gpu", gpu, *ISSUE[2:])["version"] == 1


def test_it_needs_no_torch() -> None:
    code = (
        "import atexit, sys\n"
        "atexit.register(lambda: print('torch' in sys.modules))\n"
        f"sys.argv = ['kimi-k3', 'scope', 'explain', *{ISSUE!r}]\n"
        "from kimi_k3.cli import main\n"
        "main()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.splitlines()[-1]) == (1, "False")
