# SPDX-License-Identifier: Apache-2.0
"""What a file of tests takes from a helper by import: its bytes tell what Python would see."""

import ast
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from fasttrack.testmodel.taken import Taken

PATH, HELPER = "tests/a/test_x.py", "tests/a/utils.py"
CASES = yaml.safe_load(
    (Path(__file__).parent.parent / "cases" / "imports_of_tests.yaml").read_text(encoding="utf-8")
)


@pytest.mark.parametrize("case", CASES, ids=[case["text"] for case in CASES])
def test_an_import_takes_what_the_table_says_or_hides_it(case: dict[str, Any]) -> None:
    taken = Taken(PATH, case["text"].encode())
    if case["takes"] == "hidden":
        assert taken.may_hide(b"utils")
        return
    assert not taken.may_hide(b"utils")
    assert taken.of(HELPER) == (None if case["takes"] == "all" else set(case["takes"]))


_names = st.sampled_from(["a", "b", "close", "utils"])
_modules = st.sampled_from([".utils", "tests.a.utils", "a.utils", "utils", ".", "torch", ".more"])
_comments = st.sampled_from(["", "  # ()", "  # import utils", "  # from . import a"])


@st.composite
def _statement(draw: st.DrawFn) -> str:
    indent = draw(st.sampled_from(["", "    "]))
    names = draw(st.lists(_names, min_size=1, max_size=3, unique=True))
    spelled = [f"{n} as {n}_" if draw(st.booleans()) else n for n in names]
    comment = draw(_comments)
    listed = ", ".join(spelled) + comment
    if draw(st.booleans()):
        listed = (
            "(" + comment + "".join(f"\n{indent}  {n},{comment}" for n in spelled) + f"\n{indent})"
        )
    text = f"{indent}from {draw(_modules)} import {listed}"
    before = draw(st.sampled_from(["", "x = 1; ", "'''\n'''; "]))
    return f"if x:\n{text}\n" if indent else f"{before}{text}\n"


@given(st.lists(_statement(), max_size=5))
@settings(max_examples=300, deadline=None)
def test_no_import_that_python_sees_is_passed_over(statements: list[str]) -> None:
    text = "x = 1\n" + "".join(statements)
    taken = Taken(PATH, text.encode())
    found = taken.of(HELPER)
    for name in _wanted(ast.parse(text)):
        assert taken.may_hide(b"utils") or found is None or name in found


def _wanted(tree: ast.Module) -> list[str]:
    """Names that a module takes from the helper; `*` for the whole of it."""
    found: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            module = "." * node.level + (node.module or "")
            for alias in node.names:
                if module in {".utils", "tests.a.utils", "a.utils", "utils"}:
                    found.append(alias.name)
                elif module == "." and alias.name == "utils":
                    found.append("*")
    return found


def test_much_text_in_brackets_is_read_in_a_line_through() -> None:
    blob = b"from .utils import (" + b"# a\n" * 50_000 + b"import x\n" * 10
    assert Taken(PATH, blob).may_hide(b"utils")
