# SPDX-License-Identifier: Apache-2.0
"""Commands as a shell sees them: output, exit codes, and where errors go."""

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest

from fasttrack.cli import main as cli
from fasttrack.report.schemas import SCHEMAS
from fasttrack.testing import Repo
from tests.engine import KERNEL, POLICY, SHARED, engine, files

AS_OF = "--as-of=2026-11-29"
CHANGES = {
    "good": {KERNEL: "BLOCK = 64\n"},
    "shared": {KERNEL: "BLOCK = 64\n", SHARED: "LIMIT = 2\n"},
    "hidden": {KERNEL: "BLOCK = 64  # \u202e x\n"},
}


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    engine(tmp_path / "repo", CHANGES)
    return tmp_path / "repo"


@pytest.mark.parametrize("program", ["fasttrack", "kimi_k3"])
def test_a_current_directory_that_is_gone_is_no_fault_of_the_program(
    tmp_path: Path, program: str
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    script = 'rmdir "$1" && exec "$2" -m "$3" scope explain'
    ran = subprocess.run(
        ["sh", "-c", f'cd "$1" && {script}', "sh", str(gone), sys.executable, program],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 2
    assert "Traceback" not in ran.stderr
    if program == "fasttrack":
        assert "saw a current directory that is gone" in ran.stderr


def check(repo: Path, head: str, *more: str) -> int:
    return cli.run(["check", "--repo", str(repo), "--head", head, AS_OF, *more])


@pytest.mark.parametrize(
    ("head", "verdict", "code"),
    [("good", "fast-track", 0), ("shared", "ordinary-review", 4), ("hidden", "refused", 1)],
)
def test_check_prints_the_verdict_first_and_exits_with_its_code(
    repo: Path, head: str, verdict: str, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert check(repo, head) == code
    said = capsys.readouterr()
    assert said.out.split()[0] == verdict
    assert said.err == ""


def test_the_json_holds_what_scripts_rely_on_and_fits_its_schema(
    repo: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert check(repo, "hidden", "--format=json") == 1
    text = capsys.readouterr().out
    record = json.loads(text)
    jsonschema.validate(record, SCHEMAS["verdict"]())
    assert set(record) >= {
        "verdict", "exit_code", "decision", "as_of", "base", "head", "judged_tree",
        "change_digest", "policy_digest", "mode", "manifests", "findings", "coverage", "executed",
        "budget", "next", "version",
    }  # fmt: skip
    assert set(record["findings"][0]) == {
        "rule", "slug", "level", "path", "line", "end_line", "saw", "want", "fix", "message",
        "fingerprint",
    }  # fmt: skip
    assert text.isascii()
    assert record["findings"][0]["path"] == KERNEL


def test_the_text_report_is_plain_and_fits_eighty_columns(
    repo: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    check(repo, "shared")
    text = capsys.readouterr().out
    assert "\x1b" not in text
    assert max(len(line) for line in text.splitlines()) <= 80
    assert f"route FT101 outside-scope  {SHARED}" in text


@pytest.mark.parametrize(("no_color", "coloured"), [("", True), ("1", False)])
def test_colours_are_for_terminals_and_no_color_switches_them_off(
    repo: Path, no_color: str, coloured: bool
) -> None:
    master, slave = pty.openpty()
    environment = {k: v for k, v in os.environ.items() if k != "NO_COLOR"}
    if no_color:
        environment["NO_COLOR"] = no_color
    argv = [
        sys.executable,
        "-m",
        "fasttrack",
        "check",
        "--repo",
        str(repo),
        "--head",
        "good",
        AS_OF,
    ]
    done = subprocess.run(argv, stdout=slave, env=environment, check=False)
    os.close(slave)
    said = os.read(master, 65536)
    os.close(master)
    assert done.returncode == 0
    assert (b"\x1b[" in said) == coloured


def test_no_change_at_all_says_so(repo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert check(repo, "main") == 4
    assert "there is no change: commit it, or name --head" in capsys.readouterr().out


def test_output_goes_to_a_file_when_asked(repo: Path, tmp_path: Path) -> None:
    file = tmp_path / "verdict.json"
    assert check(repo, "good", "--format=json", f"--output={file}") == 0
    assert json.loads(file.read_text())["verdict"] == "fast-track"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["check", "--head", "nowhere"], "no commit nowhere"),
        (["check", "--head=-x"], "does not start with '-'"),
        (["check", "--patch", "x.patch"], "--patch and --onto"),
        (["check", "--policy", "nofile.yaml"], "nofile.yaml"),
        (["check", "--as-of", "yesterday"], "2026-11-29"),
        (["explain", "FT999"], "fasttrack explain"),
        (["explain"], "name one RULE"),
        (["nonsense"], "No such command"),
        (["check", "--output", "missing/folder/x"], "missing/folder/x"),
        (["scope", "points", "--manifest", "bar"], "one of foo"),
        (["policy", "backtest", "main"], "OLD..NEW"),
        (["policy", "test"], "no fixtures"),
    ],
)
def test_bad_input_exits_with_two_and_says_what_to_do(
    repo: Path,
    arguments: list[str],
    said: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(repo)
    for path in ("policy.yaml", "foo.yaml"):
        (repo / "manifests").mkdir(exist_ok=True)
        blob = subprocess.run(
            ["git", "show", f"main:manifests/{path}"], cwd=repo, capture_output=True, check=True
        ).stdout
        (repo / "manifests" / path).write_bytes(blob)
    assert cli.run(arguments) == 2
    streams = capsys.readouterr()
    assert said in streams.err
    assert "Traceback" not in streams.err


def test_a_fault_of_ours_exits_with_seventy_and_a_report_block(
    repo: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError("planted")

    monkeypatch.setattr("fasttrack.verdict.run_rules", broken)
    assert check(repo, "good") == 70
    said = capsys.readouterr().err
    assert "ZeroDivisionError: planted" in said
    assert "Please report it" in said
    assert "Python 3." in said


def test_a_path_that_tries_to_write_to_the_terminal_is_shown_and_not_obeyed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    engine(
        tmp_path,
        {
            "topic": {
                KERNEL: "X\n",
                "a\x1b[2J\nfast-track": "",
                b"\xff".decode("utf-8", "surrogateescape"): "",
            }
        },
    )
    assert check(tmp_path, "topic") in {1, 4}
    said = capsys.readouterr().out
    assert "\x1b" not in said
    assert r"a\u{1b}[2J\u{a}fast-track" in said
    assert r"\x{ff}" in said


def test_module_and_command_are_the_same_program(repo: Path) -> None:
    argv = ["--version"]
    outputs = {
        subprocess.run([*command, *argv], capture_output=True, check=True).stdout
        for command in (
            [sys.executable, "-m", "fasttrack"],
            [str(Path(sys.executable).with_name("fasttrack"))],
        )
    }
    assert len(outputs) == 1


def test_the_module_imports_nothing_from_the_current_directory(tmp_path: Path) -> None:
    # What `evidence sign` needs, what `main` needs, and what the standard library has.
    for name in ("securesystemslib", "click", "pathlib", "typing", "json"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit(99)\n")
    options = ["evidence", "sign", "--resign", "a", "--key", "no-such.key", "--key-id", "b"]
    for arguments, code in ((["--help"], 0), (options, 2)):
        argv = [sys.executable, "-m", "fasttrack", *arguments]
        path = {**os.environ, "PYTHONPATH": str(Path(cli.__file__).parents[2])}
        done = subprocess.run(argv, cwd=tmp_path, env=path, capture_output=True, check=False)
        assert done.returncode == code, done.stderr.decode()


def test_help_lists_every_command_and_each_explains_itself(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert cli.run(["--help"]) == 0
    listed = capsys.readouterr().out
    for name in cli.COMMANDS:
        assert name in listed
        assert cli.run([name, "--help"]) == 0
        assert "Usage: fasttrack" in capsys.readouterr().out


def test_every_rule_can_be_explained_by_id_and_by_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["explain", "--all"]) == 0
    everything = capsys.readouterr().out
    for name in ("FT104", "ft104", "symlink"):
        assert cli.run(["explain", name]) == 0
        assert capsys.readouterr().out in everything


def test_demo_shows_each_verdict_in_a_screenful_and_keeps_its_repository_when_asked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.run(["demo", "--keep", str(tmp_path / "demo"), AS_OF]) == 0
    said = capsys.readouterr().out
    parts = said.partition("The repository is in")[0].split("== ")[1:]
    assert [p.splitlines()[3].split()[0] for p in parts] == [
        "fast-track", "needs-evidence", "ordinary-review", "refused",
    ]  # fmt: skip
    assert max(len(part.splitlines()) for part in parts) <= 24
    assert check(tmp_path / "demo", "faster-attention") == 3
    assert cli.run(["demo", "--keep", str(tmp_path / "demo"), AS_OF]) == 2


def test_a_patch_is_judged_as_the_commit_that_it_would_be(
    repo: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    patch = subprocess.run(
        ["git", "diff", "main", "shared"], cwd=repo, capture_output=True, check=True
    ).stdout
    (tmp_path / "p.patch").write_bytes(patch)
    code = cli.run(
        ["check", "--repo", str(repo), "--patch", str(tmp_path / "p.patch"), "--onto", "main",
         AS_OF, "--format=json"]
    )  # fmt: skip
    by_patch = json.loads(capsys.readouterr().out)
    check(repo, "shared", "--format=json")
    by_branch = json.loads(capsys.readouterr().out)
    assert code == 4
    for key in ("verdict", "findings", "change_digest", "judged_tree"):
        assert by_patch[key] == by_branch[key]


def test_init_writes_only_new_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Repo(tmp_path)
    arguments = ["init", "--repo", str(tmp_path), "--root", "engine/foo/", AS_OF]
    assert cli.run(arguments) == 0
    before = {p: p.read_bytes() for p in (tmp_path / ".github").rglob("*") if p.is_file()}
    assert cli.run(arguments) == 2
    assert "already there" in capsys.readouterr().err
    assert before == {p: p.read_bytes() for p in (tmp_path / ".github").rglob("*") if p.is_file()}


@pytest.mark.parametrize("layout", ["generic", "vllm", "sglang"])
def test_every_layout_of_init_gives_a_policy_that_judges(
    tmp_path: Path, layout: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Repo(tmp_path)
    arguments = ["--root", "pkg/models/foo/", "--root", "pkg/one.py", "--layout", layout]
    (tmp_path / ".github").mkdir()
    (tmp_path / ".github/CODEOWNERS").write_text("* @somebody\n")
    assert cli.run(["init", "--repo", str(tmp_path), *arguments, AS_OF]) == 0
    assert "/pkg/one.py @change-me" in capsys.readouterr().out
    assert cli.run(["scope", "points", "--repo", str(tmp_path), "--count"]) == 0
    assert (tmp_path / ".github/CODEOWNERS").read_text() == "* @somebody\n"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--root", "../x"], "--root '../x'"),
        (["--root", "."], "--root '.'"),
        (["--root", ""], "--root ''"),
        (["--root", "/abs/x"], "--root '/abs/x'"),
        (["--root", "a/*"], "--root 'a/*'"),
        (["--root", "a/", "--config-dir", "../up"], "--config-dir"),
        (["--root", "a/", "--config-dir", ""], "--config-dir"),
    ],
)
def test_init_writes_nothing_outside_the_repository_and_names_the_option(
    tmp_path: Path, arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Repo(tmp_path / "repo")
    before = set(tmp_path.rglob("*"))
    assert cli.run(["init", "--repo", str(tmp_path / "repo"), *arguments]) == 2
    streams = capsys.readouterr()
    assert said in streams.err
    assert streams.out == ""
    assert set(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("root", ["engine/policy/", "engine/70b/"])
def test_init_names_its_manifest_so_that_it_can_be_read(tmp_path: Path, root: str) -> None:
    Repo(tmp_path)
    assert cli.run(["init", "--repo", str(tmp_path), "--root", root, AS_OF]) == 0
    assert cli.run(["scope", "points", "--repo", str(tmp_path), "--count"]) == 0


def test_a_target_of_another_name_is_asked_for_and_naming_its_tip_is_enough(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    repo = Repo(tmp_path, default_branch="master")
    assert cli.run(["check", "--repo", str(tmp_path)]) == 2
    assert "at least one commit" in capsys.readouterr().err
    tip = repo.commit("master", files())
    repo.commit("topic", {KERNEL: "BLOCK = 64\n"}, parent=tip)
    arguments = ["check", "--repo", str(tmp_path), "--head", "topic", AS_OF]
    assert cli.run(arguments) == 2
    assert "--policy-from BRANCH" in capsys.readouterr().err
    assert cli.run([*arguments, "--policy-from", "master"]) == 0


def test_scope_docs_prints_nothing_when_a_file_can_not_be_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cli.run(["init", "--repo", str(tmp_path), "--root", "engine/foo/", AS_OF])
    capsys.readouterr()
    missing = str(tmp_path / "missing" / "effective.json")
    assert cli.run(["scope", "docs", "--repo", str(tmp_path), "--effective", missing]) == 2
    assert capsys.readouterr().out == ""


def test_a_policy_fixture_can_not_bring_the_policy_that_it_tests(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Repo(tmp_path)
    cli.run(["init", "--repo", str(tmp_path), "--root", "engine/foo/", AS_OF])
    tests = tmp_path / ".github/fasttrack/policy-tests"
    tests.mkdir()
    (tests / "own.yaml").write_text(
        "why: it would pass whatever the policy says\n"
        "base: {.github/fasttrack/policy.yaml: x}\n"
        "change: {engine/x.py: x}\n"
        "expect: {verdict: ordinary-review}\n"
    )
    capsys.readouterr()
    assert cli.run(["policy", "test", "--repo", str(tmp_path)]) == 2
    assert "move it to `change`" in capsys.readouterr().err


def test_init_writes_to_the_repositorys_top_and_nowhere_without_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "alone").mkdir()
    arguments = ["--root", "engine/foo/", "--owner", "a", "--backup", "b", AS_OF]
    assert cli.run(["init", "--repo", str(tmp_path / "alone"), *arguments]) == 2
    assert "no git repository" in capsys.readouterr().err
    Repo(tmp_path / "repo")
    inside = tmp_path / "repo" / "engine"
    inside.mkdir()
    assert cli.run(["init", "--repo", str(inside), *arguments]) == 0
    said = capsys.readouterr().out
    assert "note: engine/foo/ is not there yet" in said
    assert "see that owner, backup and sponsor" in said
    assert not (inside / ".github").exists()
    assert cli.run(["scope", "points", "--count", "--repo", str(inside)]) == 0


def test_a_first_policy_is_read_where_the_change_puts_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    repo = Repo(tmp_path / "repo")
    tip = repo.commit("main", {KERNEL: "BLOCK = 32\n"})
    lane = {p.replace("manifests/", ".github/fasttrack/"): t for p, t in files().items()}
    repo.commit("adopt", lane, parent=tip)
    policy = tmp_path / "policy.yaml"
    policy.write_text(files()[POLICY])
    assert check(tmp_path / "repo", "adopt", "--policy", str(policy), "--format=json") == 4
    record = json.loads(capsys.readouterr().out)
    rules = {f["rule"] for f in record["findings"]}
    assert "FT324" not in rules
    assert {"FT119", "FT303"} <= rules
    assert [m["path"] for m in record["manifests"]] == [".github/fasttrack/foo.yaml"]


def test_the_target_that_is_named_is_where_the_change_starts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    repo = engine(tmp_path, {"release": {"note": "1"}})
    main = repo.commit("main", {KERNEL: "BLOCK = 64\n"})
    repo.commit("topic", {"note": "2"}, parent=main)
    check(tmp_path, "topic", "--policy-from=release", "--format=json")
    assert json.loads(capsys.readouterr().out)["budget"]["files"]["used"] == 2


@pytest.mark.parametrize("gpu", ["H200", "", "NVIDIA H200"])
def test_scope_explain_takes_only_hardware_that_the_policy_knows(
    repo: Path, gpu: str, capsys: pytest.CaptureFixture[str]
) -> None:
    cli.run(["init", "--repo", str(repo), "--root", "engine/foo/", AS_OF])  # the files on disk
    capsys.readouterr()
    step = ("--tp", "1", "--requests", "1")
    assert cli.run(["scope", "explain", "--repo", str(repo), "--gpu", gpu, *step]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert f"--gpu: saw {gpu!r}; want a hardware id of the policy: " in said.err
