# SPDX-License-Identifier: Apache-2.0
"""A finding names the foreign object and how it was reached, with the file that each line is in."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from .corpus import Made, project
from .judged import case_of, findings

CASES = Path(__file__).parent.parent / "cases" / "meaning" / "ways.yaml"
FOLDER = "host/fast"


def _cases() -> list[Any]:
    data = yaml.safe_load(CASES.read_text(encoding="utf-8"))
    return [pytest.param(case, id=name) for name, case in data.items()]


@pytest.mark.parametrize("case", _cases())
def test_a_finding_tells_every_module_on_the_way(case: dict[str, Any]) -> None:
    others = {f"{FOLDER}/{name}.py": text for name, text in case.get("others", {}).items()}
    act = f"{FOLDER}/act.py"
    change = Made(project(), {**project(), **others, act: case["code"]})
    said = [found.saw for found in findings(case_of(change)) if found.path == act]
    assert said == [case["saw"]]
