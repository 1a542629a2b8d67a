# SPDX-License-Identifier: Apache-2.0
"""The verdict as plain data: the JSON that scripts rely on, and its schema."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from fasttrack import __version__
from fasttrack.case import ManifestSet
from fasttrack.evidence.owed import Owed
from fasttrack.evidence.status import Status
from fasttrack.finding import Finding, Level
from fasttrack.next_steps import next_steps
from fasttrack.policy.model import Mode
from fasttrack.ran import Executed, Run
from fasttrack.report.visible import visible
from fasttrack.verdict import Outcome, Verdict
from fasttrack.vocabulary import Kind

Hex = str
"""Hexadecimal digits, lower case."""


@dataclass(frozen=True)
class BaseRecord:
    """The target side."""

    tip: Hex
    """Commit that policy and base manifests are read from."""
    merge_base: Hex
    """Commit that the change starts at."""
    tree: Hex
    """Tree of the tip."""


@dataclass(frozen=True)
class HeadRecord:
    """The change's side."""

    commit: Hex
    """Judged head commit; synthetic for a patch."""
    tree: Hex
    """Its tree."""


@dataclass(frozen=True)
class ManifestRecord:
    """One manifest of the judged tree."""

    path: str
    """Repository path."""
    name: str
    """Its name; empty when it does not parse."""
    state: str
    """`active`, `suspended`, `revoked` or `broken`."""
    tiers: Mapping[str, str]
    """Region id to claimed tier."""


@dataclass(frozen=True)
class FindingRecord:
    """One finding; `fasttrack explain RULE` tells the rest."""

    rule: str
    """Rule id."""
    slug: str
    """Rule name."""
    level: Level
    """How far it holds the change back."""
    path: str
    """Repository path, empty for the whole change."""
    line: int
    """First line in the new file, 0 for the whole path."""
    end_line: int
    """Last line, inclusive."""
    saw: str
    """What is there."""
    want: str
    """What would pass."""
    fix: str
    """Next command or edit."""
    message: str
    """One sentence."""
    fingerprint: str
    """Stable name for waivers."""


@dataclass(frozen=True)
class CellRecord:
    """One owed cell without evidence."""

    manifest: str
    """Manifest that asks for it."""
    kind: Kind
    """Kind of evidence."""
    region: str
    """Region of the scope, empty for cells of a unit alone."""
    key: Mapping[str, Any]
    """The cell's axes."""
    reason: str
    """Why the change owes it."""
    status: Status
    """The best that evidence says of it."""
    detail: str
    """Why that does not cover it."""


@dataclass(frozen=True)
class CoverageRecord:
    """Evidence owed by this change."""

    owed: int
    """Cells that the change made stale or new."""
    covered: int
    """Those with evidence."""
    statuses: Mapping[Kind, Mapping[Status, int]]
    """Kind to the owed cells of each status."""
    missing: tuple[CellRecord, ...]
    """Those without."""
    unknown: tuple[str, ...]
    """Why it could not be told which further cells are owed; then people must review."""


@dataclass(frozen=True)
class ExecutedRecord:
    """Which checks ran code of the change."""

    import_probe: Run
    """Import in a clean interpreter."""
    test_collection: Run
    """Collection of test ids."""
    base_tests: Run
    """The target branch's tests over the change's code."""


@dataclass(frozen=True)
class BudgetRecord:
    """Use of one budget."""

    used: int
    """Amount in this change; -1 when it could not be told."""
    limit: int
    """The policy's limit."""


@dataclass(frozen=True)
class StepRecord:
    """One next step."""

    command: str
    """What to run; empty when only an edit helps."""
    why: str
    """What it achieves."""


@dataclass(frozen=True)
class VerdictRecord:
    """Everything that `fasttrack check --format json` prints."""

    verdict: Outcome
    """What may happen to the change."""
    exit_code: int
    """Exit code of the command."""
    decision: Literal["not-asked", "awaiting", "approved", "held", "revoked", "timed-out"]
    """What people decided; `not-asked` unless approvals were handed in."""
    in_lane: bool
    """Whether the change is the fast track's business."""
    provisional: bool
    """Whether the policy was handed in by option."""
    as_of: str
    """UTC day of the judgement, `YYYY-MM-DD`."""
    base: BaseRecord
    """Target side."""
    head: HeadRecord
    """Change side."""
    judged_tree: Hex | None
    """Tree that would result from the merge; null when it conflicts."""
    change_digest: Hex
    """SHA-256 that approvals bind to."""
    policy_digest: Hex
    """SHA-256 of the policy's raw bytes."""
    mode: Mode
    """How far the bot goes."""
    manifests: tuple[ManifestRecord, ...]
    """Manifests of the judged tree."""
    findings: tuple[FindingRecord, ...]
    """All findings."""
    coverage: CoverageRecord
    """Evidence owed."""
    executed: ExecutedRecord
    """What ran code of the change."""
    budget: Mapping[str, BudgetRecord]
    """Budget name to its use."""
    next: tuple[StepRecord, ...]
    """What to do next."""
    version: str
    """Version of this program."""


def verdict_record(verdict: Verdict) -> VerdictRecord:
    """The record of a verdict; every text of the change's own is made visible."""
    identity, config, coverage = verdict.identity, verdict.config, verdict.coverage
    return VerdictRecord(
        verdict=verdict.outcome,
        exit_code=verdict.outcome.exit_code,
        decision="not-asked",
        in_lane=verdict.in_lane,
        provisional=config.provisional,
        as_of=verdict.as_of.isoformat(),
        base=BaseRecord(
            tip=identity.base_tip, merge_base=identity.merge_base, tree=identity.base_tree
        ),
        head=HeadRecord(commit=identity.head, tree=identity.head_tree),
        judged_tree=identity.judged_tree,
        change_digest=identity.change_digest,
        policy_digest=config.policy_digest,
        mode=config.policy.mode,
        manifests=tuple(_manifests(verdict.manifests)),
        findings=tuple(_finding(f) for f in verdict.findings),
        coverage=CoverageRecord(
            owed=len(coverage.owed),
            covered=len(coverage.owed) - len(coverage.missing),
            statuses=_statuses(coverage.owed),
            missing=tuple(_cell(o) for o in coverage.missing),
            unknown=tuple(visible(reason) for reason in coverage.unknown),
        ),
        executed=_executed(verdict.executed),
        budget={
            name: BudgetRecord(used=use.used, limit=use.limit)
            for name, use in verdict.budget.items()
        },
        next=tuple(StepRecord(command=s.command, why=s.why) for s in next_steps(verdict)),
        version=__version__,
    )


def json_text(record: VerdictRecord) -> str:
    """The record as JSON: sorted keys, ASCII, a newline at the end; equal records, equal bytes."""
    return json.dumps(asdict(record), sort_keys=True, indent=2) + "\n"


def _manifests(head: ManifestSet) -> list[ManifestRecord]:
    parsed = [
        ManifestRecord(
            path=visible(path),
            name=manifest.name,
            state=manifest.state.status.value,
            tiers={region.id: region.tier.value for region in manifest.scope},
        )
        for path, manifest in head.valid.items()
    ]
    broken = [
        ManifestRecord(path=visible(path), name="", state="broken", tiers={})
        for path in head.broken
    ]
    return sorted(parsed + broken, key=lambda m: m.path)


def _executed(executed: Executed) -> ExecutedRecord:
    probe, collection, tests = (
        executed.import_probe,
        executed.test_collection,
        executed.base_tests,
    )
    return ExecutedRecord(
        import_probe=probe.run if probe else "not-run",
        test_collection=collection.run if collection else "not-run",
        base_tests=tests.run if tests else "not-run",
    )


def _finding(finding: Finding) -> FindingRecord:
    return FindingRecord(
        rule=finding.rule,
        slug=finding.slug,
        level=finding.level,
        path=visible(finding.path),
        line=finding.line,
        end_line=finding.end_line,
        saw=visible(finding.saw),
        want=visible(finding.want),
        fix=visible(finding.fix),
        message=visible(finding.message),
        fingerprint=finding.fingerprint,
    )


def _statuses(owed: Sequence[Owed]) -> Mapping[Kind, Mapping[Status, int]]:
    """Kinds in their own order, and statuses from good to bad."""
    counts = Counter((one.cell.kind, one.answer.status) for one in owed)
    kinds = [kind for kind in Kind if any(kind is known for known, _ in counts)]
    return {kind: {s: counts[kind, s] for s in Status if counts[kind, s]} for kind in kinds}


def _cell(owed: Owed) -> CellRecord:
    return CellRecord(
        manifest=owed.manifest,
        kind=owed.cell.kind,
        region=owed.cell.region,
        key=json.loads(owed.cell.key),
        reason=visible(owed.reason),
        status=owed.answer.status,
        detail=visible(owed.answer.detail),
    )
