# SPDX-License-Identifier: Apache-2.0
"""Runs every rule case through a real repository and the whole main flow."""

import importlib
import re
from pathlib import Path

import pytest

from fasttrack.report.rule_pages import false_alarms
from fasttrack.rules import FAMILIES, RULES
from fasttrack.rules.base import Rule
from fasttrack.verdict import Request, evaluate, judge

from .cases import FOLDER, all_files, build, case_files, differences, load, opened


@pytest.mark.parametrize("file", all_files(), ids=lambda f: f"{f.parent.name}/{f.stem}")
def test_a_case_gets_exactly_the_verdict_and_findings_it_names(file: Path, tmp_path: Path) -> None:
    case = load(file)
    repo = build(case, tmp_path / "repo")
    if "executed" in case.given:
        with opened(case, repo) as facts:
            verdict = judge(facts)
    else:
        request = Request(repo, target="main", head="topic", labelled=case.labelled)
        verdict = evaluate(request, case.as_of)

    assert differences(case, verdict.findings) == []
    assert verdict.outcome == case.verdict


def test_files_registry_and_case_folders_name_the_same_rules() -> None:
    package = Path(importlib.import_module("fasttrack.rules").__file__ or "").parent
    in_files = {
        match[1]
        for folder in FAMILIES.values()
        for file in (package / folder).glob("*.py")
        if (match := re.search(r'^    id = "(FT\d{3})"$', file.read_text(encoding="utf-8"), re.M))
    }
    registered = [rule.id for rule in RULES]

    assert registered == sorted(set(registered))
    assert set(registered) == in_files
    assert {f"{rule.id}-{rule.slug}" for rule in RULES} == {
        f.name for f in FOLDER.iterdir() if f.name != "_base"
    }


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_a_rule_is_in_the_file_of_its_name_and_is_documented(rule: Rule) -> None:
    kind = type(rule)
    assert kind.__module__.rpartition(".")[2] == kind.slug.replace("-", "_")
    for words in (kind.title, kind.refuses, kind.why, kind.blind, kind.fix, false_alarms(rule)):
        assert words == words.strip()
        assert len(words) > 10


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_a_rule_has_a_case_that_it_passes_and_one_that_it_reports(rule: object) -> None:
    reported = [any(f["rule"] == rule.id for f in load(c).findings) for c in case_files(rule)]
    assert set(reported) == {True, False}
