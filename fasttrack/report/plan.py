# SPDX-License-Identifier: Apache-2.0
"""A plan for people, and the jobs that would measure it for GitHub Actions, Buildkite and Slurm.

A snippet is a start: how the plan gets to a machine, and the bundle from there, is for whoever runs
the machines to say. Nothing in it is a secret, and it signs nothing.
"""

import shlex
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import yaml

from fasttrack.errors import InputError
from fasttrack.evidence.plan import Plan, PlannedCell
from fasttrack.evidence.planning import Planned
from fasttrack.evidence.shards import Shard, by_machine, divided, machine_of
from fasttrack.evidence.subject import hardware_of

PLAN_FILE = "plan.json"
"""Where commands look for the plan, unless it was written elsewhere."""
CHECKOUT = "actions/checkout@11bd71901bbe5b1630ceea73d27597364c9af683"
"""v4.2.2, as in the workflow that `init` proposes."""


@dataclass(frozen=True)
class Job:
    """What one machine measures.

    Attributes:
        shard: its share of the cells.
        hardware: the hardware that it is.
    """

    shard: Shard
    hardware: str

    @property
    def bundle(self) -> str:
        """The folder that it writes."""
        return f"bundle-{self.shard.number}"


def jobs(plan: Plan, count: int | None) -> tuple[Job, ...]:
    """The jobs of a plan, those without cells left out.

    Args:
        plan: what to measure.
        count: shards; one per kind of machine when None.

    Raises:
        InputError: no cells, or fewer shards than kinds of machine: a job has one of them.
    """
    kinds = len(by_machine(plan.cells, plan.archs))
    if not kinds:
        fix = "--tier TIER plans for a tier that a region does not claim yet"
        raise InputError.one("plan", "no cells to measure", "at least one", fix)
    count = count or kinds
    if count < kinds:
        want = f"at least {kinds}, one per kind of machine"
        raise InputError.one("--shards", str(count), want, "or narrow the plan by --hardware")
    shards = enumerate(divided(plan.cells, plan.archs, count), 1)
    return tuple(
        Job(Shard(i, count), machine_of(cells, plan.cells, plan.archs))
        for i, cells in shards
        if cells
    )


def plan_text(planned: Planned, file: str | None) -> str:
    """How many cells of which units a plan has, and the next command.

    Args:
        planned: the plan, and what it leaves out.
        file: where the plan was written; None when it was not.
    """
    return "\n".join(_lines(planned, file)) + "\n"


def plan_json(plan: Plan) -> str:
    """The plan's own text."""
    return plan.to_bytes().decode("ascii")


def github_snippet(plan: Plan, file: str, count: int | None) -> str:
    """A job with a matrix of shards, to be put below `jobs:` of a workflow; raises as `jobs`."""
    include = [
        {
            "runner": _runner(plan, job.hardware),
            "hardware": job.hardware,
            "shard": str(job.shard),
            "out": job.bundle,
        }
        for job in jobs(plan, count)
    ]
    named = {name: f"${{{{ matrix.{name} }}}}" for name in ("hardware", "out", "shard")}
    measure = {
        "strategy": {"fail-fast": False, "matrix": {"include": include}},
        "runs-on": "${{ matrix.runner }}",
        "permissions": {"contents": "read"},
        "steps": [
            {"uses": CHECKOUT, "with": {"ref": plan.commit, "persist-credentials": False}},
            {"run": _collect(file, **named)},
        ],
    }
    notes = (
        f"Plan {plan.id}.",
        "Below `jobs:` of a workflow. Bring the plan before the last step, keep its bundle after.",
        "The runner must have Python, fasttrack, pytest and what the tests import.",
    )
    return "".join(f"# {note}\n" for note in notes) + _yaml({"measure": measure})


def buildkite_snippet(plan: Plan, file: str, count: int | None) -> str:
    """A pipeline with one step per shard; raises as `jobs`."""
    steps = [
        {
            "label": f"{job.hardware} {job.shard}",
            "agents": {"hardware": job.hardware},
            # `$` would be replaced when the pipeline is uploaded.
            "command": _collect(file, job.hardware, job.bundle, str(job.shard)).replace("$", "$$"),
            "artifact_paths": [f"{job.bundle}/**/*"],
        }
        for job in jobs(plan, count)
    ]
    note = f"Each step needs commit {plan.commit} and the plan"
    return f"# Plan {plan.id}. {note}.\n{_yaml({'steps': steps})}"


def slurm_script(plan: Plan, file: str, count: int | None) -> str:
    """A script that submits itself, as one job array per kind of machine; raises as `jobs`."""
    arrays: dict[str, list[str]] = {}
    found = jobs(plan, count)
    for job in found:
        arrays.setdefault(job.hardware, []).append(str(job.shard.number))
    number = "$SLURM_ARRAY_TASK_ID"
    shard = f'"{number}/{found[0].shard.count}"'
    lines = [
        "#!/bin/bash",
        f"# Plan {plan.id}, in a checkout of {plan.commit}.",
        "# Submits itself: run it by `bash`, with what else `sbatch` should know as arguments.",
        f"#SBATCH --job-name=fasttrack-{plan.id[:8]}",
        "set -euo pipefail",
        'if [[ -z "${SLURM_ARRAY_TASK_ID:-}" ]]; then',
        *(
            f'  sbatch --array={",".join(numbers)} --constraint={hardware} "$@" "$0" {hardware}'
            for hardware, numbers in arrays.items()
        ),
        "  exit",
        "fi",
        _collect(file, '"$1"', f'"bundle-{number}"', shard),
    ]
    return "\n".join(lines) + "\n"


def _lines(planned: Planned, file: str | None) -> Iterator[str]:
    plan = planned.plan
    missing = Counter((cell.unit, cell.kind) for cell in plan.cells)
    yield f"plan {plan.id} of {plan.manifest.name} at {plan.commit[:12]}"
    yield ""
    if missing or planned.covered:
        rows = [
            (unit, kind.value, missing[unit, kind], planned.covered[unit, kind])
            for unit, kind in sorted({*missing, *planned.covered})
        ]
        digests = {u.unit: (u.digest[:12], u.tests_digest[:12]) for u in plan.units}
        head = ("unit", "kind", "missing", "covered", "inputs", "tests")
        yield from _table([head, *((*row, *digests.get(row[0], ("-", "-"))) for row in rows)])
        yield ""
    if not plan.cells:
        yield "Nothing is missing."
        if not planned.covered:
            yield "No cell is owed; `--tier TIER` plans for a tier that one wants to reach."
        return
    yield f"{len(plan.cells)} cells are missing: {', '.join(_places(plan.cells))}"
    if file is None:
        yield f"next: the same command with --out {PLAN_FILE}"
    else:
        for hardware in dict.fromkeys(job.hardware for job in jobs(plan, None)):
            yield f"next: {_collect(file, hardware, 'bundle')}"


def _places(cells: Sequence[PlannedCell]) -> Iterator[str]:
    counts = Counter(hardware_of(cell.cell()) for cell in cells)
    for hardware, count in sorted(counts.items()):
        yield f"{count} on {hardware or 'any machine'}"


def _table(rows: Sequence[Sequence[str | int]]) -> Iterator[str]:
    """Columns as wide as they must be, numbers at the right."""
    widths = [max(len(str(value)) for value in column) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = [
            f"{value:>{width}}" if isinstance(value, int) else f"{value:<{width}}"
            for value, width in zip(row, widths, strict=True)
        ]
        yield "  ".join(cells).rstrip()


def _runner(plan: Plan, hardware: str) -> str | list[str]:
    hosted = plan.archs.get(hardware) == "x86_64"
    return "ubuntu-latest" if hosted else ["self-hosted", hardware]


def _collect(file: str, hardware: str, out: str, shard: str = "") -> str:
    """The command that measures; all but the file's name goes in as it is."""
    command = f"fasttrack evidence collect --plan {shlex.quote(file)} --hardware {hardware}"
    return f"{command} --out {out}" + (f" --shard {shard}" if shard else "")


def _yaml(data: Any) -> str:
    return yaml.safe_dump(data, sort_keys=False, width=4096)
