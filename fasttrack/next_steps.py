# SPDX-License-Identifier: Apache-2.0
"""What a contributor does next, from what was decided."""

from collections.abc import Iterator
from dataclasses import dataclass

from fasttrack.finding import Level
from fasttrack.verdict import Outcome, Verdict


@dataclass(frozen=True)
class Step:
    """A command, or an edit without one, and what it achieves."""

    command: str
    why: str


def next_steps(verdict: Verdict) -> tuple[Step, ...]:
    """The next steps, most urgent first."""
    return tuple(_steps(verdict))


def _steps(verdict: Verdict) -> Iterator[Step]:
    if verdict.identity.head == verdict.identity.merge_base:
        yield Step("", "head is the merge base, so there is no change: commit it, or name --head")
    if not verdict.in_lane:
        return
    worst = [f for f in verdict.findings if f.level in {Level.BLOCK, Level.ROUTE}]
    worst.sort(key=lambda f: (f.level is not Level.BLOCK, f.rule))
    for rule in list(dict.fromkeys(f.rule for f in worst))[:3]:
        yield Step(
            f"fasttrack explain {rule}", "what the rule protects, and how to mend the change"
        )
    if verdict.coverage.missing:
        yield Step(
            "fasttrack scope points --count",
            f"{len(verdict.coverage.missing)} cells lack evidence; this shows how they come about",
        )
    if verdict.outcome is Outcome.FAST_TRACK:
        yield Step("", "a maintainer may approve this change as it is")
