# SPDX-License-Identifier: Apache-2.0
"""A change of nothing but named tests: no business of the lane, and not without consequence."""

from pathlib import Path

from fasttrack.evidence.at_head import effective_at_head
from fasttrack.evidence.predicates.common import TestResults as Results
from fasttrack.evidence.subject import unit_of
from fasttrack.testing import Content, Repo
from fasttrack.verdict import Outcome, Request, Verdict, evaluate
from fasttrack.vocabulary import Kind, Tier
from fasttrack.workspace import open_workspace
from tests.engine import AS_OF
from tests.evidence.lanes import lane, owed_at, shown, stored
from tests.evidence.plans import write_files

NAMED = "tests/foo/test_gate.py"
STRICT = "def test_gate():\n    assert gate() == pytest.approx(1.0, rel=1e-3)\n"
LOOSE = STRICT.replace("1e-3", "1e-1")
RAN = {"results": Results(passed=(f"{NAMED}::test_gate",))}
"""What a statement of a kind that runs tests says of them."""


def _kept(where: Path) -> tuple[Repo, str]:
    """A repository with evidence for all that it claims, and a test with a tolerance; its tip."""
    files: dict[str, Content] = {**lane("kernel-tested"), NAMED: f"import pytest\n\n\n{STRICT}"}
    repo = Repo(where / "repo")
    write_files(repo.path, files)
    repo.commit("main", files)
    cells, inputs = owed_at(repo.path, "main")
    running = {Kind.REFUSAL, Kind.KERNEL_TEST}
    told = [
        shown(cell, inputs[unit_of(cell)], content=RAN if cell.kind in running else {})
        for cell in cells
    ]
    return repo, repo.commit("main", stored(where / "new", told))


def _effective(where: Path) -> Tier:
    workspace = open_workspace(where)
    manifests = workspace.manifests.valid.values()
    found = effective_at_head(workspace.root, workspace.config, manifests, AS_OF)
    return found.tiers["foo"].get("h100-tp1", Tier.DECLARED)


def _judged(repo: Repo, *, labelled: bool) -> Verdict:
    request = Request(repo.path, target="main", head="topic", labelled=labelled)
    return evaluate(request, AS_OF)


def test_a_weaker_named_test_alone_is_ordinary_review_and_ends_what_evidence_bears(
    tmp_path: Path,
) -> None:
    repo, tip = _kept(tmp_path)
    weaker = {NAMED: f"import pytest\n\n\n{LOOSE}"}
    repo.commit("topic", weaker, parent=tip)

    verdict = _judged(repo, labelled=False)

    assert (verdict.outcome, verdict.in_lane) == (Outcome.ORDINARY_REVIEW, False)
    assert _effective(repo.path) is Tier.KERNEL_TESTED
    repo.commit("main", weaker)
    assert _effective(repo.path) is not Tier.KERNEL_TESTED


def test_with_the_label_a_weaker_named_test_alone_is_refused(tmp_path: Path) -> None:
    repo, tip = _kept(tmp_path)
    repo.commit("topic", {NAMED: f"import pytest\n\n\n{LOOSE}"}, parent=tip)

    verdict = _judged(repo, labelled=True)

    assert verdict.outcome is Outcome.REFUSED
    assert "FT406" in {found.rule for found in verdict.findings}
