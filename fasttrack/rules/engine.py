# SPDX-License-Identifier: Apache-2.0
"""Runs the rules: policy levels, missing facts, waivers, and one order for every report."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date

from fasttrack.case import Case
from fasttrack.errors import FactUnavailable
from fasttrack.finding import Finding, Level, fingerprint
from fasttrack.manifest.model import Waiver
from fasttrack.policy.model import Policy
from fasttrack.rules.base import Rule


def run_rules(rules: Sequence[Rule], case: Case) -> tuple[Finding, ...]:
    """All findings of `rules` on `case`, leveled, waived and sorted.

    Args:
        rules: the rules to run, in registry order.
        case: what they judge.

    Returns:
        Findings sorted by path, line and rule. A waived finding stays, as a note that says so.
    """
    found = [
        _leveled(rule, finding, case.policy)
        for rule in rules
        if case.policy.rules.get(rule.id) != "off"
        for finding in _guarded(rule, case)
    ]
    by_id = {rule.id: rule for rule in rules}
    waivers = _active_waivers(case)
    return tuple(
        _waived(finding, waivers) if by_id[finding.rule].waivable else finding
        for finding in _numbered(sorted(found, key=lambda f: f.sort_key))
    )


def _guarded(rule: Rule, case: Case) -> Iterator[Finding]:
    try:
        yield from rule.check(case)
    except FactUnavailable as reason:
        yield rule.could_not_tell(reason)


def _leveled(rule: Rule, finding: Finding, policy: Policy) -> Finding:
    """The policy's level, unless the finding says "could not tell"."""
    chosen = policy.rules.get(rule.id)
    if chosen is None or chosen == "off" or finding.level is not rule.level:
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
        _key(waiver.rule, waiver.path, waiver.fingerprint): waiver.expires
        for manifest in case.base.valid.values()
        for waiver in _waivers(manifest.waivers)
        if waiver.expires >= case.as_of
    }


def _waivers(waivers: Sequence[Waiver] | None) -> Sequence[Waiver]:
    return waivers or ()


def _key(rule: str, path: str, print_: str) -> tuple[str, str, str]:
    return (rule, path, print_)


def _waived(finding: Finding, waivers: Mapping[tuple[str, str, str], date]) -> Finding:
    until = waivers.get(_key(finding.rule, finding.path, finding.fingerprint))
    if until is None or finding.level is Level.NOTE:
        return finding
    return replace(finding, level=Level.NOTE, saw=f"{finding.saw} (waived until {until})")
