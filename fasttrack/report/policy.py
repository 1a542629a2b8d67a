# SPDX-License-Identifier: Apache-2.0
"""A policy and its fixtures for people."""

from collections.abc import Iterator, Sequence

from fasttrack.policy.model import Policy
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
    """What a policy lets through, in a screenful."""
    return "\n".join(_lines(workspace.config.policy, workspace.config.folder)) + "\n"


def _lines(policy: Policy, folder: str) -> Iterator[str]:
    yield f"{folder}/policy.yaml, version {policy.version}, mode {policy.mode.value}"
    yield "roots may lie in: " + ", ".join(policy.roots.allow)
    for wired in policy.wiring:
        yield f"wiring: {wired.path} {wired.symbol}, at most {wired.max_lines} lines"
    yield "budgets: " + ", ".join(
        f"{name.replace('_', ' ')} {value}" for name, value in policy.budgets.model_dump().items()
    )
    for tier, kinds in policy.tiers.items():
        yield f"tier {tier.value} owes " + ", ".join(kind.value for kind in kinds)
    yield f"the runtime admits from tier {policy.admit_tier.value}"
    yield "hardware: " + ", ".join(f"{name} ({h.arch})" for name, h in policy.hardware.items())
    yield f"trusted keys: {len(policy.trust.keys)}; lease at most {policy.lease.max_days} days"
    changed = {rule.id: policy.rules[rule.id] for rule in RULES if rule.id in policy.rules}
    for rule_id, level in changed.items():
        yield f"rule {rule_id} is set to {level}"
