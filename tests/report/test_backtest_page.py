# SPDX-License-Identifier: Apache-2.0
"""The backtest's records agree with each other, keep the budget, and are told as they are."""

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from fasttrack.report.backtest_page import BUDGET, backtest_page, false_alarm_sentences
from fasttrack.rules import RULES

FOLDER = Path(__file__).resolve().parents[2] / "docs/backtest"
RATES: dict[str, Any] = json.loads((FOLDER / "rates.json").read_text("utf-8"))
JUDGED: dict[str, Any] = json.loads((FOLDER / "judged.json").read_text("utf-8"))
TOTAL = sum(one["changes"] for one in RATES["repositories"])


def small(verdict: str, *, mended: bool = False) -> dict[str, Any]:
    """A record of one judged finding of FT101."""
    finding = {"rule": "FT101", "sample": "drawn", "verdict": verdict, "mended": mended}
    return {**JUDGED, "date": "2026-11-29", "read_in_full": [], "findings": [finding]}


def measured(rule: str, findings: int, labelled: int) -> dict[str, Any]:
    """Counts of one repository with one rule."""
    rows = [
        [{"rule": rule, "level": "route", "findings": count, "changes": 1}] if count else []
        for count in (findings, labelled)
    ]
    common = {"outcomes": {}, "levels": {"block": 0, "route": 1, "note": 0}, "wall_s": 1}
    runs = {
        run: {**common, "rules": row} for run, row in zip(("in_lane", "all"), rows, strict=True)
    }
    one = {"repository": "a/b", "after": "0" * 40, "up_to": "1" * 40, "changes": 400}
    return {"repositories": [{**one, "changes_in_lane": 100, **runs}]}


@pytest.mark.parametrize(
    ("verdict", "mended", "words"),
    [
        ("false alarm", False, "1 of 1 judged findings false, of 7 reported in 400 merged"),
        ("true alarm", False, "none of 1 judged findings false, of 7 reported in 400 merged"),
        ("false alarm", True, "seen outside the lane only (9), so not judged, in 400 merged"),
    ],
)
def test_a_rule_says_how_many_of_its_judged_findings_were_false(
    verdict: str, mended: bool, words: str
) -> None:
    sentences = false_alarm_sentences(measured("FT101", 7, 9), small(verdict, mended=mended))
    assert sentences["FT101"].startswith(words)


def test_a_rule_that_never_fired_says_that_nothing_was_measured() -> None:
    sentences = false_alarm_sentences(measured("FT101", 7, 9), small("true alarm"))
    assert sentences["FT109"] == (
        "never reported, so not measured, in 400 merged changes of one repository, 2026-11-29"
    )
    assert set(sentences) == {rule.id for rule in RULES}


def test_targeted_findings_count_only_where_all_were_read() -> None:
    judged = small("false alarm")
    judged["findings"].append({**judged["findings"][0], "sample": "targeted"})
    rates = measured("FT101", 7, 9)
    assert false_alarm_sentences(rates, judged)["FT101"].startswith("1 of 1 ")
    judged["read_in_full"] = ["FT101"]
    assert false_alarm_sentences(rates, judged)["FT101"].startswith("2 of 2 ")


def test_the_page_tells_the_rate_of_wrongly_routed_changes() -> None:
    change = {"sample": "fresh", "routed_rightly": False, "mended": False}
    judged = {**small("true alarm"), "changes": [change], "routed_before_mending": 1}
    page = backtest_page(measured("FT101", 7, 9), judged)
    assert "| `route`, as it is | 1 | 1 | 1 | about 1 in 400 | 1 in 40 |" in page


def test_the_sample_was_drawn_as_the_page_says() -> None:
    drawn = Counter(f["rule"] for f in JUDGED["findings"] if f["sample"] == "drawn")
    assert drawn.total() == 50
    assert drawn["FT101"] <= 12
    for one in RATES["repositories"]:
        for row in one["in_lane"]["rules"]:
            assert drawn[row["rule"]] >= min(2, row["findings"])


def test_each_judgement_names_a_rule_a_commit_and_a_reason_of_ours() -> None:
    rules = {rule.id for rule in RULES}
    slugs = {one["repository"] for one in RATES["repositories"]}
    for one in [*JUDGED["findings"], *JUDGED["changes"]]:
        assert re.fullmatch(r"[0-9a-f]{40}", one["commit"])
        assert one["repository"] in slugs
        assert 20 < len(one["sentence"]) < 120
        assert one["sentence"].endswith(".")
    for one in JUDGED["findings"]:
        assert one["rule"] in rules
        assert one["verdict"] in {"true alarm", "false alarm"}
        assert one["verdict"] == "false alarm" or not one["mended"]


def test_all_findings_of_a_rule_that_was_read_in_full_are_judged() -> None:
    judged = Counter(f["rule"] for f in JUDGED["findings"] if not f["mended"])
    for rule in JUDGED["read_in_full"]:
        reported = sum(
            row["findings"]
            for one in RATES["repositories"]
            for row in one["in_lane"]["rules"]
            if row["rule"] == rule
        )
        assert judged[rule] == reported


def test_the_false_alarms_are_within_the_budget() -> None:
    levels = Counter[str]()
    for one in RATES["repositories"]:
        for run in ("in_lane", "all"):
            assert one[run]["levels"]["block"] == 0
            assert "unreadable" not in one[run]["outcomes"]
        levels.update(one["in_lane"]["levels"])
    fresh = [one for one in JUDGED["changes"] if one["sample"] == "fresh"]
    wrong = sum(not one["routed_rightly"] for one in fresh) / len(fresh)
    assert len(fresh) == 40
    assert wrong * levels["route"] / TOTAL <= 1 / BUDGET["route"]
    assert levels["note"] <= TOTAL
