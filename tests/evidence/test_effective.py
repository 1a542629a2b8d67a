# SPDX-License-Identifier: Apache-2.0
"""The effective tier: what evidence of HEAD bears out of a claim, and who speaks of it."""

import json
import shutil
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

import pytest

from fasttrack.change.read import read_revision
from fasttrack.cli.main import run
from fasttrack.evidence.at_head import effective_at_head
from fasttrack.evidence.effective import effective_tiers
from fasttrack.evidence.subject import unit_of
from fasttrack.testing import Repo
from fasttrack.verdict import Outcome
from fasttrack.vocabulary import Kind, Tier
from fasttrack.workspace import open_workspace
from tests.engine import AS_OF, KERNEL
from tests.evidence.lanes import KEPT, judged, lane, owed_at, shown, statuses, stored
from tests.evidence.plans import write_files
from tests.evidence.units import SOURCES

REGION = "h100-tp1"
ASKED = ("--gpu", "h100", "--tp", "1", "--requests", "1", "--as-of", AS_OF.isoformat())
COMPILED = (Kind.SYNC_AUDIT, Kind.REFUSAL)


def kept(where: Path, kinds: Sequence[Kind], tier: str = "stress-tested") -> Repo:
    """A checked-out repository whose HEAD has evidence of these kinds for everything it claims."""
    repo, files = Repo(where / "repo"), lane(tier)
    write_files(repo.path, files)
    repo.commit("main", files)
    cells, inputs = owed_at(repo.path, "main")
    told = [shown(c, inputs[unit_of(c)]) for c in cells if c.kind in kinds]
    if told:
        repo.commit("main", stored(where / "new", told))
    return repo


def effective(where: Path, *, days: int = 0) -> Tier:
    """The effective tier of the region."""
    workspace = open_workspace(where)
    manifests, day = workspace.manifests.valid.values(), AS_OF + timedelta(days=days)
    found = effective_at_head(workspace.root, workspace.config, manifests, day)
    return found.tiers.get("foo", {}).get(REGION, Tier.DECLARED)


@pytest.mark.parametrize(
    ("kinds", "tier", "expected"),
    [
        ((), "stress-tested", "declared"),
        ((Kind.SYNC_AUDIT, Kind.KERNEL_TEST), "stress-tested", "declared"),
        (COMPILED, "stress-tested", "compiled"),
        ((*COMPILED, Kind.STRESS), "stress-tested", "compiled"),
        ((*COMPILED, Kind.KERNEL_TEST), "stress-tested", "kernel-tested"),
        (tuple(Kind), "stress-tested", "stress-tested"),
        (tuple(Kind), "compiled", "compiled"),
        (tuple(Kind), "declared", "declared"),
    ],
)
def test_the_tier_is_the_highest_whose_kinds_are_all_covered(
    tmp_path: Path, kinds: tuple[Kind, ...], tier: str, expected: str
) -> None:
    assert effective(kept(tmp_path, kinds, tier).path) == expected


def test_one_cell_that_lacks_lowers_the_tier_and_age_lowers_it_too(tmp_path: Path) -> None:
    repo = kept(tmp_path, tuple(Kind))
    assert effective(repo.path, days=81) is Tier.STRESS_TESTED
    assert effective(repo.path, days=82) is Tier.DECLARED
    cells, inputs = owed_at(repo.path, "main")
    rest = [c for c in cells if c.kind is not Kind.KERNEL_TEST]
    rest += [c for c in cells if c.kind is Kind.KERNEL_TEST][1:]
    told = [shown(c, inputs[unit_of(c)]) for c in rest]
    with read_revision(repo.path) as found:
        gone = dict.fromkeys(path for path in found.base if path.startswith(KEPT))
    repo.commit("main", {**gone, **stored(tmp_path / "less", told)})
    assert effective(repo.path) is Tier.COMPILED


def test_files_of_head_count_and_not_those_on_disk(tmp_path: Path) -> None:
    repo = kept(tmp_path, tuple(Kind))
    (repo.path / KERNEL).write_text("other")
    assert effective(repo.path) is Tier.STRESS_TESTED
    repo.commit("main", {KERNEL: "other = 1\n"})
    assert effective(repo.path) is Tier.DECLARED


def test_a_change_is_not_held_by_cells_that_were_stale_before(tmp_path: Path) -> None:

    repo = kept(tmp_path, tuple(Kind), "kernel-tested")
    tip = repo.commit("main", {"engine/foo/kernel.cu": SOURCES["engine/foo/kernel.cu"] + "// 1\n"})
    assert effective(repo.path) is Tier.DECLARED
    topic = repo.commit("topic", {"engine/foo/near.py": "X = 1\n"}, parent=tip)
    cells, inputs = owed_at(repo.path, topic)
    told = [shown(c, inputs[unit_of(c)], run="3" * 32) for c in cells if unit_of(c) != "core"]
    repo.commit("topic", stored(tmp_path / "more", told))
    verdict = judged(repo.path)
    assert "core" not in {unit_of(o.cell) for o in verdict.coverage.owed}
    assert (set(statuses(verdict)), verdict.outcome) == ({"covered"}, Outcome.FAST_TRACK)


def test_scope_explain_admits_by_the_effective_tier_and_shows_both(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    repo = kept(tmp_path, tuple(Kind))
    assert run(["scope", "explain", "--repo", str(repo.path), *ASKED]) == 0
    assert "claims stress-tested, effective stress-tested" in capsys.readouterr().out
    repo.commit("main", {KERNEL: "other = 1\n"})
    assert run(["scope", "explain", "--repo", str(repo.path), *ASKED]) == 1
    out = capsys.readouterr().out
    assert f"{REGION}: inside, claims stress-tested, effective declared" in out
    assert "admitted from stress-tested" in out


def test_scope_docs_writes_the_effective_tiers_with_day_and_tree(tmp_path: Path) -> None:
    repo, out = kept(tmp_path, COMPILED), tmp_path / "effective.json"
    words = ["scope", "docs", "--repo", str(repo.path), "--effective", str(out)]
    options = ["--output", str(tmp_path / "page.md"), "--as-of", AS_OF.isoformat()]
    assert run([*words, *options]) == 0
    written = json.loads(out.read_text())
    assert written["manifests"] == {"foo": {REGION: "compiled"}}
    assert (written["as_of"], len(written["tree"])) == (AS_OF.isoformat(), 40)
    # Without a repository nothing is borne out.
    shutil.rmtree(repo.path / ".git")
    assert run([*words, *options]) == 0
    assert json.loads(out.read_text())["manifests"] == {"foo": {REGION: "declared"}}


def test_a_kind_that_can_not_be_listed_is_not_covered(tmp_path: Path) -> None:

    repo = kept(tmp_path, tuple(Kind))
    workspace = open_workspace(repo.path)
    repo.commit("main", {"engine/foo/table.json": None})
    with read_revision(repo.path) as revision:
        manifest = workspace.manifest(None)
        tiers = effective_tiers(revision, workspace.config, manifest, AS_OF)
    assert tiers == {REGION: Tier.DECLARED}
