# SPDX-License-Identifier: Apache-2.0
"""Which edits of a Python file change comments and docstrings only."""

import pytest

from fasttrack.errors import FactUnavailable
from fasttrack.rules.confinement.same_program import is_same_program

OLD = '''\
"""A module."""

import os


class Path:
    """A path."""

    def join(self, *parts, sep=None, end: str = "x"):
        """Joins."""
        global COUNT  # counted
        return sep.join(parts)


async def wait():
    """
    >>> wait()
    """
    for x in [1, 2]:
        print(f"{x}")
    return lambda *, a, b=None: {**a}
'''


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("# counted", "# counted here"),
        ("  # counted", ""),
        ('"""A module."""', '"""Another module."""\n\n# Why.'),
        ('    """A path."""\n', '    """What a path is."""\n'),
        ("*parts, sep=None", "*parts,\n             sep=None"),
        ("import os", "import os\n\n\n"),
    ],
)
def test_comments_docstrings_and_layout_are_no_program(before: str, after: str) -> None:
    assert before in OLD
    assert is_same_program(OLD, OLD.replace(before, after))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("import os", "import sys"),
        ("import os", "import os\nimport sys"),
        ("sep=None", "sep=0"),
        ("[1, 2]", "[1, True]"),
        ("[1, 2]", "(1, 2)"),
        ("*, a, b=None", "*, a=None, b"),
        ("async def", "def"),
        ("global COUNT", "nonlocal COUNT"),
        ("global COUNT", "global COUNTS"),
        ('"{x}"', '"{x!r}"'),
        (">>> wait()", ">>> wait(1)"),
        ('"""Joins."""', '"""PYTEST_DONT_REWRITE"""'),
        ('        """Joins."""\n', ""),
        ("# counted", "# type: ignore"),
        ("# counted", "# noqa"),
        ("# counted", "# pragma: no cover"),
    ],
)
def test_what_runs_or_instructs_a_tool_is_program(before: str, after: str) -> None:
    assert before in OLD
    assert not is_same_program(OLD, OLD.replace(before, after))


@pytest.mark.parametrize("reader", ["__doc__", "inspect.getdoc(x)", "inspect.getsource(x)"])
def test_a_module_that_reads_its_own_text_is_its_text(reader: str) -> None:
    old = f"'''A module.'''\nx = {reader}\n"
    assert not is_same_program(old, old.replace("A module", "Another"))


def test_a_tree_deeper_than_the_stack_is_compared() -> None:
    old = "x = " + "+".join(["1"] * 1500) + "\n"
    assert is_same_program(old, "# Why.\n" + old)
    assert not is_same_program(old, old.replace("x = 1", "x = 2"))


def test_a_file_that_does_not_parse_can_not_be_told() -> None:
    with pytest.raises(FactUnavailable, match="not Python"):
        is_same_program("print 1\n", "print 2\n")
