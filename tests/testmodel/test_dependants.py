# SPDX-License-Identifier: Apache-2.0
"""Edits of helpers: what they take from the tests that use them, the cases of `dependants.yaml`."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from .changed import taken

CASES = yaml.safe_load(
    (Path(__file__).parent.parent / "cases" / "dependants.yaml").read_text(encoding="utf-8")
)
_IMPORTS = (
    "import pytest\nimport torch\n\nfrom host.fast import kernels\nfrom reference import oracle\n"
)


def _files(case: dict[str, Any]) -> dict[str, str]:
    found: dict[str, str] = {}
    for path, text in case["base"].items():
        whole = text.replace("{imports}", _IMPORTS)
        numbers = range(case.get("copies", 1)) if "{n}" in path else [0]
        found |= {path.replace("{n}", str(number)): whole for number in numbers}
    return found


@pytest.mark.parametrize("name", CASES)
def test_an_edit_of_a_helper_takes_from_its_users_what_the_table_says(name: str) -> None:
    case: dict[str, Any] = CASES[name]
    base = _files(case)
    head: dict[str, str | None] = {}
    for path, (old, new) in case["head"].items():
        assert old in base[path]
        head[path] = base[path].replace(old, new)
    assert sorted(taken(base, head)) == sorted(case["takes"])
