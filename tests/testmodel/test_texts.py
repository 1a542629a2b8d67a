# SPDX-License-Identifier: Apache-2.0
"""Which names of a module may mean something else after an edit; None: all of them."""

import ast

import pytest

from fasttrack.testmodel.texts import Outline, outline, tainted

HOOK = "def pytest_configure(config):\n    config.option.rows = 1\n"
NAMED = '    config.addinivalue_line(\n        "markers", "solo: alone"\n    )\n'


def outlined(text: str) -> Outline:
    return outline(ast.parse(text), text.split("\n"))


def test_a_marker_that_is_named_or_named_no_more_takes_nothing_from_any_test() -> None:
    assert tainted(outlined(HOOK), outlined(HOOK + NAMED)) == frozenset()
    assert tainted(outlined(HOOK + NAMED), outlined(HOOK)) == frozenset()


@pytest.mark.parametrize(
    "edited",
    [
        HOOK.replace("1", "2"),
        HOOK + NAMED.replace("markers", "filterwarnings"),
        HOOK + NAMED.replace('"solo: alone"', "config.option.pop('keyword')"),
        HOOK + NAMED.replace("config.", "changed(config)."),
        HOOK + "    config.option.keyword = 'solo'; " + NAMED.strip() + "\n",
    ],
)
def test_whatever_else_a_hook_does_concerns_all_tests(edited: str) -> None:
    assert tainted(outlined(HOOK), outlined(edited)) is None
