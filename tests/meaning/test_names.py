# SPDX-License-Identifier: Apache-2.0
"""What a name means, whose it is, and what stays the same effect when code moves."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from fasttrack.meaning.effects import brought
from fasttrack.meaning.modules import Modules

from .corpus import Files, Made, project
from .judged import MemoryChange, case_of

CASES = Path(__file__).parent.parent / "cases" / "meaning" / "names.yaml"
ACT = "host/fast/act.py"
CHANGED = "from host.shared import ops\n\n\ndef act(value):\n    ops.LIMIT = value\n"


def _cases() -> list[Any]:
    data = yaml.safe_load(CASES.read_text(encoding="utf-8"))
    return [
        pytest.param(case.get("base", {}), case["change"], case["reaches"], id=name)
        for name, case in data.items()
    ]


def reached(change: Mapping[str, str | None], base: Files) -> list[str]:
    """Targets of the effects that a change of the host project brings; None deletes a file."""
    before = {**project(), **base}
    after = {path: text for path, text in {**before, **change}.items() if text is not None}
    case = replace(case_of(Made(before, {})), change=MemoryChange(before, after))
    return sorted(effect.target for _, effect in brought(case))


@pytest.mark.parametrize(("base", "change", "reaches"), _cases())
def test_a_name_means_what_python_takes_it_for(
    base: Files, change: Files, reaches: list[str]
) -> None:
    assert reached(change, base) == reaches


@pytest.mark.parametrize(
    ("importer", "module", "level", "means"),
    [
        ("a/b/c.py", "x", 0, "x"),
        ("a/b/c.py", "", 1, "a.b"),
        ("a/b/c.py", "x", 1, "a.b.x"),
        ("a/b/c.py", "x.y", 2, "a.x.y"),
        ("a/b/c.py", "x", 3, ""),
        ("a/b/__init__.py", "x", 1, "a.b.x"),
        ("a/b/__init__.py", "x", 2, "a.x"),
        ("a/b/__init__.py", "", 3, ""),
        ("loose/c.py", "x", 1, ""),
    ],
)
def test_dots_count_from_the_package_that_a_file_is_in(
    importer: str, module: str, level: int, means: str
) -> None:
    modules = Modules({"a/__init__.py", "a/b/__init__.py", "a/b/c.py", "loose/c.py"}, ["a/b/"])
    assert modules.absolute(importer, module, level) == means


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("pkg", "src/pkg/__init__.py"),
        ("pkg.mod", "src/pkg/mod.py"),
        ("pkg.stub", "src/pkg/stub.pyi"),
        ("pkg.none", None),
        ("tool", "tool.py"),
        ("json", None),
        ("", None),
    ],
)
def test_a_dotted_name_is_looked_up_above_the_outermost_package_and_at_the_top(
    name: str, path: str | None
) -> None:
    tree = {"src/pkg/__init__.py", "src/pkg/mod.py", "src/pkg/stub.pyi", "tool.py", "src/json.py"}
    modules = Modules(tree, ["src/pkg/"])
    assert modules.path_of(name) == path
    assert path is None or modules.name_of(path) == name


HEADS: Mapping[str, Mapping[str, str | None]] = {
    "lines above it": {ACT: "import math\n\nRATE = math.pi\n" + CHANGED},
    "another spelling": {ACT: CHANGED.replace("ops.LIMIT = value", "ops . LIMIT=(value)  # old")},
    "another function": {ACT: CHANGED.replace("def act(value):", "def other(value):")},
    "deeper": {ACT: CHANGED.replace("    ops.LIMIT", "    if value:\n        ops.LIMIT")},
    "another name for a value": {ACT: CHANGED.replace("value", "given")},
    "another file": {ACT: None, "host/fast/moved.py": CHANGED},
    "a call from another function": {ACT: CHANGED + "\n\ndef more(value):\n    act(value)\n"},
}


@pytest.mark.parametrize("head", HEADS.values(), ids=HEADS.keys())
def test_an_effect_that_was_there_is_not_told_when_its_code_moves(
    head: Mapping[str, str | None],
) -> None:
    assert reached({ACT: CHANGED}, {}) == ["host.shared.ops.LIMIT"]
    assert reached(head, {ACT: CHANGED}) == []


@pytest.mark.parametrize(
    "head",
    [
        {ACT: CHANGED + "    ops.LIMIT = value\n"},
        {ACT: CHANGED.replace("= value", "= 9")},
        {"host/fast/copied.py": CHANGED},
        {ACT: CHANGED + "\n\nact(9)\n"},
    ],
    ids=["once more", "to another value", "in another file too", "now at import"],
)
def test_an_effect_that_is_new_is_told_beside_the_old_one(head: Mapping[str, str | None]) -> None:
    assert reached(head, {ACT: CHANGED}) == ["host.shared.ops.LIMIT"]


def test_what_happened_at_import_may_wait_for_a_call() -> None:
    before = "from host.shared import ops\n\nops.LIMIT = 9\n"
    after = "from host.shared import ops\n\n\ndef act():\n    ops.LIMIT = 9\n"
    assert reached({ACT: after}, {ACT: before}) == []
    assert reached({ACT: before}, {ACT: after}) == ["host.shared.ops.LIMIT"]
