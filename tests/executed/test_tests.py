# SPDX-License-Identifier: Apache-2.0
"""Collection of tests on both sides, and the target branch's tests over the change's code."""

from pathlib import Path

import pytest

from fasttrack.executed.base_tests import run_base_tests
from fasttrack.executed.collection import collect_tests
from fasttrack.executed.contract import contract_changes, renamed_twins
from fasttrack.ran import BaseTests, Collection
from fasttrack.testing import Content
from tests.executed.scratch import TEST, TIMEOUT_S, facts, sandboxed, silent

KERNEL = "engine/foo/attention.py"
CODE = "BLOCK = 32\n\n\ndef attend(q, k, *, scale=1):\n    return q * k * scale\n"
TESTS = """
import pytest
from engine.foo.attention import attend


@pytest.mark.parametrize("q", [1, 2, 3])
def test_product(q):
    assert attend(q, 2) == 2 * q


class TestZero:
    def test_zero(self):
        assert attend(0, 2) == 0


def test_skipped():
    pytest.skip("always")
"""
PYTEST = "pytest.ini"


def collected(
    where: Path, change: dict[str, Content], base: dict[str, Content] | None = None
) -> Collection:
    with facts(where, {KERNEL: CODE, TEST: TESTS, **(base or {})}, change) as case:
        return collect_tests(case, TIMEOUT_S, silent)


def base_tests(
    where: Path, change: dict[str, Content], base: dict[str, Content] | None = None
) -> BaseTests:
    with facts(where, {KERNEL: CODE, TEST: TESTS, **(base or {})}, change) as case:
        return run_base_tests(case, TIMEOUT_S, silent)


ALL = (
    *("test_product[1]", "test_product[2]", "test_product[3]"),
    *("TestZero::test_zero", "test_skipped"),
)
LOST = {
    "a parameter": ({TEST: TESTS.replace("[1, 2, 3]", "[1, 2]")}, ("test_product[3]",)),
    "a computed parameter": (
        {TEST: TESTS.replace("[1, 2, 3]", "[x for x in range(1, 9) if x * x < 5]")},
        ("test_product[3]",),
    ),
    "a test": ({TEST: TESTS.replace("def test_zero", "def zero")}, ("TestZero::test_zero",)),
    "a module that skips itself": (
        {TEST: "import pytest\npytest.skip('no', allow_module_level=True)\n"},
        ALL,
    ),
    "a hook": (
        {"tests/conftest.py": "def pytest_collection_modifyitems(items): items[:] = items[1:]\n"},
        ("test_product[1]",),
    ),
    "an ignored file": (
        {"tests/foo/conftest.py": "collect_ignore = ['test_attention.py']\n"},
        ALL,
    ),
    "a setting": ({PYTEST: "[pytest]\naddopts = -k 'not zero'\n"}, ("TestZero::test_zero",)),
}


@sandboxed
@pytest.mark.parametrize("name", LOST)
def test_a_lost_test_is_seen_by_its_id(name: str, tmp_path: Path) -> None:
    change, lost = LOST[name]
    found = collected(tmp_path, dict(change))
    assert found.unknown == ()
    assert found.lost == tuple(f"{TEST}::{id_}" for id_ in lost)
    assert found.run == "failed"


@sandboxed
def test_marks_are_seen_and_the_same_tests_are_silent(tmp_path: Path) -> None:
    marked = TESTS.replace("class TestZero", "@pytest.mark.xfail\nclass TestZero")
    found = collected(tmp_path / "a", {TEST: marked})
    assert (found.lost, dict(found.marked)) == ((), {f"{TEST}::TestZero::test_zero": ("xfail",)})
    more = TESTS + "\n\ndef test_more():\n    assert attend(1, 1) == 1\n"
    found = collected(tmp_path / "b", {TEST: more})
    assert (found.lost, found.marked, found.unknown, found.run) == ((), {}, (), "passed")


@sandboxed
def test_a_file_that_can_not_be_collected_is_told_if_the_change_has_to_do_with_it(
    tmp_path: Path,
) -> None:
    base: dict[str, Content] = {"tests/foo/test_gpu.py": "import no_such_gpu\ndef test_g(): pass\n"}
    found = collected(tmp_path / "a", {KERNEL: CODE + "X = 1\n"}, base)
    assert (found.unknown, found.lost) == ((), ())
    found = collected(tmp_path / "b", {TEST: "import no_such_thing\n" + TESTS}, base)
    assert [u.path for u in found.unknown] == [TEST]
    assert found.lost == ()


@sandboxed
def test_a_base_test_that_fails_over_the_change_is_told_with_its_reason(tmp_path: Path) -> None:
    weaker = TESTS.replace("== 2 * q", "is not None")
    found = base_tests(tmp_path, {KERNEL: CODE.replace("q * k * scale", "q * k + 1"), TEST: weaker})
    assert [f.id for f in found.failures] == [
        f"{TEST}::TestZero::test_zero",
        *(f"{TEST}::test_product[{n}]" for n in (1, 2, 3)),
    ]
    assert found.failures[0].message.startswith("fails: assert 1 == 0")
    assert {f.contract for f in found.failures} == {()}
    assert (found.run, found.unknown) == ("failed", ())


@sandboxed
def test_base_tests_pass_over_an_honest_change_whatever_its_own_tests_say(tmp_path: Path) -> None:
    change: dict[str, Content] = {KERNEL: CODE + "MORE = 1\n", TEST: "def test_x(): assert 0\n"}
    assert base_tests(tmp_path, change) == BaseTests(passed=4)


@sandboxed
def test_a_test_that_fails_at_the_target_too_is_not_the_change_s(tmp_path: Path) -> None:
    base: dict[str, Content] = {"tests/foo/test_red.py": "def test_red(): assert 0\n"}
    assert base_tests(tmp_path, {KERNEL: CODE + "MORE = 1\n"}, base).failures == ()


@sandboxed
def test_tests_that_the_change_makes_skip_are_told(tmp_path: Path) -> None:
    tests = TESTS.replace(
        "@pytest.mark.param", "@pytest.mark.skipif(not ready(), reason='')\n@pytest.mark.param"
    ).replace("import attend", "import attend, ready")
    base: dict[str, Content] = {TEST: tests, KERNEL: CODE + "\n\ndef ready():\n    return True\n"}
    change: dict[str, Content] = {KERNEL: CODE + "\n\ndef ready():\n    return False\n"}
    found = base_tests(tmp_path, change, base)
    assert {f.message for f in found.failures} == {"is skipped"}
    assert len(found.failures) == 3


@sandboxed
def test_other_parameters_are_a_changed_contract(tmp_path: Path) -> None:
    change: dict[str, Content] = {KERNEL: CODE.replace("q, k, *", "q, k, mask, *")}
    found = base_tests(tmp_path, change)
    assert {f.contract for f in found.failures} == {
        ("`attend(q, k, *, scale=1)` takes (q, k, mask, *, scale=1) now",)
    }


@sandboxed
def test_a_renamed_test_of_a_moved_module_is_left_out_and_listed(tmp_path: Path) -> None:
    change: dict[str, Content] = {
        KERNEL: None,
        "engine/foo/fused.py": CODE,
        TEST: None,
        "tests/foo/test_fused.py": TESTS.replace("foo.attention", "foo.fused"),
    }
    found = base_tests(tmp_path, change)
    assert (found.failures, found.renamed) == ((), (TEST,))


@sandboxed
@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("import os\nos._exit(0)", "it ended without a report"),
        ("import os\nos.kill(os.getpid(), 11)", "it was ended by signal 11"),
    ],
)
def test_code_that_ends_pytest_is_could_not_tell(source: str, reason: str, tmp_path: Path) -> None:
    found = base_tests(tmp_path, {KERNEL: CODE + source + "\n"})
    assert [u.reason.partition(";")[0] for u in found.unknown] == [reason]
    assert found.run == "failed"


def test_twins_and_contracts_are_found_without_running_anything(tmp_path: Path) -> None:
    change: dict[str, Content] = {
        TEST: TESTS.replace("test_product", "test_multiply").replace("== 0", "== 0.0"),
        KERNEL: CODE.replace("attend", "attention"),
    }
    with facts(tmp_path, {KERNEL: CODE, TEST: TESTS}, change) as case:
        twins = renamed_twins(case, TEST, {"a": "test_product", "b": "test_zero", "c": "no"})
        assert twins == {"a": True, "b": False, "c": False}
        assert contract_changes(case, TEST) == ("`attend` is gone",)
        assert contract_changes(case, "tests/none.py") == ()
