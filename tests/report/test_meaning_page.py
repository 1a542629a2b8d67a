# SPDX-License-Identifier: Apache-2.0
"""The records of what FT2xx and FT4xx report agree with each other, and are told as they are."""

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from fasttrack.report.meaning_page import (
    BUDGET,
    false_changes,
    is_meaning,
    judgements,
    meaning_page,
    meaning_sentences,
)
from fasttrack.rules import RULES

FOLDER = Path(__file__).resolve().parents[2] / "docs/backtest"
RATES: dict[str, Any] = json.loads((FOLDER / "meaning.json").read_text("utf-8"))
JUDGED: dict[str, Any] = json.loads((FOLDER / "meaning-judged.json").read_text("utf-8"))
TOTAL = sum(one["changes"] for one in RATES["repositories"])


def one(verdict: str, *, rule: str = "FT201", level: str = "route", **more: Any) -> dict[str, Any]:
    """A judgement."""
    place = {"repository": "a/b", "commit": "1" * 40, "sentence": "The object is another's."}
    return {**place, "rule": rule, "level": level, "verdict": verdict, "mended": False, **more}


def judged(*found: dict[str, Any]) -> dict[str, Any]:
    """A record of judgements."""
    return {"date": "2026-11-30", "judged": list(found)}


def rates(*, alone: tuple[str, ...] = ()) -> dict[str, Any]:
    """Counts of one repository in which FT201 routes two changes."""
    row = {"rule": "FT201", "level": "route", "findings": 3, "changes": 2}
    place = {"repository": "a/b", "after": "0" * 40, "up_to": "1" * 40, "changes": 80, "wall_s": 1}
    levels = {"block": 0, "route": 2, "note": 0}
    return {"repositories": [{**place, "levels": levels, "rules": [row], "alone": list(alone)}]}


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (
            [one("false alarm"), one("true alarm", commit="2" * 40)],
            "false in 1 of 2 changes that it reports, in 80 ",
        ),
        ([one("true alarm")], "false in none of 1 changes that it reports, in 80 "),
        ([one("false alarm", mended=True)], "never reported, so not measured, in 80 merged"),
        ([], "never reported, so not measured, in 80 merged changes of one repository, 2026-"),
    ],
)
def test_a_rule_says_in_how_many_of_its_changes_it_was_wrong(
    found: list[dict[str, Any]], words: str
) -> None:
    sentences = meaning_sentences(rates(), judged(*found))
    assert sentences["FT201"].startswith(words)
    assert set(sentences) == {rule.id for rule in RULES if is_meaning(rule.id)}


def test_a_change_is_wrongly_routed_when_all_that_it_is_routed_for_is_false() -> None:
    false = one("false alarm")
    assert false_changes(judged(false), "route") == {("a/b", "1" * 40)}
    assert not false_changes(judged(false), "block")
    assert not false_changes(judged(false, one("true alarm", rule="FT402")), "route")
    assert not false_changes(judged({**false, "mended": True}), "route")
    blocked = one("true alarm", rule="FT401", level="block")
    assert not false_changes(judged(false, blocked), "route")
    assert not false_changes(judged(blocked), "route")


def test_the_page_tells_what_no_other_rule_reports() -> None:
    record = judged(one("false alarm"))
    assert "| `route` | 2 | 1 | 1 in 80 | 1 in 40 | 0 |" in meaning_page(rates(), record)
    page = meaning_page(rates(alone=("1" * 40,)), record)
    assert "| `route` | 2 | 1 | 1 in 80 | 1 in 40 | 1 |" in page
    assert "| FT201 | route | 3 | 2 | 1 | 0 |" in page


def test_everything_that_is_reported_was_read() -> None:
    for rule in filter(lambda rule: is_meaning(rule.id), RULES):
        for level in BUDGET:
            reported = sum(
                row["changes"]
                for where in RATES["repositories"]
                for row in where["rules"]
                if (row["rule"], row["level"]) == (rule.id, level)
            )
            assert len(judgements(JUDGED, rule.id, level)) == reported, (rule.id, level)


def test_each_judgement_names_a_rule_a_commit_and_a_reason_of_ours() -> None:
    rules, slugs = {r.id for r in RULES}, {r["repository"] for r in RATES["repositories"]}
    keys = Counter((j["repository"], j["commit"], j["rule"], j["level"]) for j in JUDGED["judged"])
    assert set(keys.values()) == {1}
    for found in JUDGED["judged"]:
        assert found["rule"] in rules
        assert found["repository"] in slugs
        assert re.fullmatch(r"[0-9a-f]{40}", found["commit"])
        assert found["verdict"] == "false alarm" or not found["mended"]
        assert found["verdict"] in {"true alarm", "false alarm"}
        assert 20 < len(found["sentence"]) < 120
        assert found["sentence"].endswith(".")


def test_the_false_alarms_are_within_the_budget() -> None:
    assert TOTAL >= 300
    assert len(false_changes(JUDGED, "block")) <= TOTAL / BUDGET["block"]
    assert len(false_changes(JUDGED, "route")) <= TOTAL / BUDGET["route"]
