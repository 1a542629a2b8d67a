# SPDX-License-Identifier: Apache-2.0
"""A policy and its fixtures for people."""

from collections.abc import Iterator, Mapping, Sequence, Set
from enum import Enum

from fasttrack.policy.fields import Record
from fasttrack.policy.model import Policy
from fasttrack.policy.trust import Trust
from fasttrack.policy_fixtures import FixtureResult
from fasttrack.report.visible import visible
from fasttrack.rules import RULES
from fasttrack.workspace import Workspace


def fixture_line(result: FixtureResult) -> str:
    """One line for one fixture, with what differs when it does not hold."""
    if not result.wrong:
        return f"ok    {result.name}: {result.outcome.value}\n"
    return f"WRONG {result.name}: {visible(result.wrong)}\n      {visible(result.fixture.why)}\n"


def fixtures_summary(results: Sequence[FixtureResult]) -> str:
    """How many fixtures hold."""
    wrong = sum(bool(r.wrong) for r in results)
    return f"{len(results) - wrong} of {len(results)} fixtures hold\n"


def classes_text(workspace: Workspace, paths: Sequence[str]) -> str:
    """How the policy classes paths, and which manifest governs them."""
    lines = []
    for path in paths:
        manifest = workspace.manifests.governing(path)
        governed = f", governed by {manifest.name}" if manifest else ""
        lines.append(f"{visible(path)}: {workspace.config.classes.of(path).value}{governed}")
    return "\n".join(lines) + "\n"


def policy_text(workspace: Workspace) -> str:
    """What a policy says, every field of it; fields that are empty or not set are told too."""
    lines = _lines(workspace.config.policy, workspace.config.folder)
    return "".join(f"{visible(line)}\n" for line in lines)


def _lines(policy: Policy, folder: str) -> Iterator[str]:
    path = f"{folder}/policy.yaml"
    yield f"{path}, format {policy.policy}, version {policy.version}, mode {policy.mode.value}"
    for entry in policy.paths:
        yield f"class {entry.path_class.value}: {_said(entry.match)}"
    yield f"roots may lie in: {_said(policy.roots.allow)}"
    yield f"imports that are free there: {_said(policy.imports)}"
    yield f"files outside that bind evidence: {_said(policy.bind)}"
    for wired in policy.wiring:
        yield f"wiring: {wired.path} {wired.symbol}, at most {wired.max_lines} lines"
    yield f"budgets: {_fields(policy.budgets)}"
    for tier, kinds in policy.tiers.items():
        yield f"tier {tier.value} owes {_said(kinds)}"
    yield f"the runtime admits from tier {policy.admit_tier.value}"
    yield f"floors: {_fields(policy.floors)}"
    for name, hardware in policy.hardware.items():
        yield f"hardware {name}: {_fields(hardware)}"
    yield f"toolchain: {_fields(policy.toolchain)}"
    yield from _trust_lines(policy.trust)
    yield f"approvals: {_fields(policy.approvals)}"
    yield f"lease: {_fields(policy.lease)}"
    yield f"a new path and its code arrive {policy.new_paths}"
    yield f"a decision is due within {policy.decision_days} days"
    titles = {rule.id: rule.title for rule in RULES}
    for rule_id, level in policy.rules.items():
        yield f"rule {rule_id} is set to {_said(level)}: {titles.get(rule_id, 'no such rule')}"


def _trust_lines(trust: Trust) -> Iterator[str]:
    for one in (*trust.keys, *trust.identities):
        yield f"{one}: {_fields(one, without={'id'})}"
    yield f"trust: {_fields(trust, without={'keys', 'identities'})}"


def _fields(record: Record, without: Set[str] = frozenset()) -> str:
    """Name and value of every field, one after the other."""
    names = (name for name in type(record).model_fields if name not in without)
    return "; ".join(f"{name.replace('_', ' ')} {_said(getattr(record, name))}" for name in names)


def _said(value: object) -> str:
    """A value of a field in words."""
    if isinstance(value, Record):
        return f"({_fields(value)})"
    if isinstance(value, Mapping):
        value = tuple(f"{_said(key)} {_said(item)}" for key, item in value.items())
    if isinstance(value, tuple):
        return ", ".join(map(_said, value)) or "none"
    if value is None or isinstance(value, bool):
        return {None: "none", True: "yes", False: "no"}[value]
    return str(value.value if isinstance(value, Enum) else value)
