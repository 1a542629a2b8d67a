# SPDX-License-Identifier: Apache-2.0
"""What a child reports of its tests, outcome by outcome."""

import subprocess
import sys
from pathlib import Path

import pytest

from fasttrack.evidence.child_report import ChildReport
from fasttrack.evidence.predicates.common import Gate, KernelLaunch, Tolerance
from fasttrack.evidence.predicates.stress_v1 import Setting
from fasttrack.pytest_plugin import SEEDS, Recorder
from tests.evidence.scratch import HEAD, TEST, project, reported, run_child

OUTCOMES = """
@pytest.fixture
def no_setup(): raise ValueError
@pytest.fixture
def no_teardown():
    yield
    raise ValueError
@pytest.fixture
def skips_late():
    yield
    pytest.skip("late")
def test_passes(): pass
@pytest.mark.parametrize("width", [1, 2])
def test_passes_twice(width): pass
def test_takes_no_cell(): pass
def test_fails(): assert 0
def test_fails_in_setup(no_setup): pass
def test_fails_in_teardown(no_teardown): pass
@pytest.mark.skip
def test_skips(): pass
def test_skips_within(): pytest.skip("no")
def test_skips_in_teardown(skips_late): pass
@pytest.mark.xfail
def test_xfails(): assert 0
@pytest.mark.xfail(strict=False)
def test_xpasses(): pass
@pytest.mark.xfail(strict=True)
def test_xpasses_strictly(): pass
@pytest.mark.xfail(raises=ValueError)
def test_fails_otherwise_than_expected(no_teardown): assert 0
def test_is_deselected(): pass
def test_is_taken_away(): pass
def test_is_tried_again(): pass
@pytest.mark.fasttrack_cells({"rows": 1}, {"rows": 2}, ids=lambda cell: f"rows{cell['rows']}")
def test_measures(fasttrack_cell, fasttrack_seeds, fasttrack_record):
    assert fasttrack_cell == {"unit": "smooth", "rows": 1}
    assert fasttrack_seeds == (5, 7)
    say = fasttrack_record
    for _ in range(2):
        assert say.tolerance("y", "bf16", rtol=0.5, reason="rounding") == (0.0, 0.5)
    say.launched("k"); say.launched("k", 2); say.launched("k", 1, cubin="f" * 64)
    say.launched("k", 4, cubin="f" * 64, variant="small", unit="kda")
    say.fell_back(); say.fell_back(3)
    say.gate("fp64", passed=True, controls=4, killed=3)
    say.delayed("skew", longest_us=5.0, iterations=9, wrong=1, profile="smoke")
    say.answered(refused=True, reasons=("too many", "too long"))
    say.answered(refused=False, reasons=("too many",))
    say.answered(refused=True, reasons=())
"""
CONFTEST = """
import pytest
def pytest_collection_modifyitems(config, items):
    gone = [i for i in items if i.name == "test_is_deselected"]
    config.hook.pytest_deselected(items=gone)
    items[:] = [i for i in items if i.name not in {"test_is_deselected", "test_is_taken_away"}]
@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    if item.name == "test_is_tried_again" and report.when == "call":
        report.outcome = "rerun"
    return report
"""
OTHERS = {
    "tests/conftest.py": CONFTEST,
    "tests/test_broken.py": "import a_module_that_is_not_there\n",
    "tests/test_absent.py": "import pytest\npytest.skip('no', allow_module_level=True)\n",
}
BROKEN, ABSENT = "tests/test_broken.py", "tests/test_absent.py"


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> ChildReport:
    return reported(tmp_path_factory.mktemp("outcomes"), OUTCOMES, OTHERS)


def nodes(*names: str) -> tuple[str, ...]:
    return tuple(sorted(f"{TEST}::test_{name}" for name in names))


def test_every_test_has_one_outcome_and_it_is_the_gravest(report: ChildReport) -> None:
    found = report.results
    passed = ("passes", "passes_twice[1]", "passes_twice[2]", "takes_no_cell", "measures[rows1]")
    assert found.passed == nodes(*passed)
    assert found.failed == nodes(
        *("fails", "fails_in_setup", "fails_in_teardown", "xpasses_strictly"),
        *("fails_otherwise_than_expected", "is_tried_again"),
    )
    assert found.skipped == nodes("skips", "skips_within", "skips_in_teardown")
    assert found.xfailed == nodes("xfails", "xpasses")
    assert found.deselected == nodes("is_deselected", "is_taken_away")


def test_what_a_test_says_is_reported(report: ChildReport) -> None:
    assert report.tolerances == (
        Tolerance(name="y", dtype="bf16", atol=0.0, rtol=0.5, reason="rounding"),
    )
    assert sorted(report.execution.launches, key=str) == sorted(
        (
            KernelLaunch(name="k", launches=3),
            KernelLaunch(name="k", launches=1, cubin="f" * 64),
            KernelLaunch(name="k", launches=4, cubin="f" * 64, variant="small", unit="kda"),
        ),
        key=str,
    )
    assert report.execution.fallbacks == 4
    assert report.gates == (Gate(name="fp64", passed=True, controls=4, killed=3),)
    assert report.settings == (Setting(delay="skew", longest_us=5.0, iterations=9, wrong=1),)
    assert report.profile == "smoke"
    assert report.seeds == (5, 7)
    assert report.took_cell


def test_a_gate_that_admitted_once_has_admitted(report: ChildReport) -> None:
    assert report.answer is not None
    assert (report.answer.refused, report.answer.reasons) == (False, ("too many", "too long"))


def test_versions_and_files_are_those_of_the_child(report: ChildReport) -> None:
    assert report.python == ".".join(map(str, sys.version_info[:3]))
    assert report.packages["pytest"] == pytest.__version__
    assert {"tests/conftest.py", TEST} <= {*report.imported}


def test_a_file_that_can_not_be_collected_has_failed_and_one_that_skips_itself_is_skipped(
    tmp_path: Path,
) -> None:
    project(tmp_path, "def test_it(): pass\n", **OTHERS)
    outcome = run_child(tmp_path, "tests")
    assert outcome.report is not None, outcome.why
    found = outcome.report.results
    assert (found.failed, found.skipped) == ((BROKEN,), (ABSENT,))
    assert found.passed == ()
    assert (outcome.report.took_cell, outcome.report.seeds) == (False, ())


def test_when_nobody_collects_the_named_cells_and_three_seeds_are_tried(tmp_path: Path) -> None:
    body = """
SEEN = []
@pytest.mark.fasttrack_cells({"rows": 1}, {"rows": 64})
def test_rows(fasttrack_cell, fasttrack_seeds, fasttrack_record):
    fasttrack_record.launched("k")
    SEEN.append((fasttrack_cell["rows"], fasttrack_seeds))
def test_both_were_tried(): assert SEEN == [(1, (0, 1, 2)), (64, (0, 1, 2))]
def test_unnamed(fasttrack_cell): pass
"""
    project(tmp_path, HEAD + body)
    command = [sys.executable, "-m", "pytest", "-p", "fasttrack.pytest_plugin", "--strict-markers"]
    done = subprocess.run(
        [*command, "-v", "-p", "no:cacheprovider"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert SEEDS == (0, 1, 2)
    assert (done.returncode, "3 passed, 1 skipped" in done.stdout) == (0, True), done.stdout
    assert "test_rows[64]" in done.stdout


def test_a_recorder_adds_up_launches_of_one_kernel() -> None:
    recorder = Recorder()
    recorder.launched("k", 2)
    recorder.launched("k", 3)
    recorder.launched("k", variant="small")
    assert recorder.launches == {("k", None, None, None): 5, ("k", None, None, "small"): 1}
