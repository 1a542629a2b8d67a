# SPDX-License-Identifier: Apache-2.0
"""What hands an object on, and what only looks so: the reader alone, with every file parsed."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from .test_lexical import everything_parsed
from .test_names import ACT, reached

CASES = Path(__file__).parent.parent / "cases" / "meaning" / "hands.yaml"
IMPORTS = """\
from host.{whose} import ops
from host.{whose}.layers import Layer
from host.{whose}.ops import LIMITS, ORDER, scale

"""


def _cases(*, honest: bool) -> list[Any]:
    data = yaml.safe_load(CASES.read_text(encoding="utf-8"))
    return [
        pytest.param(case["code"], case.get("reaches", ["host.shared.ops.LIMIT"]), id=name)
        for name, case in data.items()
        if bool(case.get("honest")) is honest
    ]


def read(code: str, whose: str) -> list[str]:
    """What a module reaches out to that works on objects of the shared code, or on its own."""
    with everything_parsed():
        return reached({ACT: IMPORTS.format(whose=whose) + code}, {})


@pytest.mark.parametrize(("code", "reaches"), _cases(honest=False))
def test_what_is_handed_on_is_followed(code: str, reaches: list[str]) -> None:
    assert read(code, "shared") == reaches


@pytest.mark.parametrize(("code", "reaches"), _cases(honest=False))
def test_the_same_with_objects_of_the_path_reaches_nothing(code: str, reaches: list[str]) -> None:
    assert reaches
    assert read(code, "fast.own") == []


@pytest.mark.parametrize(("code", "reaches"), _cases(honest=True))
def test_what_only_holds_an_object_of_the_shared_code_reaches_nothing(
    code: str, reaches: list[str]
) -> None:
    assert reaches
    assert read(code, "shared") == []
