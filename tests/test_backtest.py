# SPDX-License-Identifier: Apache-2.0
"""A backtest judges each merged change as it was merged, under one policy."""

import json
from pathlib import Path

import pytest

from fasttrack.adopt.propose import propose
from fasttrack.backtest import judge_all, merged_changes, tally
from fasttrack.cli import main as cli
from fasttrack.finding import Level
from fasttrack.testing import Repo
from fasttrack.verdict import Outcome
from fasttrack.workspace import open_workspace
from tests.engine import ANSWERS, AS_OF, KERNEL, SHARED

OTHER = "engine/other.py"


@pytest.fixture
def history(tmp_path: Path) -> tuple[Path, list[str]]:
    """Five changes without any policy: squashes, a merge commit, a change outside the lane."""
    repo = Repo(tmp_path / "repo")
    commits = [repo.commit("main", {KERNEL: "A\n", SHARED: "A\n"})]
    commits.append(repo.commit("main", {KERNEL: "B\n"}))
    side = repo.commit("side", {KERNEL: "C\n", OTHER: "C\n"}, parent=commits[-1])
    commits.append(repo.commit("main", {SHARED: "D\n"}))
    commits.append(repo.commit("main", {KERNEL: "C\n"}, parent=[commits[-1], side]))
    commits.append(repo.commit("main", {KERNEL: "E # \u202e\n"}))
    for path, text in propose(ANSWERS).items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    return tmp_path, commits


def test_each_change_is_judged_against_what_was_there_before_it(
    history: tuple[Path, list[str]],
) -> None:
    where, commits = history
    workspace = open_workspace(where, "manifests")
    changes = merged_changes(where / "repo", f"{commits[0]}..main")
    assert [m.commit for m in changes] == commits[:0:-1]
    judged = {j.merged.commit: j for j in judge_all(where / "repo", workspace, changes, AS_OF)}
    outcomes = [judged[c].outcome for c in commits[1:]]
    assert outcomes == [
        Outcome.FAST_TRACK,
        Outcome.ORDINARY_REVIEW,
        Outcome.ORDINARY_REVIEW,
        Outcome.REFUSED,
    ]
    assert not judged[commits[2]].in_lane
    # The merge commit brought the scheduler too: its second parent is judged, not its first diff.
    assert [(f.rule, f.path) for f in judged[commits[3]].findings] == [("FT101", OTHER)]


def test_the_tally_counts_changes_and_findings_apart(history: tuple[Path, list[str]]) -> None:
    where, commits = history
    workspace = open_workspace(where, "manifests")
    changes = merged_changes(where / "repo", f"{commits[0]}..main")
    counts = tally(list(judge_all(where / "repo", workspace, changes, AS_OF, labelled=True)))
    assert (counts.changes, counts.in_lane) == (4, 4)
    assert counts.levels == {Level.BLOCK: 1, Level.ROUTE: 2, Level.NOTE: 0}
    assert counts.rules["FT101", Level.ROUTE] == (2, 2)
    assert counts.noisiest[0] == (("FT101", OTHER), 1)


def test_the_command_prints_counts_and_keeps_everything_as_json(
    history: tuple[Path, list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    where, commits = history
    argv = ["policy", "backtest", "--repo", str(where / "repo"), "--config",
            str(where / "manifests"), f"{commits[0]}..main", "--as-of=2026-11-29"]  # fmt: skip
    assert cli.run(argv) == 0
    text = capsys.readouterr().out
    assert "4 merged changes under policy version 1" in text
    assert "1  refused" in text
    assert cli.run([*argv, "--format=json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert [c["commit"] for c in record["changes"]] == commits[:0:-1]
    assert record["counts"]["in_lane"] == 3


@pytest.mark.parametrize("text", ["main", "main...x", "..main", "main..", "nowhere..main"])
def test_a_bad_range_is_bad_input(
    history: tuple[Path, list[str]], text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    where, _ = history
    argv = ["policy", "backtest", "--repo", str(where / "repo"), "--config",
            str(where / "manifests"), text]  # fmt: skip
    assert cli.run(argv) == 2
    assert "range" in capsys.readouterr().err
