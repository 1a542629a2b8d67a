# SPDX-License-Identifier: Apache-2.0
"""Runs the rules: policy levels, missing facts, waivers, and one order for every report."""

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date
from itertools import islice

from fasttrack.case import Case
from fasttrack.errors import FactUnavailable
from fasttrack.finding import Finding, Level, fingerprint
from fasttrack.policy.model import Policy
from fasttrack.rules.base import Rule

FINDINGS_LIMIT = 1000
"""Findings of one rule that are reported one by one; nobody reads more, and each takes memory."""

_GRAVITY = (Level.NOTE, Level.ROUTE, Level.BLOCK)


def run_rules(rules: Sequence[Rule], case: Case) -> tuple[Finding, ...]:
    """All findings of `rules` on `case`, leveled, waived and sorted.

    Args:
        rules: the rules to run, in registry order.
        case: what they judge.

    Returns:
        Findings sorted by path, line and rule. A waived finding stays, as a note that says so. A
        fact that several rules miss at one path is told once, for the first of them.
    """
    found = [
        _leveled(rule, finding, case.policy)
        for rule in rules
        if case.policy.rules.get(rule.id) != "off"
        for finding in _counted(rule, _guarded(rule, case))
    ]
    by_id = {rule.id: rule for rule in rules}
    waivers = _active_waivers(case)
    return tuple(
        _waived(finding, waivers) if by_id[finding.rule].waivable else finding
        for finding in _numbered(sorted(_told_once(found), key=lambda f: f.sort_key))
    )


def _guarded(rule: Rule, case: Case) -> Iterator[Finding]:
    try:
        yield from rule.check(case)
    except FactUnavailable as reason:
        yield rule.could_not_tell(reason)


def _counted(rule: Rule, findings: Iterator[Finding]) -> Iterator[Finding]:
    """The first findings, and one that stands for all others at the gravest of their levels."""
    yield from islice(findings, FINDINGS_LIMIT)
    more, gravest, unknown, prints = 0, Level.NOTE, False, hashlib.sha256()
    for finding in findings:
        more += 1
        gravest = max(gravest, finding.level, key=_GRAVITY.index)
        unknown = unknown or finding.unknown
        prints.update(finding.fingerprint.encode("ascii"))
    if more:
        saw = f"{more:,} more findings of this rule"
        found = rule.finding(saw=saw, want="none", content=prints.hexdigest())
        yield replace(found, level=gravest, unknown=unknown)


def _told_once(findings: Sequence[Finding]) -> Iterator[Finding]:
    """Leaves out what a rule could not tell for the reason that another one has given already."""
    told: set[tuple[str, str]] = set()
    for finding in findings:
        if not finding.unknown:
            yield finding
        elif (finding.path, finding.saw) not in told:
            told.add((finding.path, finding.saw))
            yield finding


def _leveled(rule: Rule, finding: Finding, policy: Policy) -> Finding:
    """The policy's level, unless the finding says "could not tell"."""
    chosen = policy.rules.get(rule.id)
    if chosen is None or chosen == "off" or finding.unknown or finding.level is not rule.level:
        return finding
    return replace(finding, level=chosen)


def _numbered(findings: Sequence[Finding]) -> Iterator[Finding]:
    """Gives equal content at a second place a fingerprint of its own.

    Without it, a waiver for one line would also cover its copies.
    """
    seen: Counter[str] = Counter()
    for finding in findings:
        nth = seen[finding.fingerprint]
        seen[finding.fingerprint] += 1
        if nth:
            again = fingerprint(finding.rule, finding.path, f"{finding.fingerprint}#{nth}")
            finding = replace(finding, fingerprint=again)  # noqa: PLW2901
        yield finding


def _active_waivers(case: Case) -> Mapping[tuple[str, str, str], date]:
    """Waivers of the target branch that have not expired; a change can not bring its own."""
    return {
        (waiver.rule, waiver.path, waiver.fingerprint): waiver.expires
        for manifest in case.base.valid.values()
        for waiver in manifest.waivers
        if waiver.expires >= case.as_of
    }


def _waived(finding: Finding, waivers: Mapping[tuple[str, str, str], date]) -> Finding:
    until = waivers.get((finding.rule, finding.path, finding.fingerprint))
    if until is None or finding.unknown or finding.level is Level.NOTE:
        return finding
    return replace(finding, level=Level.NOTE, saw=f"{finding.saw} (waived until {until})")
