# SPDX-License-Identifier: Apache-2.0
"""The ids that the model reads from a text are those that pytest collects."""

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import Phase, given, settings

from .sources import follow, module


def _collected(text: str, where: Path) -> list[str]:
    (where / "test_it.py").write_text(text, encoding="utf-8")
    (where / "pytest.ini").write_text("[pytest]\n", encoding="ascii")
    options = ("-q", "--collect-only", "-p", "no:cacheprovider", "-p", "no:randomly")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, "--rootdir", where, where],
        capture_output=True, text=True, check=False, encoding="utf-8",
    )  # fmt: skip
    assert done.returncode in {0, 5}, done.stdout + done.stderr
    lines = [line for line in done.stdout.split("\n") if line.startswith("test_it.py::")]
    return sorted(line.partition("::")[2] for line in lines)


@settings(max_examples=6, deadline=None, phases=[Phase.generate])
@given(text=module())
def test_any_parametrisation_has_the_ids_that_pytest_collects(
    tmp_path_factory: pytest.TempPathFactory, text: str
) -> None:
    assert follow(text).ids() == _collected(text, tmp_path_factory.mktemp("collected"))


def test_marks_of_module_class_and_function_make_ids_in_pytest_s_order(tmp_path: Path) -> None:
    text = """import pytest

pytestmark = pytest.mark.parametrize("m", ["m0", "m1"])


class Base:
    def test_inherited(self, m, c):
        pass


@pytest.mark.parametrize("c", ["c0", "c1"])
class TestIn(Base):
    @pytest.mark.parametrize("x", ["x0"])
    @pytest.mark.parametrize("y", ["y0", "y1"])
    def test_it(self, m, c, x, y):
        pass


class TestMade:
    def __init__(self):
        pass

    def test_never(self, m):
        pass


class TestOff:
    __test__ = False

    def test_never(self, m):
        pass


for name in ("one", "two"):
    def made(m):
        pass

    globals()[f"test_{name}"] = made
"""
    text = text.replace("    def made", "\n    def made")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONWARNINGS", "ignore")
        assert follow(text).ids() == _collected(text, tmp_path)
