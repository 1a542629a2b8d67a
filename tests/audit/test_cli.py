# SPDX-License-Identifier: Apache-2.0
"""`fasttrack audit` as a shell sees it: what it prints, and its exit codes."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from fasttrack.audit.read import tools
from fasttrack.audit.skeleton import skeleton_of
from fasttrack.cli import main as cli
from tests.audit.example import CONTRACT, READ_AT, RIGHT, WRONG, kernel

MOVED = f"""
violated  scale  sm_90a  wrong.ptx
  DOM violated 0x0090  LDG.E.CONSTANT R5, desc[UR4][R4.64]  wrong.ptx:{READ_AT}
    of   rows
    saw  rows (dynamic) is read before ACQBULK, the wait for the kernels before
"""


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with both kernels and their contract, which is the current one."""
    (tmp_path / "wrong.ptx").write_bytes(WRONG)
    (tmp_path / "right.ptx").write_bytes(RIGHT)
    (tmp_path / "scale.yaml").write_text(CONTRACT)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def _audit(*arguments: str) -> int:
    return cli.run(["audit", *arguments, "--as-of", "2027-03-01"])


def test_a_violated_kernel_is_told_with_place_path_and_cure(
    files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _audit("wrong.ptx", "--contract", "scale.yaml") == 1
    said = capsys.readouterr().out
    at = 0
    for line in MOVED.strip("\n").splitlines():
        at = said.index(line, at)
    rest = said[at:].splitlines()[1:]
    assert [line.split()[0] for line in rest if line.startswith("    ")][0:2] == ["want", "fix"]
    assert "    path 0x0000 0x0090" in rest
    assert said.endswith("1 kernel: 0 proved, 1 violated, 0 unproven\n")


def test_a_proved_kernel_says_what_was_not_looked_at(
    files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _audit("right.ptx", "--contract", "scale.yaml") == 0
    assert (
        capsys.readouterr().out
        == f"""proved  scale  sm_90a  right.ptx
  waits    0x00b0
  triggers 0x0140
  skeleton {skeleton_of(kernel(RIGHT))}

note order between launches not checked for scale: its contract names no
     neighbours, and there is no --launches
1 kernel: 1 proved, 0 violated, 0 unproven
"""
    )


def test_without_a_contract_a_kernel_is_unproven_and_its_waits_and_triggers_are_listed(
    files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _audit("right.ptx", "wrong.ptx") == 4
    said = capsys.readouterr().out
    assert said.count("saw  there is no contract\n") == 2
    assert said.count("  waits    0x") == said.count("  triggers 0x") == 2
    assert said.endswith("2 kernels: 0 proved, 0 violated, 2 unproven\n")


def test_json_has_everything_that_the_text_has(
    files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _audit("wrong.ptx", "--contract", "scale.yaml", "--format", "json") == 1
    record = json.loads(capsys.readouterr().out)
    assert (record["audit"], record["hazards"], record["unordered"]) == (1, [], ["scale"])
    (one,) = record["kernels"]
    assert (one["file"], one["kernel"], one["arch"]) == ("wrong.ptx", "scale", "sm_90a")
    assert (one["contract"], one["verdict"], one["waiver"]) == ("scale.yaml", "violated", None)
    assert one["instructions"] == len(kernel(WRONG).instructions)
    assert len(one["cubin"]) == len(one["skeleton"]) == 64
    assert one["toolchain"]["assembler"].startswith("ptxas")
    moved = next(found for found in one["findings"] if found["rule"] == "DOM")
    assert moved["source"] == {"file": "wrong.ptx", "line": READ_AT}
    assert (moved["address"], moved["path"]) == (0x90, [0, 0x90])
    assert moved["parameter"] == "rows"
    assert all(moved[key] for key in ("saw", "want", "fix", "text"))


def test_a_waiver_lets_an_unproven_kernel_pass_until_it_expires(
    files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (files / "approvals.yaml").write_text(
        f"approvals: 1\nskeletons:\n  - {{kernel: scale, arch: sm_90a, skeleton: '{'1' * 64}'}}\n"
        "waivers:\n  - kernel: scale\n    arch: sm_90a\n"
        f"    skeleton: {skeleton_of(kernel(RIGHT))}\n"
        '    reason: Looked at by hand.\n    owner: "@someone"\n    expires: 2027-03-01\n'
    )
    bare = ["audit", "right.ptx", "--approvals", "approvals.yaml", "--as-of"]
    given = ["audit", "--contract", "scale.yaml", *bare[1:]]
    assert cli.run([*given, "2027-03-01"]) == 0
    said = capsys.readouterr().out
    assert "unproven (waived)  scale" in said
    assert "  waiver   Looked at by hand. (@someone, to 2027-03-01)\n" in said
    assert said.endswith("0 violated, 1 unproven (1 waived)\n")
    assert cli.run([*given, "2027-03-02"]) == 4
    assert "  waiver   does not hold: it expired after 2027-03-01\n" in capsys.readouterr().out
    assert cli.run([*bare, "2027-03-01"]) == 4
    assert "nothing waives a kernel without a contract\n" in capsys.readouterr().out


def test_an_approved_skeleton_that_changed_is_unproven(
    files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = files / "approvals.yaml"
    given = ["right.ptx", "--contract", "scale.yaml", "--approvals", "approvals.yaml"]
    for text, code in ((RIGHT, 0), (WRONG, 4)):
        one = f"{{kernel: scale, arch: sm_90a, skeleton: {skeleton_of(kernel(text))}}}"
        file.write_text(f"approvals: 1\nskeletons:\n  - {one}\n")
        assert _audit(*given) == code
    assert "  SKELETON unproven\n" in capsys.readouterr().out


def test_launches_that_race_are_refused(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = "{buffer: rows, start: 0, size: 4096}"
    (files / "launches.yaml").write_text(
        "launches: 1\nsequence:\n"
        f"  - {{kernel: norm, stream: main, programmatic: false, writes: [{rows}]}}\n"
        f"  - {{kernel: scale, stream: main, programmatic: true, reads: [{rows}]}}\n"
    )
    given = ["right.ptx", "--launches", "launches.yaml"]
    assert _audit(*given, "--contract", "scale.yaml") == 0
    assert "note" not in capsys.readouterr().out
    assert _audit(*given) == 1
    assert (
        "RAW on rows  launches.yaml\n  launch 1 (scale) starts early and does not surely wait"
        in (capsys.readouterr().out)
    )


LAUNCH = "launches: 1\nsequence: [{kernel: scale, stream: main}]\n"
BAD = {
    "no file": (["none.cubin"], "does not exist"),
    "no cubin": (["scale.yaml"], "scale.yaml: saw neither cubin nor PTX; want a cubin, PTX, or"),
    "no kernel of that name": (["right.ptx", "--kernel", "x*"], "saw no kernel that is called"),
    "a contract of no kernel": (
        ["right.ptx", "--contract", "scale.yaml", "--contract", "other.yaml"],
        "other.yaml: saw a contract of 'other'; want a kernel that it speaks of",
    ),
    "a contract with a fault": (
        ["right.ptx", "--contract", "typo.yaml"], "typo.yaml:8:25: saw \"mutable\" in",
    ),
    "an unknown key": (["right.ptx", "--contract", "more.yaml"], "more.yaml:12:1: saw"),
    "a contract that contradicts itself": (
        ["right.ptx", "--contract", "odd.yaml"], "odd.yaml: parameters: rows: saw neither read nor",
    ),
    "an architecture for a cubin": (["right.ptx", "--arch", "sm_90a"], "saw sm_90a; want a module"),
    "an architecture that is none": (["right.ptx", "--arch", "hopper"], "saw hopper; want an arch"),
    "launches with a fault": (
        ["right.ptx", "--launches", "launches.yaml"], "saw `stream` without `programmatic`",
    ),
    "approvals with a fault": (["right.ptx", "--approvals", "scale.yaml"], "scale.yaml:1:1: saw"),
    "a day that is none": (["right.ptx", "--as-of", "soon"], "not a day"),
}  # fmt: skip


@pytest.mark.parametrize(("given", "says"), BAD.values(), ids=BAD.keys())
def test_bad_input_is_told_on_standard_error(
    files: Path, capsys: pytest.CaptureFixture[str], given: list[str], says: str
) -> None:
    for name, old, new in (
        ("other", "kernel: scale", "kernel: other"), ("typo", "dynamic", "mutable"),
        ("odd", "reads: [weights, rows]", "reads: [weights]"),
        ("more", "writes: [result]\n", "writes: [result]\ngrid: 4\n"),
    ):  # fmt: skip
        (files / f"{name}.yaml").write_text(CONTRACT.replace(old, new))
    (files / "launches.yaml").write_text(LAUNCH)
    assert cli.run(["audit", *given]) == 2
    said = capsys.readouterr()
    assert says in said.err
    assert said.out == ""


def test_a_missing_disassembler_names_the_extra(
    files: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (files / "scale.cubin").write_bytes(b"\x7fELF" + bytes(14) + b"\xbe\x00")
    monkeypatch.setattr(tools, "_package_folders", tuple)
    monkeypatch.setenv("PATH", "")
    assert _audit("scale.cubin") == 2
    assert capsys.readouterr().err == (
        "fasttrack: cuobjdump: saw not installed; want NVIDIA's tool that reads cubins; "
        "fix: pip install 'fasttrack-decode[audit]'\n"
    )


def test_a_name_can_not_speak_to_the_terminal(
    files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    odd = "a\x1b[31mb.ptx"
    (files / odd).write_bytes(WRONG)
    assert _audit(odd, "--contract", "scale.yaml") == 1
    assert "\x1b" not in capsys.readouterr().out


def test_help_and_other_commands_do_not_pay_for_the_audit() -> None:
    script = (
        "import sys; from fasttrack.cli import main; main.run(['audit', '--help']); "
        "print([m for m in sys.modules if m.startswith(('numpy', 'fasttrack.audit'))])"
    )
    ran = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
    )  # fmt: skip
    assert ran.stdout.endswith("\n[]\n")
