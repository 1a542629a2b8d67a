# SPDX-License-Identifier: Apache-2.0
"""What the backtest says of the rules on the meaning of a diff, FT2xx and FT4xx.

Two records go in: `docs/backtest/meaning.json`, counts that `scripts/backtest_rates.py --meaning`
made, and `docs/backtest/meaning-judged.json`, what a person found who read the changes: one
judgement for each rule and level in each change, so that a test file with fifty alike findings
counts once.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from fasttrack.rules import RULES

Record = Mapping[str, Any]

FAMILIES = ("FT2", "FT4")
BUDGET = {"block": 200, "route": 40}
"""Changes for which one false alarm of a level is allowed."""


def is_meaning(rule: str) -> bool:
    """Whether a rule is judged by these records."""
    return rule.startswith(FAMILIES)


def meaning_sentences(rates: Record, judged: Record) -> dict[str, str]:
    """Rule id to what was measured about its false alarms."""
    where = f"in {_total(rates)} merged changes of {_repositories(rates)}, {judged['date']}"
    return {
        rule.id: f"{_measured(rates, judged, rule.id)} {where}"
        for rule in RULES
        if is_meaning(rule.id)
    }


def meaning_page(rates: Record, judged: Record) -> str:
    """The tables for `docs/backtest.md`."""
    return "\n".join(_lines(rates, judged)) + "\n"


def false_changes(judged: Record, level: str) -> set[tuple[str, str]]:
    """Changes that a level of these rules holds back for false alarms alone.

    What is rightly blocked is not wrongly routed, whatever else is said of it.
    """
    verdicts: dict[tuple[str, str], set[str]] = {}
    held: set[tuple[str, str]] = set()
    for one in judged["judged"]:
        change = (one["repository"], one["commit"])
        if not one["mended"] and one["level"] in {level, "block"}:
            verdicts.setdefault(change, set()).add(one["verdict"])
            held |= {change} if one["level"] == level else set()
    return {change for change in held if verdicts[change] == {"false alarm"}}


def judgements(judged: Record, rule: str, level: str | None = None) -> Sequence[Record]:
    """Judgements on what a rule still reports."""
    return [
        one
        for one in judged["judged"]
        if one["rule"] == rule and not one["mended"] and level in {None, one["level"]}
    ]


def _measured(rates: Record, judged: Record, rule: str) -> str:
    read = judgements(judged, rule)
    if not read:
        return "never reported, so not measured,"
    false = sum(one["verdict"] == "false alarm" for one in read)
    return f"false in {false or 'none'} of {len(read)} changes that it reports,"


def _total(rates: Record) -> int:
    return sum(one["changes"] for one in rates["repositories"])


def _repositories(rates: Record) -> str:
    count = len(rates["repositories"])
    words = {1: "one repository", 2: "two repositories", 3: "three repositories"}
    return words.get(count, f"{count} repositories")


def _lines(rates: Record, judged: Record) -> Iterator[str]:
    yield "| repository | after | up to | changes | with `block` | with `route` | s |"
    yield "|---|---|---|---|---|---|---|"
    for one in rates["repositories"]:
        levels = one["levels"]
        cells = [
            one["repository"],
            f"`{one['after'][:12]}`",
            f"`{one['up_to'][:12]}`",
            one["changes"],
            levels["block"],
            levels["route"],
            one["wall_s"],
        ]
        yield f"| {' | '.join(map(str, cells))} |"
    yield ""
    yield "| alarm | changes with one | all of them false | of all changes | budget | alone |"
    yield "|---|---|---|---|---|---|"
    alone = {(one["repository"], c) for one in rates["repositories"] for c in one["alone"]}
    total = _total(rates)
    for level, budget in BUDGET.items():
        changes = sum(one["levels"][level] for one in rates["repositories"])
        found = false_changes(judged, level)
        rate = f"1 in {total / len(found):.0f}" if found else f"none in {total}"
        told = f"{changes} | {len(found)} | {rate} | 1 in {budget} | {len(found & alone)}"
        yield f"| `{level}` | {told} |"
    yield ""
    yield "| rule | level | findings | changes | false, of these changes | mended |"
    yield "|---|---|---|---|---|---|"
    yield from _rule_rows(rates, judged)


def _rule_rows(rates: Record, judged: Record) -> Iterator[str]:
    for rule in RULES:
        for level in BUDGET:
            rows = [
                row
                for one in rates["repositories"]
                for row in one["rules"]
                if (row["rule"], row["level"]) == (rule.id, level)
            ]
            every = [
                one for one in judged["judged"] if (one["rule"], one["level"]) == (rule.id, level)
            ]
            if rows or every:
                read = judgements(judged, rule.id, level)
                cells = [
                    rule.id,
                    level,
                    sum(row["findings"] for row in rows),
                    sum(row["changes"] for row in rows),
                    sum(one["verdict"] == "false alarm" for one in read),
                    sum(one["mended"] for one in every),
                ]
                yield f"| {' | '.join(map(str, cells))} |"
