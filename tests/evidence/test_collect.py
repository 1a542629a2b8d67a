# SPDX-License-Identifier: Apache-2.0
"""Running plans: what statements come of cells."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fasttrack.errors import InputError
from fasttrack.evidence.child import Outcome
from fasttrack.evidence.child_report import Answer, ChildReport, Job
from fasttrack.evidence.collect import Collected, Collector, Progress
from fasttrack.evidence.plan import Plan
from fasttrack.evidence.predicates.common import TestResults
from fasttrack.evidence.shown import facts_of, statement_of
from fasttrack.evidence.statement import MAX_BYTES, Statement, read_statement
from fasttrack.vocabulary import Kind
from tests.evidence.collecting import MACHINE, RUN, collect, content, report, settings_of
from tests.evidence.scratch import HEAD, SEEDS, TEST, plan_of, planned, project, refusal
from tests.evidence.strategies import good

MEASURES = """
def forge(pytestconfig):
    import json
    state = pytestconfig.pluginmanager.get_plugin("fasttrack-collecting")
    own = json.loads((pytestconfig.rootpath / "forged.json").read_text())
    own["nonce"] = state.job.nonce
    os.write(pytestconfig.getoption("--fasttrack-report"), json.dumps(own).encode())
    os._exit(0)

def test_smooth(fasttrack_cell, fasttrack_seeds, fasttrack_record, pytestconfig):
    fasttrack_record.launched("smooth")
    rows = fasttrack_cell.get("rows")
    if "bound" in fasttrack_cell:
        fasttrack_record.answered(refused=rows > 9, reasons=(f"{rows} rows",) if rows > 9 else ())
    elif rows == 2: open("beacon/table.json").close()
    elif rows == 3: import beacon.extra
    elif rows == 4: fasttrack_record.fell_back(2)
    elif rows == 5: assert 0
    elif rows == 6: pytest.skip("not here")
    elif rows == 7: forge(pytestconfig)
    elif rows == 8:
        for i in range(1000): fasttrack_record.launched(f"{i:0200}"); print(i)
        for i in range(256):
            fasttrack_record.tolerance(f"{i:0200}", "x" * 200, reason="r" * 200)

def test_takes_no_cell(): pass
"""
SHOWN = (f"{TEST}::test_smooth[smooth-1-here]", f"{TEST}::test_takes_no_cell")


Whole = tuple[Plan, Path, Collected, list[Progress]]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Whole:
    """One run over cells that behave in many ways."""
    base = tmp_path_factory.mktemp("whole")
    files = {"beacon/table.json": "{}", "beacon/extra.py": ""}
    forged = report(tolerances=(), results=TestResults(passed=("forged",)))
    files["forged.json"] = forged.model_dump_json()
    root = project(base / "project", HEAD + MEASURES, **files)
    elsewhere = planned(1, values={"unit": "smooth", "rows": 1, "hardware": "h200"})
    stress = planned(1, kind="stress")
    cells = [*map(planned, range(1, 9)), refusal(10), refusal(9), elsewhere, stress]
    plan = plan_of(root, cells)
    return plan, base / "out", *collect(plan, settings_of(root, base / "out"))


def told(whole: Whole, rows: int, kind: Kind = Kind.KERNEL_TEST) -> Statement:
    return next(
        s for s in content(whole[1]) if (s.cell.kind, s.cell.values["rows"]) == (kind, rows)
    )


PROBLEMS: Mapping[int, str] = {
    2: "1 files were read that nobody declared, beacon/table.json first",
    3: "1 files were read that nobody declared, beacon/extra.py first",
    4: "2 steps fell back",
    5: f"1 tests failed, {TEST}::test_smooth[smooth-5-here] first",
    6: f"1 tests did not run, {TEST}::test_smooth[smooth-6-here] first",
    8: "1 tests failed, its report makes a statement of",
}


def test_a_cell_that_passed_is_shown_with_the_plans_digests_and_seeds(whole: Whole) -> None:
    plan, statement = whole[0], told(whole, 1)
    predicate, unit = statement.predicate, plan.unit("smooth")
    assert statement.problems() == []
    assert predicate.run.plan == plan.id
    assert predicate.run.commit == plan.commit
    assert predicate.run.run == whole[2].run
    assert predicate.run.isolation == "process"
    assert (predicate.inputs.digest, predicate.inputs.tests) == (unit.digest, unit.tests_digest)
    assert getattr(predicate, "seeds") == SEEDS  # noqa: B009
    assert getattr(predicate, "results").passed == SHOWN  # noqa: B009
    assert predicate.toolchain.packages == {"pytest": pytest.__version__}
    assert predicate.machine.hardware == "here"
    assert predicate.cell == facts_of(plan.cells[0])


@pytest.mark.parametrize("rows", PROBLEMS)
def test_a_cell_that_gains_nothing_says_why(whole: Whole, rows: int) -> None:
    assert told(whole, rows).problems()[0].startswith(PROBLEMS[rows])
    progress = next(p for p in whole[3] if p.cell.values.get("rows") == rows)
    assert progress.problems[0].startswith(PROBLEMS[rows])


def test_a_result_that_a_test_forged_is_believed_and_the_statement_says_how_far(
    whole: Whole,
) -> None:
    forged = told(whole, 7)
    assert forged.problems() == []
    assert forged.predicate.run.isolation == "process"


def test_where_a_forged_result_would_matter_most_a_process_of_its_own_is_not_enough() -> None:
    stress = good(Kind.STRESS)
    assert stress.problems() == []
    run = stress.predicate.run.model_copy(update={"isolation": "process"})
    predicate = stress.predicate.model_copy(update={"run": run})
    (problem,) = Statement(stress.predicate_type, predicate).problems()
    assert problem == "the measured process could write its own result"


def test_the_gates_answer_is_what_the_test_says(whole: Whole) -> None:
    refused, admitted = told(whole, 10, Kind.REFUSAL), told(whole, 9, Kind.REFUSAL)
    assert refused.problems() == []
    assert getattr(refused.predicate, "reasons") == ("10 rows",)  # noqa: B009
    assert admitted.problems()[0] == "the gate admitted what is past the bound"


def test_counts_are_of_this_machines_share(whole: Whole) -> None:
    found = whole[2]
    assert (found.passed, found.failed, found.resumed) == (3, 7, 0)
    assert found.elsewhere == {"needs h200": 1, "stress is not measured by tests": 1}
    assert [(p.done, p.total) for p in whole[3]] == [(n, 10) for n in range(1, 11)]


def test_going_on_measures_nothing_again_and_forgets_no_failure(whole: Whole) -> None:
    plan, out, _, _ = whole
    before = sorted(path.name for path in out.iterdir())
    found, progress = collect(plan, settings_of(out.parent / "project", out))
    assert progress == []
    assert (found.passed, found.failed, found.resumed) == (3, 7, 10)
    assert sorted(path.name for path in out.iterdir()) == before


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Plan:
    root = project(tmp_path_factory.mktemp("small"), "")
    return plan_of(root, [planned(1), refusal(9)])


def problems_of(plan: Plan, found: ChildReport, cell: int = 0) -> list[str]:
    return statement_of(
        plan, plan.cells[cell], Outcome(found, "", ""), RUN, MACHINE, root=Path()
    ).problems()


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({}, ""),
        ({"took_cell": False}, "1 tests failed, no test that takes fasttrack_cell passed first"),
        ({"seeds": ()}, "1 tests failed, no test took fasttrack_seeds first"),
        ({"seeds": (7, 5)}, "1 tests failed, no test took fasttrack_seeds first"),
        ({"results": TestResults()}, "no test passed"),
        ({"imported": ("tests/conftest.py",)}, "1 files were read that nobody declared, tests/c"),
        ({"imported": ("lib/other.py", "conftest.py.py")}, ""),
        ({"opened": ("lib/other.json",)}, "1 files were read that nobody declared, lib/other"),
        ({"opened": ("manifests/a/b.yaml", "pyproject.toml")}, ""),
        ({"opened": ("pyproject.toml.bak",)}, "1 files were read that nobody declared, pyproj"),
        ({"opened": ("beacon/smooth.py", TEST), "imported": ("beacon/__init__.py",)}, ""),
        ({"opened": tuple(f"lib/{i}" for i in range(5000))}, "4096 files were read that nobody"),
    ],
)
def test_a_report_shows_something_when_cell_seeds_and_files_are_the_plans(
    small: Plan, changes: Mapping[str, Any], problem: str
) -> None:
    problems = problems_of(small, report(**changes))
    assert "; ".join(problems).startswith(problem) if problem else problems == [], problems


def test_a_refusal_needs_an_answer_and_no_seeds(small: Plan) -> None:
    answer = Answer(refused=True, reasons=("nine",))
    assert problems_of(small, report(seeds=(), answer=answer), 1) == []
    assert problems_of(small, report(seeds=(), answer=None), 1) != []
    assert problems_of(small, report(seeds=(), answer=answer, took_cell=False), 1) != []


@given(
    why=st.text(min_size=1, max_size=3000).filter(lambda t: t.isascii()),
    cell=st.integers(0, 1),
)
def test_a_child_without_a_report_makes_a_statement_that_can_be_read_and_shows_nothing(
    small: Plan, why: str, cell: int
) -> None:
    statement = statement_of(
        small, small.cells[cell], Outcome(None, why, ""), RUN, MACHINE, root=Path()
    )
    assert statement.problems()
    assert read_statement(statement.to_bytes(), "it") == statement
    assert len(statement.to_bytes()) <= MAX_BYTES


def test_tests_that_can_not_start_make_no_statement(tmp_path: Path) -> None:
    root = project(tmp_path / "project", HEAD + MEASURES, **{"tests/conftest.py": "import gone\n"})
    plan = plan_of(root, [planned(1)])
    found, (told,) = collect(plan, settings_of(root, tmp_path / "out"))
    assert told.problems == ("its tests can not start here",)
    assert "No module named 'gone'" in told.log
    assert (found.passed, found.failed, found.unmeasured) == (0, 0, 1)
    assert not (tmp_path / "out").exists()


def test_without_pytest_nothing_is_collected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = project(tmp_path / "project", "")
    monkeypatch.setattr("fasttrack.evidence.collect.find_spec", lambda _: None)
    with pytest.raises(InputError, match="fix: python -m pip install pytest"):
        Collector(plan_of(root, [planned(1)]), settings_of(root, tmp_path / "out"))


def test_settings_files_of_pytest_take_no_part(tmp_path: Path) -> None:
    """They are in no digest: a stray one could leave tests out or load what changes outcomes."""
    body = """
def test_smooth(fasttrack_cell, fasttrack_seeds, fasttrack_record):
    fasttrack_record.launched("smooth")

def test_fails(): assert False
"""
    files = {
        "pytest.ini": "[pytest]\npython_functions = test_smooth\naddopts = -p flip\n",
        "tests/pytest.ini": "[pytest]\naddopts = -p flip\n",
        "flip.py": "def pytest_runtest_logreport(report): report.outcome = 'passed'\n",
    }
    root = project(tmp_path / "project", HEAD + body, **files)
    found, (told,) = collect(plan_of(root, [planned(1)]), settings_of(root, tmp_path / "out"))
    assert (found.passed, found.failed) == (0, 1)
    assert told.problems == (f"1 tests failed, {TEST}::test_fails first",)


def test_a_tree_or_a_machine_that_is_not_the_plans_is_refused_before_anything_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    root = project(tmp_path / "project", "")
    plan = plan_of(root, [planned(1)])
    for hardware, message in (("nowhere", "one of h200, here"), ("h200", "NVML")):
        with pytest.raises(InputError, match=message):
            Collector(plan, settings_of(root, tmp_path / "out", hardware=hardware))
    (root / "beacon/smooth.py").write_text("WIDTH = 4\n")
    with pytest.raises(InputError, match=r"beacon/smooth\.py: saw other bytes"):
        Collector(plan, settings_of(root, tmp_path / "out"))


def test_bytecode_is_shared_within_a_unit_and_gone_before_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = project(tmp_path / "project", "")
    plan = plan_of(root, [planned(1), refusal(8), planned(2), refusal(9)])
    seen: list[tuple[str, Path, list[str]]] = []

    def child(
        _: Path, __: object, job: Job, bytecode: Path, *, walled: bool, timeout_s: float
    ) -> Outcome:
        assert walled in {True, False}
        assert [p for _, p, _ in seen if p != bytecode and p.exists()] == []
        seen.append((job.cell.kind, bytecode, [file.name for file in bytecode.iterdir()]))
        (bytecode / f"{len(seen)}.pyc").touch()
        return Outcome(None, f"no child in {timeout_s:g} s", "")

    monkeypatch.setattr("fasttrack.evidence.collect.measure", child)
    collect(plan, settings_of(root, tmp_path / "out"))
    assert [(kind, files) for kind, _, files in seen] == [
        ("refusal", []),
        ("refusal", ["1.pyc"]),
        ("kernel-test", []),
        ("kernel-test", ["3.pyc"]),
    ]
    assert not any(place.exists() for _, place, _ in seen)
