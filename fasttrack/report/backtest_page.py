# SPDX-License-Identifier: Apache-2.0
"""What a backtest on public repositories and the judgement of its findings say together.

Two records go in: `docs/backtest/rates.json`, the counts that `scripts/backtest_rates.py` made from
the backtests, and `docs/backtest/judged.json`, what people found when they read the changes. Out
come `docs/backtest.md` and one sentence for each rule, which ships as
`fasttrack/rules/false_alarms.json`.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from fasttrack.rules import RULES

Record = Mapping[str, Any]

BUDGET = {"block": 200, "route": 40}
"""Changes for which one false alarm of a level is allowed."""


def false_alarm_sentences(rates: Record, judged: Record) -> dict[str, str]:
    """Rule id to what was measured about its false alarms."""
    total = sum(one["changes"] for one in rates["repositories"])
    where = f"{total} merged changes of {_repositories(rates)}, {judged['date']}"
    return {rule.id: f"{_measured(rates, judged, rule.id)} in {where}" for rule in RULES}


def backtest_page(rates: Record, judged: Record) -> str:
    """The Markdown page between the heading and the honest limits."""
    return "\n".join(_lines(rates, judged)) + "\n"


def _measured(rates: Record, judged: Record, rule: str) -> str:
    findings, labelled = _count(rates, "in_lane", rule), _count(rates, "all", rule)
    read = _judged(judged, rule)
    if read:
        false = sum(one["verdict"] == "false alarm" for one in read)
        return f"{false or 'none'} of {len(read)} judged findings false, of {findings} reported"
    if labelled:
        return f"seen outside the lane only ({labelled}), so not judged,"
    return "never reported, so not measured,"


def _judged(judged: Record, rule: str) -> Sequence[Record]:
    """The judged findings that the rule still reports; targeted ones only where all were read."""
    kept = [one for one in judged["findings"] if one["rule"] == rule and not one["mended"]]
    if rule in judged["read_in_full"]:
        return kept
    return [one for one in kept if one["sample"] == "drawn"]


def _count(rates: Record, run: str, rule: str) -> int:
    return sum(
        row["findings"]
        for one in rates["repositories"]
        for row in one[run]["rules"]
        if row["rule"] == rule
    )


def _repositories(rates: Record) -> str:
    count = len(rates["repositories"])
    return "one repository" if count == 1 else f"{'two' if count == 2 else count} repositories"


def _lines(rates: Record, judged: Record) -> Iterator[str]:
    yield from _repository_table(rates)
    yield ""
    yield from _level_table(rates, judged)
    yield ""
    yield from _rule_table(rates, judged)


def _repository_table(rates: Record) -> Iterator[str]:
    yield "| repository | after | up to | changes | in the lane | fast track | lane s | all s |"
    yield "|---|---|---|---|---|---|---|---|"
    for one in rates["repositories"]:
        lane, everything = one["in_lane"], one["all"]
        cells = [
            one["repository"],
            f"`{one['after'][:12]}`",
            f"`{one['up_to'][:12]}`",
            one["changes"],
            one["changes_in_lane"],
            lane["outcomes"].get("fast-track", 0),
            lane["wall_s"],
            everything["wall_s"],
        ]
        yield f"| {' | '.join(map(str, cells))} |"


def _level_table(rates: Record, judged: Record) -> Iterator[str]:
    total = sum(one["changes"] for one in rates["repositories"])
    yield "| alarm | changes with one | judged | false | false, of all changes | budget |"
    yield "|---|---|---|---|---|---|"
    blocked = _with_level(rates, "block")
    yield f"| `block` | {blocked} | all | 0 | none in {total} | 1 in {BUDGET['block']} |"
    before, after = judged["routed_before_mending"], _with_level(rates, "route")
    for name, routed in (("first", before), ("fresh", after)):
        read = [one for one in judged["changes"] if one["sample"] == name]
        false = sum(not one["routed_rightly"] for one in read)
        rate = f"about 1 in {total * len(read) / (false * routed):.0f}" if false else "none"
        label = "before mending" if name == "first" else "as it is"
        cells = f"{routed} | {len(read)} | {false} | {rate} | 1 in {BUDGET['route']}"
        yield f"| `route`, {label} | {cells} |"
    yield f"| `note` | {_with_level(rates, 'note')} | all | 0 | none | 1 per change |"


def _with_level(rates: Record, level: str) -> int:
    return sum(one["in_lane"]["levels"][level] for one in rates["repositories"])


def _rule_table(rates: Record, judged: Record) -> Iterator[str]:
    yield "| rule | findings, lane | changes, lane | findings, all | judged | false | mended |"
    yield "|---|---|---|---|---|---|---|"
    for rule in RULES:
        findings, labelled = _count(rates, "in_lane", rule.id), _count(rates, "all", rule.id)
        read = [one for one in judged["findings"] if one["rule"] == rule.id]
        if not labelled and not read:
            continue
        changes = sum(
            row["changes"]
            for one in rates["repositories"]
            for row in one["in_lane"]["rules"]
            if row["rule"] == rule.id
        )
        false = sum(one["verdict"] == "false alarm" for one in read)
        mended = sum(one["mended"] for one in read)
        cells = [rule.id, findings, changes, labelled, len(read), false, mended]
        yield f"| {' | '.join(map(str, cells))} |"
