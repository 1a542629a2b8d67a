# SPDX-License-Identifier: Apache-2.0
"""`fasttrack evidence import`: all of it or nothing, and a sentence about every result."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from fasttrack.cli.main import run
from fasttrack.evidence.bundle import statements
from tests.evidence.importers.builders import CASES, SAMPLES, imported


def arguments(name: str, out: Path) -> list[str]:
    case = CASES[name]
    paths = [str(SAMPLES / file) for file in case.results]
    baseline = [word for file in case.baseline for word in ("--baseline", str(SAMPLES / file))]
    sidecars = ["--map", str(SAMPLES / case.map), "--facts", str(SAMPLES / case.facts)]
    return ["evidence", "import", name, *paths, *baseline, *sidecars, "--out", str(out)]


@pytest.mark.parametrize("name", CASES)
def test_an_import_writes_its_statements_and_says_what_they_are(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "bundle"
    assert run(arguments(name, out)) == 0
    found, expected = statements(out), imported(name)
    assert found.problems == ()
    assert tuple(entry.statement for entry in found.entries) == expected.statements
    said = capsys.readouterr().out
    assert f"{len(expected.statements)} unsigned statements in bundle" in said
    assert said.count(": ok\n") == len(expected.statements)
    for name_ in expected.unmapped:
        assert f"{name_}: covers nothing" in said


def test_an_import_that_is_refused_writes_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    facts = tmp_path / "facts.yaml"
    text = (SAMPLES / CASES["junit"].facts).read_text()
    facts.write_text(text.replace("  refuse-rows:", "  something-else:"))
    words = arguments("junit", tmp_path / "bundle")
    words[words.index("--facts") + 1] = str(facts)
    assert run(words) == 2
    assert "facts.yaml: saw no key `cells.refuse-rows`" in capsys.readouterr().err
    assert not (tmp_path / "bundle").exists()


def test_a_cell_of_a_run_is_imported_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(arguments("junit", tmp_path)) == 0
    before = [path.read_bytes() for path in tmp_path.iterdir()]
    assert run(arguments("junit", tmp_path)) == 2
    assert "want a run id of its own" in capsys.readouterr().err
    assert [path.read_bytes() for path in tmp_path.iterdir()] == before
    assert run(arguments("lm-eval", tmp_path)) == 0  # other cells of the same run
    assert len(statements(tmp_path).entries) == 3


def test_a_statement_that_shows_nothing_is_imported_and_called_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    facts = tmp_path / "facts.yaml"
    text = (SAMPLES / CASES["vllm-bench"].facts).read_text()
    facts.write_text(text.replace("fallbacks: 0", "fallbacks: 2"))
    words = arguments("vllm-bench", tmp_path / "bundle")
    words[words.index("--facts") + 1] = str(facts)
    assert run(words) == 0
    assert "shows nothing: 2 steps fell back" in capsys.readouterr().out


def test_an_entry_without_a_result_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given_map = tmp_path / "map.yaml"
    text = (SAMPLES / CASES["lm-eval"].map).read_text()
    later = text[text.index("  - id:") :].replace("gsm8k", "later")
    given_map.write_text(text + later)
    words = arguments("lm-eval", tmp_path / "bundle")
    words[words.index("--map") + 1] = str(given_map)
    assert run(words) == 0
    assert "later: an entry of the map without a result" in capsys.readouterr().out


def test_a_file_that_is_not_there_is_bad_input(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = arguments("junit", tmp_path)
    words[3] = str(tmp_path / "missing.xml")
    assert run(words) == 2
    assert "No such file" in capsys.readouterr().err


def test_the_command_is_listed_and_imported_by_its_name(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(["evidence", "--help"]) == 0
    assert "import" in capsys.readouterr().out
    assert run(["evidence", "import", "--help"]) == 0
    assert "FORMAT" in capsys.readouterr().out


def test_the_help_of_the_group_imports_no_importer() -> None:
    code = (
        "import sys; from fasttrack.cli.main import run; run(['evidence', '--help']);"
        "sys.exit(any(m.startswith('fasttrack.evidence') for m in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("option", ["FILE", "--map", "--facts", "--baseline"])
def test_a_pipe_is_no_file_and_nobody_waits_for_its_other_end(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], option: str
) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    words = arguments("lm-eval", tmp_path / "bundle")
    words[3 if option == "FILE" else words.index(option) + 1] = str(pipe)
    assert run(words) == 2
    assert f"{pipe}: saw no plain file" in capsys.readouterr().err
