# SPDX-License-Identifier: Apache-2.0
"""What a contributor does next, from what was decided."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from fasttrack.evidence.choice import Choice
from fasttrack.evidence.owed import Owed
from fasttrack.evidence.status import Status
from fasttrack.evidence.subject import ANYWHERE, hardware_of
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
    if verdict.outcome is not Outcome.REFUSED:  # else its bytes must change first
        yield from _evidence_steps(verdict)
    if verdict.outcome is Outcome.FAST_TRACK:
        yield Step("", "a maintainer may approve this change as it is")


def _evidence_steps(verdict: Verdict) -> Iterator[Step]:
    """The fewest commands that close the gap; measuring again does not help where trust lacks."""
    distrusted = [o for o in verdict.coverage.missing if o.answer.status is Status.UNTRUSTED]
    if distrusted:
        store = f"{verdict.config.folder}/evidence/*.dsse.jsonl"
        why = f"{_cells(distrusted)} right and not trusted; this tells each statement's reason"
        yield Step(f"fasttrack evidence verify {store}", why)
    lacking = [o for o in verdict.coverage.missing if o.answer.status is not Status.UNTRUSTED]
    for name in dict.fromkeys(owed.manifest for owed in lacking):
        mine = [owed for owed in lacking if owed.manifest == name]
        several = len(verdict.manifests.valid) > 1
        yield from _measuring(verdict, mine, name if several else "")


def _measuring(verdict: Verdict, owed: Sequence[Owed], name: str) -> Iterator[Step]:
    """Plan, collect and sign for one manifest; `name` is its own where there are several."""
    cells = [one.cell for one in owed]
    choice = Choice.narrowest(cells, verdict.manifests.named(name or None))
    plan = f"plan-{name}.json" if name else "plan.json"
    bundle = f"bundle-{name}" if name else "bundle"
    options = [f"--manifest {name}"] if name else []
    words = ["fasttrack evidence plan", *options, *choice.options(), f"--out {plan}"]
    yield Step(" ".join(words), f"{_cells(owed)} without evidence; this lists what to measure")
    if verdict.outcome is not Outcome.NEEDS_EVIDENCE:
        return  # people read it first, and may ask for other bytes
    machines = sorted({hardware_of(cell) for cell in cells} - {ANYWHERE})
    machine = machines[0] if len(machines) == 1 else "ID"
    where = f"on {' and on '.join(machines)}" if machines else "on any machine of the policy"
    command = f"fasttrack evidence collect --plan {plan} --out {bundle} --hardware {machine}"
    yield Step(command, f"measures them, {where}, and signs nothing")
    command = f"fasttrack evidence sign --plan {plan} --bundle {bundle} --key FILE --key-id ID"
    yield Step(command, "run it where the key is, and commit the file that it writes")


def _cells(owed: Sequence[Owed]) -> str:
    return "1 cell is" if len(owed) == 1 else f"{len(owed)} cells are"
