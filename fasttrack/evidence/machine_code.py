# SPDX-License-Identifier: Apache-2.0
"""Whether the machine code that a run launched is the one that was audited.

An audit speaks of one cubin of one unit, architecture and variant. A kernel test, a stress run or
a measured claim of any other build says nothing of it, however the source is the same. Units that
are built for the architecture that ran are audited where the region's tier owes it: there every
launch of theirs tells its variant and its digest. Elsewhere only what is told, and was audited, is
held against the audit. A launch of a unit that the manifest does not have counts nowhere.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from fasttrack.evidence.owed import kinds_owed
from fasttrack.evidence.predicates.common import KernelLaunch
from fasttrack.evidence.predicates.kernel_test_v1 import KernelTestV1
from fasttrack.evidence.predicates.performance_v1 import PerformanceV1
from fasttrack.evidence.predicates.stress_v1 import StressV1
from fasttrack.evidence.statement import Statement
from fasttrack.evidence.status import Answer, Status
from fasttrack.manifest.cells import Cell, CellId, cell
from fasttrack.manifest.model import PATH_UNIT, Manifest, Unit
from fasttrack.manifest.variants import WHOLE_UNIT
from fasttrack.policy.model import Policy
from fasttrack.vocabulary import Kind

Audited = Callable[[Cell], frozenset[str]]
"""Digests of the machine code that audits of a cell cover; empty where none does."""
Launching = KernelTestV1 | StressV1 | PerformanceV1
"""Predicates whose launches must be of audited machine code."""


def audit_cell(unit: str, arch: str, variant: str) -> Cell:
    """The cell in which the machine code of a variant is audited."""
    return cell(Kind.SYNC_AUDIT, "", {"unit": unit, "arch": arch, "variant": variant})


def audits_of(statements: Iterable[Statement]) -> frozenset[CellId]:
    """The audits that say whether statements count; asked before anything is verified."""
    return frozenset(found.id for one in statements for found in _audits(one))


def code_fault(
    statement: Statement, about: Cell, policy: Policy, manifest: Manifest, audited: Audited
) -> Answer | None:
    """What is wrong with the machine code that a statement launched; None when nothing is.

    Machine code that is otherwise comes before an audit that lacks: only the latter can be mended
    without another run.

    Args:
        statement: of a cell that is covered otherwise.
        about: the cell.
        policy: says which tiers owe audits.
        manifest: says which units are built for which architecture.
        audited: tells what audits cover.
    """
    predicate = statement.predicate
    if not isinstance(predicate, Launching):
        return None
    if strange := _strange(predicate, manifest):
        return Answer(Status.OTHER_CODE, strange)
    arch = predicate.machine.arch
    built = {unit.id: unit for unit in manifest.units if arch in unit.archs}
    if not built:
        return None
    owing = kinds_owed(policy, manifest)
    owed = Kind.SYNC_AUDIT in owing.get(about.region, owing[""])
    looked = [
        _Look(launch, launch.unit or predicate.inputs.unit, arch, built, owed=owed)
        for launch in predicate.execution.launches
    ]
    faults = [fault for one in looked if (fault := one.fault(audited))]
    if text := next((f.detail for f in faults if f.status is Status.OTHER_CODE), ""):
        return Answer(Status.OTHER_CODE, text)
    if faults:
        return Answer(Status.UNAUDITED, faults[0].detail, first=_each(faults))
    text = _unseen(about, predicate.inputs.unit, built, looked) if owed else ""
    return Answer(Status.OTHER_CODE, text) if text else None


def _strange(predicate: Launching, manifest: Manifest) -> str:
    """Which launch names a unit that is none; empty where all of them are the manifest's."""
    known = {None, PATH_UNIT, *(unit.id for unit in manifest.units)}
    for launch in predicate.execution.launches:
        if launch.unit not in known:
            return f"the launch of {launch.name} names {launch.unit}, no unit of the manifest"
    return ""


@dataclass(frozen=True)
class _Look:
    """One launch.

    Attributes:
        launch: as recorded.
        unit: whose kernel it is.
        arch: architecture of the machine that ran it.
        built: the units that have machine code for it.
        owed: whether their audits are owed.
    """

    launch: KernelLaunch
    unit: str
    arch: str
    built: dict[str, Unit]
    owed: bool

    @property
    def variant(self) -> str | None:
        """Which variant ran; None where that is not told."""
        whole = self.unit in self.built and self.built[self.unit].variants is None
        return self.launch.variant or (WHOLE_UNIT if whole else None)

    def fault(self, audited: Audited) -> Answer | None:
        """Why nobody can tell that it was audited; None when it was, or need not be."""
        name, cubin, variant = self.launch.name, self.launch.cubin, self.variant
        if self.unit not in self.built:
            saw = f"{name} ran machine code of {self.unit}, which has none for {self.arch}: {cubin}"
            return self._untold(saw) if cubin else None
        if cubin is None or variant is None:
            lacks = "machine code" if cubin is None else "variant"
            return self._untold(f"the launch of {name} of {self.unit} does not tell its {lacks}")
        about = audit_cell(self.unit, self.arch, variant)
        digests = audited(about)
        if cubin in digests:
            return None
        which = f"variant {variant} of {self.unit} for {self.arch}"
        if digests:
            text = f"{which} ran machine code {cubin}, and {' and '.join(sorted(digests))}"
            return Answer(Status.OTHER_CODE, f"{text} was audited")
        text = f"no audit covers {which}, of which it ran machine code {cubin}"
        return Answer(Status.UNAUDITED, text, first=(about,)) if self.owed else None

    def _untold(self, saw: str) -> Answer | None:
        return Answer(Status.OTHER_CODE, saw) if self.owed else None


def _each(faults: Iterable[Answer]) -> tuple[Cell, ...]:
    return tuple(dict.fromkeys(about for fault in faults for about in fault.first))


def _unseen(about: Cell, unit: str, built: dict[str, Unit], looked: Iterable[_Look]) -> str:
    """Which audited machine code should have run and did not, of launches without a fault."""
    ran = {(one.unit, one.variant) for one in looked if one.unit in built}
    variant = str(about.values.get("variant", WHOLE_UNIT))
    if unit == PATH_UNIT:
        return "" if ran else "no audited machine code was seen to run"
    if unit in built and unit not in {whose for whose, _ in ran}:
        return f"no machine code of {unit} was seen to run"
    if unit in built and variant != WHOLE_UNIT and (unit, variant) not in ran:
        return f"variant {variant} of {unit} was not seen to run"
    return ""


def _audits(statement: Statement) -> Iterator[Cell]:
    predicate = statement.predicate
    if isinstance(predicate, Launching):
        for launch in predicate.execution.launches:
            if launch.cubin is not None:
                unit = launch.unit or predicate.inputs.unit
                yield audit_cell(unit, predicate.machine.arch, launch.variant or WHOLE_UNIT)
