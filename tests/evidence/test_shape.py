# SPDX-License-Identifier: Apache-2.0
"""What of a manifest is in the tests digest: which files run, and the roots."""

import hashlib
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fasttrack.evidence.digest import InputFile
from fasttrack.evidence.shape import defines_tests, judging_digest, runs_of
from tests.engine import MANIFEST
from tests.evidence.units import inputs as inputs_of
from tests.evidence.units import lane, world

CORE = "tests: [tests/foo/test_core.py]"
MORE = ('    - "engine/foo/"\n', '    - "engine/foo/"\n    - "engine/bar/"\n')
GOES = ('paths: ["engine/foo/"', 'paths: ["engine/bar/", "engine/foo/"')
NAMES = st.lists(st.text("ab/é", min_size=1, max_size=4), unique=True, max_size=4)


@given(NAMES, NAMES, NAMES)
def test_the_digest_is_that_of_the_records_as_the_page_says(
    files: list[str], roots: list[str], runs: list[str]
) -> None:
    listed = [InputFile(path, "100644", "1" * 64, "") for path in files]
    by_hand = b"".join(
        f"{line}\0".encode()
        for line in (
            *(f"100644 {'1' * 64} {path}" for path in sorted(files, key=str.encode)),
            *(f"root {path}" for path in sorted(roots, key=str.encode)),
            *(f"run {path}" for path in sorted(runs, key=str.encode)),
        )
    )
    found = judging_digest(listed, reversed(roots), [*runs, *runs])
    assert found == hashlib.sha256(by_hand).hexdigest()


Edit = Callable[[str], str]
EDITS: dict[str, tuple[Edit, set[str]]] = {
    "fewer files run, of the same that are needed": (
        lambda text: text.replace("tests: [tests/foo/test_gate.py]", "tests: [tests/foo/more.py]"),
        {"rest", "path", "gate-files"},
    ),
    "other patterns for the same files": (
        lambda text: text.replace(CORE, 'tests: ["tests/foo/test_c*.py", tests/foo/test_core.py]'),
        set(),
    ),
    "other roots": (
        lambda text: text.replace(*MORE).replace(*GOES),
        {"core", "helper", "rest", "path", "gate-files"},
    ),
    "another tier and lease": (
        lambda text: text.replace("expires: 2027-01-30", "expires: 2027-01-29"),
        set(),
    ),
}


@pytest.mark.parametrize("edit", EDITS)
def test_what_runs_is_bound_and_nothing_else_of_the_manifest_is(tmp_path: Path, edit: str) -> None:
    change, wanted = EDITS[edit]
    repo, start = world(tmp_path)
    names = {"tests/foo/more.py": 'NEEDS = "tests/foo/test_gate.py"\n'}
    base = repo.commit("base", names, parent=start)
    text = lane()[MANIFEST]
    assert change(text) != text
    repo.commit("topic", {MANIFEST: change(text)}, parent=base)
    before, after = inputs_of(tmp_path, "base"), inputs_of(tmp_path, "topic")
    assert {unit for unit in before if before[unit].digest != after[unit].digest} == set()
    moved = {unit for unit in before if before[unit].tests_digest != after[unit].tests_digest}
    assert moved == wanted


def test_neither_packages_nor_fixtures_of_a_folder_run() -> None:
    paths = ("t/__init__.py", "t/conftest.py", "t/a.py", "t/cases.yaml", "u/a.py")
    assert runs_of(paths, ("t/**",)) == ("t/a.py",)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("def test_a(): pass\n", True),
        ("async def test_a(): pass\n", True),
        ("@mark\ndef test_a(): pass\n", True),
        ("@pytest.fixture\ndef test_a(): pass\n", False),
        ("TEXT = '''\ndef test_a(): pass\n'''\n", False),
        ("class TestA:\n    def test_a(self): pass\n", False),
        ("def helper(): pass\n", False),
        ("def test_a(: pass\n", False),
    ],
)
def test_a_file_surely_has_tests_where_a_function_at_its_top_is_one(
    text: str, wanted: bool
) -> None:
    assert defines_tests(text) is wanted
