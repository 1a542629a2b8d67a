# SPDX-License-Identifier: Apache-2.0
"""What a contributor does next, from what was decided.

A command repeats the options that were given, as far as it has them, so that it works as printed.
"""

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from fasttrack.evidence.choice import Choice
from fasttrack.evidence.owed import Owed
from fasttrack.evidence.status import Status
from fasttrack.evidence.subject import ANYWHERE, hardware_of
from fasttrack.finding import Level
from fasttrack.verdict import Outcome, Request, Verdict

_OPTIONS = {
    "repo": "--repo",
    "config_dir": "--config-dir",
    "head": "--head",
    "policy_from": "--policy-from",
    "policy_file": "--policy",
    "evidence": "--evidence",
}
"""Field of a request to its option, in the order in which commands print them."""
_SIGN = ("repo", "config_dir", "policy_from")
_VERIFY = ("repo", "policy_file")


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
        why = f"{_cells(distrusted)} right and not trusted; this tells each statement's reason"
        for store in _stores(verdict):
            words = ["fasttrack evidence verify", *_given(verdict, _VERIFY)]
            yield Step(" ".join([*words, f"{shlex.quote(str(store))}/*.dsse.jsonl*"]), why)
    lacking = [o for o in verdict.coverage.missing if o.answer.status is not Status.UNTRUSTED]
    if lacking and verdict.request is not None and verdict.request.patch is not None:
        yield Step("", f"{_cells(lacking)} without evidence, which speaks of commits: commit it")
        return
    for name in dict.fromkeys(owed.manifest for owed in lacking):
        mine = [owed for owed in lacking if owed.manifest == name]
        several = len(verdict.manifests.valid) > 1
        yield from _measuring(verdict, mine, name if several else "")


def _measuring(verdict: Verdict, owed: Sequence[Owed], name: str) -> Iterator[Step]:
    """Plan, collect and sign for one manifest; `name` is its own where there are several."""
    cells = [cell for one in owed for cell in one.answer.first or (one.cell,)]
    choice = Choice.narrowest(cells, verdict.manifests.named(name or None))
    plan = f"plan-{name}.json" if name else "plan.json"
    bundle = f"bundle-{name}" if name else "bundle"
    options = [*_given(verdict, tuple(_OPTIONS)), *([f"--manifest {name}"] if name else [])]
    words = ["fasttrack evidence plan", *options, *choice.options(), f"--out {plan}"]
    yield Step(" ".join(words), f"{_cells(owed)} without evidence; this lists what to measure")
    if verdict.outcome is not Outcome.NEEDS_EVIDENCE:
        return  # people read it first, and may ask for other bytes
    machines = sorted({hardware_of(cell) for cell in cells} - {ANYWHERE})
    machine = machines[0] if len(machines) == 1 else "ID"
    where = f"on {' and on '.join(machines)}" if machines else "on any machine of the policy"
    words = ["fasttrack evidence collect", *_root(verdict), f"--plan {plan} --out {bundle}"]
    why = f"measures them, {where}, and signs nothing"
    yield Step(" ".join([*words, f"--hardware {machine}"]), f"{why}{_checkout(verdict)}")
    words = ["fasttrack evidence sign", *_given(verdict, _SIGN)]
    words.append(f"--plan {plan} --bundle {bundle} --key FILE --key-id ID")
    yield Step(" ".join(words), "run it where the key is, and commit the file that it writes")


def _given(verdict: Verdict, fields: Sequence[str]) -> list[str]:
    """The options of these fields that were given and are not what a command takes by itself."""
    request = verdict.request
    if request is None:
        return []
    plain = Request(Path())
    given = {name: getattr(request, name) for name in _OPTIONS if name in fields}
    return [
        f"{_OPTIONS[name]} {shlex.quote(str(value))}"
        for name, value in given.items()
        if value != getattr(plain, name)
    ]


def _stores(verdict: Verdict) -> Iterator[Path]:
    """Where statements are kept: in the repository, and in the folder that was handed in."""
    request = verdict.request
    yield (request.repo if request else Path()) / verdict.config.folder / "evidence"
    if request is not None and request.evidence is not None:
        yield request.evidence


def _root(verdict: Verdict) -> list[str]:
    """Which source tree is measured, where it is not the current directory."""
    where = _given(verdict, ("repo",))
    return [where[0].replace("--repo", "--root", 1)] if where else []


def _checkout(verdict: Verdict) -> str:
    """What must be on disk for it, where that may be something else."""
    head = verdict.request.head if verdict.request else "HEAD"
    return "" if head == "HEAD" else f"; {head} must be checked out there"


def _cells(owed: Sequence[Owed]) -> str:
    return "1 cell is" if len(owed) == 1 else f"{len(owed)} cells are"
