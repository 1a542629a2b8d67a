# SPDX-License-Identifier: Apache-2.0
"""What a child can load of the tree, from its first moment on, and what is seen of it."""

import _json
from pathlib import Path

import pytest

from fasttrack.evidence.child import Outcome, Runs, measure
from fasttrack.evidence.child_report import ChildReport
from tests.evidence.scratch import BYTECODE, HEAD, OWN, TEST, job, project, reported, write

PASSES = "def test_it(): pass\n"
RIG = "import sys\nRIGGED = True\ndel sys.modules[__name__]\n"
"""A module that nobody finds afterwards."""
INSTALLED = ("iniconfig", "pluggy", "json", "_pytest", "pydantic", "encodings", "sitecustomize")


def report_of(outcome: Outcome) -> ChildReport:
    assert outcome.report is not None, (outcome.why, outcome.log)
    return outcome.report


@pytest.mark.parametrize("on_path", [True, False])
def test_no_file_of_the_tree_stands_in_for_what_is_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, on_path: bool
) -> None:
    if on_path:
        monkeypatch.setenv("PYTHONPATH", f"{tmp_path}::{tmp_path / 'tests'}", prepend=":")
    files = {f"{name}.py": RIG for name in INSTALLED}
    body = (
        "def test_it():\n    import iniconfig, json, pydantic, csv; assert not hasattr(csv, 'R')\n"
    )
    report = reported(tmp_path, body, files | {"csv.py": "R = 1\n"})
    assert report.results.failed == ()
    assert {*files, "csv.py"}.isdisjoint({*report.imported, *report.opened})


def test_what_the_interpreter_itself_loads_of_the_tree_is_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As an environment does that has the tree installed for editing.
    site = tmp_path / "site"
    write(site, {"tree.pth": f"import sys; sys.path.insert(0, {str(tmp_path / 'tree')!r})\n"})
    start = f"import site; site.addsitedir({str(site)!r})\nimport rigging\n"
    write(site, {"sitecustomize.py": start})
    monkeypatch.setenv("PYTHONPATH", str(site), prepend=":")
    report = reported(tmp_path / "tree", PASSES, {"rigging.py": RIG})
    assert "rigging.py" in report.opened


def test_a_module_that_an_earlier_child_compiled_is_seen_again(tmp_path: Path) -> None:
    body = "def test_it(): import helper\n"
    root = project(tmp_path, HEAD + body, **{"helper.py": RIG})
    for _ in range(2):
        outcome = measure(
            root, Runs((TEST,), OWN), job(rows=1), BYTECODE, walled=False, timeout_s=60
        )
        assert "helper.py" in report_of(outcome).opened


def test_the_trees_own_packages_are_the_trees_whatever_is_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "other"
    write(
        other, {"beacon/__init__.py": "", "beacon/smooth.py": "WIDTH = 4\n", "near.py": "N = 2\n"}
    )
    monkeypatch.setenv("PYTHONPATH", str(other), prepend=":")
    body = """
def width(_):
    from beacon.smooth import WIDTH
    return WIDTH
def test_it():
    import concurrent.futures, multiprocessing, near
    assert (width(0), near.N) == (3, 2)
    spawn = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(1, mp_context=spawn) as pool:
        assert list(pool.map(width, [0])) == [3]
"""
    report = reported(tmp_path / "tree", body, {"near.py": "N = 1\n"})
    assert report.results.failed == ()
    assert report.replaced == ("near.py",)
    assert "beacon/smooth.py" in report.imported
    assert "near.py" not in report.imported


def test_the_same_bytes_from_elsewhere_replace_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "other", {"near.py": "N = 1\n"})
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "other"), prepend=":")
    report = reported(tmp_path / "tree", "def test_it(): import near\n", {"near.py": "N = 1\n"})
    assert report.replaced == ()


def test_a_library_that_stands_before_a_source_is_seen_and_replaces_it(tmp_path: Path) -> None:
    library = Path(_json.__file__)
    (tmp_path / "beacon").mkdir()
    (tmp_path / "beacon" / library.name).write_bytes(library.read_bytes())
    body = "def test_it(): import beacon._json\n"
    report = reported(tmp_path, body, {"beacon/_json.py": "X = 1\n"})
    assert f"beacon/{library.name}" in report.imported
    assert report.replaced == ("beacon/_json.py",)
