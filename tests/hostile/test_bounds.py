# SPDX-License-Identifier: Apache-2.0
"""Bounds that a verdict depends on: what lies beyond them is never taken for a pass."""

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from fasttrack.case import Case
from fasttrack.config import find_folder, read_file
from fasttrack.errors import FactUnavailable, InputError
from fasttrack.evidence.owed import Coverage
from fasttrack.finding import Finding, Level
from fasttrack.report.record import verdict_record
from fasttrack.report.style import Style
from fasttrack.report.text import text_report
from fasttrack.rules import engine
from fasttrack.rules.base import Rule
from fasttrack.verdict import Outcome, Request, decide, evaluate
from tests.engine import AS_OF, KERNEL, ROOT
from tests.engine import engine as small_engine
from tests.hostile import scopes


class Noisy(Rule):
    """Many notes and one last finding of another level."""

    id, slug, title, level = "FT199", "noisy", "no noise", Level.NOTE
    refuses = why = blind = fix = "nothing"
    count = engine.FINDINGS_LIMIT + 1
    last = Level.BLOCK
    unknown = False

    def check(self, case: Case) -> Iterator[Finding]:
        del case
        for n in range(self.count):
            yield self.finding(saw=f"note {n}", want="none", path=f"f{n:05}")
        last = self.finding(saw="the last", want="none", path="z")
        yield replace(last, level=self.last, unknown=self.unknown)


@pytest.mark.parametrize("last", list(Level))
def test_findings_beyond_the_limit_count_at_their_gravest_level(
    last: Level, tmp_path: Path
) -> None:
    rule = Noisy()
    rule.last = last  # type: ignore[misc]
    case = _case(tmp_path)
    found = engine.run_rules([rule], case)
    assert len(found) == engine.FINDINGS_LIMIT + 1
    (rest,) = [f for f in found if "more findings" in f.saw]
    assert rest.level is last
    assert rest.saw == "2 more findings of this rule"


def test_as_many_findings_as_the_limit_are_all_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit = engine.FINDINGS_LIMIT
    monkeypatch.setattr(engine, "FINDINGS_LIMIT", limit + 2)
    saws = [f.saw for f in engine.run_rules([Noisy()], _case(tmp_path))]
    assert len(saws) == limit + 2
    assert "the last" in saws


def test_a_missing_fact_beyond_the_limit_is_still_one(tmp_path: Path) -> None:
    rule = Noisy()
    rule.unknown = True  # type: ignore[misc]
    (rest,) = [f for f in engine.run_rules([rule], _case(tmp_path)) if "more findings" in f.saw]
    assert rest.unknown


def test_evidence_that_can_not_be_told_is_never_a_pass() -> None:
    assert decide([], Coverage(())) is Outcome.FAST_TRACK
    assert decide([], Coverage((), ("too many points",))) is Outcome.ORDINARY_REVIEW


def test_a_scope_in_force_whose_cells_can_not_be_listed_is_said_to_be_so(tmp_path: Path) -> None:
    build = next(c.build for c in scopes.CASES if c.name == "such regions in force")
    build(tmp_path)
    verdict = evaluate(Request(tmp_path, target="main", head="topic"), AS_OF)
    assert verdict.coverage.unknown
    assert verdict.outcome is Outcome.ORDINARY_REVIEW
    assert "could not tell what is owed" in text_report(verdict_record(verdict), Style())


def test_a_fact_that_is_missing_outside_the_rules_is_bad_input(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unavailable(case: Case) -> Coverage:
        raise FactUnavailable("the tree is not here")

    monkeypatch.setattr("fasttrack.verdict.judge_coverage", unavailable)
    small_engine(tmp_path, {"topic": {KERNEL: "BLOCK = 64\n"}})
    with pytest.raises(InputError, match="the tree is not here"):
        evaluate(Request(tmp_path, target="main", head="topic"), AS_OF)


@pytest.mark.parametrize(
    "text",
    [
        "a" + ".a" * 65 + " = 1\n",
        "a" + ' . "a"' * 65 + " = 1\n",
        "[" + "a." * 65 + "a]\n",
        "a = " + "[" * 5000,
        "a = " + "9" * 5000,
        "a = '" + "x" * (1 << 20) + "'",
        "tool.fasttrack = 3\ntool.fasttrack.dir = 'x'",
    ],
    ids=["dotted", "quoted", "table", "nested", "number", "long", "contradiction"],
)
def test_a_pyproject_that_is_out_of_bounds_is_bad_input(text: str) -> None:
    with pytest.raises(InputError):
        find_folder(lambda _: False, lambda: text, "pyproject.toml")


@pytest.mark.parametrize(
    "text", ["tool = 1", "tool.fasttrack = 'x'", "[tool.fasttrack]\nother = 1"]
)
def test_a_pyproject_that_names_no_folder_leaves_the_search_alone(text: str) -> None:
    assert (
        find_folder(lambda path: path == "manifests/policy.yaml", lambda: text, "") == "manifests"
    )


def test_a_key_of_64_parts_is_read() -> None:
    text = "a" + ".a" * 63 + " = 1\n[tool.fasttrack]\ndir = 'x'\n"
    assert find_folder(lambda _: False, lambda: text, "pyproject.toml") == "x"


@pytest.mark.parametrize("device", ["/dev/zero", "/dev/full"])
def test_a_file_without_an_end_is_not_read_to_its_end(device: str) -> None:
    with pytest.raises(InputError, match="at most"):
        read_file(Path(device))


def test_a_damaged_object_hides_no_finding_about_another_file(tmp_path: Path) -> None:
    damaged, bidi = f"{ROOT}a.py", f"{ROOT}b.py"
    repo = small_engine(tmp_path, {})
    content = "X = 1\n" * 500
    oid = repo.write("blob", content.encode())
    file = repo.git_dir / "objects" / oid[:2] / oid[2:]
    repo.commit("topic", {damaged: content, bidi: "# \u202e\n"}, parent=repo.commit("main", {}))
    os.truncate(file, file.stat().st_size - 8)

    verdict = evaluate(Request(tmp_path, target="main", head="topic"), AS_OF)

    assert verdict.outcome is Outcome.REFUSED
    assert ("FT116", bidi) in {(f.rule, f.path) for f in verdict.findings if not f.unknown}
    assert damaged in {f.path for f in verdict.findings if f.unknown}


def _case(where: Path) -> Case:
    """The case of a small change, as the rules get it."""
    seen: list[Case] = []
    small_engine(where, {"topic": {KERNEL: "BLOCK = 64\n"}})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("fasttrack.verdict.run_rules", lambda rules, case: seen.append(case) or ())
        evaluate(Request(where, target="main", head="topic"), AS_OF)
    return seen[0]
