# SPDX-License-Identifier: Apache-2.0
"""The main flow: whose policy judges, what outranks what, and that the answer is the same again."""

import itertools
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from fasttrack.errors import InputError
from fasttrack.evidence.owed import Coverage, Owed
from fasttrack.finding import Finding, Level
from fasttrack.manifest.cells import cell
from fasttrack.report.record import json_text, verdict_record
from fasttrack.testing import Repo
from fasttrack.verdict import Outcome, Request, decide, evaluate
from fasttrack.vocabulary import Kind
from tests.engine import AS_OF, KERNEL, MANIFEST, POLICY, SHARED, engine, files

FINDING = Finding("FT101", "outside-scope", Level.NOTE, "a", 0, 0, "saw", "want", "fix", "0" * 16)
MISSING = Owed("foo", cell(Kind.KERNEL_TEST, "r", {"unit": "u"}), "because")


@pytest.mark.parametrize(
    ("levels", "missing"),
    [
        (levels, missing)
        for n in range(4)
        for levels in itertools.combinations(Level, n)
        for missing in (False, True)
    ],
)
def test_the_gravest_answer_wins(levels: tuple[Level, ...], missing: bool) -> None:
    findings = [replace(FINDING, level=level) for level in levels]
    coverage = Coverage((MISSING,)) if missing else Coverage.nothing()
    # Written from the precedence in words, independently of `decide`.
    answers = [Outcome.FAST_TRACK]
    answers += [Outcome.NEEDS_EVIDENCE] if missing else []
    answers += [Outcome.ORDINARY_REVIEW] if "route" in levels else []
    answers += [Outcome.REFUSED] if "block" in levels else []
    assert decide(findings, coverage) is answers[-1]


def test_exit_codes_are_those_that_scripts_rely_on() -> None:
    assert {o.value: int(o.exit_code) for o in Outcome} == {
        "fast-track": 0,
        "refused": 1,
        "needs-evidence": 3,
        "ordinary-review": 4,
    }


def test_a_change_that_branched_before_a_rule_was_tightened_is_judged_by_the_tightened_policy(
    tmp_path: Path,
) -> None:
    repo = engine(tmp_path, {"topic": {KERNEL: "BLOCK = 32\n" + "X = 1\n" * 50}})
    request = Request(tmp_path, target="main", head="topic")
    assert evaluate(request, AS_OF).outcome is Outcome.FAST_TRACK

    tightened = files()[POLICY].replace("added_lines: 12000", "added_lines: 49")
    repo.commit("main", {POLICY: tightened.replace("version: 1", "version: 2")})

    verdict = evaluate(request, AS_OF)
    assert verdict.outcome is Outcome.ORDINARY_REVIEW
    assert [f.rule for f in verdict.findings] == ["FT125"]
    assert verdict.identity.merge_base != verdict.identity.base_tip


def test_a_change_can_not_bring_the_policy_that_judges_it(tmp_path: Path) -> None:
    looser = files()[POLICY].replace("files: 120", "files: 1")
    engine(tmp_path, {"topic": {POLICY: looser, KERNEL: "BLOCK = 64\n"}})
    verdict = evaluate(Request(tmp_path, target="main", head="topic"), AS_OF)
    assert verdict.config.policy.budgets.files == 120
    assert verdict.outcome is Outcome.REFUSED


def test_a_waiver_of_the_target_branch_lifts_its_finding_until_it_expires(tmp_path: Path) -> None:
    change = {SHARED: "LIMIT = 2\n", KERNEL: "BLOCK = 64\n"}
    engine(tmp_path / "a", {"topic": change})
    found = evaluate(Request(tmp_path / "a", target="main", head="topic"), AS_OF).findings
    waiver = (
        f"waivers:\n  - {{rule: FT101, path: {SHARED}, fingerprint: {found[0].fingerprint}, "
        "reason: agreed, owner: owner, expires: 2026-12-01}\n"
    )
    repo = Repo(tmp_path / "b")
    tip = repo.commit("main", files() | {MANIFEST: files()[MANIFEST] + waiver})
    repo.commit("topic", change, parent=tip)
    repo.commit("more", {**change, SHARED: "LIMIT = 3\n"}, parent=tip)

    waived = evaluate(Request(tmp_path / "b", target="main", head="topic"), AS_OF)
    assert waived.outcome is Outcome.FAST_TRACK
    assert [f.level for f in waived.findings] == [Level.NOTE]
    assert "waived until 2026-12-01" in waived.findings[0].saw
    late = evaluate(Request(tmp_path / "b", target="main", head="topic"), AS_OF + timedelta(days=3))
    assert late.outcome is Outcome.ORDINARY_REVIEW
    other = evaluate(Request(tmp_path / "b", target="main", head="more"), AS_OF)
    assert other.outcome is Outcome.ORDINARY_REVIEW


def test_a_waiver_that_the_change_brings_along_lifts_nothing(tmp_path: Path) -> None:
    change = {SHARED: "LIMIT = 2\n", KERNEL: "BLOCK = 64\n"}
    engine(tmp_path / "a", {"topic": change})
    found = evaluate(Request(tmp_path / "a", target="main", head="topic"), AS_OF).findings
    waiver = (
        f"waivers:\n  - {{rule: FT101, path: {SHARED}, fingerprint: {found[0].fingerprint}, "
        "reason: agreed, owner: owner, expires: 2026-12-01}\n"
    )
    engine(tmp_path / "b", {"topic": {**change, MANIFEST: files()[MANIFEST] + waiver}})
    verdict = evaluate(Request(tmp_path / "b", target="main", head="topic"), AS_OF)
    assert any(f.rule == "FT101" and f.level is Level.ROUTE for f in verdict.findings)


def test_a_change_outside_the_lane_is_an_ordinary_review_without_findings(tmp_path: Path) -> None:
    engine(tmp_path, {"topic": {SHARED: "LIMIT = 2\n", "docs/\u202e.md": "x"}})
    verdict = evaluate(Request(tmp_path, target="main", head="topic"), AS_OF)
    assert (verdict.outcome, verdict.in_lane) == (Outcome.ORDINARY_REVIEW, False)
    assert verdict.findings == ()
    labelled = evaluate(Request(tmp_path, target="main", head="topic", labelled=True), AS_OF)
    assert {f.rule for f in labelled.findings} >= {"FT101"}


@pytest.mark.parametrize("path", ["Engine/Foo/x.py", "engine/FOO/x.py", "MANIFESTS/policy.yaml"])
def test_no_spelling_of_a_governed_path_slips_out_of_the_lane(tmp_path: Path, path: str) -> None:
    engine(tmp_path, {"topic": {path: "X = 1\n"}})
    verdict = evaluate(Request(tmp_path, target="main", head="topic"), AS_OF)
    assert verdict.in_lane
    assert verdict.outcome is not Outcome.FAST_TRACK


def test_the_same_inputs_give_the_same_bytes(tmp_path: Path) -> None:
    change = {KERNEL: "import os, evil\n", SHARED: "L\n", "caf\u00e9.py": "", "a\nb": "\u202e\n"}
    texts = set()
    for i in range(3):
        engine(tmp_path / str(i), {"topic": change})
        verdict = evaluate(Request(tmp_path / str(i), target="main", head="topic"), AS_OF)
        texts.add(json_text(verdict_record(verdict)))
    (text,) = texts
    assert str(tmp_path) not in text
    assert text.isascii()


@pytest.mark.parametrize(
    "change",
    [
        {"pyproject.toml": '[tool.fasttrack]\ndir = "mine"\n'},
        {"pyproject.toml": "[tool.fasttrack\n"},
        {".github/fasttrack/policy.yaml": files()[POLICY]},
    ],
)
def test_a_change_that_only_moves_the_place_of_the_policy_is_not_silent(
    tmp_path: Path, change: dict[str, str]
) -> None:
    engine(tmp_path, {"topic": change})
    verdict = evaluate(Request(tmp_path, target="main", head="topic"), AS_OF)
    assert verdict.in_lane
    assert "FT324" in {f.rule for f in verdict.findings}


def test_a_first_policy_may_come_with_its_manifest_and_is_an_ordinary_review(
    tmp_path: Path,
) -> None:
    repo = Repo(tmp_path / "repo")
    tip = repo.commit("main", {KERNEL: "BLOCK = 32\n", SHARED: "LIMIT = 1\n"})
    repo.commit("topic", files(), parent=tip)
    (tmp_path / "policy.yaml").write_text(files()[POLICY])
    request = Request(
        tmp_path / "repo", target="main", head="topic", policy_file=tmp_path / "policy.yaml"
    )
    assert evaluate(request, AS_OF).outcome is Outcome.ORDINARY_REVIEW


def test_no_policy_on_the_target_branch_is_bad_input_with_the_way_out(tmp_path: Path) -> None:
    repo = Repo(tmp_path)
    tip = repo.commit("main", {"a": "1"})
    repo.commit("topic", {"a": "2"}, parent=tip)
    with pytest.raises(InputError, match=r"no policy at .*fasttrack init.*--policy FILE"):
        evaluate(Request(tmp_path, target="main", head="topic"), AS_OF)
    (tmp_path / "policy.yaml").write_text(files()[POLICY])
    verdict = evaluate(
        Request(tmp_path, target="main", head="topic", policy_file=tmp_path / "policy.yaml"), AS_OF
    )
    assert verdict.config.provisional


def test_a_broken_manifest_on_the_target_branch_is_bad_input_that_names_it(tmp_path: Path) -> None:
    repo = Repo(tmp_path)
    tip = repo.commit("main", files() | {MANIFEST: "manifest: 1\nname: [\n"})
    repo.commit("topic", {KERNEL: "X\n"}, parent=tip)
    with pytest.raises(InputError, match=f"{MANIFEST}:3:1"):
        evaluate(Request(tmp_path, target="main", head="topic"), AS_OF)


@pytest.mark.parametrize(
    ("layout", "option", "expected"),
    [
        (["manifests", ".github/fasttrack"], None, ".github/fasttrack"),
        (["manifests"], None, "manifests"),
        (["manifests", "lane"], "lane", "lane"),
    ],
)
def test_the_configuration_folder_is_searched_in_order(
    tmp_path: Path, layout: list[str], option: str | None, expected: str
) -> None:
    repo = Repo(tmp_path)
    own = files()
    policy, manifest = own.pop(POLICY), own.pop(MANIFEST)
    for folder in layout:
        own |= {f"{folder}/policy.yaml": policy, f"{folder}/foo.yaml": manifest}
    tip = repo.commit("main", own)
    repo.commit("topic", {KERNEL: "BLOCK = 64\n"}, parent=tip)
    request = Request(tmp_path, target="main", head="topic", config_dir=option)
    assert evaluate(request, AS_OF).config.folder == expected


@pytest.mark.parametrize(
    "name", ["./manifests", "manifests/../manifests", "a//b", "mani*", "m?nifests", "[m]", "/"]
)
def test_a_folder_that_could_stand_for_another_is_refused(tmp_path: Path, name: str) -> None:
    repo = engine(tmp_path, {"topic": {KERNEL: "BLOCK = 64\n"}})
    policy = tmp_path / "policy.yaml"
    policy.write_text(files()[POLICY], encoding="utf-8")
    request = Request(tmp_path, target="main", head="topic", policy_file=policy)
    with pytest.raises(InputError, match="--config-dir"):
        evaluate(replace(request, config_dir=name), AS_OF)
    repo.commit("main", {"pyproject.toml": f'[tool.fasttrack]\ndir = "{name}"\n'})
    with pytest.raises(InputError, match=r"pyproject\.toml"):
        evaluate(request, AS_OF)


def test_neither_policy_nor_waiver_lowers_a_fact_that_is_missing(tmp_path: Path) -> None:
    source = "def (:\n"
    engine(tmp_path / "a", {"topic": {KERNEL: source}})
    (found,) = evaluate(Request(tmp_path / "a", target="main", head="topic"), AS_OF).findings
    assert found.saw.startswith("could not tell: ")
    own = files()
    own[MANIFEST] += (
        f"waivers:\n  - {{rule: {found.rule}, path: {KERNEL}, fingerprint: {found.fingerprint}, "
        "reason: agreed, owner: owner, expires: 2026-12-01}\n"
    )
    own[POLICY] += f"rules: {{{found.rule}: note}}\n"
    repo = Repo(tmp_path / "b")
    repo.commit("topic", {KERNEL: source}, parent=repo.commit("main", own))

    verdict = evaluate(Request(tmp_path / "b", target="main", head="topic"), AS_OF)

    assert (verdict.outcome, verdict.findings) == (Outcome.ORDINARY_REVIEW, (found,))


def test_a_waiver_for_the_size_of_one_change_lifts_no_other_of_that_size(tmp_path: Path) -> None:
    own = files()
    own[POLICY] = own[POLICY].replace("added_lines: 12000", "added_lines: 1")
    repo = Repo(tmp_path)
    tip = repo.commit("main", own)
    prints = set()
    for name in ("a", "b"):
        repo.commit(name, {KERNEL: f"BLOCK = 64\nX = '{name}'\n"}, parent=tip)
        (found,) = evaluate(Request(tmp_path, target="main", head=name), AS_OF).findings
        assert (found.rule, found.saw) == ("FT125", "2 added lines")
        prints.add(found.fingerprint)
    assert len(prints) == 2


def test_the_folder_that_pyproject_names_is_the_target_branchs_and_not_the_changes(
    tmp_path: Path,
) -> None:
    repo = Repo(tmp_path)
    own = files()
    own |= {"lane/policy.yaml": own[POLICY], "lane/foo.yaml": own[MANIFEST]}
    own["pyproject.toml"] = '[tool.fasttrack]\ndir = "lane"\n'
    tip = repo.commit("main", own)
    change = {"pyproject.toml": '[tool.fasttrack]\ndir = "mine"\n', KERNEL: "BLOCK = 64\n"}
    repo.commit("topic", change, parent=tip)
    assert evaluate(Request(tmp_path, target="main", head="topic"), AS_OF).config.folder == "lane"


def test_narrowing_a_claimed_scope_owes_nothing_and_widening_it_owes_the_new_cells(
    tmp_path: Path,
) -> None:
    claimed = files()[MANIFEST].replace("tier: declared", "tier: kernel-tested")
    repo = Repo(tmp_path)
    tip = repo.commit("main", files() | {MANIFEST: claimed})
    narrow = claimed.replace("max: 8}", "max: 4}").replace("rows_max: 8", "rows_max: 4")
    wide = claimed.replace("max: 8}", "max: 16}").replace("rows_max: 8", "rows_max: 16")
    for branch, text in (("narrow", narrow), ("wide", wide)):
        repo.commit(branch, {MANIFEST: text}, parent=tip)
    repo.commit("kernel", {KERNEL: "BLOCK = 64\n"}, parent=tip)

    def owed(head: str) -> set[tuple[str, object]]:
        found = evaluate(Request(tmp_path, target="main", head=head), AS_OF).coverage.owed
        return {(o.cell.kind.value, o.cell.values.get("requests")) for o in found}

    assert owed("narrow") == set()
    assert ("kernel-test", 16) in owed("wide")
    assert ("kernel-test", 1) not in owed("wide")
    assert owed("kernel") >= {("kernel-test", 1), ("kernel-test", 8)}
