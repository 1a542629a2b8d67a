# SPDX-License-Identifier: Apache-2.0
"""Judges changes that were merged long ago, to see what a policy would have said.

One policy and one set of manifests, those of today, judge every change of the range; the range's
own files only give the facts. A squash or a plain commit is judged against its parent, a merge
commit as its second parent against its first.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from fasttrack.case import Case
from fasttrack.change.git import Git
from fasttrack.change.read import read_change
from fasttrack.errors import InputError
from fasttrack.finding import Finding, Level
from fasttrack.verdict import Outcome, judge
from fasttrack.workspace import Workspace

MAX_CHANGES = 20_000
"""Changes of one backtest; at about ten a second, more than half an hour."""


@dataclass(frozen=True)
class Merged:
    """One merged change.

    Attributes:
        commit: the commit on the target branch.
        base: the target branch just before it.
        head: what was merged.
    """

    commit: str
    base: str
    head: str


@dataclass(frozen=True)
class Judged:
    """What today's policy says to a merged change.

    Attributes:
        merged: the change.
        outcome: the verdict, None when the change could not be read.
        in_lane: whether it was the fast track's business.
        findings: all findings.
        problem: why it could not be read; empty when it could.
    """

    merged: Merged
    outcome: Outcome | None
    in_lane: bool
    findings: tuple[Finding, ...]
    problem: str = ""


@dataclass(frozen=True)
class Tally:
    """Counts over a backtest.

    Attributes:
        changes: changes judged.
        in_lane: changes that were the fast track's business.
        outcomes: verdict to number of changes; `unreadable` for those without one.
        levels: level to number of changes with at least one such finding.
        rules: (rule id, level) to (findings, changes).
        noisiest: (rule id, path) to number of changes, the ten largest.
    """

    changes: int
    in_lane: int
    outcomes: Mapping[str, int]
    levels: Mapping[Level, int]
    rules: Mapping[tuple[str, Level], tuple[int, int]]
    noisiest: Sequence[tuple[tuple[str, str], int]]


def merged_changes(repo: Path, revisions: str, limit: int | None = None) -> tuple[Merged, ...]:
    """The changes that were merged in a range, newest first.

    Args:
        repo: the repository.
        revisions: `OLD..NEW`; the first-parent history after OLD up to NEW.
        limit: at most so many, the newest; None for all.

    Raises:
        InputError: no such range, or more than `MAX_CHANGES`.
    """
    old, separator, new = revisions.partition("..")
    if not separator or not old or not new or new.startswith("."):
        raise InputError.one("range", repr(revisions), "OLD..NEW, two revisions")
    git = Git(repo)
    try:
        ids = git.resolve([old, new])
        for name, oid in zip((old, new), ids, strict=True):
            if oid is None:
                raise InputError.one("range", f"no commit {name}", "a revision of this clone")
        listed = git.run(
            "rev-list",
            "--first-parent",
            "--parents",
            f"--max-count={min(limit or MAX_CHANGES + 1, MAX_CHANGES + 1)}",
            f"^{ids[0]}",
            str(ids[1]),
        ).out.decode("ascii")
    finally:
        git.close()
    commits = [line.split() for line in listed.splitlines()]
    if len(commits) > MAX_CHANGES:
        raise InputError.one("range", f"over {MAX_CHANGES} changes", "a shorter range", "--limit N")
    return tuple(
        Merged(commit, parents[0], parents[1] if len(parents) == 2 else commit)
        for commit, *parents in commits
        if parents
    )


def judge_all(
    repo: Path,
    workspace: Workspace,
    changes: Sequence[Merged],
    as_of: date,
    *,
    labelled: bool = False,
) -> Iterator[Judged]:
    """Judges merged changes one by one.

    Args:
        repo: the repository that holds them.
        workspace: today's policy and manifests.
        changes: what to judge.
        as_of: UTC day of the judgement.
        labelled: judge every change as if it had asked for the fast track.
    """
    for merged in changes:
        try:
            with read_change(repo, target=merged.base, head=merged.head) as change:
                manifests = workspace.manifests
                verdict = judge(
                    Case(change, workspace.config, manifests, manifests, as_of, labelled)
                )
        except InputError as error:
            yield Judged(merged, None, False, (), str(error))
            continue
        yield Judged(merged, verdict.outcome, verdict.in_lane, verdict.findings)


def tally(judged: Sequence[Judged]) -> Tally:
    """Counts of a backtest."""
    findings: Counter[tuple[str, Level]] = Counter()
    changes: Counter[tuple[str, Level]] = Counter()
    noisy: Counter[tuple[str, str]] = Counter()
    for one in judged:
        findings.update((f.rule, f.level) for f in one.findings)
        changes.update({(f.rule, f.level) for f in one.findings})
        noisy.update({(f.rule, f.path) for f in one.findings})
    return Tally(
        changes=len(judged),
        in_lane=sum(one.in_lane for one in judged),
        outcomes=Counter(one.outcome.value if one.outcome else "unreadable" for one in judged),
        levels={
            level: sum(any(f.level is level for f in one.findings) for one in judged)
            for level in Level
        },
        rules={key: (findings[key], changes[key]) for key in sorted(findings)},
        noisiest=sorted(noisy.items(), key=lambda item: (-item[1], item[0]))[:10],
    )
