# SPDX-License-Identifier: Apache-2.0
"""A backtest for people and programs."""

import json
from collections.abc import Iterator, Sequence
from typing import Any

from fasttrack.backtest import Judged, Tally
from fasttrack.finding import Finding, Level
from fasttrack.report.visible import visible


def backtest_text(tally: Tally, policy_version: int) -> str:
    """Counts by verdict and rule, and the ten noisiest findings."""
    return "\n".join(_lines(tally, policy_version)) + "\n"


def backtest_json(judged: Sequence[Judged], tally: Tally) -> str:
    """Every judged change with its findings, and the counts."""
    record: dict[str, Any] = {
        "changes": [_judged(one) for one in judged],
        "counts": {
            "changes": tally.changes,
            "in_lane": tally.in_lane,
            "outcomes": dict(tally.outcomes),
            "levels": {level.value: count for level, count in tally.levels.items()},
            "rules": [
                {"rule": rule, "level": level.value, "findings": found, "changes": changes}
                for (rule, level), (found, changes) in tally.rules.items()
            ],
        },
    }
    return json.dumps(record, indent=2, sort_keys=True) + "\n"


def _lines(tally: Tally, policy_version: int) -> Iterator[str]:
    yield f"{tally.changes} merged changes under policy version {policy_version}"
    yield f"{tally.in_lane} in the lane, {tally.changes - tally.in_lane} not our business"
    yield ""
    for outcome, count in sorted(tally.outcomes.items()):
        yield f"  {count:>6}  {outcome}"
    yield ""
    yield "changes with at least one finding of a level"
    for level in Level:
        count = tally.levels[level]
        rate = f"1 in {tally.in_lane / count:.0f} in the lane" if count else "none"
        yield f"  {count:>6}  {level.value:<6} {rate}"
    yield ""
    yield "by rule: findings, changes"
    for (rule, level), (found, changes) in tally.rules.items():
        yield f"  {found:>6} {changes:>6}  {rule} {level.value}"
    yield ""
    yield "noisiest findings: changes, rule, path"
    for (rule, path), count in tally.noisiest:
        yield f"  {count:>6}  {rule} {visible(path) or '(whole change)'}"


def _judged(one: Judged) -> dict[str, Any]:
    return {
        "commit": one.merged.commit,
        "base": one.merged.base,
        "head": one.merged.head,
        "verdict": one.outcome.value if one.outcome else None,
        "in_lane": one.in_lane,
        "problem": visible(one.problem),
        "findings": [_finding(f) for f in one.findings],
    }


def _finding(finding: Finding) -> dict[str, Any]:
    return {
        "rule": finding.rule,
        "level": finding.level.value,
        "path": visible(finding.path),
        "line": finding.line,
        "saw": visible(finding.saw),
    }
