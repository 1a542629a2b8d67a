# SPDX-License-Identifier: Apache-2.0
"""A cell of the engine, statements about it, and what coverage answers."""

from datetime import date, datetime
from typing import Any

import yaml

from fasttrack.evidence.coverage import (
    Evidence,
)
from fasttrack.evidence.digest import InputFile
from fasttrack.evidence.inputs import UnitInputs
from fasttrack.evidence.predicates.common import (
    BoundaryFile,
    Inputs,
)
from fasttrack.evidence.statement import Statement
from fasttrack.evidence.status import Answer
from fasttrack.evidence.surroundings import START_DAYS, Around, Nowhere, Then
from fasttrack.evidence.terms import Terms
from fasttrack.evidence.trust import Signatures, judge
from fasttrack.manifest.cells import Cell, cell
from fasttrack.manifest.load import load_manifest
from fasttrack.manifest.model import Manifest
from fasttrack.policy.load import load_policy
from fasttrack.policy.model import Policy
from fasttrack.vocabulary import Kind
from tests.engine import MANIFEST, POLICY
from tests.evidence.keys import DAY, trust
from tests.evidence.plans import engine, region
from tests.evidence.strategies import digest, good

KDA = cell(Kind.KERNEL_TEST, "r", {"unit": "kda", "rows": 4, "hardware": "h200"})
BOUNDARY = (BoundaryFile(path="engine/ops.py", sha256=digest("9")),)
LAB = Signatures(("lab",), frozenset({"lab"}))
CLOUD = Signatures(("cloud",), frozenset({"cloud"}))
FORGED = Signatures(("lab",), frozenset())


def inputs(
    unit: str = "kda", files: str = "a", tests: str = "b", boundary: str = "9"
) -> UnitInputs:
    """A unit's inputs in the judged tree, by the letters of their digests."""
    outside = InputFile("engine/ops.py", "100644", digest(boundary), "imported")
    found = UnitInputs(unit, (), (), (outside,))
    found.__dict__.update(digest=digest(files), tests_digest=digest(tests))
    return found


def policy(**changes: Any) -> Policy:
    """The engine's policy, trusting `lab` and `cloud`, with other fields."""
    whole = yaml.safe_load(str(engine()[POLICY]))
    read = load_policy(yaml.safe_dump(whole).encode(), "policy")
    return read.model_copy(update={"trust": trust()} | changes)


def manifest(**changes: Any) -> Manifest:
    """The engine's manifest with one region at a tier, nothing to audit, and other fields."""
    files = engine(region(tier=changes.pop("tier", "kernel-tested")), manifest=changes)
    read = load_manifest(str(files[MANIFEST]).encode(), "manifest")
    unbuilt = {"archs": (), "variants": None}
    units = tuple(unit.model_copy(update=unbuilt) for unit in read.units)
    return read.model_copy(update={"units": units})


ELSEWHERE, MERGED, LONG_AGO = "e" * 40, "d" * 40, "a" * 40
"""A commit of nobody's, one that was merged, and one that the target branch left long ago."""


class HadBefore(Nowhere):
    """A target branch whose `engine/ops.py` was something else once."""

    def was_at(self, commit: str) -> bool:
        """At every commit but these, and not where a run was measured."""
        return commit not in {ELSEWHERE, MERGED, "c" * 40}

    def has_merged(self, commit: str) -> bool:
        """The one that was merged."""
        return commit == MERGED

    def days_behind(self, commit: str, moment: datetime) -> int:
        """More than a run may be, of one commit alone."""
        return START_DAYS + (commit == LONG_AGO)

    def strange(self, ran: Inputs, moved: Then, unit: UnitInputs) -> tuple[str, ...]:
        """All but that."""
        once = moved == {"engine/ops.py": digest("8")}
        return super().strange(ran, {} if once else moved, unit)


HAD_BEFORE = HadBefore()
POLICY_NOW = policy()
MANIFEST_NOW = manifest()


def told(kind: Kind = Kind.KERNEL_TEST, **changes: Any) -> Statement:
    """A statement with the boundary of `inputs`; `machine`, `ran`, ... name other fields."""
    machine, packages = changes.pop("machine", {}), changes.pop("packages", None)
    ran = {"boundary": BOUNDARY, "target": "b" * 40} | changes.pop("ran", {})
    made = good(kind, **changes)
    predicate = made.predicate
    update: dict[str, Any] = {
        "inputs": predicate.inputs.model_copy(update=ran),
        "machine": predicate.machine.model_copy(update=machine),
    }
    if packages is not None:
        update["toolchain"] = predicate.toolchain.model_copy(update={"packages": packages})
    return Statement(made.predicate_type, predicate.model_copy(update=update))


def answer(
    *signed: tuple[Statement, Signatures],
    about: Cell = KDA,
    now: UnitInputs | None = None,
    under: Policy = POLICY_NOW,
    of: Manifest = MANIFEST_NOW,
    day: date = DAY,
    around: Around = HAD_BEFORE,
) -> Answer:
    """What statements say of a cell."""
    evidence = Evidence(judge(signed, under.trust, day))
    return evidence.answer(about, Terms(under, of, day, around), lambda unit: now or inputs(unit))
