# SPDX-License-Identifier: Apache-2.0
"""Which files a process is seen to use."""

import sys
from pathlib import Path
from types import ModuleType

import pytest

from fasttrack.evidence import observed
from fasttrack.evidence.observed import imported_files, installed, opened_files, python
from tests.evidence.scratch import reported

OPENS = """
from pathlib import Path
def test_it(monkeypatch, tmp_path):
    Path("beacon/text.json").read_text()
    open(b"beacon/bytes.json").close()
    os.close(os.open("beacon/low.json", os.O_RDONLY))
    os.close(os.open("beacon/append.json", os.O_WRONLY))
    open("beacon/both.json", "r+").close()
    open("beacon/written.json", "w").close()
    open("beacon/extended.json", "a").close()
    open("beacon/gone.json").close(); os.unlink("beacon/gone.json")
    open("beacon/.hidden.json").close()
    open("link.json").close()
    with pytest.raises(FileNotFoundError): open("beacon/absent.json")
    with monkeypatch.context() as patch:
        patch.chdir("beacon"); open("moved.json").close()
    open(tmp_path / "outside", "w").close(); open(tmp_path / "outside").close()
    import beacon.smooth
    import beacon.used; del sys.modules["beacon.used"]
"""
NAMES = ("text", "bytes", "low", "append", "both", "written", "extended", "gone", ".hidden",
         "moved", "linked")  # fmt: skip


def test_every_way_to_read_a_file_of_the_tree_is_seen(tmp_path: Path) -> None:
    root = tmp_path / "project"
    (root / "beacon").mkdir(parents=True)
    (root / "link.json").symlink_to("beacon/linked.json")
    more = {f"beacon/{name}.json": "{}" for name in NAMES} | {"beacon/used.py": ""}
    report = reported(root, OPENS, more)
    seen = {path for path in report.opened if path.endswith(".json")}
    read = ("text", "bytes", "low", "both", "gone", ".hidden", "moved", "linked")
    assert seen == {f"beacon/{name}.json" for name in read} | {"link.json"}
    assert {"beacon/smooth.py", "tests/test_smooth.py"} <= {*report.imported}
    assert "beacon/used.py" in report.opened


def test_a_module_is_seen_by_its_file_and_an_environment_in_the_tree_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for path in ("a.py", "env/b.py", "__pycache__/c.py", ".git/d.py", ".d/e.py"):
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text("")
        module = ModuleType(path)
        module.__file__ = str(tmp_path / path)
        monkeypatch.setitem(sys.modules, path, module)
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "env"))
    assert imported_files(tmp_path) == [".d/e.py", "__pycache__/c.py", "a.py"]
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    assert imported_files(tmp_path / "env") == ["b.py"]


def test_links_to_the_tree_lead_to_what_they_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (root / "a.json").write_text("{}")
    (tmp_path / "other.json").write_text("{}")
    (tmp_path / "in").symlink_to(root / "a.json")
    (root / "out").symlink_to(tmp_path / "other.json")
    names = {str(tmp_path / "in"), str(root / "out"), str(tmp_path / "other.json")}
    monkeypatch.setattr(observed, "_OPENED", names)
    assert opened_files(root) == ["a.json", "out"]


def test_versions_are_those_of_this_interpreter() -> None:
    assert python() == ".".join(map(str, sys.version_info[:3]))
    assert installed()["pytest"] == pytest.__version__
