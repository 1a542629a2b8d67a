# SPDX-License-Identifier: Apache-2.0
"""Files that come, go or lead elsewhere make stale exactly the units whose files are not the same.

Each change is read before and after by `dependencies`, which compares what the units have of files.
"""

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from fasttrack.evidence.status import Status
from fasttrack.testing import Content, File

from .dependencies import Commit, Dependencies
from .scratch import MANIFEST, Scratch

RESIDUAL = "kimi_k3/mini/residual.py"
ROUTER = "kimi_k3/mini/router.py"
IMPORTS = """
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import kimi_k3.mini.head


def late() -> None:
    import kimi_k3.mini.windows
    import kimi_k3.reference.kda_forms
"""
"""What is added to one of the files: a type, a file of the roots, and a reference."""
CHANGES: Mapping[str, tuple[Callable[[Commit], Mapping[str, Content]], bool]] = {
    "a new file that a pattern names": (lambda _: {"kimi_k3/mini/residual_wide.py": ""}, True),
    "a new file that no unit has": (lambda _: {"kimi_k3/mini/spare.py": ""}, False),
    "a new conftest.py above tests": (lambda _: {"tests/kimi_k3/mini/conftest.py": ""}, True),
    "a new conftest.py beside them": (lambda _: {"tests/adopt/conftest.py": ""}, False),
    "a file that others import goes": (lambda _: {"kimi_k3/mini/cast.py": None}, True),
    "a file may be executed": (lambda at: {RESIDUAL: File(at.text(RESIDUAL), "100755")}, True),
    "a reference imports another": (
        lambda at: _longer(at, "kimi_k3/reference/router.py", "import kimi_k3.reference.kda_forms"),
        True,
    ),
    "a file that a function imports": (lambda at: _longer(at, "kimi_k3/mini/windows.py"), True),
    "a file that only type checkers import": (lambda at: _longer(at, "kimi_k3/mini/head.py"), True),
    "a reference that only a unit imports": (
        lambda at: _longer(at, "kimi_k3/reference/kda_forms.py"),
        True,
    ),
    "a boundary imports a file of the roots": (
        lambda at: _longer(at, "kimi_k3/packed.py", "import kimi_k3.mini.router"),
        False,
    ),
    "a namesake of a module in the tests' package": (
        lambda _: {"tests/kimi_k3/operators/kda.py": ""},
        False,
    ),
}
"""What changes, and whether a unit's evidence is about something else then."""


@pytest.fixture(scope="module")
def shaped(scratch: Scratch) -> str:
    """A branch with a pattern and with imports of every sort, and evidence for what it owes."""

    def edit(manifest: dict[str, Any]) -> None:
        unit = next(u for u in manifest["units"] if RESIDUAL in u["files"])
        unit["files"] = ["kimi_k3/mini/residual*.py"]

    router = scratch.read(scratch.tip).text(ROUTER) + IMPORTS
    files = {**scratch.rewritten(MANIFEST, edit), ROUTER: router}
    tip = scratch.repo.commit("shaped", files, parent=scratch.tip)
    return scratch.repo.commit("shaped", scratch.evidence(tip, "5" * 32))


@pytest.fixture(scope="module")
def before(scratch: Scratch, shaped: str) -> Dependencies:
    return scratch.dependencies(shaped)


@pytest.mark.parametrize("name", CHANGES)
def test_exactly_the_units_are_stale_whose_files_are_not_the_same(
    scratch: Scratch, shaped: str, before: Dependencies, name: str
) -> None:
    change, moves = CHANGES[name]
    head = scratch.repo.commit("topic", change(before.commit), parent=shaped)
    moved = scratch.dependencies(head).moved(before)
    assert bool(moved) is moves
    told = scratch.told(head, target="shaped")
    want = {cell for cell, unit in scratch.cells.items() if unit in moved}
    assert {c for c, answer in told.said.items() if answer.status is Status.STALE} == want
    assert told.owed.keys() == want
    assert len(want) < len(scratch.cells) or "conftest.py" in name


def _longer(commit: Commit, path: str, line: str = "# More.") -> Mapping[str, Content]:
    return {path: f"{commit.text(path)}{line}\n"}
