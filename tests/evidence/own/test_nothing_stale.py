# SPDX-License-Identifier: Apache-2.0
"""What makes nothing stale in this repository: a rebase, more evidence, a tier, a lease, a bar."""

from collections.abc import Mapping
from datetime import timedelta
from random import Random
from typing import Any

import pytest

from fasttrack.evidence.status import Status
from fasttrack.vocabulary import Kind

from .dependencies import Dependencies
from .one_byte import changed, elsewhere
from .scratch import MANIFEST, POLICY, Edit, Scratch, Told

EDITED = "kimi_k3/mini/residual.py"
AHEAD = 50
"""Commits of others that a change is rebased over."""


def statuses(told: Told) -> set[Status]:
    return {answer.status for answer in told.said.values()}


def test_a_rebase_over_many_commits_of_others_keeps_a_change_s_evidence(
    scratch: Scratch, own: Dependencies
) -> None:
    edit, _ = changed(own.commit, EDITED)
    topic = scratch.repo.commit("edited", edit, parent=scratch.tip)
    evidence = scratch.evidence(topic, "3" * 32)
    topic = scratch.repo.commit("edited", evidence)
    tip, others = scratch.tip, Random(0).sample(elsewhere(own), AHEAD)
    for number, path in enumerate(others):
        more = {**changed(own.commit, path)[0], f"docs/more/{number}.md": "more\n"}
        tip = scratch.repo.commit("ahead", more, parent=tip)
    rebased = scratch.repo.commit("rebased", {**edit, **evidence}, parent=tip)
    mine = {cell for cell, unit in scratch.cells.items() if EDITED in own.units[unit].files}
    heads = (("main", topic), ("ahead", rebased), ("ahead", topic))
    for told in (scratch.told(head, target=target) for target, head in heads):
        assert told.owed.keys() == mine
        assert {answer.status for answer in told.owed.values()} == {Status.COVERED}
        assert statuses(told) == {Status.COVERED}
    # Not for want of looking: without what it brings, the change owes them all.
    bare = scratch.told(scratch.repo.commit("bare", edit, parent=tip), target="ahead")
    assert {c for c, answer in bare.owed.items() if answer.status is Status.STALE} == mine


def test_evidence_of_another_run_makes_nothing_stale(scratch: Scratch) -> None:
    told = scratch.told(scratch.topic(scratch.evidence(scratch.tip, "4" * 32)))
    assert (told.owed, statuses(told)) == ({}, {Status.COVERED})


def _region(manifest: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = next(r for r in manifest["scope"] if r["tier"] == "kernel-tested")
    return found


def _renew(manifest: dict[str, Any]) -> None:
    manifest["lease"]["granted"] += timedelta(days=30)
    manifest["lease"]["expires"] += timedelta(days=30)


CLAIM = {
    "id": "step",
    "metric": "layer_time_us",
    "of": "layer",
    "workload": {"rows": 1, "context": 1, "acceptance": "none"},
    "ours": {"hardware": "h200", "gpu_count": 1, "backend": "prepared"},
    "baseline": {"hardware": "h200", "gpu_count": 1, "backend": "reference"},
    "ratio": 1.5,
    "status": "reported",
}
EDITS: Mapping[str, Edit] = {
    "a renewed lease": _renew,
    "another reason of the state": lambda m: m["state"].update(reason="looked at again"),
    "another summary": lambda m: m.update(summary="Operators."),
    "another sponsor": lambda m: m.update(sponsor="somebody-else"),
    "another claim": lambda m: m.update(claims=[CLAIM]),
    "another compiler of variants": lambda m: m.update(toolchain={"torch": "2.12.0"}),
    "another limit of the lines of a wire": lambda m: m["code"]["wiring"][0].update(max_lines=1),
}
"""Edits of the manifest of which no evidence speaks."""


@pytest.mark.parametrize("name", EDITS)
def test_an_edit_of_the_manifest_makes_nothing_stale_and_owes_nothing(
    scratch: Scratch, name: str
) -> None:
    told = scratch.told(scratch.topic(scratch.rewritten(MANIFEST, EDITS[name])))
    assert (told.owed, statuses(told)) == ({}, {Status.COVERED})


def test_a_raised_tier_owes_what_is_new_and_keeps_what_earned_the_old_one(
    scratch: Scratch,
) -> None:
    raised = scratch.rewritten(MANIFEST, lambda m: _region(m).update(tier="stress-tested"))
    told = scratch.told(scratch.topic(raised))
    assert {kind for kind, _ in told.owed} == {Kind.STRESS}
    assert {answer.status for answer in told.owed.values()} == {Status.MISSING}
    assert statuses(told) == {Status.COVERED}


@pytest.mark.parametrize(("seeds", "want"), [(1, Status.COVERED), (4, Status.BELOW_FLOOR)])
def test_another_floor_is_held_against_the_same_evidence_and_makes_none_of_it_stale(
    scratch: Scratch, seeds: int, want: Status
) -> None:
    edit = scratch.rewritten(POLICY, lambda policy: policy["floors"].update(kernel_seeds=seeds))
    head = scratch.repo.commit("floors", edit, parent=scratch.tip)
    told = scratch.told(head, target="floors")
    assert told.owed == {}
    found = {(kind, told.said[kind, key].status) for kind, key in told.said}
    assert found == {(Kind.KERNEL_TEST, want), (Kind.REFUSAL, Status.COVERED)}
