# SPDX-License-Identifier: Apache-2.0
"""The engine of `plans` in the lane: changes of it, and signed statements for what they owe."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml

from fasttrack.change.read import read_change, read_revision
from fasttrack.config import read_config
from fasttrack.evidence import store
from fasttrack.evidence.choice import Choice
from fasttrack.evidence.departure import Departure
from fasttrack.evidence.dsse import sign
from fasttrack.evidence.inputs import InputGraph, UnitInputs
from fasttrack.evidence.planning import Planner
from fasttrack.evidence.predicates.common import BoundaryFile, Execution, Inputs, KernelLaunch
from fasttrack.evidence.statement import Statement
from fasttrack.evidence.subject import hardware_of, unit_of
from fasttrack.manifest.cells import Cell
from fasttrack.manifest.model import PATH_UNIT
from fasttrack.manifest.variants import WHOLE_UNIT
from fasttrack.policy.trust import Key
from fasttrack.testing import Content
from fasttrack.verdict import Request, Verdict, evaluate
from fasttrack.vocabulary import Kind
from tests.engine import AS_OF
from tests.evidence.keys import key, signer
from tests.evidence.plans import VARIANTS, engine, region
from tests.evidence.strategies import digest, good

RUN_DAY = datetime(2026, 11, 20, 12, 30, tzinfo=UTC)
KEPT = "manifests/evidence/"
AUDITED = digest("d")
"""Machine code that audits of `good` name."""
GPU = {"h100": "NVIDIA H100 80GB HBM3", "h200": "NVIDIA H200"}


def trusting(*keys: Key, **trust: Any) -> str:
    """What to put at the end of the policy; a runner `lab` for everything when no key is given."""
    everything = keys or (key("lab", hardware=("h100", "h200")),)
    listed = [one.model_dump(mode="json", exclude_none=True) for one in everything]
    return yaml.safe_dump({"trust": {"keys": listed, **trust}})


def lane(tier: str = "kernel-tested", policy: str | None = None) -> dict[str, Content]:
    """The engine with one region at a tier, under a policy that trusts `lab`."""
    return engine(region(tier=tier), policy=trusting() if policy is None else policy)


@dataclass(frozen=True)
class Measured:
    """What statements of a unit say of its bytes.

    Attributes:
        inputs: the unit's.
        signed: what `sign` makes of a run that used nothing beside them.
    """

    inputs: UnitInputs
    signed: Inputs


def owed_at(
    where: Path, revision: str, used: Iterable[BoundaryFile] = ()
) -> tuple[list[Cell], dict[str, Measured]]:
    """Every cell that a revision's scope owes, and what was measured of the units.

    Args:
        where: the repository; its `main` is the target branch.
        revision: the plan's commit.
        used: what a run used beside the boundary.
    """
    with read_revision(where, revision) as found:
        config = read_config(found, folder=None, policy_file=None)
        planner = Planner(found, config, None)
        cells = planner.owed(Choice())
        graph = InputGraph(found, found.base, planner.manifest, config)
        inputs = {unit: graph.unit_inputs(unit) for unit in map(unit_of, cells)}
        with read_change(where, target="main", head=revision) as change:
            departure = Departure(change, planner.manifest.code.roots, config.folder)
            return list(cells), {
                unit: Measured(one, signed_inputs(one, departure, used))
                for unit, one in inputs.items()
            }


def signed_inputs(
    inputs: UnitInputs, departure: Departure, used: Iterable[BoundaryFile] = ()
) -> Inputs:
    """What a signed statement says of a unit's bytes."""
    near = tuple(BoundaryFile(path=f.path, sha256=f.sha256) for f in inputs.boundary)
    bound = {file.path for file in (*inputs.files, *inputs.tests)}
    collected = Inputs(
        unit=inputs.unit,
        digest=inputs.digest,
        tests=inputs.tests_digest,
        boundary=(*near, *used),
    )
    return departure.told(collected, bound, near, "a statement")


def of_core(cell: Cell, cubin: str = AUDITED) -> Execution:
    """Launches of the engine's only unit with machine code, of the variant that a cell is about."""
    named = cell.values.get("variant", WHOLE_UNIT)
    variant = VARIANTS[0]["id"] if named == WHOLE_UNIT else named
    launch = KernelLaunch(name="core", launches=3, cubin=cubin, unit="core", variant=str(variant))
    return Execution(launches=(launch,), fallbacks=0)


def shown(cell: Cell, measured: Measured, **changes: Any) -> Statement:
    """A statement that covers a cell of these inputs, in a run of its own, unless changed.

    `cubin` is what it launched, of the unit that has machine code.
    """
    cubin = changes.pop("cubin", AUDITED)
    inputs = measured.inputs
    hardware = hardware_of(cell) or "h100"
    facts = {
        "values": dict(cell.values),
        "unit": inputs.unit,
        "digest": inputs.digest,
        "tests": inputs.tests_digest,
        "hardware": hardware,
    }
    content = {"seeds": (1, 2, 3)} if cell.kind in {Kind.KERNEL_TEST, Kind.STRESS} else {}
    told = good(cell.kind, content | changes.pop("content", {}), **(facts | changes))
    predicate = told.predicate
    machine = predicate.machine.model_copy(update={"device": GPU[hardware]})
    signed = {name: getattr(measured.signed, name) for name in ("boundary", "target", "apart")}
    update = {"inputs": predicate.inputs.model_copy(update=signed), "machine": machine}
    if hasattr(predicate, "execution") and inputs.unit in {"core", PATH_UNIT}:
        update["execution"] = of_core(cell, cubin)
    return Statement(told.predicate_type, predicate.model_copy(update=update))


def statements_for(
    where: Path, revision: str, used: Iterable[BoundaryFile] = (), **changes: Any
) -> list[Statement]:
    """One for every cell that a revision's scope owes, of runs that used these files as well."""
    cells, inputs = owed_at(where, revision, used)
    return [shown(cell, inputs[unit_of(cell)], **changes) for cell in cells]


def stored(
    where: Path, statements: Iterable[Statement], *key_ids: str, folder: str = KEPT
) -> Mapping[str, Content]:
    """Repository path to content of the files that hold the signed statements.

    Args:
        where: a directory to write them to first.
        statements: what is signed.
        key_ids: by whom; `lab` when nobody is named.
        folder: of the store in the repository.
    """
    signers = [signer(key_id) for key_id in key_ids or ("lab",)]
    files = store.write(where, [sign(one, *signers) for one in statements])
    return {folder + file.name: file.read_bytes() for file in files}


def judged(where: Path, head: str = "topic", **request: Any) -> Verdict:
    """The verdict of a branch against `main`."""
    return evaluate(Request(where, target="main", head=head, **request), AS_OF)


def statuses(verdict: Verdict) -> dict[str, int]:
    """Status to the number of owed cells."""
    found = [owed.answer.status.value for owed in verdict.coverage.owed]
    return {status: found.count(status) for status in sorted(set(found))}
