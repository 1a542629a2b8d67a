# SPDX-License-Identifier: Apache-2.0
"""A small project with tests that take a cell, and plans of it, made without git."""

import atexit
import hashlib
import json
import platform
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import mkdtemp
from types import MappingProxyType
from typing import Any

from fasttrack.case import lies_in
from fasttrack.evidence.child import Outcome, Runs, measure
from fasttrack.evidence.child_report import ChildReport, Job
from fasttrack.evidence.digest import InputFile, files_digest
from fasttrack.evidence.plan import Plan, parse_plan
from fasttrack.evidence.predicates.common import CellFacts
from fasttrack.evidence.shape import judging_digest
from fasttrack.vocabulary import Kind

ARCH = platform.machine().lower()
UNIT = "smooth"
SOURCE = "beacon/smooth.py"
TEST = "tests/test_smooth.py"
SEEDS = (5, 7)
NONCE = "a" * 32
NO_FILES: Mapping[str, str] = MappingProxyType({})
HEAD = "from collections.abc import Mapping\nimport os\nimport sys\nimport time\nimport pytest\n"


def write(root: Path, files: Mapping[str, str]) -> None:
    """Puts files on disk."""
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text, encoding="utf-8")


def project(root: Path, body: str, **more: str) -> Path:
    """A source tree whose one test file has this body, and more files by path."""
    files = {"beacon/__init__.py": "", SOURCE: "WIDTH = 3\n", "pyproject.toml": "", TEST: body}
    write(root, files | more)
    return root


def job(**values: str | int) -> Job:
    """A cell of the unit."""
    cell = CellFacts(kind=Kind.KERNEL_TEST, region="r", values={"unit": UNIT, **values})
    return Job(nonce=NONCE, cell=cell, seeds=SEEDS)


OWN = ("beacon", "tests")
"""Folders whose packages are the project's own."""
BYTECODE = Path(mkdtemp(prefix="fasttrack-tests-"))
"""Shared by children of the tests, as pytest itself is compiled again otherwise."""
atexit.register(shutil.rmtree, BYTECODE, ignore_errors=True)


def run_child(root: Path, *tests: str, timeout_s: float = 60) -> Outcome:
    """What comes of a child that runs these tests of a project."""
    runs = Runs(tests or (TEST,), OWN)
    return measure(root, runs, job(rows=1), BYTECODE, walled=False, timeout_s=timeout_s)


def measured(root: Path, body: str, more: Mapping[str, str] = NO_FILES) -> Outcome:
    """What comes of a child that runs a test file with this body."""
    return run_child(project(root, HEAD + body, **more))


def reported(root: Path, body: str, more: Mapping[str, str] = NO_FILES) -> ChildReport:
    """The report of a child that runs a test file with this body."""
    outcome = measured(root, body, more)
    assert outcome.report is not None, (outcome.why, outcome.log)
    return outcome.report


def planned(rows: int, **changes: Any) -> dict[str, Any]:
    """One kernel-test cell of a plan, or another with these fields."""
    values = {"unit": UNIT, "rows": rows, "hardware": "here"}
    kernel = {"kind": "kernel-test", "region": "r", "values": values, "unit": UNIT}
    return kernel | {"tests": [TEST], "seeds": list(SEEDS)} | changes


def refusal(past: int) -> dict[str, Any]:
    """One refusal cell of a plan."""
    values = {"region": "r", "bound": "rows_max", "rows": past}
    return planned(0, kind="refusal", values=values, unit="gate-files", seeds=[])


def plan_of(root: Path, cells: Sequence[Mapping[str, Any]], **changes: Any) -> Plan:
    """A plan of these cells for the files that are on disk."""
    units = sorted({cell["unit"] for cell in cells})
    whole = {
        "plan": 1,
        "id": "b" * 32,
        "created": "2026-11-29T12:00:00Z",
        "commit": "c" * 40,
        "tree": "d" * 40,
        "manifest": {"name": "beacon", "path": "manifests/beacon.yaml", "sha256": "e" * 64},
        "floors": {
            "kernel_seeds": len(SEEDS),
            "stress_iterations": 1,
            "stress_profile": "smoke",
            "eval_samples": 1,
            "eval_drop_max": 0.1,
        },
        "archs": {"here": ARCH, "h200": "sm_90a", "other": ARCH},
        "packages": ["pytest", "absent"],
        "roots": ["beacon/"],
        "unbound": ["manifests/", "pyproject.toml"],
        "beside": sorted(path for path in _tracked(root) if _is_beside(path)),
        "units": [_unit(root, unit) for unit in units],
        "cells": [*cells],
    }
    return parse_plan(json.dumps(whole | changes).encode(), "a plan")


def _unit(root: Path, unit: str) -> dict[str, Any]:
    files = [_file(root, "beacon/__init__.py"), _file(root, SOURCE)]
    tests = [_file(root, path) for path in ("tests/conftest.py", TEST) if (root / path).exists()]
    return {
        "unit": unit,
        "digest": _digest(files),
        "tests_digest": judging_digest(
            (InputFile(f["path"], f["mode"], f["sha256"], "") for f in tests),
            ["beacon/"],
            [f["path"] for f in tests if f["path"] == TEST],
        ),
        "files": files,
        "tests": tests,
        "boundary": [],
        "patterns": ["tests/**"],
        "variants": None,
    }


def _tracked(root: Path) -> Iterator[str]:
    """Every file, as if git had it."""
    return (path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file())


def _is_beside(path: str) -> bool:
    if lies_in(["beacon/"], path):
        return False
    return path.endswith(".py") or lies_in(["manifests/", "pyproject.toml"], path)


def _file(root: Path, path: str) -> dict[str, str]:
    digest = hashlib.sha256((root / path).read_bytes()).hexdigest()
    return {"path": path, "mode": "100644", "sha256": digest}


def _digest(files: Sequence[Mapping[str, str]]) -> str:
    return files_digest(InputFile(f["path"], f["mode"], f["sha256"], "") for f in files)
