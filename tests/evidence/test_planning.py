# SPDX-License-Identifier: Apache-2.0
"""Which cells a plan has: compared with a second formulation, narrowed, and left out."""

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fasttrack.errors import InputError
from fasttrack.evidence import planning
from fasttrack.evidence.choice import Choice
from fasttrack.evidence.in_tree import compare
from fasttrack.evidence.plan import SEEDED
from fasttrack.manifest.load import load_manifest
from fasttrack.manifest.points import TooManyPoints, witness_points
from fasttrack.manifest.variants import load_variant_table
from fasttrack.policy.load import load_policy
from fasttrack.testing import Content, Symlink
from fasttrack.vocabulary import Kind, Tier
from tests.engine import MANIFEST, POLICY
from tests.evidence.plans import (
    TABLE,
    commit,
    engine,
    keys,
    plan_of,
    planned,
    planner,
    region,
    write_files,
)

OWED: Mapping[str, tuple[Kind, ...]] = {
    tier.value: tuple(Kind)[: max(0, rank + (rank > 0))] for rank, tier in enumerate(Tier)
}
"""Tier to its kinds: the proposed policy adds them in the order of the vocabulary."""


def test_the_tiers_here_are_those_of_the_proposed_policy() -> None:
    tiers = load_policy(str(engine()[POLICY]).encode(), "policy").tiers
    assert {tier.value: set(kinds) for tier, kinds in tiers.items()} == {
        tier: set(kinds) for tier, kinds in OWED.items() if tier != "declared"
    }


regions = st.builds(
    lambda hardware, tp, most, tier: region(
        hardware=hardware, tensor_parallel=tp, requests={"min": 1, "max": most}, tier=tier
    ),
    st.lists(st.sampled_from(["h100", "h200", "b200"]), min_size=1, max_size=2, unique=True),
    st.lists(st.sampled_from([1, 2]), min_size=1, max_size=2, unique=True),
    st.integers(1, 8),
    st.sampled_from([t.value for t in Tier]),
)
scopes = st.lists(regions, min_size=1, max_size=2).map(
    lambda found: [one | {"id": f"r{i}", "rows_max": 8} for i, one in enumerate(found)]
)
choices = st.builds(
    Choice,
    st.none() | st.sampled_from(Tier),
    st.frozensets(st.sampled_from(["core", "helper", "gate-files", "path"]), max_size=2),
    st.frozensets(st.sampled_from(Kind), max_size=2),
    st.frozensets(st.just("r0"), max_size=1),
    st.frozensets(st.sampled_from(["h100", "h200"]), max_size=1),
)


def expected(files: Mapping[str, Content], choice: Choice) -> set[tuple[str, str]]:
    """The cells of a choice, found by asking of every witness whether it belongs."""
    manifest = load_manifest(str(files[MANIFEST]), MANIFEST)
    policy = load_policy(str(files[POLICY]).encode(), POLICY)
    tables = {TABLE: load_variant_table(str(files[TABLE]), TABLE)}
    tier = {r.id: (choice.tier or r.tier).value for r in manifest.scope}
    tier[""] = max(tier.values(), key=lambda name: Tier(name).rank)
    wanted = set()
    for kind in Kind:
        for cell in witness_points(manifest, kind, policy.hardware, tables):
            unit = cell.values.get("unit", "path")
            place = cell.values.get("hardware", cell.values.get("ours.hardware"))
            if kind is Kind.REFUSAL:
                unit, place = "gate-files", None
            if (
                kind in OWED[tier[cell.region]]
                and (not choice.units or unit in choice.units)
                and (not choice.kinds or kind in choice.kinds)
                and (not choice.regions or cell.region in choice.regions)
                and (not choice.hardware or place is None or place in choice.hardware)
            ):
                wanted.add((kind.value, cell.key))
    return wanted


@settings(max_examples=40)
@given(scopes, choices)
def test_the_planned_cells_are_those_that_a_second_formulation_finds(
    scope: list[Any], choice: Choice
) -> None:
    files = engine(*scope)
    with tempfile.TemporaryDirectory() as folder:
        commit(Path(folder), files)
        plan = planned(Path(folder), choice).plan
    found = keys(plan.cells)
    assert len(found) == len(set(found))
    assert set(found) == expected(files, choice)
    assert {unit.unit for unit in plan.units} == {cell.unit for cell in plan.cells}


def test_two_plans_of_one_commit_differ_in_their_ids_and_seeds_alone(tmp_path: Path) -> None:
    commit(tmp_path, engine())
    one, other = planned(tmp_path).plan, planned(tmp_path).plan
    assert one.id != other.id
    assert keys(one.cells) == keys(other.cells)
    unseeded = [
        [cell.model_copy(update={"seeds": ()}) for cell in plan.cells] for plan in (one, other)
    ]
    assert unseeded[0] == unseeded[1]
    assert one.model_copy(update={"id": other.id, "cells": other.cells}) == other
    drawn = [seed for plan in (one, other) for cell in plan.cells for seed in cell.seeds]
    assert len(drawn) == len(set(drawn)) > 50


def test_cells_have_as_many_seeds_as_the_floors_ask_where_they_are_used(tmp_path: Path) -> None:
    bars = {"evidence": {"bars": {"kernel_seeds": 5, "stress_iterations": 1.0}}}
    plan = plan_of(tmp_path, engine(manifest=bars))
    assert (plan.floors.kernel_seeds, plan.floors.stress_iterations) == (5, 200)
    assert {len(cell.seeds) for cell in plan.cells if cell.kind in SEEDED} == {5}
    assert {len(cell.seeds) for cell in plan.cells if cell.kind not in SEEDED} == {0}


def test_a_manifest_raises_floors_and_never_lowers_them(tmp_path: Path) -> None:
    evals = [
        {"task": "a", "samples_min": 900, "drop_max": 0.02},
        {"task": "b", "samples_min": 10, "drop_max": 0.005},
    ]
    plan = plan_of(tmp_path, engine(manifest={"evidence": {"evals": evals}}))
    assert (plan.floors.eval_samples, plan.floors.eval_drop_max) == (900, 0.005)


def test_more_seeds_than_a_plan_can_hold_are_refused_without_being_drawn(tmp_path: Path) -> None:
    commit(tmp_path, engine(policy="floors: {kernel_seeds: 1000000000}\n"))
    with pytest.raises(InputError, match="kernel_seeds"):
        planned(tmp_path)


def test_a_plan_says_what_is_read_where_there_is_no_git(tmp_path: Path) -> None:
    plan = plan_of(tmp_path / "repo", engine() | {"pyproject.toml": ""})
    assert plan.archs["h100"] == "sm_90a"
    assert plan.packages == ("torch",)
    assert plan.roots == ("engine/foo/",)
    assert plan.unbound == ("manifests/", "pyproject.toml")
    assert plan.unit("core").patterns == ("tests/foo/test_core.py",)
    write_files(tmp_path / "tree", engine())
    assert compare(plan, tmp_path / "tree") == []


def test_cells_run_the_tests_of_their_unit_and_not_what_these_need(tmp_path: Path) -> None:
    plan = plan_of(tmp_path)
    tests = {cell.unit: cell.tests for cell in plan.cells}
    assert tests == {
        "core": ("tests/foo/test_core.py",),
        "helper": ("tests/foo/test_helper.py",),
        "rest": ("tests/foo/test_gate.py",),
        "gate-files": ("tests/foo/test_gate.py",),
        "path": (
            "tests/foo/test_core.py",
            "tests/foo/test_gate.py",
            "tests/foo/test_helper.py",
        ),
    }


def test_cells_of_several_regions_with_one_key_are_planned_once(tmp_path: Path) -> None:
    twice = [region(id=name, tier="kernel-tested") for name in ("a", "b")]
    plan = plan_of(tmp_path, engine(*twice))
    kernel = [cell for cell in plan.cells if cell.kind is Kind.KERNEL_TEST]
    assert kernel
    assert {cell.region for cell in kernel} == {"a"}


def test_nothing_is_planned_for_a_scope_that_claims_nothing(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, engine(region(tier="declared")))
    assert (plan.cells, plan.units) == ((), ())


def test_every_unit_without_tests_or_files_is_named(tmp_path: Path) -> None:
    gone: dict[str, Content] = {"tests/foo/test_core.py": None, "engine/foo/helper.py": None}
    repo = commit(tmp_path, engine())
    repo.commit("main", gone)
    with pytest.raises(InputError) as error:
        planned(tmp_path, Choice(kinds=frozenset({Kind.KERNEL_TEST})))
    assert [(p.where.split()[1], p.saw) for p in error.value.problems] == [
        ("core", "no tests"),
        ("helper", "no files"),
    ]


def test_a_unit_that_is_not_chosen_may_lack_tests(tmp_path: Path) -> None:
    repo = commit(tmp_path, engine())
    repo.commit("main", {"tests/foo/test_core.py": None})
    plan = planned(tmp_path, Choice(units=frozenset({"helper"}))).plan
    assert {cell.unit for cell in plan.cells} == {"helper"}


def test_inputs_that_can_not_be_told_are_bad_input(tmp_path: Path) -> None:
    commit(tmp_path, engine() | {"engine/foo/link.py": Symlink("shared.py")})
    with pytest.raises(InputError, match="link"):
        planned(tmp_path)


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({TABLE: None}, "no such file"),
        ({TABLE: "{}"}, "variants"),
        ({MANIFEST: "manifest: 1\n"}, "no key"),
        ({MANIFEST: None}, "0 manifests"),
    ],
    ids=["no table", "a bad table", "a bad manifest", "no manifest"],
)
def test_what_cells_can_not_be_told_from_is_bad_input(
    tmp_path: Path, files: dict[str, Content], said: str
) -> None:
    commit(tmp_path, engine()).commit("main", files)
    with pytest.raises(InputError, match=said):
        planned(tmp_path)


def test_names_that_there_are_not_are_told_all_at_once(tmp_path: Path) -> None:
    commit(tmp_path, engine())
    unknown = frozenset({"nothing"})
    with pytest.raises(InputError) as error:
        planned(tmp_path, Choice(units=unknown, regions=unknown, hardware=unknown))
    assert [p.where for p in error.value.problems] == ["--unit", "--region", "--hardware"]


def test_too_many_cells_name_the_axis_that_costs_most(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def many(*_: object) -> None:
        raise TooManyPoints(12345, "context")

    commit(tmp_path, engine())
    monkeypatch.setattr(planning, "witness_points", many)
    with pytest.raises(InputError, match=r"12,345 sync-audit cells.*context costs most"):
        planned(tmp_path)


def test_a_plan_that_is_too_long_names_the_axis_that_costs_most(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wide = region(tier="kernel-tested", hardware=["h100", "h200", "b200"])
    commit(tmp_path, engine(wide))
    monkeypatch.setattr(planning, "MAX_BYTES", 5000)
    with pytest.raises(InputError, match=r"kernel-test of region h100-tp1, of which \w+ costs"):
        planned(tmp_path, Choice(kinds=frozenset({Kind.KERNEL_TEST})))


def test_cells_that_are_covered_are_left_out_and_counted(tmp_path: Path) -> None:
    commit(tmp_path, engine())
    everything = keys(planned(tmp_path).plan.cells)
    found = planned(tmp_path, covered=lambda cell, inputs: inputs.unit == "core")
    assert {cell.unit for cell in found.plan.cells} == {"helper", "rest", "gate-files", "path"}
    assert set(found.covered) == {
        ("core", kind) for kind in (Kind.SYNC_AUDIT, Kind.KERNEL_TEST, Kind.STRESS)
    }
    assert len(found.plan.cells) + found.covered.total() == len(everything)


def test_owed_cells_can_be_listed_without_reading_a_source(tmp_path: Path) -> None:
    commit(tmp_path, engine())
    with planner(tmp_path) as found:
        assert len(found.owed(Choice())) == len(planned(tmp_path).plan.cells)
