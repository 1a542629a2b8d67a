# SPDX-License-Identifier: Apache-2.0
"""Which edits of a test module only add tests."""

from pathlib import Path

import pytest
import yaml

from fasttrack.errors import FactUnavailable
from fasttrack.rules.confinement.grown_tests import only_gains_tests

OLD = """\
import pytest
from engine import gate, needs_gpu


def twice(n):
    return 2 * n


@needs_gpu
def test_twice():
    assert twice(1) == 2


@pytest.mark.parametrize("n", TestAll)
def test_all():
    assert test_helper is fast is None
"""
IMPORT = "from engine import gate, needs_gpu"
VARIANTS = {
    "old": OLD,
    "marked": OLD.replace("def test_twice", "@pytest.mark.skip\ndef test_twice"),
    "more": OLD.replace(IMPORT, "from engine import gate, loader, needs_gpu"),
    "less": OLD.replace(IMPORT, "from engine import needs_gpu"),
    "elsewhere": OLD.replace(IMPORT, "from engines import gate, needs_gpu"),
    "everything": OLD.replace(IMPORT, "from engine import *"),
    "shadow": OLD.replace(IMPORT, "from engine import gate, needs_gpu, twice"),
    "renamed": OLD.replace(IMPORT, "from engine import gate, needs_gpu, x as twice"),
    "skipping": OLD.replace(IMPORT, "from engine import gate, needs_gpu, test_gate"),
}
CASES = yaml.safe_load(
    (Path(__file__).parents[1] / "cases/grown_tests.yaml").read_text(encoding="utf-8")
)


def _new(text: str) -> str:
    for name, variant in VARIANTS.items():
        text = text.replace(f"{{{name}}}", variant)
    return text


@pytest.mark.parametrize("name", CASES["passes"])
def test_an_edit_that_only_adds_tests_is_told(name: str) -> None:
    assert only_gains_tests(OLD, _new(CASES["passes"][name]))


@pytest.mark.parametrize("name", CASES["reported"])
def test_an_edit_that_can_change_what_a_test_judges_is_told(name: str) -> None:
    assert not only_gains_tests(OLD, _new(CASES["reported"][name]))


def test_a_module_that_does_not_parse_can_not_be_told() -> None:
    with pytest.raises(FactUnavailable, match="not Python"):
        only_gains_tests(OLD, OLD + "def")
