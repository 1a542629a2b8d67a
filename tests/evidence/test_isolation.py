# SPDX-License-Identifier: Apache-2.0
"""What only `stress-tested` and above ask for must have been judged by another process."""

from collections import Counter
from pathlib import Path

import pytest
import yaml

from fasttrack.evidence.failures import failure_of, said_no
from fasttrack.evidence.faults import Fault
from fasttrack.evidence.subject import unit_of
from fasttrack.policy.load import load_policy
from fasttrack.policy.model import Policy
from fasttrack.testing import Repo
from fasttrack.verdict import Outcome, Verdict
from fasttrack.vocabulary import Kind, Tier
from tests.engine import MANIFEST, POLICY
from tests.evidence.keys import key
from tests.evidence.lanes import judged, lane, owed_at, shown, stored, trusting
from tests.evidence.plans import CLAIM
from tests.evidence.strategies import digest, good
from tests.evidence.test_covered_changes import EDIT

ISOLATED = frozenset({Kind.STRESS, Kind.MODEL_EVAL, Kind.PERFORMANCE})
SAID = "the measured process could write its own result"
CONTENT = {
    Kind.MODEL_EVAL: {"model": "example/foo", "weights": digest("0"), "endpoint": "engine"},
    Kind.PERFORMANCE: {"bytes_moved": 1e6, "pairs": 10},
}
"""What statements say that are above the floors of `served`."""


def owed_from_stress_tested_on(policy: Policy) -> frozenset[Kind]:
    """Kinds that no tier below owes."""
    below = [tier for tier in policy.tiers if tier.rank < Tier.STRESS_TESTED.rank]
    return frozenset(policy.tiers[Tier.SERVED]) - {k for tier in below for k in policy.tiers[tier]}


def test_these_are_the_kinds_that_stress_tested_and_above_owe_beyond_the_tiers_below() -> None:
    own = Path(__file__).parents[2] / "manifests" / "policy.yaml"
    for raw in (own.read_bytes(), str(lane()[POLICY]).encode()):
        assert owed_from_stress_tested_on(load_policy(raw, "policy")) == ISOLATED


@pytest.mark.parametrize("kind", Kind)
def test_a_statement_whose_process_judged_itself_shows_nothing_from_there_on(kind: Kind) -> None:
    assert good(kind).problems() == []
    itself = good(kind, isolation="process")
    assert itself.problems() == ([SAID] if kind in ISOLATED else [])
    assert failure_of(itself) is (Fault.EXECUTION if kind in ISOLATED else None)
    assert not said_no(itself)  # it contradicts no run that passed


@pytest.mark.parametrize("kind", sorted(ISOLATED))
def test_what_failed_is_told_before_who_judged_it(kind: Kind) -> None:
    execution = good(kind).predicate.execution.model_copy(update={"fallbacks": 1})  # type: ignore[union-attr]
    fell_back = good(kind, {"execution": execution}, isolation="process")
    assert fell_back.problems() == ["1 steps fell back", SAID]
    assert failure_of(fell_back) is Fault.EXECUTION


def served(where: Path, tier: str, isolation: str) -> Verdict:
    """The verdict of a kernel edit at a tier, with evidence of all that it owes."""
    claim = {s: CLAIM[s] | {"hardware": "h100"} for s in ("ours", "baseline")}  # type: ignore[operator]
    files = dict(lane(tier, trusting(key("lab", hardware=("h100",)))))
    manifest = yaml.safe_load(str(files[MANIFEST]))
    manifest["claims"] = [CLAIM | claim]
    policy = yaml.safe_load(str(files[POLICY]))
    policy["hardware"]["h100"]["bandwidth_tb_s"] = {"peak": 3.35, "sustained": 2.9}
    files |= {MANIFEST: yaml.safe_dump(manifest), POLICY: yaml.safe_dump(policy)}
    repo = Repo(where / "repo")
    tip = repo.commit("main", files)
    topic = repo.commit("topic", EDIT, parent=tip)
    cells, inputs = owed_at(repo.path, topic)
    told = [
        shown(c, inputs[unit_of(c)], isolation=isolation, content=CONTENT.get(c.kind, {}))
        for c in cells
    ]
    repo.commit("topic", stored(where / "new", told), parent=topic)
    return judged(repo.path)


def test_every_cell_of_the_highest_tier_can_be_covered(tmp_path: Path) -> None:
    verdict = served(tmp_path, "served", "harness")
    assert {owed.cell.kind for owed in verdict.coverage.owed} >= ISOLATED
    assert verdict.coverage.missing == ()
    assert verdict.outcome is Outcome.FAST_TRACK


def test_what_judged_itself_covers_nothing_from_stress_tested_on(tmp_path: Path) -> None:
    verdict = served(tmp_path, "served", "process")
    assert {owed.cell.kind for owed in verdict.coverage.missing} == ISOLATED
    assert {(o.answer.status.value, o.answer.detail) for o in verdict.coverage.missing} == {
        ("failed", SAID)
    }
    assert verdict.outcome is Outcome.NEEDS_EVIDENCE
    assert Counter(f.rule for f in verdict.findings) == {"FT526": 1}


def test_a_kernel_test_that_judged_itself_stays_covered_when_the_tier_rises(tmp_path: Path) -> None:
    for tier in ("kernel-tested", "stress-tested"):
        (tmp_path / tier).mkdir()
        owed = served(tmp_path / tier, tier, "process").coverage.owed
        answers = [o.answer.covers for o in owed if o.cell.kind is Kind.KERNEL_TEST]
        assert answers
        assert all(answers)
