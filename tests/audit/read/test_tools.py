# SPDX-License-Identifier: Apache-2.0
"""The tools: where they are looked for, and how far they may go."""

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from fasttrack.audit.read import tools
from fasttrack.audit.read.tools import ask, assemble, path_of
from fasttrack.errors import FactUnavailable, InputError


@pytest.fixture
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A search path with one empty folder, and no packages of NVIDIA's."""
    monkeypatch.setattr(tools, "_package_folders", tuple)
    monkeypatch.setenv("PATH", str(tmp_path))
    return tmp_path


def _put(folder: Path, tool: str, script: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / tool
    file.write_text(f"#!{sys.executable}\n{script}")
    file.chmod(0o755)
    return file


@pytest.mark.parametrize("tool", ["nvdisasm", "cuobjdump"])
def test_a_missing_reader_names_the_extra(alone: Path, tool: str) -> None:
    with pytest.raises(InputError) as raised:
        ask(tool, (), b"")
    assert str(raised.value) == (
        f"{tool}: saw not installed; want NVIDIA's tool that reads cubins; "
        "fix: pip install 'fasttrack-decode[audit]'"
    )


def test_a_missing_assembler_names_its_package(alone: Path) -> None:
    with pytest.raises(InputError, match=r"ptxas: saw not.*fix: pip install 'nvidia-cuda-nvcc'$"):
        assemble(b"", "sm_90a")


def test_a_tool_of_this_environment_comes_before_the_search_path(
    alone: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    on_path = _put(alone, "nvdisasm", "")
    assert path_of("nvdisasm") == str(on_path)
    older = _put(alone / "nvidia" / "cu12" / "bin", "nvdisasm", "")
    monkeypatch.setattr(tools, "_package_folders", lambda: (str(alone / "nvidia"),))
    assert path_of("nvdisasm") == str(older)
    newer = _put(alone / "nvidia" / "cu13" / "bin", "nvdisasm", "")
    assert path_of("nvdisasm") == str(newer)


def test_the_file_and_the_options_are_given_and_the_output_comes_back(alone: Path) -> None:
    _put(alone, "nvdisasm", "import sys; print(sys.argv[1], open(sys.argv[2]).read())")
    assert ask("nvdisasm", ("-json",), b"bytes") == "-json bytes\n"


def test_a_tool_that_fails_is_told_in_its_first_line_without_our_paths(alone: Path) -> None:
    script = (
        "import sys; sys.stderr.write(f'\\n  fatal   : {sys.argv[-1]} is odd\\nmore'); sys.exit(3)"
    )
    _put(alone, "nvdisasm", script)
    with pytest.raises(FactUnavailable) as raised:
        ask("nvdisasm", ("-c",), b"")
    assert str(raised.value) == "nvdisasm can not read it: fatal : the file is odd"


def test_a_tool_that_dies_without_a_word_is_told_by_its_status(alone: Path) -> None:
    _put(alone, "nvdisasm", "import os; os.kill(os.getpid(), 9)")
    with pytest.raises(FactUnavailable, match="nvdisasm can not read it: exit status -9"):
        ask("nvdisasm", (), b"")


def test_a_tool_that_does_not_end_is_stopped(alone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _put(alone, "nvdisasm", "import time; time.sleep(60)")
    monkeypatch.setattr(tools, "PATIENCE", 0.2)
    with pytest.raises(FactUnavailable, match=r"nvdisasm took more than 0\.2 s by the clock"):
        ask("nvdisasm", (), b"")


def test_a_tool_that_computes_without_end_is_stopped_by_its_own_time(
    alone: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _put(alone, "nvdisasm", "while True: pass")
    monkeypatch.setattr(tools, "SECONDS", 1)
    with pytest.raises(FactUnavailable, match=r"nvdisasm took more than 1 s$"):
        ask("nvdisasm", (), b"")


def test_a_tool_that_writes_without_end_is_stopped(
    alone: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _put(alone, "nvdisasm", "while True: print('x' * 65536)")
    monkeypatch.setattr(tools, "OUTPUT", 1 << 20)
    with pytest.raises(FactUnavailable, match="nvdisasm can not read it"):
        ask("nvdisasm", (), b"")


def test_a_tool_sees_nothing_of_the_environment(
    alone: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _put(alone, "nvdisasm", "import os; print(sorted(set(os.environ) - {'LC_CTYPE'}))")
    monkeypatch.setenv("NVDISASM_OPTIONS", "-x")
    assert ask("nvdisasm", (), b"") == "['LC_ALL']\n"


def test_packages_are_looked_for_where_python_finds_them(monkeypatch: pytest.MonkeyPatch) -> None:
    spec = SimpleNamespace(submodule_search_locations=["/a", "/b"])
    for found, folders in ((spec, ("/a", "/b")), (None, ())):
        monkeypatch.setattr("importlib.util.find_spec", lambda _name, found=found: found)
        assert tuple(tools._package_folders()) == folders
