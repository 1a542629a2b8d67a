# SPDX-License-Identifier: Apache-2.0
"""What a manifest asks of evidence beyond the policy: tests, bars, versions that built it."""

from typing import Any

import pytest

from fasttrack.evidence.acceptable import floor_fault, named_test_fault, toolchain_fault
from fasttrack.evidence.predicates.common import TestResults
from fasttrack.evidence.status import Status
from fasttrack.manifest.cells import Cell, cell
from fasttrack.vocabulary import Kind
from tests.evidence.covering import LAB, POLICY_NOW, answer, manifest, policy, told

CORE = cell(Kind.KERNEL_TEST, "r", {"unit": "core", "rows": 4, "hardware": "h200"})
GATE = cell(Kind.REFUSAL, "r", {"region": "r", "bound": "rows"})
TESTS = "tests/foo/test_core.py"
TABLE: list[tuple[str, tuple[str, ...], bool]] = [
    ("", ("::test_a",), True),
    ("::test_a", ("::test_a",), True),
    ("::test_a", ("::test_a[4-bf16]", "::test_b"), True),
    ("::test_a", ("::test_ab", "::test_b[test_a]"), False),
    ("::TestA", ("::TestA::test_b[1]",), True),
    ("::TestA", ("::TestAB::test_b",), False),
    ("::TestA::test_b", ("::TestA::test_c",), False),
]


def required(*tests: str, toolchain: dict[str, str] | None = None, **bars: float) -> Any:
    """The engine's manifest, which asks for tests, versions and bars."""
    asked: dict[str, Any] = {"tests": [*tests]} if tests else {}
    asked |= {"bars": bars} if bars else {}
    more: dict[str, Any] = {"toolchain": toolchain} if toolchain else {}
    return manifest(**({"evidence": asked} if asked else {}), **more)


def passing(about: Cell, *passed: str, **changes: Any) -> Any:
    """A statement about a cell, of these tests."""
    unit = str(about.values.get("unit", "gate-files"))
    content = {"results": TestResults(passed=passed)}
    return told(about.kind, values=dict(about.values), unit=unit, content=content, **changes)


@pytest.mark.parametrize(("asked", "passed", "fits"), TABLE)
def test_a_named_test_must_be_among_those_that_passed(
    asked: str, passed: tuple[str, ...], fits: bool
) -> None:
    statement = passing(CORE, *(f"{TESTS}{name}" for name in passed))
    said = named_test_fault(statement, CORE, required(f"{TESTS}{asked}"))
    want = f"{TESTS}{asked}, which the manifest wants passed, is not among the tests that did"
    assert said == ("" if fits else want)


def test_what_lacks_is_told_as_skipped_and_covers_nothing() -> None:
    given = (passing(CORE, f"{TESTS}::test_b"), LAB)
    asking = required(f"{TESTS}::test_a")
    now = answer(given, about=CORE, of=asking)
    assert (now.status, now.covers) == (Status.SKIPPED, False)
    assert f"{TESTS}::test_a, which the manifest wants passed" in now.detail
    assert answer(given, about=CORE).status is Status.COVERED


def test_every_named_test_is_asked_for() -> None:
    statement = passing(CORE, f"{TESTS}::test_a")
    both = required(f"{TESTS}::test_a", f"{TESTS}::test_b")
    assert "test_b" in named_test_fault(statement, CORE, both)


@pytest.mark.parametrize(
    ("about", "test", "asked"),
    [
        (CORE, "tests/foo/test_core.py::test_a", True),
        (CORE, "tests/foo/test_helper.py::test_a", False),
        (GATE, "tests/foo/test_gate.py::test_a", True),
        (GATE, "tests/foo/test_core.py::test_a", False),
    ],
)
def test_a_test_is_asked_of_the_cells_of_the_units_that_it_judges(
    about: Cell, test: str, asked: bool
) -> None:
    assert bool(named_test_fault(passing(about, "t"), about, required(test))) == asked


def test_kinds_that_name_no_tests_are_not_asked_for_any() -> None:
    stress = cell(Kind.STRESS, "r", dict(CORE.values))
    statement = told(Kind.STRESS, values=dict(CORE.values), unit="core")
    assert named_test_fault(statement, stress, required(f"{TESTS}::test_a")) == ""


@pytest.mark.parametrize(
    ("packages", "said"),
    [
        ({"cute-dsl": "4.8.1"}, ""),
        ({"cute_dsl": "4.8.1"}, ""),
        ({"cute-dsl": "4.8.1+cu130"}, ""),
        ({"cute-dsl": "4.8.2"}, "Cute.DSL 4.8.2, where the manifest wants 4.8.1"),
        ({"cute-dsl": "4.8.1rc1"}, "Cute.DSL 4.8.1rc1, where the manifest wants 4.8.1"),
        ({}, "does not tell its version of Cute.DSL; the manifest wants 4.8.1"),
    ],
)
def test_what_ran_on_a_gpu_was_built_with_the_versions_that_the_manifest_names(
    packages: dict[str, str], said: str
) -> None:
    asking = required(toolchain={"Cute.DSL": "4.8.1"})
    statement = told(values=dict(CORE.values), unit="core", packages=packages)
    assert toolchain_fault(statement, CORE, POLICY_NOW, asking) == said
    now = answer((statement, LAB), about=CORE, of=asking)
    assert now.status is (Status.WRONG_TOOLCHAIN if said else Status.COVERED)


def test_a_named_build_is_not_any_other() -> None:
    asking = required(toolchain={"torch": "2.11.0+cu130"})
    for version, fits in (("2.11.0+cu130", True), ("2.11.0+cu126", False), ("2.11.0", False)):
        statement = told(values=dict(CORE.values), unit="core", packages={"torch": version})
        assert (toolchain_fault(statement, CORE, POLICY_NOW, asking) == "") == fits


@pytest.mark.parametrize("packages", [{}, {"cute": "4.8.2"}])
def test_neither_a_refusal_nor_an_audit_nor_a_processor_has_a_compiler(
    packages: dict[str, str],
) -> None:
    asking = required(toolchain={"cute": "4.8.1"})
    for kind, values, machine in (
        (Kind.REFUSAL, dict(GATE.values), {}),
        (Kind.SYNC_AUDIT, {"unit": "core", "arch": "sm_90a", "variant": "small"}, {}),
        (Kind.KERNEL_TEST, dict(CORE.values), {"arch": "x86_64"}),
    ):
        statement = told(kind, values=values, packages=packages, machine=machine)
        about = cell(kind, "r", values)
        assert toolchain_fault(statement, about, POLICY_NOW, asking) == ""


def test_the_policy_speaks_first_and_of_what_is_told_whatever_the_kind() -> None:
    tools = POLICY_NOW.toolchain.model_validate({"exact": {"CuTe": "4.8.1"}})
    asking = required(toolchain={"cute": "4.8.2"})
    statement = told(Kind.REFUSAL, values=dict(GATE.values), packages={"cute": "4.8.2"})
    said = toolchain_fault(statement, GATE, policy(toolchain=tools), asking)
    assert said == "CuTe 4.8.2, where the policy wants 4.8.1"


@pytest.mark.parametrize(("bar", "said"), [(4, "3 of 4 seeds"), (3, ""), (2, ""), (3.5, "3 of 4")])
def test_a_bar_above_the_floor_counts_and_one_below_changes_nothing(bar: float, said: str) -> None:
    statement = told(values=dict(CORE.values), unit="core", content={"seeds": (1, 2, 3)})
    found = floor_fault(statement, CORE, POLICY_NOW, required(kernel_seeds=bar))
    assert found.startswith(said)
    assert bool(found) == bool(said)
