# SPDX-License-Identifier: Apache-2.0
"""Which cells a manifest that changes alone makes new."""

from pathlib import Path

from fasttrack.testing import Repo
from fasttrack.verdict import Request, evaluate
from tests.engine import AS_OF, MANIFEST, files

CLAIM = """\
claims:
  - id: step
    metric: layer_time_us
    of: layer
    workload: {rows: 1, context: 1, acceptance: none}
    ours: {hardware: h100, gpu_count: 1, backend: foo}
    baseline: {hardware: h100, gpu_count: 1, backend: auto}
    ratio: 1.5
    status: reported
"""


def owed_kinds(where: Path, before: str, after: str) -> set[str]:
    """Kinds of the cells that a change of the manifest alone owes."""
    own, repo = files(), Repo(where)
    start = repo.commit("main", own | {MANIFEST: before})
    repo.commit("topic", {MANIFEST: after}, parent=start)
    verdict = evaluate(Request(where, target="main", head="topic"), AS_OF)
    return {o.cell.kind.value for o in verdict.coverage.owed}


def at(tier: str, claims: str = CLAIM) -> str:
    """The manifest at a tier."""
    return files()[MANIFEST].replace("tier: declared", f"tier: {tier}") + claims


def test_a_tier_that_adds_performance_owes_it_although_no_region_has_the_cell(
    tmp_path: Path,
) -> None:
    assert owed_kinds(tmp_path, at("model-evaluated"), at("served")) == {"performance"}


def test_a_claim_that_comes_later_owes_its_performance(tmp_path: Path) -> None:
    assert owed_kinds(tmp_path, at("served", ""), at("served")) == {"performance"}


def test_a_lower_tier_owes_nothing(tmp_path: Path) -> None:
    assert owed_kinds(tmp_path, at("served"), at("stress-tested")) == set()
