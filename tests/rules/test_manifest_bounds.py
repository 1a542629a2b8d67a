# SPDX-License-Identifier: Apache-2.0
"""Bounds of the manifest rules that are too large, or too deep inside, for a case file."""

from pathlib import Path
from typing import Any

import pytest

from fasttrack.cli.init import NOBODY
from fasttrack.errors import FactUnavailable
from fasttrack.finding import Finding
from fasttrack.manifest.widening import WideningKind
from fasttrack.rules import RULES
from fasttrack.rules.manifest.comparisons import MAX_COMPARISONS, Comparisons
from fasttrack.rules.manifest.edited import MAX_FINDINGS
from fasttrack.rules.manifest.sponsor import PLACEHOLDERS
from fasttrack.rules.manifest.version_ranges import in_range
from fasttrack.rules.manifest.widening import PLACES

from .cases import RuleCase, build, opened


def findings(rule_id: str, given: dict[str, Any], where: Path) -> list[Finding]:
    """What one rule reports on a case that is made up here."""
    case = RuleCase("made up", given, "", ())
    rule = next(rule for rule in RULES if rule.id == rule_id)
    with opened(case, build(case, where)) as facts:
        return list(rule.check(facts))


def test_comparisons_stop_past_the_bound_and_not_before() -> None:
    paths = [f"a/{i}" for i in range(MAX_COMPARISONS)]

    assert not Comparisons(paths).finds_any("a/*x")
    with pytest.raises(FactUnavailable):
        Comparisons([*paths, "a/last"]).finds_any("a/*x")


def test_comparisons_look_only_where_a_pattern_s_literal_start_is() -> None:
    paths = [f"a/{i}" for i in range(MAX_COMPARISONS + 1)]

    assert Comparisons([*paths, "b/x.py"]).finds_any("b/*.py")
    assert not Comparisons(paths).finds_any("b/*.py")


def test_faults_of_a_manifest_past_the_bound_are_counted(tmp_path: Path) -> None:
    def with_bars(number: int, where: str) -> list[Finding]:
        bars = {f"bar_{i:02}": 1.0 for i in range(number)}
        return findings("FT302", {"head_manifest": {"evidence": {"bars": bars}}}, tmp_path / where)

    assert len(with_bars(MAX_FINDINGS, "at")) == MAX_FINDINGS
    past = with_bars(MAX_FINDINGS + 1, "past")
    assert len(past) == MAX_FINDINGS + 1
    assert past[-1].saw == "1 more findings of this rule"


def test_a_manifest_of_many_patterns_beside_many_files_can_not_be_told(tmp_path: Path) -> None:
    units = [
        {
            "id": f"u{i}",
            "files": [f"engine/k3/*/*{i}-{j}*" for j in range(64)],
            "tests": ["tests/**"],
            "axes": ["rows"],
        }
        for i in range(64)
    ]
    files = {f"engine/k3/d/{i}.py": "" for i in range(200)}

    found = findings("FT308", {"base": files, "head_manifest": {"units": units}}, tmp_path / "r")

    assert [f.saw for f in found if "too many patterns" in f.saw]


def test_every_placeholder_of_init_is_known() -> None:
    assert set(NOBODY) <= PLACEHOLDERS


def test_every_widening_has_a_place_in_the_manifest() -> None:
    assert PLACES.keys() == set(WideningKind) - {WideningKind.MANIFEST}


@pytest.mark.parametrize(
    ("version", "specifier", "inside"),
    [
        ("2.11", ">=2.11", True),
        ("2.10.9", ">=2.11", False),
        ("2.11.0", "==2.11", True),
        ("2.11.1", "==2.11", False),
        ("2.9", "<2.10", True),
        ("2.10", "<2.10", False),
        ("2.10", "<=2.10.0", True),
        ("3", ">2.99.99, !=3.1", True),
        ("3.1.0", ">2.99.99, !=3.1", False),
        ("2.13.0+cu130", ">=2.13,<2.13.1", True),
    ],
)
def test_versions_are_compared_number_by_number(version: str, specifier: str, inside: bool) -> None:
    assert in_range(version, specifier) is inside


@pytest.mark.parametrize(
    ("version", "specifier"), [("2.13.0rc1", ">=2"), ("2.13", "~=2.0"), ("2.13", ""), ("x", "<3")]
)
def test_versions_that_can_not_be_compared_raise(version: str, specifier: str) -> None:
    with pytest.raises(FactUnavailable):
        in_range(version, specifier)
