# SPDX-License-Identifier: Apache-2.0
"""The main flow: from a change to a verdict, in numbered steps."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from enum import StrEnum
from pathlib import Path

from fasttrack.budget import Use, budget_use
from fasttrack.case import Case, Config, ManifestSet
from fasttrack.change.read import read_change
from fasttrack.config import (
    moved_folder,
    needed,
    read_base_manifests,
    read_config,
    read_head_manifests,
)
from fasttrack.errors import Exit, FactUnavailable
from fasttrack.evidence.owed import Coverage, judge_coverage
from fasttrack.finding import Finding, Level
from fasttrack.ran import NOTHING_RAN, RUN_TIMEOUT_S, Executed
from fasttrack.rules import RULES
from fasttrack.rules.engine import run_rules


class Outcome(StrEnum):
    """What may happen to a change."""

    FAST_TRACK = "fast-track"
    NEEDS_EVIDENCE = "needs-evidence"
    ORDINARY_REVIEW = "ordinary-review"
    REFUSED = "refused"

    @property
    def exit_code(self) -> Exit:
        """Exit code of `fasttrack check`."""
        return Exit[self.name]


@dataclass(frozen=True)
class Request:
    """What `fasttrack check` was asked; every field is an option of the command."""

    repo: Path
    target: str | None = None
    base: str | None = None
    head: str = "HEAD"
    policy_from: str | None = None
    policy_file: Path | None = None
    patch: Path | None = None
    onto: str | None = None
    config_dir: str | None = None
    labelled: bool = False
    evidence: Path | None = None
    run_probe: bool = False
    run_base_tests: bool = False
    run_timeout_s: float = RUN_TIMEOUT_S


@dataclass(frozen=True)
class Identity:
    """What was judged, by name; all ids are hexadecimal.

    Attributes:
        base_tip: commit that policy and base manifests were read from.
        merge_base: commit that the change starts at.
        base_tree: tree of the tip.
        head: judged commit; made up for a patch.
        head_tree: its tree.
        judged_tree: tree that the merge would leave; None when there is no clean merge.
        change_digest: SHA-256 that approvals bind to.
    """

    base_tip: str
    merge_base: str
    base_tree: str
    head: str
    head_tree: str
    judged_tree: str | None
    change_digest: str


@dataclass(frozen=True)
class Verdict:
    """The answer, as data that outlives the repository.

    Attributes:
        outcome: what may happen to the change.
        in_lane: whether it is the fast track's business; if not, no rule has run.
        identity: what was judged.
        config: the policy in force.
        as_of: the UTC day of the judgement.
        manifests: the manifests after the merge.
        findings: all findings, sorted.
        coverage: owed cells and what evidence says of them.
        budget: use of each budget.
        executed: what running code of the change has shown.
        request: what was asked; None where a case was judged and no command was given.
    """

    outcome: Outcome
    in_lane: bool
    identity: Identity
    config: Config
    as_of: date
    manifests: ManifestSet
    findings: tuple[Finding, ...]
    coverage: Coverage
    budget: Mapping[str, Use]
    executed: Executed = NOTHING_RAN
    request: Request | None = None


def evaluate(
    request: Request, as_of: date, tell: Callable[[str], None] = lambda _: None
) -> Verdict:
    """Judges one change.

    Args:
        request: which change, under which policy.
        as_of: UTC day; the only clock that rules see.
        tell: is told what begins, where code of the change is run.

    Raises:
        InputError: bad refs, no policy, a policy or base manifest with problems; code of the
            change is to be run, and this system has no sandbox for it.
    """
    # (1) Facts, from git objects alone.
    with read_change(
        request.repo,
        target=request.target,
        base=request.base,
        head=request.head,
        policy_from=request.policy_from,
        patch=request.patch,
        onto=request.onto,
    ) as change:
        # (2) Policy and base manifests from the tip of the target branch, never from the change.
        config = read_config(change, folder=request.config_dir, policy_file=request.policy_file)
        base = read_base_manifests(change, config)
        # (3) What the change claims: the manifests as they would be after the merge.
        head = read_head_manifests(change, config)
        # Rules and coverage say which facts they lack; without the others nobody can judge.
        with needed("the change"):
            moved = moved_folder(change)
            more = request.evidence
            case = Case(change, config, base, head, as_of, request.labelled, moved, more)
            # (4) What running its code shows, where the request asks for that and nowhere else.
            case = replace(case, executed=_executed(case, request, tell))
            return replace(judge(case), request=request)


def judge(case: Case) -> Verdict:
    """Steps 5 to 7, on facts that are read and a policy that is chosen."""
    findings: tuple[Finding, ...] = ()
    coverage = Coverage.nothing()
    if case.in_lane:
        # (5) Rules.
        findings = run_rules(RULES, case)
        # (6) Evidence owed, against evidence there.
        coverage = case.once(judge_coverage)
    # (7) The gravest answer wins; what is not our business is an ordinary review.
    outcome = decide(findings, coverage) if case.in_lane else Outcome.ORDINARY_REVIEW
    return Verdict(
        outcome,
        case.in_lane,
        _identity(case),
        case.config,
        case.as_of,
        case.head,
        findings,
        coverage,
        budget_use(case) if case.in_lane else {},
        case.executed,
    )


def decide(findings: Sequence[Finding], coverage: Coverage) -> Outcome:
    """The outcome by precedence: refused, ordinary review, needs evidence, fast track."""
    levels = {f.level for f in findings}
    if Level.BLOCK in levels:
        return Outcome.REFUSED
    if Level.ROUTE in levels or coverage.unknown:
        return Outcome.ORDINARY_REVIEW
    return Outcome.NEEDS_EVIDENCE if coverage.missing else Outcome.FAST_TRACK


def _executed(case: Case, request: Request, tell: Callable[[str], None]) -> Executed:
    if not (request.run_probe or request.run_base_tests):
        return NOTHING_RAN
    from fasttrack.executed.run import Asked, execute  # noqa: PLC0415  (most checks run nothing)

    asked = Asked(request.run_probe, request.run_base_tests, request.run_timeout_s)
    return execute(case, asked, tell)


def _identity(case: Case) -> Identity:
    change = case.change
    try:
        judged_tree = change.judged_tree
    except FactUnavailable:
        judged_tree = None
    return Identity(
        change.base_tip,
        change.merge_base,
        change.base_tree,
        change.head,
        change.head_tree,
        judged_tree,
        change.change_digest(case.config.classes.is_evidence),
    )
