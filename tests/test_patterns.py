# SPDX-License-Identifier: Apache-2.0
"""Regular expressions mean the same on every Python that is supported."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
_GROUP = re.compile(r"\)(?:[*+?]|\{\d*,?\d*\})\+|\(\?>")


def texts(path: Path) -> Iterator[tuple[int, str]]:
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Constant) and isinstance(node.value, str | bytes):
            value = node.value if isinstance(node.value, str) else node.value.decode("latin-1")
            yield node.lineno, value


def test_no_pattern_has_a_possessive_group_which_early_releases_of_3_11_get_wrong() -> None:
    """They forget what lies behind it; a possessive class of characters is right everywhere."""
    assert _GROUP.search("(?:a|b)*+c")
    assert not _GROUP.search("[ab]*+c")
    found = [
        f"{path.relative_to(ROOT)}:{line}"
        for package in ("fasttrack", "kimi_k3", "scripts")
        for path in sorted((ROOT / package).rglob("*.py"))
        for line, text in texts(path)
        if _GROUP.search(text) and not text.count(" ") > len(text) / 8
    ]
    assert found == []
